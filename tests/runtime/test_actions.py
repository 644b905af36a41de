"""What one action does and tells, carried out alone: how long it may take, and what it needs not do twice."""

from dataclasses import replace
from functools import partial

import pytest

from fencer.core.doubt import WORDS
from fencer.core.model import (
    DiscardSaved,
    Doubt,
    Doubted,
    EvictPods,
    ForgetMark,
    Intent,
    PodView,
    PowerState,
    RecordDoubts,
    StartGuest,
    StopGuest,
)
from fencer.core.policy import SEEMS_KILLED_S, AfterStop, SavedGuest
from fencer.core.recover import START_PAUSE_S, START_TRIES
from fencer.errors import HypervisorDenied
from fencer.evicting.answers import Answer
from fencer.runtime.execute import EVICTION_DEADLINE_S, LONGEST_ACTION_S
from fencer.runtime.reconcile import Agent
from fencer.simulation.faults import What
from tests.runtime.stagehand import ARMED, Stagehand

NAME = "k8s-2"
STARTING = replace(ARMED, after_stop=AfterStop.START)
SIGKILL_S = 10.0
"""After which libvirt's destroy sends it."""
API_TRIES_S = 10.0
"""For which the API server itself may try to evict one pod."""


def look(stage):
    observer = stage.agent.observer
    scene = observer.look()
    return observer.closer(scene, observer.observation(scene, scene.nodes[NAME]))


def do(stage, action):
    return stage.agent.executor.carry_out(look(stage), action)


class Evictor:
    """Evicts whatever it is asked to, and counts."""

    def __init__(self):
        self.evicted = []

    def evict(self, pod, grace_s=None):
        self.evicted.append((pod.name, grace_s))
        return Answer(201, "")


class Watched:
    """An Asker that writes down how long many calls at once may take, and whether they are waited for."""

    def __init__(self, real):
        self._real, self.batches = real, []

    def __getattr__(self, name):
        return getattr(self._real, name)

    def ask_all(self, calls, deadline_s, *, patient=False):
        if patient:
            self.batches.append((len(calls), deadline_s))
        return self._real.ask_all(calls, deadline_s, patient=patient)


def pods(count):
    return tuple(PodView("demo", f"p-{number}", f"uid-{number}", "1", "Running") for number in range(count))


class TestManyPods:
    @pytest.fixture
    def lanes(self, stage):
        """An executor whose batches are written down, and what is evicted."""
        asker, evictor = Watched(stage.world.asker), Evictor()
        world = replace(stage.world, asker=asker, evictor=evictor)
        stage.agent = Agent(world, ARMED, stage.simulation.rules())
        return stage.agent.executor, asker, evictor

    @pytest.mark.parametrize(("count", "longest"), [(1, 1), (8, 1), (9, 2), (17, 3)])
    def test_they_are_waited_for_as_long_as_the_longest_lane_may_take(self, lanes, count, longest):
        executor, asker, _ = lanes
        executor.evict(EvictPods(tuple(pods(count))))
        assert asker.batches == [(min(count, ARMED.clear_parallel), longest * EVICTION_DEADLINE_S)]

    def test_an_eviction_may_take_twice_as_long_as_the_api_server_tries(self):
        assert 2 * API_TRIES_S <= EVICTION_DEADLINE_S <= 3 * API_TRIES_S

    def test_they_are_evicted_with_the_grace_that_was_asked_for(self, stage, lanes):
        _, _, evictor = lanes
        stage.agent.executor.evict(EvictPods(pods(2), 7.0))
        assert evictor.evicted == [("p-0", 7.0), ("p-1", 7.0)]


def test_no_action_takes_longer_than_its_calls_may():
    """A longer one would count as a standstill of the agent; if it were more, a standstill as one."""
    call_s = ARMED.call_deadline_s
    power_off_s = 5 * call_s + ARMED.stop_deadline_s  # claim, a reading before, one after; a note reads, too
    batch_s = ARMED.clear_batch / ARMED.clear_parallel * call_s
    assert max(power_off_s, batch_s) <= LONGEST_ACTION_S <= 1.5 * max(power_off_s, batch_s)


def test_a_power_off_that_took_as_long_as_libvirt_waits_for_sigterm_needed_sigkill():
    assert 0.8 * SIGKILL_S <= SEEMS_KILLED_S <= SIGKILL_S


class TestWhyItIsBound:
    def told(self, stage):
        return [text for node, action, _, text in stage.notes.acted_ if (node, action) == (NAME, "BindNode")]

    def test_a_node_that_was_seen_alive_with_its_guest(self, stage):
        assert ["it runs there now" in text for text in self.told(stage)] == [False]

    def test_one_whose_guest_has_moved(self, stage):
        stage.simulation.guest(NAME).host = "lab2"
        stage.run(40)
        assert ["it runs there now" in text for text in self.told(stage)] == [False, True]

    def test_one_that_has_booted_again(self, stage):
        stage.happen(What.REBOOT)
        stage.run(120)
        assert ["it runs there now" in text for text in self.told(stage)] == [False, False]


class TestPowerOff:
    def test_one_that_is_denied_takes_its_turn_where_the_guest_is_off_all_the_same(self, stage):
        """Its order may have been carried out before somebody refused: only the state counts."""
        stage.happen(What.PAUSE)
        seen = look(stage)

        def off_and_denied():
            stage.happen(What.POWER_OFF)
            raise HypervisorDenied("we may not")

        stage.before["stop"] = off_and_denied
        done = stage.agent.executor.carry_out(
            seen, StopGuest(seen.candidates[0].guest, seen.evidence.incarnation)
        )
        assert done.ok
        assert look(stage).fleet.last_stop_age_s is not None

    def test_one_that_came_too_late_is_told_so_where_somebody_else_switched_it_off(self, stage):
        stage.happen(What.PAUSE)
        seen = look(stage)

        def restart_and_off():
            stage.happen(What.POWER_OFF)
            stage.happen(What.START)
            stage.happen(What.POWER_OFF)

        stage.before["stop"] = restart_and_off
        done = stage.agent.executor.carry_out(
            seen, StopGuest(seen.candidates[0].guest, seen.evidence.incarnation)
        )
        assert (done.ok, done.sent) == (True, False)


class TestGuestsThatAreStartedAgain:
    """With ``after_stop: start``: only one that this agent's own order has switched off, and nobody since."""

    def stopped(self, **before):
        """Have a paused guest stopped; what is to happen right before a call is given by the call's name."""
        stage = Stagehand(STARTING)
        stage.run(25)
        stage.happen(What.PAUSE)
        stage.before.update({call: partial(happens, stage) for call, happens in before.items()})
        claims = stage.calls.count("claim")
        while stage.calls.count("claim") == claims:
            stage.run(0)
            stage.simulation.clock.wait(1.0)
        return stage

    def starts(self, stage):
        """Let the fence follow, and all be given away; how often the guest was started by then."""
        stage.run(200)
        assert stage.node().fenced or stage.node().ready
        return stage.calls.count("start")

    def test_once_the_order_was_carried_out(self):
        assert self.starts(self.stopped()) == 1

    def test_not_where_somebody_else_was_faster(self):
        assert self.starts(self.stopped(claim=lambda stage: stage.happen(What.POWER_OFF))) == 0

    def test_not_where_the_order_came_too_late_and_somebody_switched_it_off(self):
        def hang(stage):
            too_late_s = STARTING.stop_deadline_s + 1
            stage.simulation.hypervisor.trouble.freeze_s = too_late_s
            stage.simulation.clock.after(too_late_s - 0.5, lambda: stage.happen(What.POWER_OFF))

        assert self.starts(self.stopped(stop=hang)) == 0

    def test_not_where_that_was_not_confirmed_at_once(self):
        """It may have been somebody else, later."""

        def lie(stage):
            stage.simulation.hypervisor.lie(NAME, PowerState.PAUSED)

        stage = self.stopped(stop=lie)
        stage.happen(What.TRUTHFUL, "")
        assert self.starts(stage) == 0
        assert stage.node().fenced

    def test_not_where_somebody_ran_it_since_and_switched_it_off(self):
        """A rescue system, say: whoever did that means it."""
        stage = self.stopped()
        stage.happen(What.START)
        stage.happen(What.POWER_OFF)
        assert self.starts(stage) == 0

    def test_not_once_it_was_seen_running_though_its_being_off_has_the_same_name(self):
        """As on Proxmox VE, where no start is on record any more."""
        stage = self.stopped()
        guest = stage.simulation.guest(NAME)
        starts = guest.starts
        stage.happen(What.START)
        stage.run(0)
        stage.happen(What.POWER_OFF)
        guest.starts = starts
        assert self.starts(stage) == 0

    def test_by_another_agent_too_which_finds_it_as_it_was_left(self):
        stage = self.stopped()
        stage.new_agent()
        assert self.starts(stage) == 1

    def test_once_only_though_two_agents_would(self):
        stage = self.stopped()
        first, second = stage.agent, stage.new_agent()
        stage.happen(What.POWER_DENIED, "")
        while not stage.calls.count("start"):
            stage.run(1)
        stage.happen(What.TRUTHFUL, "")
        stage.agent = first
        stage.run(START_PAUSE_S - 10)
        assert (stage.calls.count("start"), second is first) == (1, False)

    def test_not_by_another_agent_once_somebody_ran_it_and_switched_it_off(self):
        stage = self.stopped()
        stage.happen(What.START)
        stage.happen(What.POWER_OFF)
        stage.new_agent()
        assert self.starts(stage) == 0

    def test_not_one_that_a_person_had_shut_down(self):
        """`fencer shutdown --stop-after`: whoever wants it off wants it off."""
        stage = Stagehand(STARTING)
        stage.run(25)
        seen = replace(look(stage), intent=Intent.SHUTDOWN)
        action = StopGuest(seen.candidates[0].guest, seen.evidence.incarnation)
        assert stage.agent.executor.carry_out(seen, action).ok
        assert self.starts(stage) == 0

    def test_a_start_that_fails_may_give_its_being_off_another_name(self):
        """As on Proxmox VE, where it is on record."""
        stage = self.stopped()
        stage.happen(What.POWER_DENIED, "")

        def on_record():
            stage.simulation.guest(NAME).starts += 1
            stage.simulation.clock.after(30.0, lambda: stage.happen(What.TRUTHFUL, ""))

        stage.before["start"] = on_record
        stage.run(100)
        failed, done = [at for at, call in enumerate(stage.calls) if call == "start"]
        assert "sweep" in stage.calls[failed:done]
        assert stage.simulation.guest(NAME).power is PowerState.RUNNING

    def test_one_that_somebody_ran_a_moment_before_its_start_is_left_alone(self):
        stage = self.stopped()

        def rescue():
            stage.happen(What.START)
            stage.happen(What.POWER_OFF)

        stage.before["start"] = rescue
        assert self.starts(stage) == 1
        assert stage.simulation.guest(NAME).power is PowerState.STOPPED
        assert [ok for _, action, ok, _ in stage.notes.acted_ if action == "StartGuest"] == [False]

    def test_a_start_that_fails_is_tried_again(self):
        """As of a guest that is locked for a moment."""
        stage = self.stopped()
        stage.happen(What.POWER_DENIED, "")
        may = partial(setattr, stage.simulation.hypervisor.trouble, "power_denied", False)
        stage.before["start"] = lambda: stage.before.update(start=may)
        assert self.starts(stage) == 2
        assert stage.node().ready

    def test_one_whose_endpoint_is_away_for_a_moment_is_tried_again(self):
        """Nor can be read what became of it."""
        stage = self.stopped()

        def away():
            stage.happen(What.UNREACHABLE, "")
            stage.simulation.clock.after(20.0, partial(stage.happen, What.TRUTHFUL, ""))

        stage.before["start"] = away
        assert self.starts(stage) == 2
        told = [text for _, action, _, text in stage.notes.acted_ if action == "StartGuest"]
        assert told == ["lab: connection refused", "started lab/k8s-2 on lab1"]

    def test_but_not_for_ever(self):
        stage = self.stopped()
        stage.happen(What.POWER_DENIED, "")
        assert self.starts(stage) == START_TRIES
        starts = [(ok, told) for _, action, ok, told in stage.notes.acted_ if action == "StartGuest"]
        assert [(ok, "we may not start k8s-2" in told) for ok, told in starts] == [
            (False, True)
        ] * START_TRIES

    def test_what_a_person_starts_is_not_tried_again(self):
        stage = self.stopped(claim=lambda stage: stage.happen(What.POWER_OFF))
        stage.happen(What.POWER_DENIED, "")
        seen = look(stage)
        assert not do(stage, StartGuest(seen.candidates[0].guest, seen.evidence.incarnation)).ok
        assert look(stage).stopped_as is None


class TestSavedMemoryThatWasThrownAway:
    """Nobody else knows: without a note of it, its guest would never be believed to be off."""

    def discard(self, conflicts):
        stage = Stagehand(replace(ARMED, saved_guest=SavedGuest.DISCARD))
        stage.run(25)
        stage.happen(What.SAVE)
        api = stage.simulation.api

        def conflict():
            nonlocal conflicts
            if conflicts:
                conflicts -= 1
                stage.before["record_doubts"] = conflict
                api.changed(api.nodes[NAME])

        stage.before["discard"] = lambda: stage.before.update(record_doubts=conflict)
        stage.run(90)
        after = stage.calls[stage.calls.index("discard") :]
        return after[: after.index("taint")].count("record_doubts"), stage.node().fenced

    def test_that_is_written_once(self):
        assert self.discard(conflicts=0) == (1, True)

    def test_nothing_is_written_where_nothing_was_noted(self, stage):
        stage.happen(What.SAVE)
        seen = look(stage)
        done = stage.agent.executor.carry_out(
            seen, DiscardSaved(seen.candidates[0].guest, seen.evidence.incarnation)
        )
        assert done.ok
        assert "record_doubts" not in stage.calls

    def test_and_again_while_others_write_the_node(self):
        assert self.discard(conflicts=4) == (5, True)


class TestNotes:
    def doubt(self, stage, kind):
        seen = look(stage)
        return Doubt(kind, seen.candidates[0].guest, seen.evidence.witness, "fencer", seen.utc)

    def test_of_several_doubts_the_newest_is_told(self, stage):
        doubts = (self.doubt(stage, Doubted.SAVED), self.doubt(stage, Doubted.MIGRATED))
        assert WORDS[Doubted.MIGRATED] in str(do(stage, RecordDoubts(doubts)))

    def test_that_none_is_left_is_told(self, stage):
        assert "is over" in str(do(stage, RecordDoubts(())))

    def test_a_mark_of_an_older_fence_is_taken_off(self, stage):
        done = do(stage, ForgetMark())
        assert done.ok
        assert "forget_mark" in stage.calls
