"""Leases by our own clock, and runs of equal readings: when one goes on, and what breaks it."""

from dataclasses import replace
from math import inf

import pytest

from fencer.core.history import (
    LEASE_DURATION_S,
    NOT_READ,
    LeaseTrack,
    aged,
    glimpse,
    listen,
    proven_running,
    remember,
    renewals_in_run,
    silence_kept_s,
    track,
    unheard,
)
from fencer.core.model import Binding, GuestHistory, Heard, PowerState, Unreadable
from fencer.core.policy import Mode, Policy
from tests.core.build import BOOT, GUEST, NEW_BOOT, NOW_S, OTHER, evidence, node

OFF, ON = PowerState.STOPPED, PowerState.RUNNING


def told(*readings, lease_renewals=5, start=None):
    """Fold readings (state or Evidence) two seconds apart; return history and the node."""
    history, seen = start or GuestHistory(), node(lease_renewals=lease_renewals)
    for n, reading in enumerate(readings):
        fact = reading if not isinstance(reading, PowerState) else evidence(reading)
        history = remember(history, seen, replace(fact, observed_at_s=NOW_S + 2 * n), NOW_S + 2 * n, 10.0)
    return history, seen


@pytest.mark.parametrize("late", [ON, PowerState.PAUSED, OFF])
def test_an_answer_that_a_newer_one_has_overtaken_changes_nothing(late):
    """A slow hypervisor answers the first of two calls last."""
    history, seen = told(OFF, OFF)
    older = evidence(late, observed_at_s=NOW_S + 1)
    assert remember(history, seen, older, NOW_S + 3, 10.0).run == history.run


class TestLeases:
    def test_the_age_counts_from_the_last_change_that_we_saw(self):
        first = track(None, "t1", ready=True, now_s=100.0)
        same = track(first, "t1", ready=True, now_s=130.0)
        seen = aged(node(), same, 130.0)
        assert (seen.lease_age_s, seen.lease_renewals, seen.not_ready_s) == (30.0, 0, None)
        moved = aged(node(), track(same, "t2", ready=True, now_s=131.0), 131.0)
        assert (moved.lease_age_s, moved.lease_renewals) == (0.0, 1)

    def test_a_clock_that_is_wrong_inside_the_node_does_not_matter(self):
        ahead = track(track(None, "2099", ready=True, now_s=1.0), "1999", ready=True, now_s=2.0)
        assert ahead.renewals == 1

    def test_no_lease_has_no_age(self):
        assert aged(node(), track(None, None, ready=False, now_s=1.0), 9.0).lease_age_s is None
        assert aged(node(), LeaseTrack(None, 1.0), 9.0).lease_age_s is None

    def test_what_is_not_told_of_a_lease_is_as_at_the_first_look(self):
        assert LeaseTrack("t1", 1.0, read_s=1.0) == track(None, "t1", ready=True, now_s=1.0)

    def test_at_the_first_look_a_lease_counts_as_renewed_at_that_moment(self):
        assert aged(node(), track(None, "t1", ready=True, now_s=1.0), 1.0).renewed_within_s == 0.0

    def test_how_old_a_renewal_may_be_at_most_is_known_by_the_look_before(self):
        first = track(None, "t1", ready=True, now_s=1.0)
        again = track(first, "t1", ready=True, now_s=11.0)
        seen = track(again, "t2", ready=True, now_s=71.0)
        assert aged(node(), seen, 80.0).renewed_within_s == 60.0
        unread = track(again, None, ready=True, now_s=50.0)
        assert aged(node(), track(unread, "t2", ready=True, now_s=71.0), 80.0).renewed_within_s == 60.0
        assert aged(node(), track(seen, "t3", ready=True, now_s=73.0), 80.0).renewed_within_s == 2.0
        late = track(replace(seen, version=9), "t1", ready=True, now_s=73.0, version=5)
        assert late.read_s == 71.0

    def test_a_lease_that_vanishes_is_not_silent_but_unknown(self):
        """It was renewed a moment ago; whether it would be now, nobody can say."""
        lease = track(track(None, "t1", ready=True, now_s=1.0), None, ready=True, now_s=50.0)
        assert aged(node(), lease, 50.0).lease_age_s is None
        back = track(lease, "t1", ready=True, now_s=60.0)
        assert (aged(node(), back, 60.0).lease_age_s, back.renewals) == (59.0, 0)

    def test_a_list_that_lags_behind_a_live_read_tells_nothing(self):
        live = track(None, "t3", ready=True, now_s=1.0, version=30)
        late = track(live, "t1", ready=True, now_s=2.0, version=10)
        assert (late.renew_time, late.renewals, late.changed_at_s) == ("t3", 0, 1.0)
        newer = track(late, "t4", ready=True, now_s=3.0, version=40)
        assert (newer.renewals, newer.changed_at_s) == (1, 3.0)

    def test_while_nobody_is_heard_silence_counts_up_to_a_leases_duration_only(self):
        """Else the second node that is heard again would look silent for as long as the API was gone."""
        lease = track(None, "t1", ready=True, now_s=0.0)
        lease = unheard(track(lease, "t1", ready=False, now_s=300.0), 290.0, 300.0, LEASE_DURATION_S)
        seen = aged(node(), lease, 300.0)
        assert (seen.lease_age_s, seen.deaf_s) == (40.0, 260.0)
        later = aged(node(), track(lease, "t1", ready=False, now_s=310.0), 310.0)
        assert (later.lease_age_s, later.deaf_s) == (50.0, 260.0)
        again = aged(node(), track(lease, "t2", ready=True, now_s=310.0), 310.0)
        assert (again.lease_age_s, again.deaf_s) == (0.0, 0.0)

    @pytest.mark.parametrize(("silent_s", "kept_s"), [(40.0, 25.0), (20.0, 5.0), (10.0, 0.0), (0.0, 25.0)])
    def test_once_anybody_is_heard_each_other_one_has_its_chance_to_be(self, silent_s, kept_s):
        """A kubelet that the API did not answer either tries again within a lease's period."""
        policy = replace(Policy(mode=Mode.OBSERVE), lease_silent_s=silent_s)
        assert silence_kept_s(policy) == kept_s
        lease = track(None, "t1", ready=True, now_s=0.0)
        lease = unheard(track(lease, "t1", ready=False, now_s=100.0), 100.0, 100.0, silence_kept_s(policy))
        assert aged(node(), lease, 100.0).lease_age_s == kept_s

    def test_silence_that_is_not_long_is_counted_in_full(self):
        lease = track(track(None, "t1", ready=True, now_s=0.0), "t1", ready=True, now_s=30.0)
        lease = unheard(lease, 30.0, 30.0, LEASE_DURATION_S)
        assert aged(node(), lease, 30.0).lease_age_s == 30.0

    def test_only_the_time_in_which_nobody_was_heard_is_not_counted(self):
        """One list in a minute that fails must not take the silence away that was there before."""
        lease = track(track(None, "t1", ready=True, now_s=0.0), "t1", ready=False, now_s=110.0)
        lease = unheard(lease, 4.0, 110.0, LEASE_DURATION_S)
        assert aged(node(), lease, 110.0).lease_age_s == 106.0

    def test_what_is_new_after_a_time_without_a_look_may_be_as_old_as_that(self):
        """For silence it counts from now, for a sign of life from then; until the next change."""
        lease = track(track(None, "t1", ready=True, now_s=0.0), "t2", ready=True, now_s=80.0, unseen_s=70.0)
        seen = aged(node(), lease, 82.0)
        assert (seen.lease_age_s, seen.heard_s) == (2.0, 72.0)
        seen = aged(node(), track(lease, "t3", ready=True, now_s=90.0), 92.0)
        assert (seen.lease_age_s, seen.heard_s) == (2.0, 2.0)

    def test_an_api_that_was_restored_from_a_backup_is_believed_at_last(self):
        """Its versions began again, lower; a list that lags shows lower ones, too, but not for a minute."""
        lease = track(None, "t9", ready=True, now_s=1000.0, version=900)
        lagging = track(lease, "t8", ready=True, now_s=1059.0, version=800)
        assert aged(node(), lagging, 1059.0).lease_age_s == 59.0
        restored = track(lagging, "t10", ready=True, now_s=1060.0, version=100)
        assert aged(node(), restored, 1060.0).lease_age_s == 0.0
        assert track(restored, "t11", ready=True, now_s=1070.0, version=101).changed_at_s == 1070.0

    def test_not_ready_counts_from_its_beginning(self):
        down = track(track(None, "t1", ready=False, now_s=5.0), "t1", ready=False, now_s=9.0)
        assert aged(node(), down, 9.0).not_ready_s == 4.0
        assert track(down, "t1", ready=True, now_s=10.0).not_ready_since_s is None
        fell = track(track(None, "t1", ready=True, now_s=5.0), "t1", ready=False, now_s=9.0)
        assert fell.not_ready_since_s == 9.0


class TestRuns:
    def test_equal_readings_make_a_run(self):
        history, _ = told(OFF, OFF, OFF)
        assert (history.run.readings, history.run.since_s, history.run.last_s) == (3, NOW_S, NOW_S + 4)

    @pytest.mark.parametrize(
        "breaking",
        [ON, evidence(OFF, incarnation="run-2")],
        ids=["another state", "another incarnation"],
    )
    def test_what_breaks_a_run(self, breaking):
        history, _ = told(OFF, OFF, breaking)
        assert history.run.readings == 1

    def test_readings_under_a_lock_go_on_in_a_run_and_count_for_no_end(self):
        """Nor does what came before them: a lock may end in another step of the same operation."""
        locked = evidence(OFF, settled=False)
        for before in ((locked, locked), (OFF, locked)):
            under, _ = told(*before)
            assert (under.run.readings, under.run.busy, under.run.lasted_s) == (2, 2, 0.0)
            free, _ = told(*before, OFF, OFF)
            assert (free.run.readings, free.run.busy, free.run.lasted_s) == (4, 2, 2.0)
        never, _ = told(OFF, OFF)
        assert (never.run.busy, never.run.lasted_s) == (0, 2.0)

    def test_what_was_heard_over_a_gap_counts_against_it_all_the_same(self):
        """The agent stood still, and its kubelet was heard meanwhile: that was after it first read off."""
        off, _ = told(OFF)
        late, heard = evidence(OFF, observed_at_s=NOW_S + 90.0), node(lease_renewals=6, lease_age_s=1.0)
        history = remember(off, heard, late, NOW_S + 90.0, 10.0)
        assert (history.run.readings, renewals_in_run(history, heard)) == (1, 1)
        other = remember(off, heard, replace(late, incarnation="another run"), NOW_S + 90.0, 10.0)
        assert renewals_in_run(other, heard) == 0
        runs, _ = told(ON)
        again = remember(runs, heard, replace(late, power_state=ON), NOW_S + 90.0, 10.0)
        assert renewals_in_run(again, heard) == 0

    def test_a_gap_breaks_a_run(self):
        history, seen = told(OFF, OFF)
        late = remember(history, seen, evidence(OFF, observed_at_s=NOW_S + 30), NOW_S + 30, 10.0)
        assert late.run.readings == 1

    def test_a_fall_is_remembered(self):
        assert told(ON, OFF)[0].running_seen
        assert not told(OFF, OFF)[0].running_seen

    def test_when_it_was_last_off_outlasts_every_run_but_not_the_guest(self):
        """Runs begin again for many reasons; what was heard before it was off is of the past in each."""
        was_off, _ = told(ON, OFF, OFF, ON, evidence(ON, conclusive=False), ON)
        assert was_off.off_s == NOW_S + 4.0
        late, _ = told(evidence(OFF), start=was_off)  # an older answer
        assert late.off_s == NOW_S + 4.0
        again, _ = told(evidence(ON, guest=OTHER), start=was_off)
        assert again.off_s == -inf

    def test_a_recorded_absence_continues_a_stop_and_any_other_does_not(self):
        recorded = evidence(PowerState.ABSENT, end_recorded=True)
        assert told(OFF, recorded)[0].run.readings == 2
        assert told(OFF, evidence(PowerState.ABSENT))[0].run.readings == 1

    def test_readings_that_prove_nothing_change_nothing(self):
        before, _ = told(OFF, OFF)
        assert told(evidence(ON, conclusive=False), start=before)[0] == before
        assert remember(before, node(), None, NOW_S, 10.0) == before

    def test_a_reading_that_comes_late_does_not_turn_time_back(self):
        history, seen = told(OFF, OFF)
        assert remember(history, seen, evidence(OFF, observed_at_s=NOW_S - 1), NOW_S + 9, 10.0) == history

    def test_a_new_boot_breaks_a_run_of_running(self):
        history, seen = told(ON, ON)
        rebooted = replace(seen, boot_id=NEW_BOOT)
        after = remember(history, rebooted, evidence(ON, observed_at_s=NOW_S + 4), NOW_S + 4, 10.0)
        assert (after.run.readings, after.boot_id, after.boot_seen_s) == (1, NEW_BOOT, NOW_S + 4)

    def test_a_renewal_is_forgotten_after_a_minute_of_silence(self):
        history, seen = told(OFF, OFF)
        renewed = replace(seen, lease_renewals=6, lease_age_s=30.0)
        still = remember(history, renewed, evidence(OFF, observed_at_s=NOW_S + 4), NOW_S + 4, 10.0)
        assert renewals_in_run(still, renewed) == 1
        silent = replace(renewed, lease_age_s=61.0)
        again = remember(history, silent, evidence(OFF, observed_at_s=NOW_S + 4), NOW_S + 4, 10.0)
        assert renewals_in_run(again, silent) == 0
        assert renewals_in_run(GuestHistory(), silent) == 0


class TestGuests:
    def test_another_guest_begins_again(self):
        history, seen = told(ON, ON)
        other = evidence(OFF, guest=OTHER, observed_at_s=NOW_S + 4)
        after = remember(history, seen, other, NOW_S + 4, 10.0)
        assert (after.guest, after.running_seen, after.run.readings) == (OTHER.key, False, 1)

    def test_what_this_agent_saw_alive_stays_proven_when_it_falls(self):
        history, seen = told(ON, ON)
        renewed = replace(seen, lease_renewals=6)
        alive = remember(history, renewed, evidence(ON, observed_at_s=NOW_S + 4), NOW_S + 4, 10.0)
        fell = remember(alive, renewed, evidence(OFF, observed_at_s=NOW_S + 6), NOW_S + 6, 10.0)
        assert (history.proven, alive.proven, fell.proven) == (False, True, True)
        other = evidence(OFF, guest=OTHER, observed_at_s=NOW_S + 8)
        assert not remember(fell, renewed, other, NOW_S + 8, 10.0).proven


class TestLiveLooks:
    """Signs of life of a guest that was called off: only live reads, each after a live reading, and newer."""

    @staticmethod
    def heard(*looks, start=None):
        """Fold looks (state or Evidence, and the second of renewTime); return the renewals heard."""
        history = start or GuestHistory()
        for reading, second in looks:
            fact = reading if not isinstance(reading, PowerState) else evidence(reading)
            seen = node(renewed_utc=f"2026-11-20T10:00:{second:02d}Z")
            history = listen(history, seen, fact, NOW_S + second)
        return history.heard and history.heard.renewals

    def test_the_first_renewal_may_be_older_than_the_end_and_counts_for_nothing(self):
        assert self.heard((OFF, 10)) == 0
        assert self.heard((OFF, 10), (OFF, 10), (OFF, 10)) == 0

    def test_each_newer_one_is_a_sign_of_life(self):
        assert self.heard((OFF, 10), (OFF, 20), (OFF, 20), (OFF, 30)) == 2

    def test_whoever_reads_it_running_from_afar_too_is_believed_again(self):
        heard = GuestHistory(heard=Heard(GUEST, "test:lab", "run-1", "", renewals=2))
        ran_here = replace(heard, guest=GUEST.key, ran_as=GUEST)
        for before in (heard, ran_here):
            assert remember(before, node(), evidence(PowerState.RUNNING), NOW_S, 30.0).heard is None

    def test_one_that_is_older_by_the_nodes_clock_is_one_too(self):
        """Its clock may step back. What is older by the API's own count is never taken in: see `track`."""
        assert self.heard((OFF, 30), (OFF, 20), (OFF, 21)) == 2

    @pytest.mark.parametrize(
        "between",
        [ON, PowerState.PAUSED, PowerState.UNKNOWN, evidence(PowerState.ABSENT)],
        ids=["runs", "paused", "unknown", "no record of its end"],
    )
    def test_another_word_in_between_begins_again(self, between):
        assert self.heard((OFF, 10), (OFF, 20), (between, 30)) is None
        assert self.heard((OFF, 10), (OFF, 20), (between, 30), (OFF, 40)) == 0

    @pytest.mark.parametrize(
        "changed", [{"incarnation": "run-2"}, {"witness": "another"}, {"guest": OTHER}], ids=str
    )
    def test_so_does_another_run_witness_or_guest(self, changed):
        assert self.heard((OFF, 10), (OFF, 20), (evidence(OFF, **changed), 30)) == 0

    def test_a_record_of_its_end_goes_on_from_a_stop(self):
        assert self.heard((OFF, 10), (evidence(PowerState.ABSENT, end_recorded=True), 20)) == 1

    def test_what_is_not_live_is_not_taken_in(self):
        before = self.heard((OFF, 10), (OFF, 20))
        assert self.heard((OFF, 10), (OFF, 20), (evidence(OFF, conclusive=False), 30)) == before
        assert listen(GuestHistory(), node(), None, NOW_S) == GuestHistory()

    def test_a_lease_that_cannot_be_read_is_no_sign_of_life(self):
        history = listen(GuestHistory(), node(renewed_utc=""), evidence(OFF), NOW_S)
        assert listen(history, node(renewed_utc=""), evidence(OFF), NOW_S).heard.renewals == 0


class TestKnownBoots:
    """In which boot a kubelet lives whose VM is reported off: a known boot, or one that is just starting."""

    BINDING = Binding(GUEST, (BOOT,))
    ALIVE = tuple((at_s, at_s, {}) for at_s in range(0, 151, 10))
    """A renewal every 10 s: the second one after the first reading is that at 20 s."""

    def listened(self, *looks, binding=BINDING, reading=None):
        """Fold looks: at which second, when the lease was last renewed, and what else the Node shows."""
        history = GuestHistory()
        for at_s, renewed_s, facts in looks:
            usual = {"lease_age_s": float(at_s - renewed_s), "reported_utc": "before", "binding": binding}
            seen = node(**{"renewed_utc": str(renewed_s)} | usual | facts)
            history = listen(history, seen, reading or evidence(), float(at_s))
        return history.heard

    def test_a_kubelet_that_goes_on_for_two_minutes_and_shows_a_known_boot_is_alive_in_it(self):
        assert self.listened(*self.ALIVE[:14]).boot_id == ""
        assert self.listened(*self.ALIVE[:15]).boot_id == BOOT

    def test_by_when_it_renewed_not_by_when_that_was_read(self):
        """It may be dead since."""
        heard = self.listened(*self.ALIVE[:14], (155, 130, {}))
        assert (heard.renewals, heard.boot_id) == (13, "")

    def test_one_that_reports_its_status_after_two_renewals_is_alive_in_the_boot_that_it_reports(self):
        report = (30, 30, {"reported_utc": "since"})
        assert self.listened(*self.ALIVE[:3], report).boot_id == BOOT
        starts = (30, 30, {"reported_utc": "since", "boot_id": NEW_BOOT})
        assert self.listened(*self.ALIVE[:3], starts).boot_id == ""

    @pytest.mark.parametrize("before", [1, 2])
    def test_a_report_from_before_that_may_have_been_on_its_way(self, before):
        looks = [(at_s, at_s, {"reported_utc": "late"}) for at_s in range(10 * before, 60, 10)]
        assert self.listened(*self.ALIVE[:before], *looks).boot_id == ""

    def test_one_without_a_time_is_no_report(self):
        looks = [(at_s, at_s, {"reported_utc": "" if at_s > 20 else "before"}) for at_s in range(0, 60, 10)]
        assert self.listened(*looks).boot_id == ""

    def test_the_boot_that_was_proven_first_stays(self):
        both = Binding(GUEST, (BOOT, NEW_BOOT))
        later = (160, 160, {"reported_utc": "since", "boot_id": NEW_BOOT})
        assert self.listened(*self.ALIVE, later, binding=both).boot_id == BOOT

    def test_a_boot_that_is_not_known_is_never_proven(self):
        moved = [(at_s, at_s, {"boot_id": NEW_BOOT, "reported_utc": str(at_s)}) for at_s in range(0, 300, 10)]
        assert self.listened(*moved).boot_id == ""

    def test_a_kubelet_that_starts_shows_the_boot_before_for_a_while(self):
        starts = [(at_s, at_s, {"boot_id": BOOT if at_s < 60 else NEW_BOOT}) for at_s in range(0, 300, 10)]
        assert self.listened(*starts).boot_id == ""

    def test_from_when_it_shows_a_known_boot_again_it_counts_anew(self):
        other = [(at_s, at_s, {"boot_id": NEW_BOOT}) for at_s in range(50, 80, 10)]
        after = [(at_s, at_s, {}) for at_s in range(80, 210, 10)]
        assert self.listened(*self.ALIVE[:5], *other, *after[:-1]).boot_id == ""
        assert self.listened(*self.ALIVE[:5], *other, *after).boot_id == BOOT

    @pytest.mark.parametrize(
        "binding",
        [None, Unreadable("broken"), Binding(OTHER, (BOOT,)), Binding(replace(GUEST, host="lab2"), (BOOT,))],
        ids=["none", "unreadable", "another VM", "another host"],
    )
    def test_it_is_a_boot_of_the_vm_that_the_node_is_bound_to(self, binding):
        here = evidence(guest=replace(GUEST, host="lab1"))
        assert self.listened(*self.ALIVE, reading=here).boot_id == BOOT
        assert self.listened(*self.ALIVE, reading=here, binding=binding).boot_id == ""

    @pytest.mark.parametrize(
        "gap",
        [((80, 40, {}), (90, 90, {})), ((80, 80, {}),), ((60, 45, {"lease_age_s": None}), (65, 65, {}))],
        ids=["silent", "nobody looked", "unreadable"],
    )
    def test_in_a_gap_another_kubelet_may_have_started_and_it_counts_from_then(self, gap):
        since_s = gap[-1][0]
        after = [(at_s, at_s, {}) for at_s in range(since_s + 10, since_s + 121, 10)]
        assert self.listened(*self.ALIVE[:5], *gap, *after[:-1]).boot_id == ""
        assert self.listened(*self.ALIVE[:5], *gap, *after).boot_id == BOOT

    def test_once_proven_no_other_boot_and_no_silence_takes_it_back(self):
        later = ((170, 170, {"boot_id": NEW_BOOT}), (400, 170, {"boot_id": NEW_BOOT}))
        assert self.listened(*self.ALIVE[:15], *later).boot_id == BOOT


class TestJudgements:
    def test_a_binding_needs_running_before_and_after_a_renewal_of_one_boot(self):
        history, seen = told(ON, ON)
        assert not proven_running(history, seen)
        assert proven_running(history, replace(seen, lease_renewals=6))
        assert not proven_running(history, replace(seen, lease_renewals=6, boot_id=NEW_BOOT))
        assert not proven_running(told(ON)[0], replace(seen, lease_renewals=6))
        assert not proven_running(told(OFF, OFF)[0], replace(seen, lease_renewals=6))
        assert not proven_running(GuestHistory(), seen)
        assert seen.boot_id == BOOT


class TestAnotherRun:
    """The second in which a VM was off may be read by no one: its next run shows that it was (M5)."""

    AGAIN = evidence(ON, incarnation="another run", observed_at_s=NOW_S + 9)
    RAN, NODE = told(ON, ON)
    OLD = replace(NODE, lease_version=60, reported_utc="old")

    def after(self, reading=AGAIN, *, before=RAN, seen=OLD):
        history = remember(before, seen, reading, NOW_S + 9, 10.0)
        return history.off_s, history.off_lease_version, history.off_reported_utc

    def test_what_its_node_said_until_then_is_of_the_run_before(self):
        assert self.after() == (NOW_S + 9, 60, "old")
        paused, _ = told(ON, PowerState.PAUSED)
        assert self.after(before=paused) == (NOW_S + 9, 60, "old")

    def test_but_a_boot_that_is_shown_since_this_look_is_of_the_new_one(self):
        assert self.after(seen=replace(self.OLD, boot_id=NEW_BOOT)) == (NOW_S + 9, 60, "")

    @pytest.mark.parametrize(
        "reading",
        [
            evidence(ON, observed_at_s=NOW_S + 9),
            replace(AGAIN, guest=replace(GUEST, host="lab2")),
            replace(AGAIN, incarnation=None),
            replace(AGAIN, power_state=PowerState.PAUSED),
            evidence(ON, incarnation="an earlier run", observed_at_s=RAN.run.last_s - 1),
        ],
        ids=["the same run", "on another host: a migration", "an unnamed run", "paused", "overtaken"],
    )
    def test_nothing_else_shows_that(self, reading):
        assert self.after(reading) == (-inf, 0, "")

    def test_one_that_is_as_old_as_the_last_does(self):
        assert self.after(replace(self.AGAIN, observed_at_s=self.RAN.run.last_s))[1:] == (60, "old")

    def test_nor_after_an_unnamed_run(self):
        unnamed = replace(self.RAN, run=replace(self.RAN.run, incarnation=None))
        assert self.after(before=unnamed) == (-inf, 0, "")

    def test_what_its_node_shows_while_it_is_off_is_of_the_run_before_whenever_that_was_first_seen(self):
        off = evidence(OFF, observed_at_s=NOW_S + 9)
        assert self.after(off, seen=replace(self.OLD, boot_id=NEW_BOOT)) == (NOW_S + 9, 60, "old")

    def test_nor_after_a_run_that_was_read_off_or_without_any(self):
        fell, _ = told(ON, OFF)
        assert self.after(before=fell)[0] == fell.off_s
        assert self.after(before=replace(self.RAN, run=None))[0] == -inf

    @pytest.mark.parametrize("reading", [AGAIN, evidence(OFF, observed_at_s=NOW_S + 5)])
    def test_seen_while_nothing_can_be_read_of_the_node_it_counts_with_the_next_look(self, reading):
        away = glimpse(self.RAN, reading)
        assert (away.off_s, away.off_lease_version) == (-inf, NOT_READ)
        assert glimpse(away, self.AGAIN).off_lease_version == NOT_READ
        assert self.after(before=away) == (NOW_S + 9, 60, "old")


class TestGlimpse:
    """What is read while nothing can be read of the node ends what it contradicts, and proves nothing."""

    RAN = told(ON, ON)[0]
    FELL = told(OFF, OFF, start=RAN)[0]

    @pytest.mark.parametrize(
        "reading",
        [
            None,
            evidence(OFF, conclusive=False),
            evidence(ON, guest=OTHER),
            evidence(OFF, guest=OTHER),
        ],
        ids=["nothing", "from a cache", "another guest's", "another guest's end"],
    )
    def test_what_says_nothing_changes_nothing(self, reading):
        for history in (self.RAN, self.FELL):
            assert glimpse(history, reading) is history

    def test_the_same_again_does_not_count(self):
        assert replace(glimpse(self.RAN, evidence(ON)), starts=self.RAN.starts) == self.RAN
        assert glimpse(self.FELL, evidence(OFF)) is self.FELL
        assert glimpse(self.FELL, evidence(PowerState.ABSENT, end_recorded=True)) is self.FELL

    @pytest.mark.parametrize(
        "reading",
        [
            evidence(ON),
            evidence(PowerState.PAUSED),
            evidence(PowerState.UNKNOWN),
            evidence(PowerState.ABSENT),
            evidence(OFF, incarnation="run-2"),
        ],
        ids=["running", "paused", "unknown", "absent", "another run"],
    )
    def test_a_run_of_off_readings_ends_with_any_other(self, reading):
        seen = glimpse(self.FELL, reading)
        ended = NOT_READ if reading.gone else self.FELL.off_lease_version
        assert seen == replace(self.FELL, run=None, ran_as=self.FELL.ran_as, off_lease_version=ended)
        assert seen.running_seen, "it ran before that"

    def test_that_it_ran_is_not_forgotten_with_the_run(self):
        assert not self.RAN.running_seen
        fell = replace(self.RAN, run=None, running_seen=True, off_lease_version=NOT_READ)
        assert glimpse(self.RAN, evidence(OFF)) == fell
        paused, _ = told(PowerState.PAUSED)
        assert glimpse(paused, evidence(OFF)) == replace(paused, run=None, off_lease_version=NOT_READ)

    def test_off_has_to_be_read_again_once_renewals_would_show_up(self):
        seen = glimpse(glimpse(self.RAN, evidence(OFF)), evidence(OFF))
        assert (seen.run, seen.off_s) == (None, self.RAN.off_s)

    def test_where_it_runs_is_remembered(self):
        """Off where it was is not its end then."""
        there = replace(GUEST, host="lab2")
        seen = glimpse(self.RAN, evidence(ON, guest=there))
        assert seen == replace(self.RAN, ran_as=there, starts=seen.starts)
        assert glimpse(seen, evidence(ON, guest=there)) is seen
        assert glimpse(self.FELL, evidence(ON, guest=there)).ran_as == there

    def test_but_not_where_it_is_off(self):
        there = replace(GUEST, host="lab2")
        assert glimpse(self.RAN, evidence(OFF, guest=there)).ran_as == GUEST

    def test_that_it_runs_proves_nothing(self):
        bare = GuestHistory(guest=GUEST.key)
        seen = glimpse(glimpse(bare, evidence(ON)), evidence(ON))
        assert seen == replace(bare, ran_as=GUEST, starts=seen.starts)

    def test_a_guest_of_which_nothing_is_remembered_stays_so(self):
        assert glimpse(GuestHistory(), evidence(ON)) == GuestHistory()
