"""What one action does and tells, carried out alone: how long it may take, and what it needs not do twice."""

from dataclasses import replace
from functools import partial

import pytest

from fencer.core.doubt import WORDS
from fencer.core.evictions import Answer
from fencer.core.model import (
    DiscardSaved,
    Doubt,
    Doubted,
    EvictPods,
    ForgetMark,
    PodView,
    PowerState,
    RecordDoubts,
    StopGuest,
)
from fencer.core.policy import AfterStop, SavedGuest
from fencer.core.stop import stopped
from fencer.errors import ClusterConflict, ClusterDenied, HypervisorDenied, HypervisorUnreachable
from fencer.runtime.execute import EVICTION_DEADLINE_S, KILLED_AFTER_S, LONGEST_ACTION_S
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
        executor.evict(pods(count))
        assert asker.batches == [(min(count, ARMED.clear_parallel), longest * EVICTION_DEADLINE_S)]

    def test_an_eviction_may_take_twice_as_long_as_the_api_server_tries(self):
        assert 2 * API_TRIES_S <= EVICTION_DEADLINE_S <= 3 * API_TRIES_S

    def test_they_are_evicted_with_the_grace_that_was_asked_for(self, stage, lanes):
        _, _, evictor = lanes
        assert do(stage, EvictPods(pods(2), 7.0)).ok
        assert evictor.evicted == [("p-0", 7.0), ("p-1", 7.0)]


def test_no_action_takes_longer_than_its_calls_may():
    """A longer one would count as a standstill of the agent; if it were more, a standstill as one."""
    call_s = ARMED.call_deadline_s
    power_off_s = 5 * call_s + ARMED.stop_deadline_s  # claim, a reading before, one after; a note reads, too
    batch_s = ARMED.clear_batch / ARMED.clear_parallel * call_s
    assert max(power_off_s, batch_s) <= LONGEST_ACTION_S <= 1.5 * max(power_off_s, batch_s)


def test_a_power_off_that_took_as_long_as_libvirt_waits_for_sigterm_needed_sigkill():
    assert 0.8 * SIGKILL_S <= KILLED_AFTER_S <= SIGKILL_S


class TestWhyItIsBound:
    def told(self, stage):
        return [text for node, action, _, text in stage.notes.acted_ if (node, action) == (NAME, "BindNode")]

    def test_a_node_that_was_seen_alive_with_its_guest(self, stage):
        assert ["it runs there now" in text for text in self.told(stage)] == [False]

    def test_one_whose_guest_has_moved(self, stage):
        stage.simulation.guest(NAME).host = "lab2"
        stage.run(40)
        assert ["it runs there now" in text for text in self.told(stage)] == [False, True]

    def test_one_that_has_booted_anew(self, stage):
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


class TestWhoStoppedAGuestIsNoted:
    """After a fence only a guest that fencer itself stopped is started again, by whichever agent is there."""

    def stop(self, policy=STARTING, **before):
        """Have a paused guest stopped; what is to happen right before calls is given by their names."""
        stage = Stagehand(policy)
        stage.run(25)
        stage.happen(What.PAUSE)
        seen = look(stage)
        stage.calls.clear()
        stage.before.update({call: partial(happens, stage) for call, happens in before.items()})
        action = StopGuest(seen.candidates[0].guest, seen.evidence.incarnation)
        stage.agent.executor.carry_out(replace(seen, incident="an incident"), action)
        return stage

    def writing(self, error, times):
        """What to have happen before the order, so that the note after it fails so many times."""

        def fails(stage):
            nonlocal times
            if times:
                times -= 1
                stage.before["claim"] = partial(fails, stage)
                raise error

        return lambda stage: stage.before.update(claim=partial(fails, stage))

    def test_once_the_order_was_given(self):
        stage = self.stop()
        assert stage.node().claim == stopped("an incident")
        assert stage.notes.said_ == []

    def test_not_where_somebody_else_was_faster(self):
        stage = self.stop(claim=lambda stage: stage.happen(What.POWER_OFF))
        assert "stop" not in stage.calls
        assert stage.node().claim != stopped("an incident")

    def test_also_where_its_answer_was_an_error_and_the_guest_is_off(self):
        stage = self.stop(stop=lambda stage: stage.happen(What.STOP_RAISES, ""))
        assert stage.node().claim == stopped("an incident")

    def test_also_where_it_is_not_seen_off_any_more(self):
        stage = self.stop(stop=lambda stage: stage.before.update(read=lambda: stage.happen(What.START)))
        assert stage.simulation.guest(NAME).power is PowerState.RUNNING
        assert stage.node().claim == stopped("an incident")

    def test_not_where_it_was_for_another_run(self):
        def restarted_and_off(stage):
            for what in (What.POWER_OFF, What.START, What.POWER_OFF):
                stage.happen(what)

        assert self.stop(stop=restarted_and_off).node().claim == "an incident"

    def test_not_where_it_may_never_have_begun(self):
        def too_late(_stage):
            raise HypervisorUnreachable("too late")

        assert self.stop(stop=too_late).node().claim == "an incident"

    @pytest.mark.parametrize("by_another", [False, True])
    def test_not_where_the_order_was_refused(self, by_another):
        def refused(stage):
            if by_another:
                stage.happen(What.POWER_OFF)
            stage.happen(What.POWER_DENIED, "")

        assert self.stop(stop=refused).node().claim == "an incident"

    def test_it_costs_no_call_where_nobody_would_start_it(self):
        assert self.stop(ARMED).calls.count("claim") == 1

    @pytest.mark.parametrize("times", [1, 4])
    def test_again_while_others_write_the_node(self, times):
        stage = self.stop(stop=self.writing(ClusterConflict("somebody else wrote it"), times))
        assert stage.node().claim == stopped("an incident")
        assert stage.calls.count("claim") == 2 + times

    @pytest.mark.parametrize(
        ("error", "tries"), [(ClusterConflict("written"), 5), (ClusterDenied("no right"), 1)]
    )
    def test_that_it_could_not_be_is_told(self, error, tries):
        stage = self.stop(stop=self.writing(error, 99))
        assert stage.calls.count("claim") == 1 + tries
        [(text, warning)] = stage.notes.said_
        assert warning
        assert f"{NAME}: nobody starts its guest again" in text
        assert str(error) in text
        assert f"`fencer start {NAME}`" in text


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
        assert "believed again" in str(do(stage, RecordDoubts(())))

    def test_a_mark_of_an_older_fence_is_taken_off(self, stage):
        done = do(stage, ForgetMark())
        assert done.ok
        assert "forget_mark" in stage.calls
