"""Annotations, pods, policy, fleet and ages: the small tables."""

import json
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.core import annotations
from fencer.core.decide import decide
from fencer.core.fleet import quorum_without, survey
from fencer.core.identity import subject_of
from fencer.core.model import (
    Binding,
    Cordon,
    Doubted,
    Evidence,
    Fleet,
    GuestHistory,
    Intent,
    Left,
    NodeView,
    Observation,
    PodView,
    PowerState,
    Proof,
    Taint,
    Unreadable,
    version_number,
)
from fencer.core.pods import clearable, pods_from_before
from fencer.core.policy import Policy
from fencer.core.proof import PROOF, in_place
from fencer.core.rung import Objection
from fencer.core.text import age
from fencer.core.times import parse_utc, seconds_between
from fencer.wording.reasons import change, says
from tests.core.build import (
    ARMED,
    BOOT,
    GUEST,
    MARK,
    NOW_S,
    NOW_UTC,
    OTHER,
    POD,
    TAINT,
    UUID,
    doubt,
    evidence,
    healthy,
    node,
    observation,
)

SEAL = annotations.Seal(b"the cluster's key", "node-uid-2")
HOSTED = replace(GUEST, host="pve1", host_uuid="uuid-a")
SIGNED = [
    (annotations.read_binding, annotations.write_binding, Binding(HOSTED, ("b1", "b2"))),
    (
        annotations.read_mark,
        annotations.write_mark,
        replace(MARK, proof=Proof.ABSENCE, incarnation="id 7", pods=3),
    ),
    (
        annotations.read_doubts,
        annotations.write_doubts,
        (
            doubt(),
            doubt(kind=Doubted.SAVED, guest=OTHER),
            doubt(boot_id="b1"),
            doubt(boot_id="b1", paired=True, trusted="anna: it is well"),
        ),
    ),
]


READ = [
    (partial(annotations.read_binding, seal=SEAL), None),
    (partial(annotations.read_mark, seal=SEAL), None),
    (partial(annotations.read_doubts, seal=SEAL), ()),
    (annotations.read_cordon, None),
]


class TestReadings:
    def test_a_guest_that_is_not_found_is_in_no_transition(self):
        absent = Evidence.absent(GUEST, "not found", "test", 0.0)
        assert absent.settled
        assert absent.at_rest
        assert not absent.gone

    @pytest.mark.parametrize(
        ("reading", "at_rest"),
        [
            (evidence(PowerState.UNKNOWN), False),
            (evidence(PowerState.UNKNOWN, filed=True), True),
            (evidence(PowerState.UNKNOWN, hibernated=True), True),
            (evidence(PowerState.PAUSED, hibernated=True), False),
            (evidence(PowerState.RUNNING, filed=True), False),
            (evidence(PowerState.RUNNING), False),
            (evidence(PowerState.SAVED), True),
        ],
        ids=[
            *("unknown", "saved to a file", "hibernated", "hibernated, and stands still"),
            *("restored from a file", "running", "saved"),
        ],
    )
    def test_a_guest_is_at_rest_where_nothing_of_it_runs(self, reading, at_rest):
        assert reading.at_rest is at_rest

    def test_a_reading_repeats_another_of_another_time_and_no_other(self):
        assert evidence().repeats(evidence(observed_at_s=1.0))
        assert not evidence().repeats(evidence(settled=False))

    @pytest.mark.parametrize(
        ("reading", "lifted"),
        [
            (evidence(PowerState.PAUSED, cold_start=False), True),
            (evidence(PowerState.PAUSED, cold_start=True), False),
            (evidence(PowerState.PAUSED, cold_start=False, filed=True), False),
            (evidence(PowerState.STOPPED, cold_start=False), False),
            (evidence(PowerState.SAVED, cold_start=False), False),
        ],
        ids=["restored, waits", "booted, waits", "restored from a file", "stopped", "saved"],
    )
    def test_a_doubt_about_saved_memory_ends_once_it_was_restored(self, reading, lifted):
        assert doubt(kind=Doubted.SAVED).lifted_by(reading) is lifted


class TestVersions:
    @pytest.mark.parametrize(
        ("mine", "others", "newer"),
        [("2", "1", True), ("1", "1", False), ("1", "0", False), ("1", "", False), ("x", "1", False)],
    )
    def test_of_two_states_the_one_with_the_higher_version_is_newer(self, mine, others, newer):
        assert node(version=mine).newer_than(node(version=others)) is newer
        assert not node(version=mine, uid="another").newer_than(node(version=others))

    def test_a_version_that_is_too_long_is_no_number(self):
        """A text of a million digits takes Python minutes to read."""
        assert version_number(str(2**64 - 1)) == 2**64 - 1
        assert version_number("1" + "0" * 20) == 0


class TestAnnotations:
    @pytest.mark.parametrize(("read", "write", "value"), SIGNED, ids=["binding", "mark", "doubts"])
    def test_what_is_written_is_read_again(self, read, write, value):
        assert read(write(value, SEAL), SEAL) == value

    def test_of_a_mark_that_counts_no_pods_none_are_read(self):
        assert annotations.read_mark(annotations.write_mark(MARK, SEAL), SEAL) == MARK

    def test_what_is_written_is_the_same_to_the_letter_in_every_version(self):
        """Else what an agent signed is forged to its successor, and Nodes are written to at every look."""
        guest = (
            f'{{"endpoint":"lab","host":null,"hostUUID":null,"id":"{UUID}","name":"k8s-2","uuid":"{UUID}"}}'
        )
        sig = "193dc8671e5b8dfb763f324b804590ba439351fb681b1e94dff77b0424ebd67f"
        bound = f'{{"bootIDs":["b1"],"guest":{guest},"schema":2,"sig":"{sig}"}}'
        assert annotations.write_binding(Binding(GUEST, ("b1",)), SEAL) == bound
        cordon = f'{{"bootID":"{BOOT}","by":"unfence","schema":1,"since":"{NOW_UTC}"}}'
        assert annotations.write_cordon(Cordon("unfence", BOOT, NOW_UTC)) == cordon

    def test_a_cordon_names_its_drain_and_whether_a_shutdown_follows(self):
        cordon = Cordon("drain", BOOT, NOW_UTC, "a1", shutdown=True)
        text = annotations.write_cordon(cordon)
        assert text == (
            f'{{"bootID":"{BOOT}","by":"drain","run":"a1","schema":1,"since":"{NOW_UTC}","stop":true}}'
        )
        assert annotations.read_cordon(text) == cordon

    @pytest.mark.parametrize(
        ("more", "shutdown"),
        [({"shutdown": True}, True), ({"shutdown": "yes"}, False), ({"stop": False}, False), ({}, False)],
        ids=["by fencer-guest", "no bool", "denied", "not told"],
    )
    def test_a_cordon_is_for_a_shutdown_if_it_says_so(self, more, shutdown):
        data = json.loads(annotations.write_cordon(Cordon("drain", BOOT, NOW_UTC)))
        assert annotations.read_cordon(json.dumps({**data, **more})).shutdown is shutdown

    def test_a_cordon_of_the_signed_schema_is_a_newer_fencers(self):
        text = annotations.write_cordon(Cordon("unfence", BOOT, NOW_UTC)).replace(":1,", ":2,")
        assert isinstance(annotations.read_cordon(text), Unreadable)

    def test_what_needs_no_signature_is_read_again(self):
        cordon = Cordon("unfence", BOOT, NOW_UTC)
        assert annotations.read_cordon(annotations.write_cordon(cordon)) == cordon

    @pytest.mark.parametrize(("read", "write", "value"), SIGNED, ids=["binding", "mark", "doubts"])
    @pytest.mark.parametrize(
        "reader",
        [replace(SEAL, key=b"another"), replace(SEAL, node_uid="node-uid-3")],
        ids=["another key", "another node"],
    )
    def test_what_was_written_elsewhere_is_forged(self, read, write, value, reader):
        found = read(write(value, SEAL), reader)
        assert isinstance(found, Unreadable)
        assert found.forged

    @pytest.mark.parametrize(("read", "write", "value"), SIGNED, ids=["binding", "mark", "doubts"])
    def test_every_change_of_a_signed_text_is_seen(self, read, write, value):
        """But one of the schema: a text of the first one is told apart, and believed less."""
        data = json.loads(write(value, SEAL))
        for name in set(data) - {"schema"}:
            for told in (None, "", [], {"endpoint": "lab"}, 7):
                changed = {**data, name: told}
                assert changed == data or isinstance(read(json.dumps(changed), SEAL), Unreadable)

    @pytest.mark.parametrize(("read", "write", "value"), SIGNED, ids=["binding", "mark", "doubts"])
    def test_one_signature_is_not_worth_another_annotation(self, read, write, value):
        for other, _, _ in SIGNED:
            assert other is read or other(write(value, SEAL), SEAL).forged

    @pytest.mark.parametrize(("read", "write", "value"), SIGNED, ids=["binding", "mark", "doubts"])
    def test_a_hypervisors_identity_is_written_where_it_is_known_and_read_back(self, read, write, value):
        told = (value,) if not isinstance(value, tuple) else value
        named = tuple(replace(one, guest=replace(one.guest, hypervisor="libvirt:4c4c")) for one in told)
        found = read(write(named if isinstance(value, tuple) else named[0], SEAL), SEAL)
        guests = [one.guest for one in (found if isinstance(found, tuple) else (found,))]
        assert {guest.hypervisor for guest in guests} == {"libvirt:4c4c"}
        assert found == value, "it does not make it another guest"
        assert "hypervisor" not in write(value, SEAL)

    def test_an_identity_that_is_no_text_is_unreadable(self):
        text = annotations.write_binding(Binding(replace(GUEST, hypervisor="x"), (BOOT,)), SEAL)
        data = {**json.loads(text), "schema": 1}
        data["guest"]["hypervisor"] = 7
        assert isinstance(annotations.read_binding(json.dumps(data), SEAL), Unreadable)

    def test_of_the_first_schema_a_binding_and_a_mark_are_read_and_known_as_such(self):
        binding, mark = ({**json.loads(write(value, SEAL)), "schema": 1} for _, write, value in SIGNED[:2])
        assert annotations.read_binding(json.dumps(binding), SEAL).schema == 1
        assert not annotations.read_mark(json.dumps(mark), SEAL).signed

    def test_a_doubt_that_says_nothing_of_its_endpoint_is_written_as_before(self):
        """So an older fencer, which knows no more, and this one read each other."""
        [entry] = json.loads(annotations.write_doubts((doubt(),), SEAL))["doubts"]
        assert set(entry) == {"kind", "guest", "witness", "by", "since"}

    def test_doubts_of_the_first_schema_are_nobodys(self):
        """There was none: whoever wrote them wants a witness not to be believed."""
        doubts = {**json.loads(annotations.write_doubts((doubt(),), SEAL)), "schema": 1}
        assert annotations.read_doubts(json.dumps(doubts), SEAL).forged

    def test_a_number_that_is_none_makes_a_mark_unreadable(self):
        marked = {**json.loads(annotations.write_mark(MARK, SEAL)), "schema": 1, "pods": "three"}
        found = annotations.read_mark(json.dumps(marked), SEAL)
        assert isinstance(found, Unreadable)
        assert "expected a number" in found.text

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda data: {**data, "schema": 1},
            lambda data: {**data, "schema": 3},
            lambda data: {**data, "uuid": "another"},
            lambda data: {**data, "uuid": 7},
            lambda data: [data],
        ],
    )
    def test_an_approval_counts_only_as_it_was_signed_for_this_very_node(self, spoil):
        """A kubelet may write what it likes on its Node, also what stands on another one."""
        text = annotations.write_approval(GUEST.uuid, "anna", "2026-11-30T12:00:00Z", SEAL)
        assert annotations.read_approval(text, SEAL) == GUEST.uuid
        assert annotations.read_approval(text, replace(SEAL, node_uid="another")) == ""
        assert annotations.read_approval(json.dumps(spoil(json.loads(text))), SEAL) == ""
        assert annotations.read_approval(None, SEAL) == ""

    def test_a_broken_claim_claims_nothing(self):
        assert annotations.read_claim(None, SEAL) == ""
        assert annotations.read_claim("rubbish", SEAL) == ""

    def test_a_claim_is_read_whoever_wrote_it(self):
        """It counts for caution only."""
        text = annotations.write_claim("inc-1", "fencer", SEAL)
        assert annotations.read_claim(text, SEAL) == "inc-1"
        assert json.loads(text)["by"] == "fencer"  # for people
        older = json.dumps({"schema": 1, "incident": "inc-1", "by": "fencer"})
        assert annotations.read_claim(older, SEAL) == "inc-1"

    @pytest.mark.parametrize("left", [Left("run-1"), Left("run-2", 2, "2026-11-20T10:00:00Z")])
    def test_how_a_guest_was_left_is_read_as_it_was_written(self, left):
        text = annotations.write_claim("inc-1", "fencer", SEAL, left)
        assert annotations.read_left(text, SEAL) == left
        assert annotations.read_claim(text, SEAL) == "inc-1"

    @pytest.mark.parametrize(
        "text",
        [
            None,
            "rubbish",
            annotations.write_claim("inc-1", "fencer", SEAL),
            '{"schema": 1, "incident": "inc-1", "left": {"as": "run-1", "starts": 0, "startedAt": ""}}',
        ],
        ids=["nothing", "rubbish", "not told", "by a kubelet"],
    )
    def test_what_nobody_has_signed_of_that_starts_no_guest(self, text):
        assert annotations.read_left(text, SEAL) is None

    @pytest.mark.parametrize(("read", "nothing"), READ, ids=["binding", "mark", "doubts", "cordon"])
    def test_nothing_reads_nothing_and_a_newer_schema_is_left_alone(self, read, nothing):
        assert read(None) == nothing
        newer = read(json.dumps({"schema": 3}))
        assert isinstance(newer, Unreadable)
        assert "3" in newer.text

    @given(
        st.one_of(st.text(), st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
    )
    def test_anything_else_is_unreadable_and_never_an_error(self, text):
        for read, _ in READ:
            assert isinstance(read(text), Unreadable)

    @pytest.mark.parametrize(
        "text",
        ["{}", '{"schema": 1}', '{"schema": 2}', "[" * 100_000],
        ids=["empty", "schema 1", "schema 2", "deep"],
    )
    def test_what_lacks_something_or_is_too_deep_is_unreadable(self, text):
        for read, _ in READ:
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
        text = json.dumps({"schema": 1, **broken})
        assert isinstance(annotations.read_binding(text, SEAL), Unreadable)

    @pytest.mark.parametrize(
        ("notes", "labels", "told"),
        [
            ({}, {}, ""),
            ({annotations.EXCLUDE: "false"}, {}, ""),
            ({annotations.EXCLUDE: " False "}, {}, ""),
            ({annotations.EXCLUDE: ""}, {}, "the annotation fencer.dev/exclude"),
            ({annotations.EXCLUDE: "true"}, {}, "the annotation fencer.dev/exclude"),
            ({annotations.EXCLUDE_LABEL: "true"}, {}, ""),
            ({}, {annotations.EXCLUDE: "true"}, ""),
            ({}, {annotations.EXCLUDE_LABEL: "true"}, f"the label {annotations.EXCLUDE_LABEL}=true"),
            ({}, {annotations.EXCLUDE_LABEL: "false"}, ""),
            ({}, {annotations.EXCLUDE_LABEL: ""}, ""),
            (
                {annotations.EXCLUDE: "false"},
                {annotations.EXCLUDE_LABEL: "true"},
                f"the label {annotations.EXCLUDE_LABEL}=true",
            ),
            (
                {annotations.EXCLUDE: "true"},
                {annotations.EXCLUDE_LABEL: "true"},
                "the annotation fencer.dev/exclude",
            ),
        ],
    )
    def test_any_value_but_false_of_ours_excludes_and_only_true_of_medik8s(self, notes, labels, told):
        assert annotations.excluded_by(notes, labels) == told


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
        assert pods_from_before(observation(pods=(unreadable,)), MARK) == (unreadable,)

    def test_a_pod_from_the_very_second_of_the_fence_counts_as_old(self):
        same = replace(POD, created_utc=MARK.fenced_at_utc)
        assert pods_from_before(observation(pods=(same,)), MARK) == (same,)

    def test_times_without_a_zone_are_utc(self):
        assert seconds_between("2026-11-20T10:00:00", "2026-11-20T10:00:02Z") == 2.0
        assert parse_utc("").year == 1

    def test_a_zone_counts(self):
        assert seconds_between("2026-11-20T11:00:00+01:00", "2026-11-20T10:00:02Z") == 2.0


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
            ({"max_fenced_hosts": 0}, "max_fenced_hosts"),
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
        early = "2026-11-20T08:00:00Z"
        old_taint, old_mark = replace(TAINT, time_added=early), replace(MARK, fenced_at_utc=early)
        old = node(name="old", taints=(old_taint,), mark=old_mark)
        untainted = node(name="untainted", mark=MARK)
        fleet = survey(
            [*cp[:2], dead_cp, marked, old, untainted],
            [evidence(PowerState.PAUSED, io_error=True), evidence(PowerState.PAUSED, io_error=True)],
            ARMED,
            NOW_UTC,
            3.0,
            None,
        )
        assert (fleet.nodes, fleet.silent, fleet.young_fences) == (6, 4, 1)
        assert fleet.stalled == {"lab"}
        assert quorum_without([*cp[:2], dead_cp], ARMED) == {"cp-2"}

    def test_a_control_plane_node_whose_guest_is_off_does_not_count_however_ready_it_still_looks(self):
        cp = [
            replace(healthy().node, name=f"cp-{n}", uid=f"u{n}", roles=("control-plane",)) for n in range(3)
        ]
        assert quorum_without(cp, ARMED) == {"cp-0", "cp-1", "cp-2"}
        assert quorum_without(cp, ARMED, frozenset({"cp-1"})) == {"cp-1"}

    def test_a_fence_of_a_deleted_guest_does_not_use_up_the_brake(self):
        gone = [evidence(PowerState.ABSENT, end_recorded=True)]
        fleet = survey([node(taints=(TAINT,), mark=MARK)], gone, ARMED, NOW_UTC, None, None)
        assert fleet.young_fences == 0


def where(**facts):
    """Ask whether the guest is off where it ran."""
    return in_place(subject_of(observation(**facts)), ARMED)


def test_a_guest_that_reads_off_on_another_host_is_refused():
    ran = node(binding=Binding(replace(GUEST, host="pve1"), (BOOT,)))
    elsewhere = replace(GUEST, host="pve2")
    assert "pve1" in where(node=ran, evidence=evidence(guest=elsewhere)).needs
    explained = evidence(guest=elsewhere, moved_from=("pve1",))
    assert "moved there from pve1" in where(node=ran, evidence=explained).seen
    assert where(node=node(binding=None), evidence=evidence(guest=elsewhere)).seen.startswith("on pve2")


def test_hosts_of_one_name_are_told_apart_by_their_uuid():
    """Two places may both call a host pve1; and one that is renamed stays the same."""
    here, there = (replace(GUEST, host="pve1", host_uuid=uuid) for uuid in ("uuid-a", "uuid-b"))
    ran = node(binding=Binding(here, (BOOT,)))
    objection = where(node=ran, evidence=evidence(guest=there))
    assert isinstance(objection, Objection)
    assert "pve1 (uuid-a)" in objection.needs
    renamed = replace(here, host="pve-one")
    assert not isinstance(where(node=ran, evidence=evidence(guest=renamed)), Objection)


def test_a_binding_that_knows_no_host_uuid_is_held_against_the_name():
    """Of the first schema: nodes that are dead at an upgrade are still fenced, and in their place only."""
    ran = node(binding=Binding(replace(GUEST, host="pve1"), (BOOT,), schema=1))
    here = replace(GUEST, host="pve1", host_uuid="uuid-a")
    assert not isinstance(where(node=ran, evidence=evidence(guest=here)), Objection)
    assert isinstance(where(node=ran, evidence=evidence(guest=replace(here, host="pve2"))), Objection)


def test_of_a_guest_that_was_never_read_the_proof_does_not_hold():
    unread = subject_of(observation(evidence=None))
    answers = [rung(unread, ARMED) for _, rung in PROOF]
    assert isinstance(answers[0], Objection)
    assert sum(isinstance(answer, Objection) for answer in answers) > 1


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
    assert change(fence) == "nothing needs to change"
    waiting = decide(observation(node=node(lease_age_s=8.0)), ARMED)
    assert change(waiting) == "more silence (limit 40 s)"


@pytest.mark.parametrize(
    ("mine", "others", "newer"),
    [("11", "9", True), ("9", "11", False), ("9", "9", False), ("11", "x", False), ("x", "9", False)],
)
def test_of_two_states_of_a_node_the_one_with_the_greater_version_is_newer(mine, others, newer):
    one, other = node(version=mine), node(version=others)
    assert one.newer_than(other) is newer
    assert not one.newer_than(replace(other, uid="another object"))


def test_of_several_taints_the_one_that_takes_a_node_out_of_service_counts():
    other = Taint("node.kubernetes.io/unreachable", effect="NoExecute", time_added=TAINT.time_added)
    assert node(taints=(other, TAINT), mark=MARK).fenced
    assert not node(taints=(other,), mark=MARK).fenced


@pytest.mark.parametrize(
    ("roles", "member"),
    [((), False), (("worker",), False), (("etcd",), True), (("worker", "control-plane"), True)],
    ids=str,
)
def test_a_node_is_of_the_control_plane_by_its_roles(roles, member):
    assert node(roles=roles).control_plane is member


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("pve1", "uuid-a"), ("pve2", "uuid-a"), True),
        (("pve1", "uuid-a"), ("pve1", "uuid-b"), False),
        (("pve1", None), ("pve1", "uuid-b"), True),
        (("pve1", None), ("pve2", "uuid-b"), False),
        ((None, None), ("pve2", "uuid-b"), True),
        (("pve1", None), ("pve2", None), False),
    ],
    ids=["renamed", "a name given twice", "by name", "by name, elsewhere", "not told", "names alone"],
)
def test_two_references_are_to_one_host_as_far_as_both_tell(one, other, same):
    here, there = (replace(GUEST, host=host, host_uuid=uuid) for host, uuid in (one, other))
    assert (here.shares_host(there), there.shares_host(here)) == (same, same)


@pytest.mark.parametrize(
    ("reading", "gone", "at_rest"),
    [
        (evidence(PowerState.STOPPED), True, True),
        (evidence(PowerState.ABSENT), False, True),
        (evidence(PowerState.ABSENT, end_recorded=True), True, True),
        (evidence(PowerState.SAVED), False, True),
        (evidence(PowerState.UNKNOWN, end_recorded=True), False, False),
        (evidence(PowerState.RUNNING), False, False),
        (evidence(PowerState.UNKNOWN, away=True), False, True),
    ],
    ids=["off", "absent", "deleted", "saved", "unknown", "running", "moved away"],
)
def test_what_is_gone_for_good_is_told_from_what_only_does_not_run(reading, gone, at_rest):
    assert (reading.gone, reading.at_rest) == (gone, at_rest)


def test_what_a_node_or_a_pod_is_not_told_to_have_counts_for_nothing():
    bare = NodeView("k8s-2", "node-uid-2", "", BOOT, None, "1")
    assert bare.lease_renewals == 0
    pod = PodView("db", "db-1", "pod-uid-1", "7", "Running")
    assert (pod.ready, pod.tolerates_cordon) == (False, False)


def test_a_look_is_from_afar_unless_it_is_said_to_be_close():
    """A close one reads all that a fence is held against once more, live."""
    seen = Observation(node(), (), None, GuestHistory(), Fleet(7), Intent.WATCH, NOW_S, NOW_UTC)
    assert not seen.close


def test_of_a_node_without_a_fence_the_fence_is_nobodys():
    mark = subject_of(observation()).mark
    assert (mark.incident, mark.guest, mark.by) == ("", GUEST, "")


@pytest.mark.parametrize("told", [Evidence.unknown, Evidence.absent])
def test_what_is_not_known_or_not_found_is_by_itself_no_guest_that_is_gone(told):
    assert not told(GUEST, "no such guest", "test", NOW_S).gone


def test_a_reading_confirms_an_earlier_one_that_says_the_same_in_other_words():
    first = evidence(raw="stopped 3 s ago", observed_at_s=1.0)
    assert evidence(raw="stopped 9 s ago", observed_at_s=7.0).confirms(first)
    assert not evidence(PowerState.RUNNING, observed_at_s=7.0).confirms(first)
    assert not evidence(incarnation="another", observed_at_s=7.0).confirms(first)
