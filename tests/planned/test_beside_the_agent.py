"""A planned stop and start while an agent watches: whoever asked for it tells of it, the agent does not."""

from __future__ import annotations

from dataclasses import replace

from fencer.core.model import Reason, Verdict
from fencer.planned.drain import DrainOptions
from fencer.planned.turns import ShutdownOptions, ShutdownTurn, StartTurn
from fencer.runtime.onlooker import Onlooker
from fencer.runtime.reconcile import Agent
from tests.runtime.stagehand import Notebook, Stagehand


class Scene(Stagehand):
    """An armed agent that watches, and a person's verb with its own eyes and its own reporter."""

    def __init__(self) -> None:
        super().__init__()
        self.by_hand = replace(self.world, evictor=self.simulation.cluster, reporter=Notebook())
        self.run(30)
        self.notes.decided_.clear()
        self.notes.acted_.clear()

    def verb(self) -> Agent:
        return Agent(self.by_hand, self.policy, self.simulation.rules(), by="root@pve1")

    def see_through(self, turn) -> None:
        """Let both go on side by side, second by second."""
        turn.prepare()
        while not turn.over:
            turn.advance()
            self.agent.tick()
            self.simulation.clock.wait(1.0)
        assert not turn.failed

    def shut_down(self) -> None:
        options = ShutdownOptions(DrainOptions(), timeout_s=300.0)
        node, tell = self.node(), lambda *_: None
        self.see_through(ShutdownTurn(self.by_hand, self.verb(), self.policy, node, options, tell))

    def told(self) -> list[tuple[str, ...]]:
        """What the agent told of k8s-2, but for the note of its new boot."""
        told = [*self.notes.decided_, *self.notes.acted_]
        return [one for one in told if one[0] == "k8s-2" and one[1] != "BindNode"]


def test_an_agent_says_nothing_of_a_node_that_fencer_shuts_down_and_starts():
    scene = Scene()
    scene.shut_down()
    scene.run(600)
    assert scene.told() == []
    scene.see_through(StartTurn(scene.by_hand, scene.verb(), scene.policy, scene.node(), 300.0))
    scene.run(120)
    assert scene.node().ready
    assert scene.told() == []


def test_meanwhile_status_calls_it_shut_down_by_fencer():
    scene = Scene()
    scene.shut_down()
    for seconds in (1, 30, 600):
        scene.run(seconds)
        onlooker = Onlooker(scene.by_hand, scene.policy, scene.simulation.rules())
        decision = onlooker.look("k8s-2").judged["k8s-2"].decision
        assert (decision.verdict, decision.reason) == (Verdict.OFF, Reason.PLANNED_STOP)


def test_a_guest_that_somebody_starts_and_that_hangs_is_not_shut_down_for_ever():
    """The agent counts for how long it runs; whoever looks once cannot, and says the same."""
    scene = Scene()
    scene.shut_down()
    scene.run(600)
    scene.happen("nic_off")
    scene.happen("start")
    scene.run(700)
    onlooker = Onlooker(scene.by_hand, scene.policy, scene.simulation.rules())
    for _ in range(2):
        assert onlooker.look("k8s-2").judged["k8s-2"].decision.reason is Reason.GUEST_RUNNING
        scene.run(2)
    assert scene.reason() is Reason.GUEST_RUNNING


def test_one_that_an_onlooker_sees_start_is_on_its_way():
    scene = Scene()
    scene.shut_down()
    scene.run(1200)
    onlooker = Onlooker(scene.by_hand, scene.policy, scene.simulation.rules())
    onlooker.look("k8s-2")
    scene.happen("start")
    scene.run(5)
    assert onlooker.look("k8s-2").judged["k8s-2"].decision.reason is Reason.PLANNED_STOP


def test_a_death_after_it_has_come_back_is_told_as_ever():
    scene = Scene()
    scene.shut_down()
    scene.see_through(StartTurn(scene.by_hand, scene.verb(), scene.policy, scene.node(), 300.0))
    scene.run(60)
    scene.happen("power_off")
    scene.run(10)
    assert scene.reason() is Reason.COUNTING_SILENCE
