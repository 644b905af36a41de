"""Simulated nodes: guests with kubelets that talk to the API in memory and are ticked when needed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from fencer.errors import ClusterConflict, ClusterNotFound, ClusterUnreachable
from fencer.simulation.clock import Alarm
from fencer.simulation.guests import Guest
from fencer.simulation.kubelet import Kubelet, KubeletTiming
from fencer.simulation.machine import KubeletPod, NodeReport
from fencer.simulation.objects import Api, ApiNode, ApiObject, ApiPod
from fencer.simulation.timeline import Timeline

WATCH_S = 0.05
"""How long a change takes to reach a kubelet that is listening."""


class MemoryKubeletApi:
    """The `KubeletApi` over objects in memory; unreachable while the guest's network card is off.

    A kubelet registers once in a boot: only then does it make a Node that is missing, or take over another's.
    """

    def __init__(self, api: Api, guest: Guest, timeline: Timeline) -> None:
        self.stale = True
        """Some pod of the node has changed since the last list."""
        self._api = api
        self._guest = guest
        self._timeline = timeline
        self._pods: tuple[KubeletPod, ...] = ()
        self._boots: list[str] = []
        """Boots in which it has registered its node."""

    def pods(self) -> Sequence[KubeletPod]:
        """List the pods bound to this node."""
        self._reach()
        if self.stale:
            self.stale = False
            self._pods = tuple(map(_view, self._api.pods_on(self._guest.node)))
        return self._pods

    def attached(self) -> frozenset[str]:
        """Return the volumes in node.status.volumesAttached."""
        node = self._node()
        return frozenset() if node is None else node.volumes_attached

    def renew_lease(self) -> None:
        """Renew the node's lease."""
        node = self._node()
        if node is not None:
            self._api.renew(node)

    def report_node(self, report: NodeReport) -> bool:
        """Write node.status. A kubelet registers once in a boot: only then does it make a Node again."""
        node = self._node()
        known = report.boot_id in self._boots
        if not known:
            self._boots.append(report.boot_id)
            node = self._register(node)
        if node is None:
            return False
        was_ready, old_boot = node.ready, node.boot_id
        same = (was_ready, old_boot, node.volumes_in_use) == (True, report.boot_id, report.volumes_in_use)
        if same and not report.expired:
            return False
        node.ready, node.boot_id, node.volumes_in_use = True, report.boot_id, report.volumes_in_use
        node.reported = self._api.clock.utc("microseconds")
        if was_ready is not True:
            node.ready_since_s = self._api.clock.now_s()
        if was_ready is not True or (known and old_boot != report.boot_id):
            which = "the same boot" if old_boot == report.boot_id else "an earlier boot"
            how = f"{which}: its old memory is back" if known else "a new boot"
            self._timeline.tell("kubernetes", node.name, "ready", f"Ready again, {how}", same_boot=known)
        self._api.changed(node)
        return True

    def report_running(self, pod: KubeletPod) -> None:
        """Set the pod's phase Running and its condition Ready."""
        mine = self._mine(pod)
        mine.phase, mine.ready = "Running", True
        self._api.changed(mine)

    def confirm_deletion(self, pod: KubeletPod) -> None:
        """Delete the pod with grace 0; where a finalizer still holds it, it has failed."""
        mine = self._mine(pod)
        if mine.finalizers:
            self._api.fail_pod(mine, mine.disrupted_why)
        self._api.delete_pod(mine, force=True)

    def _reach(self) -> None:
        if not self._guest.nic_up:
            raise ClusterUnreachable(f"{self._guest.name}: its network card is off")
        if self._api.down_why is not None:
            raise ClusterUnreachable(self._api.down_why)

    def _node(self) -> ApiNode | None:
        self._reach()
        return self._api.nodes.get(self._guest.node)

    def _register(self, node: ApiNode | None) -> ApiNode:
        """Make the Node, or take over the one of that name."""
        guest = self._guest
        if node is None:
            node = ApiNode(guest.node, self._api.new_uid(), guest.uuid, "", ready=None)
            self._api.renew(node)
            self._api.add_node(node)
        node.system_uuid = guest.uuid
        return node

    def _mine(self, pod: KubeletPod) -> ApiPod:
        self._reach()
        mine = self._api.pods.get(pod.uid)
        if mine is None:
            raise ClusterNotFound(f"{pod.namespace}/{pod.name} is gone")
        if mine.over and not pod.deleted:
            raise ClusterConflict(f"{mine} is {mine.phase} already")
        return mine


def _view(pod: ApiPod) -> KubeletPod:
    deleted = pod.deleted_s is not None
    return KubeletPod(pod.uid, pod.namespace, pod.name, pod.volume, deleted, pod.over, pod.ready, pod.grace_s)


class SimulatedNode:
    """A guest with its kubelet, and the alarm clock that ticks it."""

    def __init__(
        self, api: Api, guest: Guest, timing: KubeletTiming, chance: Random, timeline: Timeline
    ) -> None:
        self.guest = guest
        self._api = api
        self._memory = MemoryKubeletApi(api, guest, timeline)
        self.kubelet = Kubelet(self._memory, guest, chance, timing)
        self._alarm = Alarm(api.clock, self._tick)

    def stir(self, delay_s: float = 0.0) -> None:
        """Tick the kubelet soon: something happened to its machine."""
        self._alarm.soon(delay_s)

    def heard(self, obj: ApiObject) -> None:
        """Tick the kubelet soon, because an object of its node has changed."""
        if isinstance(obj, ApiPod):
            self._memory.stale = True
        self._alarm.soon(WATCH_S)

    def _tick(self) -> None:
        self._alarm.by(self.kubelet.tick(self._api.clock.now_s()))
