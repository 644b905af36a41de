"""The decision that raises an alarm is recorded once, before the alarm goes out (A8)."""

from dataclasses import dataclass, field, replace

import pytest

from fencer.core.model import Alarm, Intent, Reason, Verdict, Word
from fencer.core.policy import Mode
from fencer.simulation.hypervisor import SimulatedHypervisor
from tests.runtime.stagehand import ARMED, Stagehand

NODE = "k8s-2"
TOLD = "an order of ours came late"


@dataclass
class Written:
    """A Recorder and Reporter that keeps the order of decisions and alarms."""

    lines: list = field(default_factory=list)

    def judged(self, seen, decision):
        self.lines.append(("recorded", seen, decision))

    def intends(self, seen, action):
        pass

    def decided(self, node, decision):
        self.lines.append(("reported", node, decision))

    def acted(self, node, action, _done):
        if isinstance(action, Alarm):
            self.lines.append(("alarm", node, action))

    def said(self, text, *, warning):
        pass

    def kinds(self, name=NODE):
        """In which order, of one node."""
        return [kind for kind, about, _ in self.lines if getattr(about, "node", about).name == name]


def watched(policy=ARMED, stage=None):
    """An agent whose words are all written down, on a sound cluster."""
    stage = stage or Stagehand(policy)
    written = Written()
    stage.new_agent(policy)
    stage.agent._world = replace(stage.world, recorder=written, reporter=written)
    return stage, written


@pytest.fixture
def late(monkeypatch):
    """Lets a hypervisor find out, besides its reading, something about one guest."""
    state, as_it_is = {"told": ""}, SimulatedHypervisor._evidence

    def evidence(self, guest, *args, **kwargs):
        found = as_it_is(self, guest, *args, **kwargs)
        return replace(found, told=state["told"]) if guest.node == NODE else found

    monkeypatch.setattr(SimulatedHypervisor, "_evidence", evidence)
    return lambda text=TOLD: state.update(told=text)


def alarm_decisions(written):
    """The recorded decisions with an alarm, each with what was seen."""
    recorded = [one[1:] for one in written.lines if one[0] == "recorded"]
    return [(seen, decision) for seen, decision in recorded if Alarm in map(type, decision.actions)]


@pytest.mark.parametrize("mode", list(Mode))
def test_on_a_decision_that_is_no_news_it_is_recorded_once_with_all_that_was_known(late, mode):
    stage, written = watched(replace(ARMED, mode=mode))
    stage.run(60)
    assert written.kinds() == []
    late()
    stage.run(60)
    [(seen, decision)] = alarm_decisions(written)
    assert written.kinds() == ["recorded", "alarm"]
    assert (decision.verdict, seen.close, bool(seen.incident)) == (Verdict.HEALTHY, True, True)
    assert decision.checks


def test_in_the_very_first_decision_too(late):
    late()
    stage, written = watched()
    stage.run(60)
    assert written.kinds() == ["recorded", "alarm"]


def test_its_end_is_recorded_where_nothing_else_is_news(late):
    stage, written = watched()
    stage.run(30)
    late()
    stage.run(60)
    late("")
    stage.run(60)
    assert written.kinds() == ["recorded", "alarm", "recorded"]
    assert not written.lines[-1][2].actions
    late()  # raised before in this incident: neither the alarm nor its end is news again
    stage.run(60)
    late("")
    stage.run(60)
    assert written.kinds() == ["recorded", "alarm", "recorded"]


def test_two_alarms_are_two_decisions(late):
    stage, written = watched()
    stage.run(30)
    late()
    stage.run(30)
    late("its storage was cut off")
    stage.run(30)
    assert written.kinds() == ["recorded", "alarm"] * 2


def test_news_is_recorded_once_although_it_raises_an_alarm(late):
    stage, written = watched()
    stage.run(60)
    late()
    stage.happen("power_off")
    stage.run(4)
    assert written.kinds()[:3] == ["recorded", "reported", "alarm"]
    assert len(alarm_decisions(written)) >= 1


def test_a_look_without_acting_raises_and_records_none(late):
    stage, written = watched()
    stage.run(30)
    late()
    stage.agent.survey(NODE)
    stage.agent.step(NODE, Intent.FENCE, Word(), act=False)
    assert "alarm" not in written.kinds()


def test_a_typed_command_records_it_as_well(late):
    """`fencer unfence` of a node whose VM is back with its old memory refuses, and raises the alarm."""
    stage = Stagehand()
    stage.run(60)
    stage.happen("snapshot")
    stage.run(5)
    stage.happen("power_off")
    stage.run(100)
    stage.happen("revert")
    stage.simulation.clock.wait(30)
    stage, written = watched(stage=stage)
    stage.agent.step(NODE, Intent.UNFENCE, Word())
    stage.simulation.clock.wait(15)
    stage.agent.step(NODE, Intent.UNFENCE, Word())
    [(seen, decision)] = alarm_decisions(written)
    assert (seen.intent, decision.reason) == (Intent.UNFENCE, Reason.OLD_MEMORY)
    assert written.kinds().count("alarm") == 1
    assert written.kinds().index("recorded") < written.kinds().index("alarm")
