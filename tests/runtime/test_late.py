"""What comes too late, or takes long: nothing is done on it, and nobody else is set back by it."""

from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest

from fencer.core.election import Seat, Tenure
from fencer.core.fleet import STALL_REMEMBERED_S
from fencer.core.model import (
    ClearPods,
    FenceMark,
    PowerState,
    Reason,
    ShutdownGuest,
    TaintNode,
    Uncordon,
    UntaintNode,
)
from fencer.errors import FencerError
from fencer.runtime.execute import LONGEST_ACTION_S
from fencer.runtime.reconcile import Agent
from fencer.simulation.asker import InlineAsker, Process
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from tests.runtime.stagehand import ARMED, POWER, Stagehand

CONTROL_PLANE = ("control-plane",)


class Slow:
    """Sets a stage on which the API takes as long as one likes; the agent has seen every node alive."""

    def __init__(self, policy=ARMED):
        self.stage = Stagehand(policy)
        clock = self.stage.simulation.clock
        self.answer_s = 0.005
        asker = InlineAsker(clock, lambda endpoint: self.answer_s if "kubernetes" in endpoint else 0.005)
        world = replace(self.stage.world, asker=asker)
        self.stage.agent = Agent(world, policy, self.stage.simulation.rules())
        self.stage.run(25)

    def until_it_is_due(self):
        """Let time pass until the next pass would fence k8s-2."""
        clock = self.stage.simulation.clock
        clock.wait(ARMED.poll_s)
        while self.stage.node().ready:
            self.stage.agent.tick()
            clock.wait(ARMED.poll_s)


def test_a_taint_that_was_given_up_is_not_set_later():
    """The guest may run again by then: what was proven before the write began is proven no more."""
    slow = Slow()
    slow.stage.happen(What.CRASH)
    slow.until_it_is_due()

    def hang():
        slow.answer_s = ARMED.call_deadline_s + 10.0

    before = slow.stage.before  # nodes are counted once more after the look: the next call is the taint's
    before["attachments"] = lambda: before.update(list_nodes=lambda: before.update(heartbeats=hang))
    slow.stage.agent.shared.finder.attachments_changed()
    slow.stage.agent.tick()
    slow.answer_s = 0.005
    slow.stage.simulation.clock.wait(20)
    [taint] = [entry for entry in slow.stage.notes.acted_ if entry[1] == "TaintNode"]
    assert not taint[2]
    slow.stage.simulation.clock.wait(60)
    assert "taint" not in slow.stage.calls
    assert not slow.stage.node().fenced


@pytest.mark.parametrize("gives_it_back", [True, False])
def test_an_order_that_has_begun_is_not_given_once_the_lease_is_given_back(gives_it_back):
    """Another agent may take it at once: it need not wait until it has run out."""
    stage = Stagehand()
    tenures = {"k8s-2": Tenure(Seat.HOLDER, "fencer-lab", float("inf"), "fencer@pve1")}
    election = SimpleNamespace(tenure=lambda _endpoint: tenures["k8s-2"])
    world = replace(stage.world, election=election)
    stage.agent = Agent(world, ARMED, stage.simulation.rules())
    stage.run(25)
    stage.happen(What.PAUSE)
    if gives_it_back:
        stage.before["stop"] = lambda: tenures.update({"k8s-2": Tenure(Seat.UNSETTLED, "fencer-lab")})
    stage.run(120)
    assert stage.calls.count("stop") == 1
    stopped = stage.simulation.guest("k8s-2").power is PowerState.STOPPED
    assert stopped is not gives_it_back


def slow_and_due(calls_s=0.4 * ARMED.evidence_max_age_s):
    """Return a stage on which each call of the API takes seconds, right before k8s-2 would be fenced."""
    slow = Slow()
    slow.stage.happen(What.CRASH)
    slow.until_it_is_due()
    slow.answer_s = calls_s
    slow.stage.agent.shared.finder.attachments_changed()
    return slow


def test_a_reading_that_grew_old_while_the_node_was_read_is_taken_again():
    slow = slow_and_due()
    slow.stage.agent.tick()
    slow.stage.simulation.clock.wait(120)
    assert slow.stage.node().fenced


def test_a_reading_that_grew_old_and_cannot_be_taken_again_proves_nothing():
    slow = slow_and_due()
    trouble = slow.stage.simulation.hypervisor.trouble
    slow.stage.before["attachments"] = lambda: setattr(trouble, "unreachable", True)
    slow.stage.agent.tick()
    slow.stage.simulation.clock.wait(60)
    assert slow.stage.reason() is Reason.EVIDENCE_STALE
    assert "taint" not in slow.stage.calls


@pytest.mark.parametrize("meanwhile", ["attachments", "list_nodes", "heartbeats"])
def test_a_vm_that_is_started_while_all_else_is_read_is_not_fenced(meanwhile):
    slow = slow_and_due()
    slow.stage.before[meanwhile] = lambda: slow.stage.happen(What.START)
    slow.stage.agent.tick()
    slow.stage.simulation.clock.wait(60)
    assert slow.stage.simulation.guest("k8s-2").power is PowerState.RUNNING
    assert "taint" not in slow.stage.calls


def test_a_power_off_that_took_long_sets_nobody_else_back():
    """It takes longer than readings may lie apart; and yet nobody stood still meanwhile."""
    stage = Stagehand()
    stage.run(25)
    trouble = stage.simulation.hypervisor.trouble
    stage.happen(What.PAUSE)
    stage.run(20)
    stage.happen(What.PAUSE, "k8s-3")
    stage.before["claim"] = lambda: setattr(trouble, "delay_s", ARMED.apart_s / 3 + 0.5)
    while "stop" not in stage.calls:
        since_s = stage.agent.tick().judged["k8s-3"].observation.history.run.since_s
        stage.simulation.clock.wait(ARMED.poll_s)
    trouble.delay_s = 0.0
    assert stage.agent.tick().judged["k8s-3"].observation.history.run.since_s == since_s


def test_one_in_the_midst_of_which_the_agent_was_suspended_does():
    """What took longer than any action may is a standstill: the other one's pauses do not add up over it."""
    stage = Stagehand()
    clock = stage.simulation.clock
    process = Process(clock)
    world = replace(stage.world, asker=InlineAsker(clock, lambda _endpoint: 0.05, process))
    stage.agent = Agent(world, ARMED, stage.simulation.rules())
    stage.run(25)
    stage.happen(What.PAUSE)
    stage.run(20)
    stage.happen(What.PAUSE, "k8s-3")
    stage.before["claim"] = lambda: process.meets(lambda: clock.advance(LONGEST_ACTION_S))
    since = set()
    while "stop" not in stage.calls:
        since.add(stage.agent.tick().judged["k8s-3"].observation.history.run.since_s)
        clock.wait(ARMED.poll_s)
    assert len(since) > 1


def test_nor_does_a_pass_in_which_the_api_takes_its_time():
    """Longer than readings may lie apart: each call shows that the agent goes on."""
    slow = Slow()
    slow.stage.happen(What.PAUSE)
    slow.stage.run(ARMED.lease_silent_s + 20)
    slow.answer_s = ARMED.call_deadline_s - 1
    took, since = [], set()
    for _ in range(3):
        began_s = slow.stage.simulation.clock.now_s()
        slow.stage.agent.shared.finder.attachments_changed()
        since.add(slow.stage.agent.tick().judged["k8s-3"].observation.history.run.since_s)
        took.append(slow.stage.simulation.clock.now_s() - began_s)
    assert sum(took) > ARMED.apart_s
    assert len(since) == 1


class TestQuorum:
    """Three control-plane nodes, of which one has just ended: its lease is young for a while all the same."""

    @pytest.mark.parametrize(("another", "stopped"), [("", True), (What.POWER_OFF, False)])
    def test_a_paused_one_is_stopped_only_if_the_others_run(self, another, stopped):
        stage = Stagehand(shape=Shape(nodes=("k8s-1", "k8s-2", "k8s-3", "k8s-4")))
        for name in ("k8s-1", "k8s-2", "k8s-3"):
            stage.simulation.api.nodes[name].roles = CONTROL_PLANE
        stage.run(25)
        stage.happen(What.PAUSE)
        stage.run(ARMED.paused_for_s - 5)
        if another:
            stage.happen(another, "k8s-3")
        assert not POWER & set(stage.calls)
        stage.run(20)
        assert bool(POWER & set(stage.calls)) is stopped


def test_a_storage_stall_is_remembered_when_all_but_one_guest_go_on():
    """The last one to go on is part of it; ten minutes later it counts for itself."""
    stage = Stagehand()
    stage.simulation.clock.wait(STALL_REMEMBERED_S)
    stage.run(25)
    for name in ("k8s-2", "k8s-3"):
        stage.happen(What.IO_ERROR, name)
    stage.run(10)
    stage.happen(What.RESUME, "k8s-3")
    stage.run(300)
    assert stage.reason() is Reason.STORAGE_STALL
    stage.run(400)
    assert "stop" in stage.calls


class Abandoned:
    """Runs calls as another Asker does; once told so, it keeps the next one, and somebody presses Ctrl-C.

    Args:
        real: Runs everything else.
    """

    def __init__(self, real):
        self._real = real
        self.pressed, self.kept = False, []

    def __getattr__(self, name):
        return getattr(self._real, name)

    def ask(self, endpoint, call, deadline_s):
        if not self.pressed:
            return self._real.ask(endpoint, call, deadline_s)
        self.kept.append(call)
        raise KeyboardInterrupt

    def ask_all(self, calls, deadline_s, *, patient=False):
        if not (self.pressed and patient):
            return self._real.ask_all(calls, deadline_s, patient=patient)
        self.kept += calls.values()
        raise KeyboardInterrupt


class TestCtrlC:
    """A worker may begin with what was given up a moment later, long before its deadline."""

    def give_up(self, stage, fault, order):
        """Give an order on what is seen now, and give it up before its worker begins; it begins then."""
        stage.happen(fault)
        stage.run(5)
        asker = Abandoned(stage.world.asker)
        agent = Agent(replace(stage.world, asker=asker), ARMED, stage.simulation.rules())
        scene = agent.observer.look()
        seen = agent.observer.closer(scene, agent.observer.observation(scene, scene.nodes["k8s-2"]))
        asker.pressed = True
        stage.calls.clear()
        with pytest.raises(KeyboardInterrupt):
            agent.executor.carry_out(seen, order(seen))
        assert asker.kept
        for call in asker.kept:
            with suppress(FencerError):
                call()

    def test_no_taint_is_set_any_more(self, stage):
        def taint(seen):
            guest = seen.candidates[0].guest
            return TaintNode(FenceMark("inc-1", seen.utc, seen.node.boot_id, guest, "a person"))

        self.give_up(stage, What.CRASH, taint)
        assert not stage.node().fenced

    def test_no_pod_is_cleared_any_more(self, stage):
        self.give_up(stage, What.CRASH, lambda seen: ClearPods(seen.pods))
        assert "clear" not in stage.calls

    def test_no_guest_is_asked_any_more_to_shut_down(self, stage):
        def shutdown(seen):
            return ShutdownGuest(seen.candidates[0].guest, seen.evidence.incarnation)

        self.give_up(stage, What.NIC_OFF, shutdown)
        stage.simulation.clock.wait(90)
        assert stage.simulation.guest("k8s-2").power is PowerState.RUNNING


@pytest.mark.parametrize(
    ("meanwhile", "why"),
    [
        (lambda stage: stage.happen(What.START), "reads otherwise by now: running"),
        (
            lambda stage: setattr(stage.simulation.hypervisor.trouble, "unreachable", True),
            "cannot be read any more",
        ),
    ],
    ids=["started", "unreachable"],
)
def test_the_vm_is_read_once_more_right_before_its_node_is_tainted(meanwhile, why):
    stage = Stagehand()
    stage.run(25)
    stage.happen(What.CRASH)
    stage.before["list_nodes"] = lambda: meanwhile(stage)
    stage.run(75)
    assert "taint" not in stage.calls
    [(ok, text)] = [(ok, text) for _, action, ok, text in stage.notes.acted_ if action == "TaintNode"]
    assert (ok, why in text) == (False, True)


@pytest.mark.parametrize(("calls_s", "named"), [(6.0, True), (0.005, False)])
def test_a_power_order_that_comes_too_late_names_a_slow_api_server_as_the_cause(calls_s, named):
    """Not where it is the hypervisor that takes long."""
    slow = Slow()
    stage, clock = slow.stage, slow.stage.simulation.clock
    stage.happen(What.PAUSE)
    stage.run(50)
    slow.answer_s = calls_s
    if not named:
        stage.before["claim"] = lambda: stage.before.update(read=lambda: clock.wait(11.0))
    stage.run(150)
    late = [str(entry) for entry in stage.notes.acted_ if "too late" in str(entry)]
    assert late
    assert all(("The API server is slow: its last call took 6 s" in text) is named for text in late)
    assert ("stop" in stage.calls) is not named


class Dozing:
    """A recorder in whose first note of an action of some kind the agent is suspended."""

    def __init__(self, recorder, kind, doze):
        self._recorder, self._kind, self._doze = recorder, kind, doze

    def __getattr__(self, name):
        return getattr(self._recorder, name)

    def intends(self, seen, action):
        self._recorder.intends(seen, action)
        if isinstance(action, self._kind):
            self._kind = ()
            self._doze()


class TestSuspended:
    """Between a decision and its action the world may have changed: what was seen is too old then (G9)."""

    LATE = f"k8s-2 was looked at 11 s ago, and the limit is {ARMED.evidence_max_age_s:g} s"

    @pytest.mark.parametrize("kind", [ClearPods, UntaintNode, Uncordon])
    def test_nothing_is_done_on_what_was_seen_before(self, kind):
        stage = Stagehand()
        recorder = Dozing(stage.world.recorder, kind, lambda: stage.simulation.clock.advance(11.0))
        stage.agent = Agent(replace(stage.world, recorder=recorder), ARMED, stage.simulation.rules())
        stage.run(25)
        stage.happen(What.CRASH)
        stage.run(150)
        stage.happen(What.START)
        stage.run(200)
        first, *later = (entry for entry in stage.notes.acted_ if entry[1] == kind.__name__)
        assert not first[2]
        assert self.LATE in first[3]
        assert all(entry[2] for entry in later)
        assert not stage.node().fenced, "it goes on with a new look"
        assert kind is not ClearPods or "clear" not in stage.calls, "Kubernetes was quicker"

    def test_of_a_batch_the_rest_waits_for_another_look(self):
        policy = replace(ARMED, clear_parallel=1)
        stage = Stagehand(policy)
        stage.run(25)
        stage.happen(What.CRASH)
        stage.before["clear"] = lambda: stage.simulation.clock.advance(ARMED.evidence_max_age_s + 1.0)
        stage.run(150)
        batches = [entry[3] for entry in stage.notes.acted_ if entry[1] == "ClearPods"]
        assert batches[0].startswith("1 pod changed meanwhile"), "one was tried, and Kubernetes was quicker"
        assert batches[1].startswith("2 of 2 ")
        assert not stage.pods()
