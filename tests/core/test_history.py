"""Leases by our own clock, and runs of equal readings: when one goes on, and what breaks it."""

from dataclasses import replace

import pytest

from fencer.core.history import aged, contradicted, proven_running, remember, renewals_in_run, track
from fencer.core.model import GuestHistory, PowerState
from tests.core.build import BOOT, NEW_BOOT, NOW_S, OTHER, evidence, node

OFF, ON = PowerState.STOPPED, PowerState.RUNNING


def told(*readings, lease_renewals=5, start=None):
    """Fold readings (state or Evidence) two seconds apart; return history and the node."""
    history, seen = start or GuestHistory(), node(lease_renewals=lease_renewals)
    for n, reading in enumerate(readings):
        fact = reading if not isinstance(reading, PowerState) else evidence(reading)
        history = remember(history, seen, replace(fact, observed_at_s=NOW_S + 2 * n), NOW_S + 2 * n, 10.0)
    return history, seen


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

    def test_a_lease_that_vanishes_is_not_renewed_by_it(self):
        lease = track(track(None, "t1", ready=True, now_s=1.0), None, ready=True, now_s=50.0)
        assert aged(node(), lease, 50.0).lease_age_s == 49.0

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

    def test_a_gap_breaks_a_run(self):
        history, seen = told(OFF, OFF)
        late = remember(history, seen, evidence(OFF, observed_at_s=NOW_S + 30), NOW_S + 30, 10.0)
        assert late.run.readings == 1

    def test_a_fall_is_remembered(self):
        assert told(ON, OFF)[0].running_seen
        assert not told(OFF, OFF)[0].running_seen

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
        anew = remember(history, silent, evidence(OFF, observed_at_s=NOW_S + 4), NOW_S + 4, 10.0)
        assert renewals_in_run(anew, silent) == 0


class TestGuests:
    def test_another_guest_begins_anew(self):
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


class TestJudgements:
    def test_two_renewals_while_off_contradict_the_witness(self):
        history, seen = told(OFF, OFF)
        assert not contradicted(history, replace(seen, lease_renewals=6))
        assert contradicted(history, replace(seen, lease_renewals=7))
        assert not contradicted(told(ON, ON)[0], replace(seen, lease_renewals=9))
        assert not contradicted(GuestHistory(), seen)

    def test_a_binding_needs_running_before_and_after_a_renewal_of_one_boot(self):
        history, seen = told(ON, ON)
        assert not proven_running(history, seen)
        assert proven_running(history, replace(seen, lease_renewals=6))
        assert not proven_running(history, replace(seen, lease_renewals=6, boot_id=NEW_BOOT))
        assert not proven_running(told(ON)[0], replace(seen, lease_renewals=6))
        assert not proven_running(told(OFF, OFF)[0], replace(seen, lease_renewals=6))
        assert not proven_running(GuestHistory(), seen)
        assert seen.boot_id == BOOT
