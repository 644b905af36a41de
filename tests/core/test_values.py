"""Annotations, pods, policy, fleet and ages: the small tables."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.core import annotations
from fencer.core.decide import _no_ending, decide, off
from fencer.core.fleet import quorum_without, survey
from fencer.core.ladder import climb
from fencer.core.model import Binding, Cordon, FenceMark, GuestHistory, PowerState, Proof, Unreadable
from fencer.core.pods import clearable, older_than_fence, parse_utc, seconds_between
from fencer.core.policy import Policy
from fencer.core.reasons import change, says
from fencer.core.rungs import age, in_place, settled
from tests.core.build import (
    ARMED,
    BOOT,
    GUEST,
    MARK,
    NOW_UTC,
    OTHER,
    POD,
    TAINT,
    evidence,
    healthy,
    node,
    observation,
    run,
)


class TestAnnotations:
    @pytest.mark.parametrize("guest", [GUEST, OTHER])
    def test_what_is_written_is_read_again(self, guest):
        binding = Binding(guest, ("b1", "b2"))
        mark = FenceMark("i", NOW_UTC, BOOT, guest, "fencer@pve1", Proof.ABSENCE, "id 7")
        cordon = Cordon("unfence", BOOT, NOW_UTC)
        assert annotations.read_binding(annotations.write_binding(binding)) == binding
        assert annotations.read_mark(annotations.write_mark(mark)) == mark
        assert annotations.read_cordon(annotations.write_cordon(cordon)) == cordon

    def test_a_claim_names_its_incident_and_a_broken_one_nothing(self):
        assert annotations.read_claim(annotations.write_claim("inc-1", "fencer")) == "inc-1"
        assert annotations.read_claim(None) == ""
        assert annotations.read_claim("rubbish") == ""

    @pytest.mark.parametrize(
        "read", [annotations.read_binding, annotations.read_mark, annotations.read_cordon]
    )
    def test_nothing_reads_nothing_and_a_newer_schema_is_left_alone(self, read):
        assert read(None) is None
        newer = read(json.dumps({"schema": 2}))
        assert isinstance(newer, Unreadable)
        assert "2" in newer.text

    @given(
        st.one_of(st.text(), st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
    )
    def test_anything_else_is_unreadable_and_never_an_error(self, text):
        for read in (annotations.read_binding, annotations.read_mark, annotations.read_cordon):
            assert isinstance(read(text), Unreadable)

    @pytest.mark.parametrize(
        "broken",
        [
            {"guest": {"endpoint": 1, "id": "", "uuid": "", "name": ""}, "bootIDs": []},
            {"guest": {"endpoint": "", "id": "", "uuid": "", "name": "", "host": 3}, "bootIDs": []},
            {"guest": {"endpoint": "", "id": "", "uuid": "", "name": ""}, "bootIDs": "boot"},
            {"guest": [], "bootIDs": []},
        ],
    )
    def test_wrong_types_are_unreadable(self, broken):
        assert isinstance(annotations.read_binding(json.dumps({"schema": 1, **broken})), Unreadable)

    @pytest.mark.parametrize(("text", "out"), [(None, False), ("false", False), ("", True), ("true", True)])
    def test_any_value_but_false_excludes(self, text, out):
        assert annotations.excluded(text) is out


class TestPods:
    def test_mirror_finished_and_tolerating_pods_are_left(self):
        left = [
            replace(POD, mirror=True),
            replace(POD, phase="Failed"),
            replace(POD, tolerates_out_of_service=True),
        ]
        assert clearable([*left, POD]) == (POD,)

    def test_a_pod_whose_clearing_was_interrupted_is_not_left(self):
        """It was failed, and is marked for deletion: nobody else would end it."""
        half = replace(POD, phase="Failed", terminating=True)
        held = replace(half, finalizers=("batch.kubernetes.io/job-tracking",))
        assert clearable([half, held]) == (half,)

    def test_a_pod_whose_age_cannot_be_read_counts_as_old(self):
        unreadable = replace(POD, created_utc="yesterday")
        assert older_than_fence([unreadable], NOW_UTC) == (unreadable,)

    def test_times_without_a_zone_are_utc(self):
        assert seconds_between("2026-11-20T10:00:00", "2026-11-20T10:00:02Z") == 2.0
        assert parse_utc("").year == 1


class TestPolicy:
    def test_the_defaults_hold_together(self):
        assert Policy().violations() == ()

    @pytest.mark.parametrize(
        ("broken", "named"),
        [
            ({"poll_s": 0.0}, "poll_s"),
            ({"poll_s": 4.0}, "confirm_s"),
            ({"confirm_s": -1.0}, "confirm_s"),
            ({"evidence_max_age_s": 3.0}, "evidence_max_age_s"),
            ({"lease_silent_s": 12.0}, "lease_silent_s"),
            ({"lease_silent_s": -1.0}, "lease_silent_s"),
            ({"lease_silent_s": 0.0}, "require_not_ready"),
            ({"unfence_renewals": 0}, "unfence_renewals"),
            ({"clear_parallel": 0}, "clear_parallel"),
            ({"clear_batch": 4}, "clear_batch"),
            ({"max_fenced": 0}, "max_fenced"),
            ({"paused_for_s": -5.0}, "paused_for_s"),
            ({"stop_deadline_s": 9.0}, "stop_deadline_s (9) must be more than 10"),
        ],
    )
    def test_a_broken_inequality_is_named_with_its_values(self, broken, named):
        assert any(named in text for text in Policy(**broken).violations())

    @pytest.mark.parametrize(("nodes", "limit"), [(0, 1), (1, 1), (2, 1), (3, 1), (7, 3), (8, 4)])
    def test_the_brake_is_half_of_the_nodes_and_one_at_least(self, nodes, limit):
        assert Policy().brake_at(nodes) == limit
        assert Policy(max_fenced=2).brake_at(nodes) == 2


class TestFleet:
    def test_it_counts_what_brake_and_quorum_must_know(self):
        cp = [
            replace(healthy().node, name=f"cp-{n}", uid=f"u{n}", roles=("control-plane",)) for n in range(3)
        ]
        dead_cp = replace(cp[2], ready=None, lease_age_s=90.0)
        marked = node(taints=(TAINT,), mark=MARK)
        old = node(name="old", taints=(TAINT,), mark=replace(MARK, fenced_at_utc="2026-11-20T08:00:00Z"))
        untainted = node(name="untainted", mark=MARK)
        fleet = survey(
            [*cp[:2], dead_cp, marked, old, untainted],
            [evidence(PowerState.PAUSED, io_error=True), evidence(PowerState.PAUSED, io_error=True)],
            [(node(lease_renewals=7), GuestHistory(run()), "lab")] * 2,
            ARMED,
            NOW_UTC,
            3.0,
            None,
        )
        assert (fleet.nodes, fleet.silent, fleet.young_fences) == (6, 4, 1)
        assert fleet.stalled == {"lab"}
        assert fleet.contradicted_endpoints == {"lab"}
        assert fleet.quorum_without == {"cp-2"}

    def test_a_control_plane_node_whose_guest_is_off_does_not_count_however_ready_it_still_looks(self):
        cp = [
            replace(healthy().node, name=f"cp-{n}", uid=f"u{n}", roles=("control-plane",)) for n in range(3)
        ]
        assert quorum_without(cp, ARMED) == {"cp-0", "cp-1", "cp-2"}
        assert quorum_without(cp, ARMED, frozenset({"cp-1"})) == {"cp-1"}

    def test_a_fence_of_a_deleted_guest_does_not_use_up_the_brake(self):
        gone = [evidence(PowerState.ABSENT)]
        fleet = survey([node(taints=(TAINT,), mark=MARK)], gone, [], ARMED, NOW_UTC, None, None)
        assert fleet.young_fences == 0


def test_a_guest_that_reads_off_on_another_host_is_refused():
    ran = node(binding=Binding(replace(GUEST, host="pve1"), (BOOT,)))
    moved = observation(node=ran, evidence=evidence(guest=replace(GUEST, host="pve2")))
    assert "pve1" in in_place(moved, ARMED).needs
    elsewhere = replace(GUEST, host="pve2")
    explained = observation(node=ran, evidence=evidence(guest=elsewhere, moved_from=("pve1",)))
    assert "moved there from pve1" in in_place(explained, ARMED).seen
    first_seen = observation(evidence=evidence(guest=elsewhere))
    assert in_place(first_seen, ARMED).seen.startswith("on pve2")


def test_a_rung_asked_without_evidence_objects():
    assert settled(observation(evidence=None), ARMED).needs
    assert off(observation(evidence=None), ARMED).needs


def test_a_ladder_that_cannot_end_says_so():
    with pytest.raises(AssertionError, match="k8s-2"):
        climb((), _no_ending, observation(), ARMED)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.84, "0.8 s"), (8, "8 s"), (41.4, "41 s"), (134, "2m14s"), (11100, "3h05m")]
)
def test_ages_read_as_people_say_them(seconds, text):
    assert age(seconds) == text


def test_a_decision_is_told_with_what_was_seen_and_with_what_would_change_it():
    refused = decide(observation(evidence=evidence(settled=False)), ARMED)
    assert says(refused) == "a lock or task holds its guest (stopped (by test))"
    assert change(refused) == "the lock or task to end"
    fence = decide(observation(), ARMED)
    assert says(fence) == "its guest is proven off"
    assert change(fence) == "nothing needs to"
    waiting = decide(observation(node=node(lease_age_s=8.0)), ARMED)
    assert change(waiting) == "more silence (limit 40 s)"
