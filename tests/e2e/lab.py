"""A small cluster of real parts: guests under libvirt, kubelets that follow them, a control plane, workloads.

Four nodes: `cp-1`, which carries the control-plane role and no workload, so that never all nodes are silent,
and report B's `k8s-1` to `k8s-3`.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fencer.errors import ClusterConflict, ClusterNotFound, ClusterUnreachable
from fencer.simulation.kubelet import KubeletTiming
from tests.e2e.kubelet import LabNode
from tests.e2e.ledger import Life, Memory, MountLedger
from tests.e2e.rest import MERGE, RestClient
from tests.e2e.storage import ATTACHMENTS, Attacher
from tests.e2e.workloads import (
    AGENT,
    BATCH,
    BATCH_PODS,
    DATABASE,
    DATABASE_PODS,
    JOBS,
    NAMESPACE,
    QUEUE,
    QUEUE_PODS,
    WEB,
    WEB_PODS,
    create_job,
    create_workloads,
)
from tests.support import PATIENCE_S, LateError, wait_until
from tests.support.controlplane import ControlPlane
from tests.support.guests import GuestError, GuestHost, Power, running_guest_host

CONTROL_PLANE = "cp-1"
WORKERS = ("k8s-1", "k8s-2", "k8s-3")
ROLE = "node-role.kubernetes.io/control-plane"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
UNREACHABLE = {
    ("node.kubernetes.io/unreachable", "NoSchedule"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
}
"""What Kubernetes itself puts on a silent node, one after the other."""
Taint = dict[str, Any]
LOOK_S = 0.1

_OF_A_FENCE = {"fencer.dev/mark", "fencer.dev/cordon"}
_SHUTOFF = 5
_ALIVE = {1, 2, 4}  # running, blocked, in shutdown
_COLD = {(1, 1), (3, 11)}  # booted, starting up

QUICK_KUBELETS = KubeletTiming(
    renew_s=2.5, boot_s=1.0, late_s=2.5, relist_s=1.0, start_s=(0.1, 0.4), end_s=0.3
)
"""Ten times as quick as real ones, so that a test takes seconds."""


@dataclass(frozen=True, slots=True)
class Speed:
    """How quick the lab's parts are, in seconds."""

    kubelets: KubeletTiming = QUICK_KUBELETS
    attach_s: float = 0.3
    detach_s: float = 0.3


@dataclass(frozen=True, slots=True)
class Size:
    """How large a lab is: its workers beside `cp-1`, and the database's pods, each with a volume."""

    workers: tuple[str, ...] = WORKERS
    database_pods: int = DATABASE_PODS


@dataclass(slots=True)
class Look:
    """All pods and attachments of one moment.

    Attributes:
        pods: Of the lab's namespace.
        attachments: Of all nodes.
    """

    pods: list[dict[str, Any]]
    attachments: list[dict[str, Any]] = field(default_factory=list)

    def of(self, app: str) -> list[dict[str, Any]]:
        """Return the pods of one workload, except those that are over."""
        return [
            pod
            for pod in self.pods
            if pod["metadata"]["labels"].get("app") == app
            and pod["status"]["phase"] not in {"Succeeded", "Failed"}
        ]

    def on(self, node: str) -> list[dict[str, Any]]:
        """Return the pods that are bound to a node."""
        return [pod for pod in self.pods if pod["spec"].get("nodeName") == node]

    def living_on(self, node: str) -> list[dict[str, Any]]:
        """Return those that are neither over nor marked for deletion: what is left of others goes by itself.

        A Job's pod that has failed stays until the Job has counted it, whatever becomes of its node.
        """
        return [
            pod
            for pod in self.on(node)
            if pod["status"]["phase"] in {"Pending", "Running"} and "deletionTimestamp" not in pod["metadata"]
        ]

    def ready(self, app: str) -> dict[str, str]:
        """Return name and node of each Ready pod of a workload that is not marked for deletion."""
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in self.of(app)
            if is_ready(pod) and "deletionTimestamp" not in pod["metadata"]
        }

    def attached_to(self, node: str) -> set[str]:
        """Return the volumes that have an attachment to a node."""
        return {
            it["spec"]["source"]["persistentVolumeName"]
            for it in self.attachments
            if it["spec"]["nodeName"] == node
        }


class Lab:
    """The cluster. Made by `running_lab`.

    Args:
        cluster: The real control plane.
        host: The real libvirtd.
        speed: How quick everything is.
        size: How large it is.

    Attributes:
        nodes: By name.
        wanted: How many pods each workload has when all is well; for the Job see `wait_job`.
        ledger: Who really writes what.
        client: The tests' own, for the main thread.
    """

    def __init__(
        self, cluster: ControlPlane, host: GuestHost, speed: Speed, size: Size | None = None
    ) -> None:
        self.cluster = cluster
        self.host = host
        self.speed = speed
        self.size = size or Size()
        self.wanted = {
            DATABASE: self.size.database_pods,
            QUEUE: QUEUE_PODS,
            WEB: WEB_PODS,
            AGENT: len(self.size.workers),
        }
        self.ledger = MountLedger(self._life_of, self._memory_of)
        self.client = RestClient(cluster, "admin", ["system:masters"])
        self.nodes: dict[str, LabNode] = {}
        self._job = ""
        self._jobs_count = 0
        self._ending = ExitStack()

    # -- life ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start everything; return when every pod is Ready."""
        self._ending.callback(self.client.close)
        attacher = Attacher(self.cluster, attach_s=self.speed.attach_s, detach_s=self.speed.detach_s)
        self._ending.callback(attacher.end)
        self._add_node(CONTROL_PLANE, {"key": ROLE, "effect": "NoSchedule"})
        for name in self.size.workers:
            self._add_node(name)
        wait_until(lambda: self.fault() or all(map(self.is_ready, self.nodes)), "Ready nodes")
        assert not self.fault(), self.fault()
        self.patch_node(CONTROL_PLANE, {"metadata": {"labels": {ROLE: ""}}})  # no kubelet may say so itself
        create_workloads(self.client, self.size.database_pods)
        self.fresh_job()
        self.wait_whole()
        self.wait_job()

    def stop(self) -> None:
        """End kubelets, attacher and guests; remove nodes and workloads from the cluster."""
        self._ending.close()

    def _add_node(self, name: str, *taints: dict[str, str]) -> None:
        guest = self.host.define(name)
        self._ending.callback(guest.remove)
        node = LabNode(self.cluster, guest, self.ledger, self.speed.kubelets, taints)
        self._ending.callback(node.end)
        self.nodes[name] = node
        guest.start()

    # -- looks --------------------------------------------------------------------------------------------

    def look(self) -> Look:
        """Look at pods and attachments; see that what moves them runs, should it have ended by itself."""
        self.cluster.revive()
        return Look(self.client.items(f"/api/v1/namespaces/{NAMESPACE}/pods"), self.client.items(ATTACHMENTS))

    def node(self, name: str) -> dict[str, Any]:
        """Read a Node."""
        return self.client.get(f"/api/v1/nodes/{name}")

    def is_ready(self, name: str) -> bool:
        """Whether a Node is there and Ready."""
        try:
            return self.ready_status(name) == "True"
        except (ClusterNotFound, ClusterUnreachable):
            return False

    def ready_status(self, name: str) -> str | None:
        """Return the status of a Node's condition Ready."""
        conditions = self.node(name)["status"].get("conditions") or []
        return next((it["status"] for it in conditions if it["type"] == "Ready"), None)

    def taints(self, name: str) -> set[tuple[str, str]]:
        """Return key and effect of a Node's taints."""
        return {(it["key"], it["effect"]) for it in self.node(name)["spec"].get("taints") or []}

    def is_fenced(self, name: str) -> bool:
        """Whether a Node carries the out-of-service taint."""
        return (OUT_OF_SERVICE, "NoExecute") in self.taints(name)

    def is_cordoned(self, name: str) -> bool:
        """Whether a Node is unschedulable."""
        return bool(self.node(name)["spec"].get("unschedulable"))

    def annotations(self, name: str) -> dict[str, str]:
        """Return a Node's annotations."""
        return dict(self.node(name)["metadata"].get("annotations") or {})

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the Events about a Node, oldest first, as ``kubectl describe node`` would find them."""
        query = f"?fieldSelector=involvedObject.kind%3DNode,involvedObject.name%3D{name}"
        return self.client.items(f"/api/v1/namespaces/default/events{query}")

    def busiest(self) -> str:
        """Return the worker that runs most of the database."""
        [(name, _)] = Counter(self.look().ready(DATABASE).values()).most_common(1)
        return name

    def missing(self) -> dict[str, str]:
        """Return which workloads have not all their pods Ready, as ``READY/PODS of WANTED``."""
        look = self.look()
        return {
            app: f"{len(look.ready(app))}/{len(look.of(app))} of {pods}"
            for app, pods in self.wanted.items()
            if not len(look.ready(app)) == len(look.of(app)) == pods
        }

    def wait_whole(self, timeout_s: float = PATIENCE_S) -> None:
        """Wait until every pod but the Job's is Ready."""
        try:
            wait_until(lambda: self.fault() or not self.missing(), "whole cluster", timeout_s=timeout_s)
            assert not self.fault(), self.fault()
        except LateError as late:
            raise LateError(f"{late}; missing: {self.missing()}") from late

    def wait_job(self) -> None:
        """Wait until the Job's pods are Ready: ten seconds after a loss, twice that after the next one.

        Those of the Job before it are gone then: Kubernetes deletes them a moment after that Job.
        """

        def there() -> bool:
            look = self.look()
            ready = [name for name in look.ready(BATCH) if name.startswith(f"{self._job}-")]
            return len(ready) == len(look.of(BATCH)) == BATCH_PODS

        wait_until(there, "Ready Job")

    def wait_settled(self) -> None:
        """Wait until fencer has nothing to write: each present boot is bound, no fence is being lifted."""

        def settled(name: str) -> bool:
            reported, notes = self.node(name)["status"]["nodeInfo"]["bootID"], self.annotations(name)
            bound = bool(reported) and reported in notes.get("fencer.dev/binding", "")
            lifting = "fencer.dev/mark" in notes or "unfence" in notes.get("fencer.dev/cordon", "")
            return bound and not lifting

        for name in self.nodes:
            wait_until(partial(settled, name), f"end of fencer's writes to {name}")

    def wait_elsewhere(self, name: str) -> None:
        """Wait until all that has volumes is Ready, and nothing of it on this node.

        The queue's second pod is only made when its first is Ready: it may come seconds after the database.
        """

        def there() -> bool:
            look = self.look()
            ready = {**look.ready(DATABASE), **look.ready(QUEUE)}
            return len(ready) == self.wanted[DATABASE] + QUEUE_PODS and name not in ready.values()

        wait_until(there, f"database and queue Ready away from {name}")

    def job_failures(self) -> int:
        """Return how many pods of the Job count as failed by its own fault."""
        job = self.client.get(f"{JOBS}/{self._job}")
        return int(job["status"].get("failed", 0))

    def fault(self) -> str:
        """Tell what must never be: two writers, or a broken stand-in. Empty: nothing."""
        broken = [f"{node.name}: {node.bug!r}" for node in self.nodes.values() if node.bug is not None]
        return "; ".join([*self.ledger.double_writers, *self.ledger.hazards, *broken])

    # -- an administrator's hands -------------------------------------------------------------------------

    def spread_out(self) -> None:
        """Have the database's pods scheduled again, if some worker runs none of them."""
        if set(self.look().ready(DATABASE).values()) == set(self.size.workers):
            return
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets/{DATABASE}"
        self.client.patch(path, {"spec": {"replicas": 0}})
        wait_until(lambda: not self.look().of(DATABASE), "end of the database's pods")
        self.client.patch(path, {"spec": {"replicas": self.size.database_pods}})
        self.wait_whole()

    def fresh_job(self) -> None:
        """Replace the Job by a new one, whose controller has not learnt yet to wait after losses."""
        self._jobs_count += 1
        old, self._job = self._job, f"{BATCH}-{self._jobs_count}"
        if old:
            self.client.delete(f"{JOBS}/{old}", {"propagationPolicy": "Background"})
        create_job(self.client, self._job)

    def bring_back(self, name: str) -> None:
        """Make a node's guest again if it is gone, start it if it is off."""
        guest = self.nodes[name].guest
        if guest.power() is None:
            self.host.define(name, guest.uuid)
        if guest.pid is None:
            guest.start()

    def heal(self) -> None:
        """Undo all that a test left which failed half-way, or its second try could not but fail.

        Only while no fencer runs: it takes the fence off that nobody else would lift.
        """
        self.mend()
        for name in self.nodes:
            left = {key: None for key in self.annotations(name) if key in _OF_A_FENCE}
            if left or self.is_fenced(name) or self.is_cordoned(name):
                self.drop_taint(name, OUT_OF_SERVICE)
                self.patch_node(name, {"metadata": {"annotations": left}, "spec": {"unschedulable": None}})

    def mend(self) -> None:
        """Bring back what a failed test took away: libvirtd, guests, kubelets; return when all are Ready."""
        self.host.restore_libvirtd()
        for node in self.nodes.values():
            node.nic_on()
            node.runtime_up()
            node.start_kubelet()
            node.guest.thaw()
        powers = self.host.powers()
        for name, node in self.nodes.items():
            if name not in powers or powers[name].state not in _ALIVE:
                node.guest.resume_if_paused()
                self.bring_back(name)
        wait_until(lambda: self.fault() or all(map(self.is_ready, self.nodes)), "Ready nodes")

    def see_back(self, name: str) -> None:
        """Bring a fenced node back, and see fencer lift the fence by itself."""
        self.bring_back(name)
        wait_until(lambda: not self.is_fenced(name), f"unfence of {name}")
        wait_until(lambda: not self.is_cordoned(name), f"uncordon of {name}")

    def patch_node(self, name: str, body: dict[str, Any]) -> None:
        """Change a Node."""
        self.client.patch(f"/api/v1/nodes/{name}", body, MERGE)

    def add_taint(self, name: str, key: str, effect: str) -> None:
        """Taint a Node, beside the taints it has."""
        self._change_taints(name, lambda taints: [*taints, {"key": key, "effect": effect}])

    def drop_taint(self, name: str, key: str) -> None:
        """Take a taint off a Node."""
        self._change_taints(name, lambda taints: [it for it in taints if it["key"] != key])

    def _change_taints(self, name: str, change: Callable[[list[Taint]], list[Taint]]) -> None:
        """Change a Node's taints as they are; Kubernetes may change them in the same moment."""

        def done() -> bool:
            node = self.node(name)
            taints = change(node["spec"].get("taints") or [])
            guard = {"resourceVersion": node["metadata"]["resourceVersion"]}
            with suppress(ClusterConflict):
                self.patch_node(name, {"metadata": guard, "spec": {"taints": taints}})
                return True
            return False

        wait_until(done, f"change of {name}'s taints")

    def _life_of(self, name: str) -> Life:
        guest = self.nodes[name].guest
        return Life(guest.pid, guest.boots)

    def _memory_of(self, name: str, life: Life) -> Memory:
        powers = wait_until(self._powers, "word of libvirtd")  # a fault may have taken it away
        power, now = powers.get(name), self._life_of(name)
        if power is None or now.boots != life.boots:
            return Memory.GONE
        if power.state == _SHUTOFF:
            return Memory.RESUMABLE if self._saved(name) else Memory.GONE
        if now.pid != life.pid and (power.state, power.reason) in _COLD:
            return Memory.GONE  # a new process that was not restored, and has not said yet that it boots
        return Memory.RUNNING if power.state in _ALIVE else Memory.RESUMABLE

    def _saved(self, name: str) -> bool:
        """Whether a guest that is off has its memory on disk. libvirt still says so when it was discarded."""

        def told() -> tuple[bool] | None:
            with suppress(GuestError):
                return (self.nodes[name].guest.saved,)
            return None

        (saved,) = wait_until(told, "word of libvirtd")
        return saved

    def _powers(self) -> dict[str, Power]:
        try:
            return self.host.powers()
        except GuestError:
            return {}


def stays(condition: Callable[[], bool], what: str, *, for_s: float) -> None:
    """Look again and again that a condition holds, for a while: what was refused must not come late.

    Raises:
        AssertionError: It stopped to hold.
    """
    pause = threading.Event()
    until_s = time.monotonic() + for_s
    while time.monotonic() < until_s:
        assert condition(), f"not so any more: {what}"
        pause.wait(LOOK_S)


def is_ready(pod: dict[str, Any]) -> bool:
    """Whether a pod's condition Ready is True."""
    return any(
        it["type"] == "Ready" and it["status"] == "True" for it in pod["status"].get("conditions") or []
    )


@contextmanager
def running_lab(cluster: ControlPlane, speed: Speed | None = None, size: Size | None = None) -> Iterator[Lab]:
    """Run a lab on a control plane, with guests of its own; leave its tests out where there are none."""
    with running_guest_host() as host:
        lab = Lab(cluster, host, speed or Speed(), size)
        try:
            lab.start()
            yield lab
        finally:
            lab.stop()
