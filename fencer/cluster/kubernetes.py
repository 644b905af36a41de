"""The Kubernetes API behind the port `Cluster`: which requests are sent, and what their answers mean."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime

from fencer.cluster import parse, patches, volumes
from fencer.cluster.answers import NoSuchPath
from fencer.cluster.client import Connection
from fencer.cluster.fields import shown
from fencer.cluster.heartbeats import read_lease, read_leases, sound
from fencer.cluster.key import ClusterKey
from fencer.cluster.lists import NODES_PAGE, PAGE, Lists
from fencer.cluster.names import NAME, refuse_odd_names
from fencer.cluster.reflector import Reflector
from fencer.cluster.requests import (
    NODE,
    NODES,
    POD,
    PODS,
    create,
    delete,
    get,
    patch,
)
from fencer.cluster.rights import LESSER_RIGHTS, RIGHTS, granted
from fencer.cluster.settings import ClusterSettings
from fencer.core.model import AttachmentView, Binding, Cordon, Doubt, FenceMark, Left, NodeView, PodView
from fencer.errors import ClusterConflict, ClusterNotFound, ClusterProtocol, ClusterUnreachable
from fencer.hints import Hints
from fencer.ports import Attachments, Cleared, ClusterInfo, Fact, Heartbeats, Lease, Nodes, Pause


class KubernetesCluster:
    """Implements the port `fencer.ports.Cluster`; the contract of each method stands there.

    Args:
        settings: Where the API is and who we are there.
        sleep: Pauses between two tries of a read, in seconds.
        page: How many objects of a list are asked for at a time.

    Raises:
        ConfigError: the settings or the kubeconfig cannot be used.
    """

    def __init__(
        self, settings: ClusterSettings, *, sleep: Callable[[float], object] = time.sleep, page: int = PAGE
    ) -> None:
        self._api = Connection(settings, sleep)
        self._lists = Lists(self._api, page)
        self._node_lists = Lists(self._api, min(page, NODES_PAGE))
        self._key = ClusterKey(self._api)
        self._reflector: Reflector | None = None
        self._wakes: list[Callable[[], None]] = []

    # -- who and what -------------------------------------------------------------------------------------

    def identity(self) -> ClusterInfo:
        """See `Cluster.identity`. A server older than 1.28 does not tell the user; a token may."""
        version = self._api.read("get version", get("/version"))
        space = self._api.kube_system()
        return ClusterInfo(
            uid=space.required("metadata", "uid"),
            server=self._api.server,
            version=version.required("gitVersion"),
            user=self._user(),
            paused_why=space.read(parse.paused_why),
        )

    def _user(self) -> str:
        review = create("/apis/authentication.k8s.io/v1/selfsubjectreviews", body={})
        try:
            answer = self._api.read("create selfsubjectreview", review)
        except NoSuchPath:
            return self._api.token_user or "(not told)"
        return answer.required("status", "userInfo", "username")

    def missing_rights(self) -> list[str]:
        """See `Cluster.missing_rights`. Where all are there, the key has to be there or makeable as well."""
        missing = [str(right) for right in RIGHTS if not granted(self._api, right)]
        return missing or self._key.missing()

    def signing_key(self, *, create: bool) -> bytes:
        """Return the key with which fencer signs in this cluster.

        Args:
            create: Create it if there is none yet.

        Raises:
            ClusterNotFound: there is none yet, and it may not be created; or nothing was set up.
            ClusterDenied: we may not read it, or not create it.
            ClusterUnreachable, ClusterProtocol.
        """
        return self._key.to_write() if create else self._key.existing()

    def missing_lesser_rights(self) -> list[str]:
        """See `Cluster.missing_lesser_rights`."""
        return [str(right) for right in LESSER_RIGHTS if not granted(self._api, right)]

    # -- reads --------------------------------------------------------------------------------------------

    def nodes(self) -> Nodes:
        """See `Cluster.nodes`. They are listed until the watch has listed them for the first time."""
        known = self._reflector.nodes(self._key.to_read()) if self._reflector else None
        return self.list_nodes() if known is None else known

    def list_nodes(self) -> Nodes:
        """See `Cluster.list_nodes`."""
        read_node = parse.node_with(self._key.to_read())
        found = self._node_lists.read(
            "list nodes", "NodeList", get(NODES), lambda item, _utc: parse.set_aside(read_node, item)
        )
        space = self._api.kube_system()
        return Nodes(
            views=tuple(node for node in found if not isinstance(node, str)),
            malformed=tuple(node for node in found if isinstance(node, str)),
            utc=space.utc,
            paused_why=space.read(parse.paused_why),
        )

    def heartbeats(self, nodes: Collection[str] | None) -> Heartbeats:
        """See `Cluster.heartbeats`."""
        found = read_leases(self._api, self._lists, nodes)
        space = self._api.kube_system()
        return Heartbeats(
            leases={lease.node: Lease(lease.renew_time, lease.version) for lease in sound(found.taken)},
            version=found.version,
            utc=space.utc,
            malformed=tuple(dict.fromkeys(lease for lease in found.taken if isinstance(lease, str))),
            paused_why=space.read(parse.paused_why),
        )

    def pause(self) -> Pause:
        """See `Cluster.pause`."""
        space = self._api.kube_system()
        return Pause(space.read(parse.paused_why), space.utc)

    def subscribe(self, wake: Callable[[], None]) -> None:
        """See `Cluster.subscribe`. There is one watch, whoever else subscribes.

        A kubelet may write on its own Node as often as it likes, so wake-ups are limited.
        """
        self._wakes.append(Hints(wake, time.monotonic))
        if self._reflector is None:
            self._reflector = Reflector(self._api, self._node_lists, self._wake)
            self._reflector.begin()

    def _wake(self) -> None:
        for wake in tuple(self._wakes):
            wake()

    def fact(self, node: str) -> Fact:
        """See `Cluster.fact`."""
        if not NAME.fullmatch(node):
            raise ClusterNotFound(f"{shown(node)}: no such node: this cannot be the name of one")
        answer = self._api.read(f"get node {node}", get(NODE, node))
        view = parse.name_in_error(parse.node_with(self._key.to_read()), answer.body)
        if view.name != node:
            raise ClusterProtocol(f"{self._api.server}: asked for node {node}, got {shown(view.name)}")
        lease, pause = read_lease(self._api, node), self.pause()
        if lease is None:
            return Fact(view, None, answer.utc, paused_why=pause.why)
        return Fact(view, lease.renew_time, answer.utc, lease.version, pause.why)

    def pods(self, node: str) -> list[PodView]:
        """See `Cluster.pods`."""
        if not NAME.fullmatch(node):  # it goes into a selector
            raise ClusterProtocol(f"{shown(node)} cannot be the name of a node")
        return self._lists.read(
            f"list pods of {node}",
            "PodList",
            get(PODS, fieldSelector=f"spec.nodeName={node}"),
            lambda item, _utc: parse.name_in_error(parse.pod, item),
        )

    def attachments(self) -> Attachments:
        """See `Cluster.attachments`."""
        return volumes.attachments(self._lists)

    def volumes(self, pod: PodView) -> frozenset[str]:
        """See `Cluster.volumes`."""
        return volumes.volumes(self._api, pod)

    # -- guarded writes on nodes --------------------------------------------------------------------------

    def bind(self, node: NodeView, binding: Binding) -> None:
        """See `Cluster.bind`."""
        self._patch_node("bind", node, patches.bind(node, binding, self._key.to_write()))

    def record_doubts(self, node: NodeView, doubts: tuple[Doubt, ...]) -> None:
        """See `Cluster.record_doubts`."""
        self._patch_node("record doubts on", node, patches.record_doubts(node, doubts, self._key.to_write()))

    def approve(self, node: NodeView, uuid: str, by: str, since_utc: str) -> None:
        """See `Cluster.approve`."""
        key = self._key.to_write()
        self._patch_node("approve the VM of", node, patches.approve(node, uuid, by, since_utc, key))

    def claim(self, node: NodeView, incident: str, by: str, left: Left | None = None) -> None:
        """See `Cluster.claim`."""
        self._patch_node("claim", node, patches.claim(node, incident, by, self._key.to_write(), left))

    def taint(self, node: NodeView, mark: FenceMark) -> None:
        """See `Cluster.taint`. An existing taint is not taken over, no matter who set it."""
        if any(patches.is_fence(item) for item in node.taints):
            raise ClusterConflict(f"node {node.name} has the out-of-service taint already: look again")
        self._patch_node("taint", node, patches.taint(node, mark, self._key.to_write()))

    def untaint(self, node: NodeView, cordon: Cordon | None) -> None:
        """See `Cluster.untaint`."""
        self._patch_node("untaint", node, patches.untaint(node, cordon))

    def forget_mark(self, node: NodeView) -> None:
        """See `Cluster.forget_mark`."""
        self._patch_node("forget the mark of", node, patches.forget_mark(node))

    def cordon(self, node: NodeView, cordon: Cordon) -> None:
        """See `Cluster.cordon`."""
        self._patch_node("cordon", node, patches.cordon(node, cordon))

    def uncordon(self, node: NodeView) -> None:
        """See `Cluster.uncordon`."""
        self._patch_node("uncordon", node, patches.uncordon(node))

    def _patch_node(self, what: str, node: NodeView, body: patches.Body) -> None:
        refuse_odd_names(node.name)
        self._api.write(f"{what} node {node.name}", patch(NODE, node.name, body=body))

    # -- pods ---------------------------------------------------------------------------------------------

    def clear(self, pod: PodView, why: str) -> Cleared:
        """See `Cluster.clear`. A mirror pod is not sent anywhere: its kubelet owns it."""
        if pod.mirror:
            return Cleared(pod, gone=False, note="a mirror pod: only its kubelet can end it")
        refuse_odd_names(pod.namespace, pod.name)
        try:
            failed = pod if pod.finished else self._fail(pod, why)
            self._api.write(
                f"delete pod {pod}",
                delete(POD, pod.namespace, pod.name, body=patches.delete_pod(failed)),
            )
        except ClusterNotFound:
            return Cleared(pod, gone=True)
        except ClusterConflict:
            if self._is_gone(pod):
                return Cleared(pod, gone=True)
            raise
        # The delete was bound to this very version, so these are all the finalizers there are.
        note = f"held by finalizers: {', '.join(failed.finalizers)}" if failed.finalizers else ""
        return Cleared(pod, gone=not note, note=note)

    def _fail(self, pod: PodView, why: str) -> PodView:
        """Set the phase to Failed; return the pod as it is now, whose version the deletion needs."""
        answer = self._api.write(
            f"fail pod {pod}",
            patch(f"{POD}/status", pod.namespace, pod.name, body=patches.fail_pod(pod, why, _now_utc())),
        )
        try:
            return parse.name_in_error(parse.pod, answer.body)
        except ClusterProtocol as error:
            raise ClusterUnreachable(f"fail pod {pod}: the outcome is unknown: {error}") from error

    def _is_gone(self, pod: PodView) -> bool:
        """Whether there is no pod any more with this name and this UID."""
        try:
            answer = self._api.read(
                f"get pod {pod}",
                get(POD, pod.namespace, pod.name),
            )
        except ClusterNotFound:
            return True
        return parse.name_in_error(parse.pod, answer.body).uid != pod.uid

    # -- attachments --------------------------------------------------------------------------------------

    def delete_attachment(self, attachment: AttachmentView) -> None:
        """See `Cluster.delete_attachment`."""
        volumes.delete_attachment(self._api, attachment)

    # -- events -------------------------------------------------------------------------------------------

    def record_event(self, node: NodeView, reason: str, text: str, *, warning: bool) -> None:
        """See `Cluster.record_event`."""
        self._api.write(
            f"record an event of node {node.name}",
            create(
                "/api/v1/namespaces/{}/events",
                patches.EVENTS_NAMESPACE,
                body=patches.event(node, reason, text, _now_utc(), warning=warning),
            ),
        )


def _now_utc() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
