"""What every implementation of the port `Cluster` must do, with an API server behind it or a world in memory.

A test module runs the whole contract by subclassing `ClusterContract` and giving it two fixtures::

    class TestSimulatedCluster(ClusterContract):
        @pytest.fixture
        def cluster(self): ...      # the implementation, of the type fencer.ports.Cluster
        @pytest.fixture
        def backstage(self): ...    # a Backstage of the same cluster

Both may live longer than one test: names are never used twice, and a test looks only at what it made.
No controller may act meanwhile (no taint eviction, no pod garbage collection, no node lifecycle), because the
contract is about the API alone.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import pytest

from fencer.core import annotations as keys
from fencer.core.model import (
    Binding,
    Cordon,
    Doubt,
    Doubted,
    FenceMark,
    GuestRef,
    NodeView,
    PodView,
    Proof,
    Taint,
)
from fencer.errors import ClusterConflict, ClusterNotFound
from fencer.ports import Cluster, Lease
from tests.support import wait_until

GUEST = GuestRef("lab", "101", "6f1c0000-0000-4000-8000-0000000000e2", "k8s-4", "lab1")
BINDING = Binding(GUEST, ("boot-0", "boot-1"))
MARK = FenceMark("i-1", "2026-11-20T10:41:12Z", "boot-1", GUEST, "fencer@pve2", Proof.POWER)
DOUBTS = (
    Doubt(Doubted.MIGRATED, GUEST, "libvirt:host-1", "fencer@pve2", "2026-11-20T10:41:12Z"),
    Doubt(
        Doubted.SAVED, replace(GUEST, host_uuid="host-1"), "libvirt:host-1", "fencer", "2026-11-20T10:42:12Z"
    ),
)
CORDON = Cordon("unfence", "boot-2", "2026-11-20T10:55:00Z")
OURS = Taint("node.kubernetes.io/out-of-service", "nodeshutdown", "NoExecute")
OTHERS = (
    Taint("dedicated", "db", "NoSchedule"),
    Taint("node.kubernetes.io/unreachable", "", "NoExecute", "2026-11-20T10:40:00Z"),
)
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
FINALIZER = "example.com/hold"

_numbers = itertools.count(1)


class Backstage(Protocol):
    """Sets the scene behind the port, as kubelets, users and controllers would, and looks at the result.

    Nodes, pods and attachments are named by the tests; pods live in the namespace ``default``. A method that
    changes an object moves its version on, so that a guarded write with the version before must be refused.
    """

    def make_node(
        self, name: str, *, ready: bool | None = True, boot_id: str = "boot-1", taints: Sequence[Taint] = ()
    ) -> None:
        """Register a node without a lease. `ready` None: its Ready condition reads Unknown."""

    def touch_node(self, name: str) -> None:
        """Let somebody else change the node in a way that fencer does not look at."""

    def forget_writers(self, name: str) -> None:
        """Empty the API server's record of who wrote which field of a node."""

    def drop_node(self, name: str) -> None:
        """Delete the node's object; its pods and attachments stay."""

    def annotate_node(self, name: str, key: str, value: str) -> None:
        """Set an annotation, as a person would."""

    def node_annotations(self, name: str) -> Mapping[str, str]:
        """Return all annotations of the node."""

    def renew_lease(self, name: str) -> None:
        """Renew the node's lease, and make it if there is none; each renewTime differs from those before."""

    def report_status(self, name: str) -> None:
        """Write the node's status as its kubelet does, with Ready=True and a lastHeartbeatTime of its own."""

    def mark_unknown(self, name: str) -> None:
        """Set Ready to Unknown as the node lifecycle controller does, which leaves lastHeartbeatTime alone.

        Source: kubernetes pkg/controller/nodelifecycle/node_lifecycle_controller.go, tryUpdateNodeHealth.
        """

    def make_pod(
        self,
        node: str,
        name: str,
        *,
        finalizers: Sequence[str] = (),
        mirror: bool = False,
        tolerates: bool = False,
        claim: str = "",
    ) -> None:
        """Make a Running pod bound to the node. `tolerates`: any taint, for ever. `claim`: of its volume."""

    def make_claim(self, name: str) -> str:
        """Make a claim that is bound to a volume, and return the volume's name."""

    def touch_pod(self, name: str) -> None:
        """Let somebody else change the pod in a way that fencer does not look at."""

    def drop_pod(self, name: str) -> None:
        """Take the pod away at once, finalizers or not; a pod made later under its name is another one."""

    def disruption_of(self, name: str) -> str | None:
        """Return the message of the pod's DisruptionTarget condition if it is True; None: it has none."""

    def make_attachment(self, node: str, name: str, volume: str, *, attached: bool) -> None:
        """Make a VolumeAttachment of the node."""

    def events_of(self, node: str) -> Sequence[tuple[str, str, str]]:
        """Return type (Normal, Warning), reason and message of the events in ``kubectl describe node``."""

    def pause(self, why: str | None) -> None:
        """Set the pause annotation on kube-system, or take it off."""


Write = Callable[[Cluster, NodeView], None]
WRITES: dict[str, Write] = {
    "bind": lambda cluster, node: cluster.bind(node, BINDING),
    "record_doubts": lambda cluster, node: cluster.record_doubts(node, DOUBTS),
    "approve": lambda cluster, node: cluster.approve(node, "a-uuid", "anna", "2026-11-30T12:00:00Z"),
    "claim": lambda cluster, node: cluster.claim(node, "i-1", "fencer@pve2"),
    "taint": lambda cluster, node: cluster.taint(node, MARK),
    "untaint": lambda cluster, node: cluster.untaint(node, CORDON),
    "forget_mark": lambda cluster, node: cluster.forget_mark(node),
    "cordon": lambda cluster, node: cluster.cordon(node, CORDON),
    "uncordon": lambda cluster, node: cluster.uncordon(node),
}
every_write = pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))


class OneNode:
    """The node that each test is about."""

    @pytest.fixture
    def node(self, backstage: Backstage) -> str:
        """A node of this test alone, with taints of others."""
        name = f"node-{next(_numbers)}"
        backstage.make_node(name, taints=OTHERS)
        return name


class ClusterContract(OneNode):
    """The contract. Subclasses give the fixtures `cluster` and `backstage`."""

    # -- reads --------------------------------------------------------------------------------------------

    def test_identity_is_the_same_each_time(self, cluster):
        first, second = cluster.identity(), cluster.identity()
        assert first.uid
        assert (first.uid, first.user, first.version) == (second.uid, second.user, second.version)

    def test_the_pause_is_told_with_its_reason(self, cluster, backstage):
        backstage.pause("storage work until noon")
        try:
            assert cluster.identity().paused_why == "storage work until noon"
            assert cluster.heartbeats([]).paused_why == "storage work until noon"
            assert cluster.list_nodes().paused_why == "storage work until noon"
            assert cluster.pause().why == "storage work until noon"
        finally:
            backstage.pause(None)
        assert cluster.identity().paused_why is None
        assert cluster.heartbeats(None).paused_why is None
        assert cluster.list_nodes().paused_why is None
        assert cluster.pause().why is None

    def test_an_attachment_is_deleted_by_its_uid_and_a_second_time_is_no_error(
        self, cluster, backstage, node
    ):
        backstage.make_attachment(node, "csi-doomed", "pv-doomed", attached=True)
        [attachment] = cluster.attachments().of(node)
        with pytest.raises(ClusterConflict):
            cluster.delete_attachment(replace(attachment, uid="another"))
        cluster.delete_attachment(attachment)
        assert not [left for left in cluster.attachments().of(node) if not left.terminating]
        cluster.delete_attachment(attachment)

    def test_no_right_is_missing(self, cluster):
        assert list(cluster.missing_rights()) == []
        assert list(cluster.missing_lesser_rights()) == []

    def test_a_list_the_heartbeats_and_a_fact_tell_the_same(self, cluster, backstage, node):
        backstage.renew_lease(node)
        live = cluster.fact(node)
        assert listed(cluster, node) == live.node
        wait_until(lambda: known(cluster, node) == live.node, "node as it is")
        for asked in ([node], None):
            assert cluster.heartbeats(asked).leases[node] == Lease(live.renew_time, live.lease_version)
        assert live.node.boot_id == "boot-1"
        assert set(OTHERS) <= set(live.node.taints)

    def test_times_are_those_of_the_api_server(self, cluster, node):
        assert RFC3339.fullmatch(cluster.fact(node).utc)
        assert RFC3339.fullmatch(cluster.list_nodes().utc)
        assert RFC3339.fullmatch(cluster.heartbeats([node]).utc)
        assert RFC3339.fullmatch(cluster.pause().utc)

    def test_a_node_that_does_not_exist_is_not_found(self, cluster):
        with pytest.raises(ClusterNotFound):
            cluster.fact("no-such-node")

    @pytest.mark.parametrize("ready", [True, False, None])
    def test_ready_is_true_false_or_unknown(self, cluster, backstage, ready):
        name = f"node-{next(_numbers)}"
        backstage.make_node(name, ready=ready)
        assert cluster.fact(name).node.ready is ready

    def test_a_node_without_a_lease_has_no_renewal(self, cluster, node):
        assert cluster.fact(node).renew_time is None
        for asked in ([node], None):
            assert node not in cluster.heartbeats(asked).leases

    def test_a_renewal_changes_the_lease_and_not_the_node(self, cluster, backstage, node):
        backstage.renew_lease(node)
        before = cluster.fact(node)
        backstage.renew_lease(node)
        after = cluster.fact(node)
        assert before.renew_time is not None
        assert after.renew_time not in {None, before.renew_time}
        assert after.lease_version > before.lease_version > 0
        assert after.node == before.node

    def test_each_report_of_a_kubelet_changes_when_it_last_reported(self, cluster, backstage, node):
        reported = []
        for _ in range(3):
            backstage.report_status(node)
            reported.append(cluster.fact(node).node.reported_utc)
        assert all(reported)
        assert len({*reported}) == len(reported)
        assert listed(cluster, node).reported_utc == reported[-1]

    def test_a_renewal_is_no_report(self, cluster, backstage, node):
        backstage.report_status(node)
        before = cluster.fact(node)
        backstage.renew_lease(node)
        after = cluster.fact(node)
        assert after.lease_version > before.lease_version
        assert after.node.reported_utc == before.node.reported_utc != ""

    def test_a_controller_that_sets_ready_to_unknown_is_no_report(self, cluster, backstage, node):
        backstage.renew_lease(node)
        backstage.report_status(node)
        before = cluster.fact(node).node
        backstage.mark_unknown(node)
        after = cluster.fact(node).node
        assert (before.ready, after.ready) == (True, None)
        assert after.reported_utc == before.reported_utc != ""
        backstage.report_status(node)
        again = cluster.fact(node).node
        assert again.ready
        assert again.reported_utc not in {"", after.reported_utc}

    @pytest.mark.parametrize("asked", [1, 40, None], ids=["one", "many", "all"])
    def test_a_lease_that_is_written_later_is_newer_than_the_heartbeats(
        self, cluster, backstage, node, asked
    ):
        backstage.renew_lease(node)
        before = cluster.fact(node).lease_version
        names = asked and [node, *(f"{node}-{number}" for number in range(1, asked))]
        heartbeats = cluster.heartbeats(names)
        backstage.renew_lease(node)
        after = cluster.fact(node).lease_version
        assert heartbeats.leases[node].version == before
        assert before <= heartbeats.version < after
        assert not {f"{node}-{number}" for number in range(1, 40)} & heartbeats.leases.keys()

    def test_of_nobody_in_particular_a_few_are_heard(self, cluster, backstage, node):
        backstage.renew_lease(node)
        found = cluster.heartbeats([])
        assert found.leases
        assert max(lease.version for lease in found.leases.values()) <= found.version

    # -- nodes --------------------------------------------------------------------------------------------

    def test_an_excluded_node_is_seen_as_such(self, cluster, backstage, node):
        assert not cluster.fact(node).node.excluded
        backstage.annotate_node(node, keys.EXCLUDE, "true")
        assert cluster.fact(node).node.excluded

    def test_pods_are_those_of_the_node(self, cluster, backstage, node):
        backstage.make_node(f"{node}-other")
        backstage.make_pod(node, f"{node}-db")
        backstage.make_pod(f"{node}-other", f"{node}-elsewhere")
        (pod,) = cluster.pods(node)
        assert (pod.namespace, pod.name, pod.phase) == ("default", f"{node}-db", "Running")
        assert pod.uid
        assert pod.finalizers == ()
        assert not any((pod.terminating, pod.mirror, pod.tolerates_out_of_service))

    def test_pods_say_what_decides_about_clearing_them(self, cluster, backstage, node):
        backstage.make_pod(node, f"{node}-mirror", mirror=True)
        backstage.make_pod(node, f"{node}-stays", tolerates=True)
        backstage.make_pod(node, f"{node}-held", finalizers=[FINALIZER])
        pods = {pod.name: pod for pod in cluster.pods(node)}
        assert pods[f"{node}-mirror"].mirror
        assert pods[f"{node}-stays"].tolerates_out_of_service
        assert pods[f"{node}-held"].finalizers == (FINALIZER,)

    def test_a_node_with_nothing_on_it_has_neither_pods_nor_attachments(self, cluster, node):
        assert list(cluster.pods(node)) == []
        assert cluster.attachments().of(node) == ()

    def test_one_list_has_the_attachments_of_all_nodes_and_tells_them_apart(self, cluster, backstage, node):
        backstage.make_attachment(node, f"{node}-va", f"{node}-pv", attached=True)
        backstage.make_attachment(f"{node}-other", f"{node}-va-elsewhere", f"{node}-pv-2", attached=True)
        found = cluster.attachments()
        (attachment,) = found.of(node)
        (elsewhere,) = found.of(f"{node}-other")
        assert elsewhere.name == f"{node}-va-elsewhere"
        assert (attachment.name, attachment.node) == (f"{node}-va", node)
        assert attachment.volume == f"{node}-pv"
        assert attachment.attached

    def test_the_volumes_of_a_pod_are_those_that_its_claims_are_bound_to(self, cluster, backstage, node):
        volume = backstage.make_claim(f"{node}-data")
        assert cluster.volumes(make_pod(cluster, backstage, node, claim=f"{node}-data")) == {volume}

    def test_a_pod_without_a_claim_has_no_volume(self, cluster, backstage, node):
        assert cluster.volumes(make_pod(cluster, backstage, node)) == frozenset()

    # -- guarded writes on nodes --------------------------------------------------------------------------

    @every_write
    def test_a_write_for_an_old_version_is_refused_and_does_nothing(self, cluster, backstage, node, write):
        stale = cluster.fact(node).node
        backstage.touch_node(node)
        before = cluster.fact(node).node
        with pytest.raises(ClusterConflict):
            write(cluster, stale)
        assert cluster.fact(node).node == before

    @every_write
    def test_a_write_on_a_node_that_is_gone_is_not_found(self, cluster, backstage, node, write):
        view = cluster.fact(node).node
        backstage.drop_node(node)
        with pytest.raises(ClusterNotFound):
            write(cluster, view)

    @every_write
    def test_a_write_on_another_node_of_the_same_name_is_refused(self, cluster, backstage, node, write):
        view = cluster.fact(node).node
        backstage.drop_node(node)
        backstage.make_node(node)
        before = cluster.fact(node).node
        with pytest.raises(ClusterConflict):
            write(cluster, view)
        assert cluster.fact(node).node == before

    def test_of_two_agents_that_claim_one_incident_one_wins(self, cluster, backstage, node):
        view = cluster.fact(node).node
        cluster.claim(view, "i-1", "fencer@pve1")
        with pytest.raises(ClusterConflict):
            cluster.claim(view, "i-2", "fencer@pve2")
        assert "i-1" in backstage.node_annotations(node)[keys.INCIDENT]

    def test_a_binding_is_read_back(self, cluster, node):
        cluster.bind(cluster.fact(node).node, BINDING)
        assert cluster.fact(node).node.binding == BINDING

    def test_doubts_are_read_back_and_taken_off_when_none_is_left(self, cluster, backstage, node):
        cluster.record_doubts(cluster.fact(node).node, DOUBTS)
        assert cluster.fact(node).node.doubts == DOUBTS
        cluster.record_doubts(cluster.fact(node).node, ())
        assert cluster.fact(node).node.doubts == ()
        assert keys.DOUBTS not in backstage.node_annotations(node)

    def test_an_approval_is_read_back_and_taken_off_when_it_is_withdrawn(self, cluster, backstage, node):
        cluster.approve(cluster.fact(node).node, "a-uuid", "anna", "2026-11-30T12:00:00Z")
        assert cluster.fact(node).node.approved == "a-uuid"
        cluster.approve(cluster.fact(node).node, "", "anna", "2026-11-30T12:00:00Z")
        assert cluster.fact(node).node.approved == ""
        assert keys.APPROVED not in backstage.node_annotations(node)

    def test_taint_and_mark_come_together_and_other_taints_survive(self, cluster, backstage, node):
        before = cluster.fact(node).node
        cluster.taint(before, MARK)
        after = cluster.fact(node).node
        assert after.mark == MARK
        assert untimed(after.taints) == {*untimed(before.taints), OURS}
        assert set(before.taints) <= set(after.taints)
        assert backstage.node_annotations(node)[keys.APPLIED_BY] == "fencer"

    def test_untaint_takes_off_taint_mark_and_claim_and_cordons(self, cluster, backstage, node):
        before = cluster.fact(node).node
        cluster.claim(before, "i-1", "fencer")
        cluster.taint(cluster.fact(node).node, MARK)
        cluster.untaint(cluster.fact(node).node, CORDON)
        after = cluster.fact(node).node
        assert (after.mark, after.out_of_service) == (None, None)
        assert set(before.taints) <= set(after.taints)
        assert (after.unschedulable, after.cordon) == (True, CORDON)
        assert not {keys.MARK, keys.INCIDENT, keys.APPLIED_BY} & set(backstage.node_annotations(node))

    def test_untaint_without_a_cordon_leaves_scheduling_alone(self, cluster, node):
        cluster.taint(cluster.fact(node).node, MARK)
        cluster.untaint(cluster.fact(node).node, None)
        after = cluster.fact(node).node
        assert (after.out_of_service, after.unschedulable, after.cordon) == (None, False, None)

    def test_uncordon_takes_off_the_cordon_and_its_annotation_and_the_binding_stays(self, cluster, node):
        cluster.bind(cluster.fact(node).node, BINDING)
        cluster.taint(cluster.fact(node).node, MARK)
        cluster.untaint(cluster.fact(node).node, CORDON)
        cluster.uncordon(cluster.fact(node).node)
        after = cluster.fact(node).node
        assert (after.unschedulable, after.cordon, after.binding) == (False, None, BINDING)

    def test_a_cordon_comes_with_its_note_and_says_who_set_it(self, cluster, node):
        cluster.cordon(cluster.fact(node).node, CORDON)
        after = cluster.fact(node).node
        assert (after.unschedulable, after.cordon, after.cordoner) == (True, CORDON, "fencer")
        cluster.uncordon(after)
        assert cluster.fact(node).node.cordoner == ""

    def test_without_a_record_of_who_wrote_what_a_cordon_says_so(self, cluster, backstage, node):
        backstage.forget_writers(node)
        cluster.cordon(cluster.fact(node).node, CORDON)
        after = cluster.fact(node).node
        assert (after.cordon, after.cordoner, after.recorded) == (CORDON, "", False)
        cluster.uncordon(after)
        after = cluster.fact(node).node
        assert (after.unschedulable, after.cordon) == (False, None)

    def test_a_note_that_nobody_can_read_is_overwritten_with_a_cordon(self, cluster, backstage, node):
        backstage.annotate_node(node, keys.CORDON, "of another schema")
        cluster.cordon(cluster.fact(node).node, CORDON)
        after = cluster.fact(node).node
        assert (after.unschedulable, after.cordon) == (True, CORDON)

    def test_a_forgotten_mark_leaves_the_taints_alone(self, cluster, node):
        cluster.taint(cluster.fact(node).node, MARK)
        tainted = cluster.fact(node).node
        cluster.forget_mark(tainted)
        after = cluster.fact(node).node
        assert (after.mark, after.taints) == (None, tainted.taints)

    # -- pods ---------------------------------------------------------------------------------------------

    def test_a_cleared_pod_is_gone(self, cluster, backstage, node):
        pod = make_pod(cluster, backstage, node)
        cleared = cluster.clear(pod, "guest stopped")
        assert (cleared.pod, cleared.gone, cleared.note) == (pod, True, "")
        assert list(cluster.pods(node)) == []

    def test_a_finalizer_holds_a_cleared_pod_which_is_failed_and_says_why(self, cluster, backstage, node):
        pod = make_pod(cluster, backstage, node, finalizers=[FINALIZER])
        cleared = cluster.clear(pod, "guest stopped")
        assert not cleared.gone
        assert FINALIZER in cleared.note
        (left,) = cluster.pods(node)
        assert (left.uid, left.phase, left.terminating) == (pod.uid, "Failed", True)
        assert left.finalizers == (FINALIZER,)
        assert backstage.disruption_of(pod.name) == "guest stopped"

    def test_clearing_a_held_pod_again_changes_nothing(self, cluster, backstage, node):
        pod = make_pod(cluster, backstage, node, finalizers=[FINALIZER])
        cluster.clear(pod, "guest stopped")
        (left,) = cluster.pods(node)
        again = cluster.clear(left, "guest stopped")
        assert not again.gone
        assert FINALIZER in again.note

    def test_a_pod_that_changed_is_not_cleared(self, cluster, backstage, node):
        pod = make_pod(cluster, backstage, node)
        backstage.touch_pod(pod.name)
        with pytest.raises(ClusterConflict):
            cluster.clear(pod, "guest stopped")
        (left,) = cluster.pods(node)
        assert (left.uid, left.phase, left.terminating) == (pod.uid, "Running", False)

    def test_a_pod_that_is_gone_already_counts_as_gone(self, cluster, backstage, node):
        pod = make_pod(cluster, backstage, node)
        backstage.drop_pod(pod.name)
        assert cluster.clear(pod, "guest stopped").gone

    def test_another_pod_of_the_same_name_is_left_alone(self, cluster, backstage, node):
        pod = make_pod(cluster, backstage, node)
        backstage.drop_pod(pod.name)
        successor = make_pod(cluster, backstage, node, name=pod.name)
        assert cluster.clear(pod, "guest stopped").gone
        assert list(cluster.pods(node)) == [successor]

    # -- events -------------------------------------------------------------------------------------------

    def test_an_event_shows_when_the_node_is_described(self, cluster, backstage, node):
        view = cluster.fact(node).node
        cluster.record_event(view, "Fenced", "stopped twice; 3 pods cleared", warning=True)
        cluster.record_event(view, "Unfenced", "booted again", warning=False)
        assert set(backstage.events_of(node)) == {
            ("Warning", "Fenced", "stopped twice; 3 pods cleared"),
            ("Normal", "Unfenced", "booted again"),
        }


class WatchContract(OneNode):
    """What an implementation must do whose `subscribe` watches. Fixtures as in `ClusterContract`."""

    @pytest.fixture
    def woken(self, cluster: Cluster) -> threading.Event:
        """Set whenever the watch says that something has changed."""
        woken = threading.Event()
        cluster.subscribe(woken.set)
        return woken

    def test_a_watch_tells_of_a_node_that_comes_and_goes(self, cluster, backstage, woken):
        name = f"node-{next(_numbers)}"
        backstage.make_node(name)
        wait_until(lambda: known(cluster, name), "node that was made")
        wait_until(woken.is_set, "call")
        woken.clear()
        backstage.drop_node(name)
        wait_until(lambda: known(cluster, name) is None, "end of the node")
        wait_until(woken.is_set, "call")

    @pytest.mark.parametrize("write", ["bind", "taint", "cordon"])
    def test_a_watch_tells_of_what_matters_of_a_node(self, cluster, node, woken, write):
        wait_until(lambda: known(cluster, node) == cluster.fact(node).node, "node as it is")
        woken.clear()
        WRITES[write](cluster, cluster.fact(node).node)
        wait_until(woken.is_set, "call")
        wait_until(lambda: known(cluster, node) == cluster.fact(node).node, "node as it is")

    def test_a_watch_calls_nobody_for_what_does_not_matter(self, cluster, backstage, node, woken):
        wait_until(lambda: known(cluster, node) == cluster.fact(node).node, "node as it is")
        woken.clear()
        before = cluster.fact(node).node
        backstage.touch_node(node)
        wait_until(lambda: known(cluster, node) == cluster.fact(node).node != before, "node as it is")
        assert not woken.is_set()


def listed(cluster: Cluster, node: str) -> NodeView:
    """Return what a list says of one node."""
    (view,) = [view for view in cluster.list_nodes().views if view.name == node]
    return view


def known(cluster: Cluster, node: str) -> NodeView | None:
    """Return what is known of one node; None: it is not among all."""
    return next((view for view in cluster.nodes().views if view.name == node), None)


def make_pod(cluster: Cluster, backstage: Backstage, node: str, *, name: str = "", **traits) -> PodView:
    """Make a pod and return it as the port shows it."""
    name = name or f"{node}-pod"
    backstage.make_pod(node, name, **traits)
    (pod,) = [pod for pod in cluster.pods(node) if pod.name == name]
    return pod


def untimed(taints: Sequence[Taint]) -> set[Taint]:
    """Return taints without the time at which they were added."""
    return {Taint(taint.key, taint.value, taint.effect) for taint in taints}
