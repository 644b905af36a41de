"""Limits at their edges: what a policy may be, how long a pause or saved memory lasts, when to look again."""

from dataclasses import replace

import pytest

from fencer.core.decide import decide
from fencer.core.done import PodsCleared
from fencer.core.history import LEASE_DURATION_S, aged, remember, track, unheard
from fencer.core.model import Fleet, GuestHistory, Intent, PowerState, Reason, Verdict, Word
from fencer.core.policy import Policy, SavedGuest, UnresponsiveGuest
from tests.core.build import (
    ARMED,
    GUEST,
    NEW_BOOT,
    NOW_S,
    OTHER,
    evidence,
    healthy,
    in_state,
    node,
    observation,
    run,
)

DISCARDING = replace(ARMED, saved_guest=SavedGuest.DISCARD)
STOPPING = replace(ARMED, unresponsive_guest=UnresponsiveGuest.STOP)


class TestPolicies:
    @pytest.mark.parametrize(
        "fine",
        [
            {},
            {"confirm_s": 0.0},
            {"confirm_s": 4.0},
            {"poll_s": 0.5, "confirm_s": 1.0},
            {"lease_silent_s": 0.0, "require_not_ready": False},
            {"lease_silent_s": 15.5},
            {"lease_silent_s": 0.75, "lease_period_s": 0.4},
            {"evidence_max_age_s": 4.0},
            {"poll_s": 3.0, "confirm_s": 6.0, "evidence_max_age_s": 6.0},
            {"stop_deadline_s": 10.5},
            {"unfence_renewals": 1},
            {"clear_parallel": 1, "clear_batch": 1},
            {"max_fenced": 1},
            {"max_fenced": None},
            {"max_fenced_hosts": 1},
            {"max_fenced_hosts": None},
        ],
        ids=str,
    )
    def test_these_are_taken(self, fine):
        assert Policy(**fine).violations() == ()

    @pytest.mark.parametrize(
        ("wrong", "named"),
        [
            ({"poll_s": 0.0}, "poll_s must be more than 0"),
            ({"confirm_s": -1.0}, "confirm_s must not be negative"),
            ({"confirm_s": -0.5}, "confirm_s must not be negative"),
            ({"confirm_s": 1.0}, "confirm_s (1) must be 0 or at least two polls"),
            ({"confirm_s": 3.9}, "confirm_s (3.9) must be 0 or at least two polls"),
            ({"lease_silent_s": -1.0}, "lease_silent_s must not be negative"),
            ({"lease_silent_s": -0.5, "require_not_ready": False}, "lease_silent_s must not be negative"),
            ({"lease_silent_s": 1.0}, "lease_silent_s (1) must be 0, or more than"),
            ({"lease_silent_s": 15.0}, "lease_silent_s (15) must be 0, or more than"),
            ({"lease_silent_s": 0.0}, "needs require_not_ready: false"),
            ({"evidence_max_age_s": 3.9}, "must be at least 4"),
            ({"poll_s": 1.0, "evidence_max_age_s": 3.9}, "must be at least 4"),
            ({"poll_s": 3.0, "confirm_s": 6.0, "evidence_max_age_s": 5.9}, "must be at least 6"),
            ({"stop_deadline_s": 10.0}, "stop_deadline_s (10) must be more than 10"),
            ({"unfence_renewals": 0}, "unfence_renewals must be at least 1"),
            ({"clear_parallel": 0}, "clear_parallel must be at least 1"),
            ({"clear_batch": 7}, "clear_batch (7) must be at least clear_parallel (8)"),
            ({"max_fenced": 0}, "max_fenced must be at least 1"),
            ({"max_fenced_hosts": 0}, "max_fenced_hosts must be at least 1"),
        ],
        ids=str,
    )
    def test_these_are_refused_and_why(self, wrong, named):
        assert any(named in told for told in Policy(**wrong).violations())

    def test_readings_of_two_successive_passes_add_up(self):
        """An answer as late as it counts, a poll, and a sweep in which an endpoint took all its time."""
        assert Policy().apart_s == 22.0
        assert Policy(evidence_max_age_s=9.0, poll_s=3.0, call_deadline_s=5.0).apart_s == 17.0


class TestHowLong:
    def lasted(self, state, held_s, policy=ARMED, readings=3, **facts):
        since = run(state, since_s=NOW_S - 1 - held_s, last_s=NOW_S - 1, readings=readings)
        return decide(in_state(state, history=GuestHistory(since), **facts), policy)

    @pytest.mark.parametrize(("intent", "limit_s"), [(Intent.WATCH, 60.0), (Intent.FENCE, 5.0)])
    def test_a_pause_is_stopped_at_its_limit_which_is_shorter_by_hand(self, intent, limit_s):
        assert self.lasted(PowerState.PAUSED, limit_s, intent=intent).verdict is Verdict.STOP_FIRST
        early = self.lasted(PowerState.PAUSED, limit_s - 0.5, intent=intent)
        assert (early.verdict, early.reason) == (Verdict.WAIT, Reason.PAUSE_TOO_SHORT)
        assert early.recheck_s == pytest.approx(0.5)

    def test_a_pause_that_was_read_once_has_lasted_for_no_time(self):
        assert self.lasted(PowerState.PAUSED, 0.0, readings=1).recheck_s == 60.0

    def test_a_pause_is_no_older_than_what_was_heard_last(self):
        """It ran between two readings: its kubelet renewed. A lease that is gone says nothing."""
        node = in_state(PowerState.PAUSED).node
        early = self.lasted(PowerState.PAUSED, 90.0, node=replace(node, lease_age_s=45.0))
        assert (early.reason, early.recheck_s) == (Reason.PAUSE_TOO_SHORT, 15.0)
        for silent_s in (60.0, None):
            later = self.lasted(PowerState.PAUSED, 90.0, node=replace(node, lease_age_s=silent_s))
            assert later.reason is not Reason.PAUSE_TOO_SHORT

    def test_saved_memory_is_thrown_away_at_its_limit(self):
        assert self.lasted(PowerState.SAVED, 5.0, DISCARDING).verdict is Verdict.DISCARD_FIRST
        early = self.lasted(PowerState.SAVED, 1.0, DISCARDING)
        assert (early.reason, early.recheck_s) == (Reason.NOT_HELD, 4.0)
        assert self.lasted(PowerState.SAVED, 4.5, DISCARDING).recheck_s == ARMED.poll_s

    @pytest.mark.parametrize(
        "history", [GuestHistory(), GuestHistory(run(PowerState.RUNNING))], ids=["none", "ran"]
    )
    @pytest.mark.parametrize("state", [PowerState.PAUSED, PowerState.SAVED])
    def test_what_was_not_read_so_before_has_not_lasted_at_all(self, state, history):
        waits = decide(in_state(state, history=history), DISCARDING)
        assert waits.verdict is Verdict.WAIT
        assert waits.recheck_s == (60.0 if state is PowerState.PAUSED else 5.0)

    def test_a_guest_that_runs_is_waited_for_as_long_as_its_node_has_to_be_silent(self):
        waits = decide(in_state(PowerState.RUNNING), STOPPING)
        assert (waits.verdict, waits.reason, waits.recheck_s) == (
            Verdict.WAIT,
            Reason.GUEST_UNRESPONSIVE,
            210.0,
        )

    def test_a_guest_that_runs_has_to_be_there_for_as_long_as_a_kubelet_takes_to_be_heard_again(self):
        """Its host was cut off, and is back: its kubelet was cut off with it, and renews within seconds."""
        silent = node(lease_age_s=400.0)
        assert self.lasted(PowerState.RUNNING, 15.0, STOPPING, node=silent).verdict is Verdict.STOP_FIRST
        early = self.lasted(PowerState.RUNNING, 11.0, STOPPING, node=silent)
        assert (early.reason, early.recheck_s) == (Reason.GUEST_UNRESPONSIVE, 4.0)
        for history in (GuestHistory(), GuestHistory(run(PowerState.PAUSED))):
            unseen = decide(in_state(PowerState.RUNNING, history=history, node=silent), STOPPING)
            assert (unseen.verdict, unseen.recheck_s) == (Verdict.WAIT, 15.0)

    @pytest.mark.parametrize("settled", [True, False])
    def test_only_readings_after_the_last_lock_or_task_add_up(self, settled):
        """What a rollback, or a backup, leaves behind for a moment is the next step of the same task."""
        history = GuestHistory()
        for at_s, free in ((980.0, True), (988.0, False), (995.0, True), (999.0, settled)):
            reading = evidence(observed_at_s=at_s, settled=free)
            history = remember(history, node(), reading, at_s, ARMED.apart_s)
        judged = decide(observation(history=history, evidence=evidence(observed_at_s=999.0)), ARMED)
        assert (judged.reason, judged.recheck_s) == (Reason.NOT_HELD, 1.0 if settled else 5.0)
        later = remember(history, node(), evidence(observed_at_s=1000.0), 1000.0, ARMED.apart_s)
        held = decide(observation(history=later, evidence=evidence(observed_at_s=1000.0)), ARMED)
        assert (held.verdict is Verdict.FENCE) is settled

    def test_a_stall_is_of_storage_errors_on_that_endpoint(self):
        for io_error, stalled in ((False, "lab"), (True, "home")):
            paused = evidence(PowerState.PAUSED, io_error=io_error)
            fleet = Fleet(7, 1, stalled=frozenset({stalled}))
            decision = decide(in_state(PowerState.PAUSED, evidence=paused, fleet=fleet), ARMED)
            assert decision.verdict is Verdict.STOP_FIRST

    def test_what_was_done_is_looked_at_again_at_the_next_poll_and_why_it_was_is_told(self):
        paused = decide(in_state(PowerState.PAUSED), ARMED)
        assert (paused.reason, paused.recheck_s) == (Reason.GUEST_PAUSED, ARMED.poll_s)
        runs = decide(in_state(PowerState.RUNNING, node=node(lease_age_s=301.0)), STOPPING)
        assert (runs.reason, runs.recheck_s) == (Reason.GUEST_UNRESPONSIVE, ARMED.poll_s)
        saved = decide(in_state(PowerState.SAVED), DISCARDING)
        assert (saved.reason, saved.recheck_s) == (Reason.GUEST_SAVED, ARMED.poll_s)

    @pytest.mark.parametrize(
        ("seen", "verdict"),
        [
            (healthy(intent=Intent.SHUTDOWN), Verdict.ASK),
            (healthy(intent=Intent.SHUTDOWN, asked_s=5.0), Verdict.WAIT),
            (healthy(intent=Intent.SHUTDOWN, asked_s=5.0, word=Word(stop_after_s=5.0)), Verdict.STOP_FIRST),
            (in_state(PowerState.STOPPING, intent=Intent.SHUTDOWN), Verdict.WAIT),
            (observation(intent=Intent.START), Verdict.START),
            (observation(intent=Intent.START, asked_s=5.0), Verdict.WAIT),
            (in_state(PowerState.STOPPING, intent=Intent.START), Verdict.WAIT),
            (healthy(intent=Intent.START, asked_s=5.0), Verdict.WAIT),
            (healthy(intent=Intent.START, node=replace(healthy().node, lease_age_s=40.0)), Verdict.WAIT),
            (healthy(intent=Intent.START, node=replace(healthy().node, ready=False)), Verdict.WAIT),
        ],
        ids=str,
    )
    def test_so_is_what_a_planned_end_or_start_waits_for(self, seen, verdict):
        decision = decide(seen, ARMED)
        assert (decision.verdict, decision.recheck_s) == (verdict, ARMED.poll_s)


class TestMemory:
    """What an agent remembers of a lease and a guest, and what it must not."""

    def test_a_first_look_that_finds_no_lease_remembers_so(self):
        unread = track(None, None, ready=True, now_s=1.0)
        assert not unread.readable
        assert track(None, "t1", ready=True, now_s=1.0).readable
        found = track(unread, "t1", ready=True, now_s=2.0)
        assert (found.renewals, found.readable) == (0, True)

    def test_what_was_renewed_is_told_by_its_newest_time(self):
        lease = track(track(None, "t1", ready=True, now_s=1.0), "t2", ready=True, now_s=2.0, version=9)
        assert (lease.renew_time, lease.version) == ("t2", 9)
        assert aged(node(), lease, 3.0).renewed_utc == "t2"
        assert track(lease, "t2", ready=True, now_s=3.0).renewals == 1
        assert aged(node(), track(None, None, ready=True, now_s=1.0), 3.0).renewed_utc == ""

    def test_deafness_takes_no_more_than_what_went_beyond_a_leases_duration(self):
        lease = track(None, "t1", ready=True, now_s=100.0)
        deaf = unheard(track(lease, "t1", ready=True, now_s=160.0), 60.0, 160.0, LEASE_DURATION_S)
        assert (deaf.changed_at_s, deaf.deaf_s) == (120.0, 20.0)

    def test_a_new_boot_counts_its_renewals_from_there(self):
        seen = node(boot_id=NEW_BOOT, lease_renewals=7)
        history = remember(GuestHistory(boot_id="older"), seen, None, NOW_S, 10.0)
        assert (history.renewals_at_boot, history.boot_seen_s) == (7, NOW_S)

    def test_a_fall_that_was_seen_stays_so_and_is_nobody_elses(self):
        def after(history, state, guest=GUEST, at_s=NOW_S + 2):
            return remember(history, node(), evidence(state, guest=guest, observed_at_s=at_s), at_s, 10.0)

        fell = after(GuestHistory(run(PowerState.RUNNING), guest=GUEST.key), PowerState.STOPPED)
        assert fell.running_seen
        assert after(fell, PowerState.PAUSED, at_s=NOW_S + 4).running_seen
        assert not after(fell, PowerState.STOPPED, guest=OTHER, at_s=NOW_S + 4).running_seen
        paused = GuestHistory(run(PowerState.PAUSED), guest=GUEST.key)
        assert not after(paused, PowerState.STOPPED).running_seen

    def test_it_is_remembered_where_it_last_ran(self):
        def ran(host, before):
            reading = evidence(PowerState.RUNNING, guest=replace(GUEST, host=host))
            return remember(before, node(), reading, NOW_S, 10.0)

        first = ran("lab1", GuestHistory())
        assert ran("lab2", first).ran_as.host == "lab2"
        off = remember(first, node(), evidence(guest=replace(GUEST, host="lab3")), NOW_S, 10.0)
        assert off.ran_as.host == "lab1"

    def test_a_run_goes_on_over_a_gap_as_long_as_its_limit_and_breaks_over_a_longer_one(self):
        for gap_s, readings in ((10.0, 41), (10.1, 1)):
            history = GuestHistory(run(last_s=NOW_S), guest=GUEST.key)
            late = evidence(observed_at_s=NOW_S + gap_s)
            assert remember(history, node(), late, NOW_S + gap_s, 10.0).run.readings == readings

    @pytest.mark.parametrize(("lease_age_s", "forgotten"), [(59.5, False), (60.0, True), (None, False)])
    def test_a_renewal_is_forgotten_after_a_minute_of_silence_that_was_read(self, lease_age_s, forgotten):
        history = GuestHistory(run(renewals_at_start=4, last_s=NOW_S), guest=GUEST.key)
        seen = node(lease_age_s=lease_age_s)
        after = remember(history, seen, evidence(observed_at_s=NOW_S + 2), NOW_S + 2, 10.0)
        assert (after.run.renewals_at_start == 5) is forgotten
        assert (after.run.readings == 1) is forgotten

    def test_another_boot_id_breaks_a_run_of_a_guest_that_runs_only(self):
        for state, readings in ((PowerState.STOPPED, 41), (PowerState.RUNNING, 1)):
            history = GuestHistory(run(state, last_s=NOW_S), guest=GUEST.key)
            reading = evidence(state, observed_at_s=NOW_S + 2)
            seen = remember(history, node(boot_id="another"), reading, NOW_S + 2, 10.0)
            assert seen.run.readings == readings

    def test_a_pause_goes_on_since_the_renewal_that_is_forgotten(self):
        """Else it would begin again when it is over, and be told as a short one; and its locks count on."""
        locked = run(PowerState.PAUSED, renewals_at_start=4, last_s=NOW_S, busy=39, free_since_s=NOW_S - 3)
        history = GuestHistory(locked, guest=GUEST.key)
        reading = evidence(PowerState.PAUSED, observed_at_s=NOW_S + 2)
        seen = remember(history, node(lease_age_s=61.0), reading, NOW_S + 3, 10.0).run
        assert (seen.renewals_at_start, seen.since_s, seen.last_s) == (5, NOW_S - 58, NOW_S + 2)
        assert (seen.readings, seen.busy, seen.free_since_s) == (41, 39, NOW_S - 3)
        young = replace(history, run=replace(locked, since_s=NOW_S - 30))
        assert remember(young, node(lease_age_s=61.0), reading, NOW_S + 3, 10.0).run.since_s == NOW_S - 30
        older = replace(reading, observed_at_s=NOW_S)
        assert remember(history, node(lease_age_s=61.0), older, NOW_S + 3, 10.0).run == locked


def test_what_a_batch_came_to_is_counted_and_told():
    some = PodsCleared(gone=("a", "b"), held={"c": "a finalizer"}, changed=("d",), failed={"e": "no right"})
    assert (some.count, some.ok) == (5, True)
    assert some.notes == ("c: a finalizer", "1 pod changed meanwhile, looking again: d", "e: no right")
    assert not PodsCleared(failed={"e": "no right"}).ok
    assert PodsCleared(gone=("a",)).notes == ()
