"""The `Cluster` port over objects in memory, with the real API's guards: versions, UIDs, finalizers."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta

from fencer.core import annotations as written
from fencer.core.annotations import Seal
from fencer.core.model import (
    OUT_OF_SERVICE,
    AttachmentView,
    Binding,
    Cordon,
    Doubt,
    FenceMark,
    GuestRef,
    Left,
    NodeView,
    PodView,
    Taint,
)
from fencer.errors import ClusterConflict, ClusterDenied, ClusterNotFound, ClusterUnreachable
from fencer.evicting.answers import Answer
from fencer.ports import Attachments, Cleared, ClusterInfo, Fact, Heartbeats, Lease, Nodes, Pause
from fencer.simulation.clock import EPOCH
from fencer.simulation.evictions import evict
from fencer.simulation.objects import Api, ApiNode, ApiPod

KEY = b"the key of the simulated cluster"

SILENT_S = 75.0
"""For so long fencer believes in a watch that says nothing."""

CANARIES = 1
"""As few leases as a cluster can add to those that were asked for."""

RIGHTS = (
    "list nodes",
    "get nodes",
    "patch nodes",
    "list leases",
    "get leases",
    "list pods",
    "patch pods/status",
    "delete pods",
    "list volumeattachments",
    "create events",
)


class SimulatedCluster:
    """The Kubernetes API as fencer sees it.

    Args:
        api: The objects.
        missing: Rights that fencer does not have here, like those of `RIGHTS`.
    """

    def __init__(self, api: Api, missing: Sequence[str] = ()) -> None:
        self.missing = set(missing)
        self.malformed: tuple[str, ...] = ()
        self.cleared: Counter[str] = Counter()
        """Pods that fencer cleared, by node."""
        self.events: list[tuple[str, str, str, bool]] = []
        """Events on nodes: node, reason, text, warning."""
        self.tainted_by_hand: set[str] = set()
        """Nodes that somebody else than fencer has tainted."""
        self._api = api
        self._views: dict[str, NodeView] = {}
        self._lag_s = 0.0
        self._still: tuple[NodeView, ...] = ()
        self._still_until_s = float("-inf")
        self._past: deque[tuple[float, tuple[Fact, ...], int]] = deque()

    def lag(self, lag_s: float) -> None:
        """From now on show in lists what was true `lag_s` ago (0: what is true); live reads stay live."""
        self._lag_s = lag_s
        self._past.clear()
        if lag_s:
            self._remember_facts()

    def swallow_watch(self) -> None:
        """Tell nothing new of nodes from now on, until the watch is given up, and all are listed again."""
        self._still = tuple(self._view(node) for node in self._api.nodes.values())
        self._still_until_s = self._api.clock.now_s() + SILENT_S

    def taint_by_hand(self, name: str) -> None:
        """Set the out-of-service taint as an admin does: without a mark, and cordon the node."""
        node = self._api.nodes.get(name)
        if node is None:
            return
        self.cordon_by_hand(name)
        if not node.out_of_service:
            self.tainted_by_hand.add(name)
            self._api.set_taints(node, (*node.taints, Taint(OUT_OF_SERVICE, "nodeshutdown", "NoExecute")))

    def untaint_by_hand(self, name: str) -> None:
        """Take the out-of-service taint off as ``kubectl taint`` does, no matter who set it; notes stay."""
        node = self._api.nodes.get(name)
        if node is not None and node.out_of_service:
            self.tainted_by_hand.discard(name)
            self._api.set_taints(node, [taint for taint in node.taints if taint.key != OUT_OF_SERVICE])

    def taint_otherwise(self, name: str, taint: Taint) -> None:
        """Set a taint of another controller."""
        node = self._api.nodes.get(name)
        if node is not None and not node.tainted(taint.key):
            self._api.set_taints(node, (*node.taints, taint))

    def untaint_otherwise(self, name: str, taint: Taint) -> None:
        """Take it off again."""
        node = self._api.nodes.get(name)
        if node is not None:
            self._api.set_taints(node, [one for one in node.taints if one.key != taint.key])

    def cordon_by_hand(self, name: str) -> None:
        """Cordon as ``kubectl cordon`` does: a node that is cordoned is not written to."""
        node = self._api.nodes.get(name)
        if node is not None and not node.unschedulable:
            node.unschedulable, node.cordoner = True, "kubectl"
            self._api.changed(node)

    def uncordon_by_hand(self, name: str) -> None:
        """Uncordon as ``kubectl uncordon`` does, no matter who cordoned it."""
        node = self._api.nodes.get(name)
        if node is not None and node.unschedulable:
            node.unschedulable, node.cordoner = False, ""
            self._api.changed(node)

    def force_delete_pods(self, name: str) -> None:
        """Delete all pods of a node, as ``kubectl delete pod --force`` does: volumes stay attached."""
        for pod in self._api.pods_on(name):
            self._api.delete_pod(pod, force=True)

    def make_pod(self, name: str) -> None:
        """Make a pod that names its node, as ``kubectl run --overrides`` does: no scheduler is asked."""
        uid = self._api.new_uid()
        pod = ApiPod("default", f"by-hand-{uid[:8]}", uid, "", self._api.clock.now_s(), named_node=name)
        self._api.create_pod(pod)

    def attach_by_hand(self, name: str) -> None:
        """Make a VolumeAttachment that no controller knows."""
        if name in self._api.nodes:
            attachment = self._api.add_attachment(f"by-hand-{name}", name)
            attachment.attached = attachment.by_hand = True
            self._api.changed(attachment)

    def detach_by_hand(self, name: str) -> None:
        """Delete it again."""
        attachment = self._api.attachments.get((f"by-hand-{name}", name))
        if attachment is not None:
            self._api.remove_attachment(attachment)

    def forge_mark(self, name: str, guest: GuestRef) -> None:
        """Write a mark as a kubelet can, which may change the annotations of its own Node."""
        node = self._api.nodes.get(name)
        if node is not None:
            mark = FenceMark("forged", self._api.clock.utc(), node.boot_id, guest, "fencer")
            self._annotate(node, {written.MARK: written.write_mark(mark, Seal(b"not the key", node.uid))})

    def write_hostile_notes(self, name: str) -> None:
        """Write all over a Node's annotations, as its kubelet can: garbage, or what stands on another."""
        node, chance = self._api.nodes.get(name), self._api.chance
        if node is None:
            return
        other = chance.choice([one for one in self._api.nodes.values() if one is not node] or [node])
        keys = (written.APPROVED, written.BINDING, written.DOUBTS, written.INCIDENT, written.MARK)
        for key in chance.sample(keys, chance.randint(1, len(keys))):
            mine, others = node.annotations.get(key), other.annotations.get(key)
            garbage = chance.choice(("", "{}", "{", "null", "[1]", '{"schema": 99}', "\x00" * 9, "x" * 5000))
            cut = (mine or others or garbage)[: chance.randint(0, 40)]
            self._annotate(node, {key: chance.choice((garbage, cut, others or garbage))})
        if chance.random() < 0.5:  # noqa: PLR2004 - half of them
            ours = written.write_cordon(Cordon("unfence", node.boot_id, self._api.clock.utc()))
            self._annotate(node, {written.CORDON: chance.choice((ours, "{"))})

    def _annotate(self, node: ApiNode, notes: Mapping[str, str]) -> None:
        node.annotations.update(notes)
        self._api.changed(node)

    def identity(self) -> ClusterInfo:
        """Say which cluster this is."""
        self._may()
        return ClusterInfo(self._api.cluster_uid, "simulation", "v1.36.2", "fencer", self._api.paused_why)

    def missing_rights(self) -> Sequence[str]:
        """Name the rights that are missing."""
        self._may()
        return [right for right in RIGHTS if right in self.missing]

    def missing_lesser_rights(self) -> Sequence[str]:
        """Name the missing rights that fences go on without."""
        self._may()
        return [right for right in ("watch nodes", "get persistentvolumeclaims") if right in self.missing]

    def missing_drain_rights(self) -> Sequence[str]:
        """Name the rights that a drain misses."""
        self._may()
        return [right for right in ("create pods/eviction",) if right in self.missing]

    def nodes(self) -> Nodes:
        """Return all nodes as a watch last told of them."""
        listed = self.list_nodes()
        still = self._api.clock.now_s() < self._still_until_s
        return Nodes(self._still if still else listed.views, listed.malformed)

    def list_nodes(self) -> Nodes:
        """List all nodes."""
        self._may("list nodes")
        views = tuple(fact.node for fact in self._listed())
        return Nodes(views, self.malformed, self._api.clock.utc(), self._api.paused_why)

    def heartbeats(self, nodes: Collection[str] | None) -> Heartbeats:
        """Read leases: those that were asked for, and one more, no matter whose."""
        self._may("list leases", "get leases")
        listed = self._listed()
        asked = {fact.node.name for fact in listed[:CANARIES]} | {*(nodes or ())}
        return Heartbeats(
            {
                fact.node.name: Lease(fact.renew_time, fact.lease_version)
                for fact in listed
                if fact.renew_time is not None and (nodes is None or fact.node.name in asked)
            },
            version=self._past[0][2] if self._past else self._api.version,
            utc=self._api.clock.utc(),
            paused_why=self._api.paused_why,
        )

    def pause(self) -> Pause:
        """Read whether fencing is paused."""
        self._may()
        return Pause(self._api.paused_why, self._api.clock.utc())

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Do nothing: passes come in time."""

    def _listed(self) -> tuple[Fact, ...]:
        """Return what a list shows."""
        return self._past[0][1] if self._past else self._facts()

    def fact(self, node: str) -> Fact:
        """Read one node and its lease."""
        self._may("get nodes", "get leases")
        found = self._api.nodes.get(node)
        if found is None:
            raise ClusterNotFound(f"no node {node}")
        utc, why = self._api.clock.utc(), self._api.paused_why
        return Fact(self._view(found), found.lease, utc, found.lease_version, why)

    def pods(self, node: str) -> Sequence[PodView]:
        """List the pods of a node."""
        self._may("list pods")
        return [_pod_view(pod) for pod in self._api.pods_on(node)]

    def attachments(self) -> Attachments:
        """List all attachments."""
        self._may("list volumeattachments")
        return Attachments(
            tuple(
                AttachmentView(one.name, one.uid, one.node, one.volume, one.attached, one.terminating)
                for one in self._api.attachments.values()
            )
        )

    def volumes(self, pod: PodView) -> frozenset[str]:
        """Name the volumes of a pod: here each is bound to a claim of its own name."""
        self._may("get persistentvolumeclaims")
        return frozenset(pod.claims)

    def bind(self, node: NodeView, binding: Binding) -> None:
        """Write the binding."""
        found = self._guarded(node)
        found.annotations[written.BINDING] = written.write_binding(binding, self._seal(found))
        self._api.changed(found)

    def record_doubts(self, node: NodeView, doubts: tuple[Doubt, ...]) -> None:
        """Write the doubts, or take them off."""
        found = self._guarded(node)
        found.annotations.pop(written.DOUBTS, None)
        if doubts:
            found.annotations[written.DOUBTS] = written.write_doubts(doubts, self._seal(found))
        self._api.changed(found)

    def approve(self, node: NodeView, uuid: str, by: str, since_utc: str) -> None:
        """Write a person's approval, or take it off."""
        found = self._guarded(node)
        found.annotations.pop(written.APPROVED, None)
        if uuid:
            found.annotations[written.APPROVED] = written.write_approval(
                uuid, by, since_utc, self._seal(found)
            )
        self._api.changed(found)

    def claim(self, node: NodeView, incident: str, by: str, left: Left | None = None) -> None:
        """Write the claim on an incident."""
        found = self._guarded(node)
        found.annotations[written.INCIDENT] = written.write_claim(incident, by, self._seal(found), left)
        self._api.changed(found)

    def taint(self, node: NodeView, mark: FenceMark) -> None:
        """Write taint and mark."""
        found = self._guarded(node)
        found.annotations[written.MARK] = written.write_mark(mark, self._seal(found))
        found.annotations[written.APPLIED_BY] = "fencer"
        others = (taint for taint in found.taints if taint.key != OUT_OF_SERVICE)
        ours = Taint(OUT_OF_SERVICE, "nodeshutdown", "NoExecute", mark.fenced_at_utc)
        self._api.set_taints(found, (*others, ours))

    def untaint(self, node: NodeView, cordon: Cordon | None) -> None:
        """Take taint and mark off, and cordon."""
        found = self._guarded(node)
        for key in (written.MARK, written.APPLIED_BY, written.INCIDENT):
            found.annotations.pop(key, None)
        if cordon is not None:
            found.unschedulable, found.cordoner = True, "fencer"
            found.annotations[written.CORDON] = written.write_cordon(cordon)
        self._api.set_taints(found, (taint for taint in found.taints if taint.key != OUT_OF_SERVICE))
        self._api.changed(found)

    def forget_mark(self, node: NodeView) -> None:
        """Take the mark off."""
        found = self._guarded(node)
        for key in (written.MARK, written.APPLIED_BY, written.INCIDENT):
            found.annotations.pop(key, None)
        self._api.changed(found)

    def cordon(self, node: NodeView, cordon: Cordon) -> None:
        """Cordon, and note that it was us."""
        found = self._guarded(node)
        found.unschedulable, found.cordoner = True, "fencer"
        found.annotations[written.CORDON] = written.write_cordon(cordon)
        self._api.changed(found)

    def uncordon(self, node: NodeView) -> None:
        """Take our cordon off."""
        found = self._guarded(node)
        found.annotations.pop(written.CORDON, None)
        found.unschedulable = False
        self._api.changed(found)

    def clear(self, pod: PodView, why: str) -> Cleared:
        """Do to a pod what the pod garbage collector does."""
        self._may("patch pods/status", "delete pods")
        found = self._api.pods.get(pod.uid)
        if found is None:
            return Cleared(pod, gone=True)
        if str(found.version) != pod.version:
            raise ClusterConflict(f"{pod} changed since it was read")
        self._api.fail_pod(found, why)
        gone = self._api.delete_pod(found, force=True)
        if found.node is not None:
            self.cleared[found.node] += 1
        return Cleared(pod, gone, "" if gone else f"held by {', '.join(found.finalizers)}")

    def evict(self, pod: PodView, grace_s: float | None = None) -> Answer:
        """Ask for the eviction of a pod."""
        if "create pods/eviction" in self.missing:
            return Answer(403, "fencer may not create pods/eviction")
        self._may()
        return evict(self._api, pod.namespace, pod.name, pod.uid, grace_s)

    def pods_in(self, namespace: str) -> Sequence[PodView]:
        """List the pods of a namespace."""
        self._may("list pods")
        return [_pod_view(pod) for pod in self._api.pods.values() if pod.namespace == namespace]

    def delete_attachment(self, attachment: AttachmentView) -> None:
        """Delete an attachment: its volume is detached, as the attacher does it."""
        self._may("delete volumeattachments")
        for found in list(self._api.attachments.values()):
            if found.name == attachment.name:
                if found.uid != attachment.uid:
                    raise ClusterConflict(f"{attachment.name} is another attachment now")
                self._api.remove_attachment(found)

    def record_event(self, node: NodeView, reason: str, text: str, *, warning: bool) -> None:
        """Leave an Event."""
        self._may("create events")
        self.events.append((node.name, reason, text, warning))

    def _may(self, *rights: str) -> None:
        if self._api.down_why is not None:
            raise ClusterUnreachable(self._api.down_why)
        for right in rights:
            if right in self.missing:
                raise ClusterDenied(f"fencer may not {right}")

    def _guarded(self, node: NodeView) -> ApiNode:
        self._may("patch nodes")
        found = self._api.nodes.get(node.name)
        if found is None:
            raise ClusterNotFound(f"no node {node.name}")
        if str(found.version) != node.version:
            raise ClusterConflict(f"{node.name} changed since it was read")
        return found

    def _facts(self) -> tuple[Fact, ...]:
        utc = self._api.clock.utc()
        return tuple(
            Fact(self._view(node), node.lease, utc, node.lease_version) for node in self._api.nodes.values()
        )

    def _remember_facts(self) -> None:
        """Keep what is true now, once a second, for lists that lag; the oldest is what they show."""
        if not self._lag_s:
            return
        now_s = self._api.clock.now_s()
        self._past.append((now_s, self._facts(), self._api.version))
        while len(self._past) > 1 and self._past[1][0] <= now_s - self._lag_s:
            self._past.popleft()
        self._api.clock.after(1.0, self._remember_facts)

    def _view(self, node: ApiNode) -> NodeView:
        """Return the node as fencer sees it; built once per version."""
        known = self._views.get(node.name)
        version = str(node.version)
        if known is None or known.version != version:
            known = self._views[node.name] = _node_view(node, version, self._seal(node))
        return known

    def _seal(self, node: ApiNode) -> Seal:
        return Seal(KEY, node.uid)


def _node_view(node: ApiNode, version: str, seal: Seal) -> NodeView:
    notes = node.annotations
    return NodeView(
        name=node.name,
        uid=node.uid,
        system_uuid=node.system_uuid,
        boot_id=node.boot_id,
        ready=node.ready,
        version=version,
        taints=node.taints,
        unschedulable=node.unschedulable,
        excluded_by=written.excluded_by(notes, node.labels),
        pause_note=notes.get(written.PAUSE),
        roles=node.roles,
        binding=written.read_binding(notes.get(written.BINDING), seal),
        mark=written.read_mark(notes.get(written.MARK), seal),
        doubts=written.read_doubts(notes.get(written.DOUBTS), seal),
        claim=written.read_claim(notes.get(written.INCIDENT), seal),
        left=written.read_left(notes.get(written.INCIDENT), seal),
        approved=written.read_approval(notes.get(written.APPROVED), seal),
        cordon=written.read_cordon(notes.get(written.CORDON)),
        cordoner=node.cordoner if written.CORDON in notes and node.recorded else "",
        recorded=node.recorded,
        volumes_in_use=len(node.volumes_in_use),
        reported_utc=node.reported,
    )


def _pod_view(pod: ApiPod) -> PodView:
    return PodView(
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        version=str(pod.version),
        phase=pod.phase,
        created_utc=f"{EPOCH + timedelta(seconds=pod.created_s):%Y-%m-%dT%H:%M:%SZ}",
        terminating=pod.deleted_s is not None,
        mirror=pod.mirror,
        tolerates_out_of_service=pod.tolerates_out_of_service,
        tolerates_cordon=pod.tolerates_cordon,
        finalizers=pod.finalizers,
        controller=pod.owner,
        local_data=pod.local_data,
        claims=(pod.volume,) if pod.volume else (),
        grace_s=pod.grace_s,
        ready=pod.ready,
        labels=(("app", pod.owner.partition("/")[2]),) if pod.owner else (),
    )
