"""The rest of the cluster, summed up: what counts against the brake, who for a quorum, whose word erred."""

from dataclasses import replace

import pytest

from fencer.core.fleet import (
    heard,
    may_be_alive,
    quorum,
    quorum_without,
    stalls,
    survey,
    tainted,
)
from fencer.core.model import Binding, Note, PowerState, Unreadable
from tests.core.build import ARMED, BOOT, GUEST, MARK, OTHER, TAINT, doubt, evidence, healthy, node

ALIVE = healthy().node
AN_HOUR_LATER = "2026-11-20T10:58:30Z"
FENCED = node(taints=(TAINT,), mark=MARK)
CALLED_OFF = replace(ALIVE, doubts=(doubt(),))


def summed_up(*nodes, readings=(), policy=ARMED, utc="2026-11-20T10:00:00Z", **facts):
    told = {"last_stop_age_s": None, "paused_why": None} | facts
    return survey(nodes, readings, policy, utc, **told)


def test_doubts_that_cannot_be_read_count_as_this_agent_noted_them():
    there = replace(GUEST, host="lab1")
    binding = Binding(there, (BOOT,))
    unread = [
        replace(ALIVE, name=f"k8s-{number}", uid=f"uid-{number}", binding=binding, doubts=Unreadable(""))
        for number in (1, 2)
    ]
    noted = replace(doubt(guest=there), boot_id=BOOT)
    notes = {node.uid: Note(node.name, node.uid, doubts=(noted,)) for node in unread}
    assert summed_up(*unread, notes=notes).contradicted_endpoints == {there.endpoint}
    assert summed_up(*unread).contradicted_endpoints == frozenset()


def named(name, **facts):
    return replace(ALIVE, name=name, roles=("control-plane",), **facts)


class TestWhoIsHeard:
    @pytest.mark.parametrize(
        ("facts", "is_heard"),
        [
            ({}, True),
            ({"lease_age_s": 39.9}, True),
            ({"lease_age_s": 40.0}, False),
            ({"lease_age_s": None}, False),
            ({"ready": False}, False),
            ({"ready": None}, False),
            ({"lease_age_s": 10.0, "deaf_s": 29.9}, True),
            ({"lease_age_s": 10.0, "deaf_s": 30.0}, False),
        ],
        ids=str,
    )
    def test_a_node_is_by_ready_and_by_a_lease_that_is_younger_than_its_limit(self, facts, is_heard):
        found = replace(ALIVE, **facts)
        assert heard(found, ARMED) is is_heard
        assert summed_up(ALIVE, found).silent == (0 if is_heard else 1)

    def test_leases_that_were_read_and_are_silent_make_every_node_silent(self):
        """A node that is Ready, and whose lease was not read, does not show that the API is reachable."""
        unread = replace(ALIVE, asked=False, lease_age_s=None)
        assert summed_up(replace(ALIVE, lease_age_s=90.0), unread).silent == 2
        assert summed_up(ALIVE, unread).silent == 0

    @pytest.mark.parametrize(
        ("ready", "lease_age_s", "silent_s", "after_s", "may_be"),
        [
            (None, 299.5, 40.0, 300.0, True),
            (None, 300.0, 40.0, 300.0, False),
            (False, 399.5, 400.0, 300.0, True),
            (False, 400.0, 400.0, 300.0, False),
            (False, 39.5, 0.0, 30.0, True),
            (False, 40.0, 0.0, 30.0, False),
            (True, 999.0, 40.0, 300.0, True),
            (True, None, 40.0, 300.0, True),
            (None, None, 40.0, 300.0, False),
        ],
    )
    def test_one_that_may_be_alive_is_ready_or_not_silent_for_as_long_as_power_offs_take(
        self, ready, lease_age_s, silent_s, after_s, may_be
    ):
        policy = replace(ARMED, lease_silent_s=silent_s, unresponsive_after_s=after_s)
        assert may_be_alive(node(ready=ready, lease_age_s=lease_age_s, deaf_s=900.0), policy) is may_be

    def test_the_limit_is_the_policys_and_without_one_the_leases_duration(self):
        patient = replace(ARMED, lease_silent_s=90.0)
        assert heard(replace(ALIVE, lease_age_s=89.0), patient)
        at_once = replace(ARMED, require_not_ready=False, lease_silent_s=0.0)
        assert heard(replace(ALIVE, lease_age_s=39.0), at_once)
        assert not heard(replace(ALIVE, lease_age_s=40.0), at_once)


class TestBrake:
    def test_a_fence_counts_until_it_is_an_hour_old(self):
        assert summed_up(ALIVE, FENCED).young_fences == 1
        assert summed_up(ALIVE, FENCED, utc="2026-11-20T10:58:29Z").young_fences == 1
        assert summed_up(ALIVE, FENCED, utc=AN_HOUR_LATER).young_fences == 0

    @pytest.mark.parametrize(
        "facts",
        [
            {"mark": MARK},
            {"taints": (TAINT,)},
        ],
        ids=["no taint", "no mark"],
    )
    def test_what_is_no_fence_of_ours_does_not(self, facts):
        assert summed_up(node(**facts)).young_fences == 0

    @pytest.mark.parametrize(
        "mark", [Unreadable("schema 9"), replace(MARK, fenced_at_utc="2020-01-01T00:00:00Z")], ids=str
    )
    def test_what_may_be_one_whose_mark_was_written_over_does(self, mark):
        """A kubelet may write what it likes on its Node; the brake is not its to widen."""
        assert summed_up(node(taints=(TAINT,), mark=mark)).young_fences == 1
        assert summed_up(node(taints=(TAINT,), mark=mark), utc=AN_HOUR_LATER).young_fences == 0
        unknown = replace(TAINT, time_added=None)
        assert summed_up(node(taints=(unknown,), mark=mark)).young_fences == 1

    def test_nor_does_one_whose_guest_is_there_no_more(self):
        gone = evidence(PowerState.ABSENT, end_recorded=True)
        assert summed_up(FENCED, readings=(gone,)).young_fences == 0
        assert summed_up(FENCED, readings=(replace(gone, guest=OTHER),)).young_fences == 1
        assert summed_up(FENCED, readings=(evidence(),)).young_fences == 1

    def test_a_mark_that_was_written_over_with_a_deleted_guests_still_does(self):
        forged = replace(MARK, fenced_at_utc="2020-01-01T00:00:00Z")
        gone = evidence(PowerState.ABSENT, end_recorded=True)
        assert summed_up(node(taints=(TAINT,), mark=forged), readings=(gone,)).young_fences == 1

    def test_one_does_whose_guest_is_merely_not_found(self):
        """Rights that were lost, or an endpoint that forgets, do not widen the brake."""
        assert summed_up(FENCED, readings=(evidence(PowerState.ABSENT),)).young_fences == 1

    def test_all_nodes_are_counted(self):
        assert summed_up(ALIVE, FENCED, node()).nodes == 3


class TestTainted:
    """A node as it is once fencer has written on it: fencer goes on before the API server shows it."""

    def test_it_is_fenced_in_a_later_version_and_keeps_its_other_taints(self):
        theirs = replace(TAINT, key="example.com/theirs")
        written = tainted(node(version="41", taints=(theirs,)), MARK)
        assert written.fenced
        assert written.mark == MARK
        assert written.version == "42"
        assert theirs in written.taints

    @pytest.mark.parametrize("version", ["", "not-a-number"])
    def test_a_version_that_is_no_number_stays(self, version):
        assert tainted(node(version=version), MARK).version == version


class TestQuorum:
    def test_a_guest_may_be_stopped_while_the_rest_of_the_members_are_a_majority(self):
        three = [named("a"), named("b"), named("c")]
        assert quorum_without(three, ARMED) == {"a", "b", "c"}
        silent = [named("a"), named("b"), named("c", lease_age_s=90.0)]
        assert quorum_without(silent, ARMED) == {"c"}

    def test_workers_are_no_members(self):
        assert quorum([ALIVE, named("a")], ARMED) == ({"a"}, 1)
        assert quorum_without([ALIVE, named("a")], ARMED) == frozenset()

    @pytest.mark.parametrize(("members", "majority"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
    def test_a_majority_is_more_than_half(self, members, majority):
        assert quorum([named(str(number)) for number in range(members)], ARMED)[1] == majority

    def test_one_whose_guest_does_not_run_is_no_healthy_one_though_its_lease_is_young(self):
        three = [named("a"), named("b"), named("c")]
        assert quorum(three, ARMED, frozenset({"a"}))[0] == {"b", "c"}
        assert quorum_without(three, ARMED, frozenset({"a"})) == {"a"}


class TestDistrustedEndpoints:
    """Which they are, and because of which nodes; the rules are those of `fencer.core.distrust`."""

    def test_two_doubts_of_one_endpoint_that_count_and_one_is_not_enough(self):
        assert summed_up(CALLED_OFF, ALIVE).contradicted_endpoints == frozenset()
        summed = summed_up(CALLED_OFF, replace(CALLED_OFF, name="k8s-3"), ALIVE)
        assert summed.contradicted_endpoints == {"lab"}
        assert summed.contradicted_by == {("lab", "k8s-2"), ("lab", "k8s-3")}
        assert summed.proven_wrong == frozenset()

    def test_those_that_are_proven_stay_so(self):
        proven = replace(CALLED_OFF, doubts=(doubt(boot_id=BOOT),))
        assert summed_up(proven, replace(CALLED_OFF, name="k8s-3")).proven_wrong == frozenset()
        assert summed_up(proven, replace(proven, name="k8s-3")).proven_wrong == {"lab"}


class TestStalls:
    STALLED = evidence(PowerState.PAUSED, io_error=True)

    def test_two_guests_of_an_endpoint_paused_by_their_disks_are_its_storage(self):
        assert stalls([self.STALLED]) == frozenset()
        assert stalls([self.STALLED, evidence(PowerState.PAUSED)]) == frozenset()
        assert stalls([self.STALLED, replace(self.STALLED, guest=OTHER)]) == frozenset()
        assert stalls([self.STALLED, self.STALLED]) == {"lab"}

    def test_one_that_is_remembered_counts_beside_those_that_are_seen(self):
        seen = summed_up(ALIVE, readings=(self.STALLED, self.STALLED), stalled=frozenset({"home"}))
        assert seen.stalled == {"home", "lab"}


def test_what_people_and_this_agent_said_is_passed_on():
    told = summed_up(ALIVE, last_stop_age_s=7.0, paused_why="storage work")
    assert (told.last_stop_age_s, told.paused_why) == (7.0, "storage work")
