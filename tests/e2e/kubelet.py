"""Kubelets that live and die with real guests: the simulation's model over the real API.

A kubelet here acts only when its guest's CPU has just beaten (see `tests.support.guests`). So it is silent
exactly while that CPU stands: paused, off, gone or frozen. A boot makes it forget, a resume does not.
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid5

from fencer.errors import ClusterDenied, ClusterNotFound, ClusterUnreachable
from fencer.simulation.kubelet import Kubelet, KubeletPod, KubeletTiming, NodeReport
from tests.e2e.ledger import MountLedger
from tests.e2e.rest import STRATEGIC, RestClient
from tests.e2e.storage import CSI_DRIVER, volume_of, volume_of_unique_name
from tests.e2e.watches import CurrentList
from tests.support.controlplane import ControlPlane
from tests.support.guest import Guest

CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CRASHES = "crashes"
"""Label of pods whose container ends whenever it was started: they run, and are never Ready."""
CRASH_LOOP = "CrashLoopBackOff"
_LOOK_S = 0.02
_STANDS_STILL_S = 1.0  # three beats and a half
_FULL = {"cpu": "8", "memory": "16Gi", "pods": "110"}


class BeatingMachine:
    """A guest as its kubelet sees it: the `Machine` of the model.

    Args:
        guest: The real guest.
        ledger: Learns what it mounts.
    """

    def __init__(self, guest: Guest, ledger: MountLedger) -> None:
        self._guest = guest
        self._ledger = ledger
        self._size = guest.serial_log.stat().st_size if guest.serial_log.exists() else 0
        self._boots = guest.boots
        self._beat_at_s = 0.0

    def beaten(self) -> bool:
        """Whether the CPU has beaten since the last asking; notes boots, and writes what is mounted."""
        try:
            size = self._guest.serial_log.stat().st_size
        except FileNotFoundError:
            return False
        if size == self._size:
            return False
        with self._guest.serial_log.open("rb") as log:
            log.seek(self._size)
            said = log.read(size - self._size)
        self._size = size
        if b"B" in said:
            self._boots += said.count(b"B")
            self._ledger.forget(self._guest.name)
            said = said.rpartition(b"B")[2]
        if b"." not in said:
            return False
        self._beat_at_s = time.monotonic()
        self._ledger.write(self._guest.name)
        return True

    def running(self) -> bool:
        """Whether its CPU runs."""
        return time.monotonic() - self._beat_at_s < _STANDS_STILL_S

    def boot(self) -> str:
        """Return the id of the present boot."""
        return str(uuid5(UUID(self._guest.uuid), str(self._boots)))

    def mount(self, volume: str) -> None:
        """From now on a container here writes the volume."""
        self._ledger.mount(volume, self._guest.name)

    def unmount(self, volume: str) -> None:
        """No container here writes it any more."""
        self._ledger.unmount(volume, self._guest.name)


class RestKubeletApi:
    """The `KubeletApi` over the real API server, with the rights of a kubelet.

    Args:
        cluster: Whose API server.
        node: The node's name.
        system_uuid: What the firmware of its guest says.
        reachable: Tells whether packets come through at present.
        taints: Of the Node, when it has to be created.

    Attributes:
        ready: What it reports as its condition Ready.
    """

    def __init__(
        self,
        cluster: ControlPlane,
        node: str,
        system_uuid: str,
        reachable: Callable[[], bool],
        taints: Sequence[dict[str, str]],
    ) -> None:
        identity = f"system:node:{node}", ["system:nodes"]
        self._client = RestClient(cluster, *identity)
        self._pods = CurrentList(cluster, *identity, f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node}")
        self._node = node
        self._system_uuid = system_uuid
        self._reachable = reachable
        self.ready = True
        self._taints = list(taints)
        self._owner_uid = ""
        self._crashing: set[str] = set()

    def pods(self) -> Sequence[KubeletPod]:
        """Return the pods bound to this node, as its watch told them."""
        self._ask()
        pods = self._pods.items()
        self._crashing = {
            pod["metadata"]["uid"] for pod in pods if CRASHES in pod["metadata"].get("labels", ())
        }
        return [_view(pod) for pod in pods]

    def attached(self) -> frozenset[str]:
        """Return the volumes in node.status.volumesAttached."""
        status = self._ask().get(f"/api/v1/nodes/{self._node}?resourceVersion=0")["status"]
        return frozenset(volume_of_unique_name(it["name"]) for it in status.get("volumesAttached") or [])

    def renew_lease(self) -> None:
        """Renew the node's lease, or create it."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        try:
            self._ask().patch(f"{LEASES}/{self._node}", {"spec": {"renewTime": now}})
        except ClusterNotFound:
            if not self._owner_uid:
                return  # no Node yet: the report comes first
            owner = {"apiVersion": "v1", "kind": "Node", "name": self._node, "uid": self._owner_uid}
            spec = {"holderIdentity": self._node, "leaseDurationSeconds": 40, "renewTime": now}
            self._ask().post(
                LEASES, {"metadata": {"name": self._node, "ownerReferences": [owner]}, "spec": spec}
            )

    def report_node(self, report: NodeReport) -> bool:
        """Write node.status where it differs or has expired; create Node and CSINode where there are none."""
        path = f"/api/v1/nodes/{self._node}"
        try:
            node = self._ask().get(path)
        except ClusterNotFound:
            node = self._create_node()
        first = self._owner_uid != node["metadata"]["uid"]
        self._owner_uid = node["metadata"]["uid"]
        status = self._status(report, _since(node["status"]))
        written = report.expired or _reported(node["status"]) != _reported(status)
        if written:
            self._ask().patch(f"{path}/status", {"status": status})
        if first:
            self.renew_lease()
        return written

    def report_running(self, pod: KubeletPod) -> None:
        """Set the pod's phase Running, and its condition Ready unless it crashes."""
        now = _now()
        crashes = pod.uid in self._crashing
        running = {
            "name": "main",
            "ready": not crashes,
            "started": not crashes,
            "restartCount": 17 if crashes else 0,
            "image": "none",
            "imageID": "none",
            "state": {"waiting": {"reason": CRASH_LOOP}} if crashes else {"running": {"startedAt": now}},
        }
        conditions = [
            {"type": kind, "status": status, "lastTransitionTime": now}
            for kind, status in (
                ("Initialized", "True"),
                ("ContainersReady", "False" if crashes else "True"),
                ("Ready", "False" if crashes else "True"),
            )
        ]
        status = {
            "phase": "Running",
            "startTime": now,
            "conditions": conditions,
            "containerStatuses": [running],
        }
        self._report_pod(pod, status)

    def confirm_deletion(self, pod: KubeletPod) -> None:
        """Report the pod's end, then delete it with grace 0."""
        if not pod.over:
            now = _now()
            conditions = [
                {"type": kind, "status": "False", "reason": "PodFailed", "lastTransitionTime": now}
                for kind in ("ContainersReady", "Ready")
            ]
            status = {"phase": "Failed", "conditions": conditions}
            self._report_pod(pod, status)
        self._ask().delete(_path(pod), {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid}})

    def close(self) -> None:
        """Close the connections."""
        self._pods.end()
        self._client.close()

    def _report_pod(self, pod: KubeletPod, status: dict[str, Any]) -> None:
        body = {"metadata": {"uid": pod.uid}, "status": status}
        try:
            self._ask().patch(f"{_path(pod)}/status", body, STRATEGIC)
        except ClusterDenied as error:  # a new pod of this name is on another node already
            raise ClusterNotFound(f"{pod.namespace}/{pod.name} is gone: {error}") from error

    def _ask(self) -> RestClient:
        if not self._reachable():
            raise ClusterUnreachable(f"{self._node}: no way to the API server")
        return self._client

    def _create_node(self) -> dict[str, Any]:
        labels = {"kubernetes.io/hostname": self._node, "kubernetes.io/os": "linux"}
        attach = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
        metadata = {"name": self._node, "labels": labels, "annotations": attach}
        node = self._ask().post("/api/v1/nodes", {"metadata": metadata, "spec": {"taints": self._taints}})
        driver = {"name": CSI_DRIVER, "nodeID": self._node, "topologyKeys": []}
        owner = {"apiVersion": "v1", "kind": "Node", "name": self._node, "uid": node["metadata"]["uid"]}
        with suppress(ClusterNotFound):  # of a Node that was deleted, and not collected yet
            self._ask().delete(f"{CSI_NODES}/{self._node}")
        self._ask().post(
            CSI_NODES,
            {"metadata": {"name": self._node, "ownerReferences": [owner]}, "spec": {"drivers": [driver]}},
        )
        return node

    def _status(self, report: NodeReport, since: dict[tuple[str, str], str]) -> dict[str, Any]:
        now = _now()
        ready = ("Ready", "True", "KubeletReady") if self.ready else ("Ready", "False", "KubeletNotReady")
        words = (ready, ("MemoryPressure", "False", "KubeletHasSufficientMemory"))
        info = {
            "machineID": self._system_uuid.replace("-", ""),
            "systemUUID": self._system_uuid,
            "bootID": report.boot_id,
            "kernelVersion": "none",
            "osImage": "a boot sector",
            "containerRuntimeVersion": "none://0",
            "kubeletVersion": "v1.36.2",
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": "amd64",
        }
        return {
            "conditions": [
                {
                    "type": kind,
                    "status": status,
                    "reason": reason,
                    "message": "",
                    "lastHeartbeatTime": now,
                    "lastTransitionTime": since.get((kind, status), now),
                }
                for kind, status, reason in words
            ],
            "nodeInfo": info,
            "capacity": _FULL,
            "allocatable": _FULL,
            "volumesInUse": sorted(f"kubernetes.io/csi/{CSI_DRIVER}^{it}" for it in report.volumes_in_use),
        }


class LabNode:
    """A guest, and the kubelet in it, in a thread of its own.

    Args:
        cluster: Where it belongs.
        guest: The real guest.
        ledger: Learns what it mounts and writes.
        timing: How quick its kubelet is.
        taints: Of the Node, when its kubelet creates it.

    Attributes:
        guest: The real guest.
        name: Of guest and node.
    """

    def __init__(
        self,
        cluster: ControlPlane,
        guest: Guest,
        ledger: MountLedger,
        timing: KubeletTiming,
        taints: Sequence[dict[str, str]] = (),
    ) -> None:
        self.guest = guest
        self.name = guest.name
        self.bug: BaseException | None = None
        self._machine = BeatingMachine(guest, ledger)
        self._nic_up = True
        self._api = RestKubeletApi(cluster, guest.name, guest.uuid, self._reaches, taints)
        chance = random.Random(guest.name)  # noqa: S311 - only how long containers take to start
        self._kubelet = Kubelet(self._api, self._machine, chance, timing)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._live, name=f"kubelet-{guest.name}", daemon=True)
        self._thread.start()

    def nic_off(self) -> None:
        """Switch its network card off: the guest runs on, its kubelet reaches nobody."""
        self._nic_up = False

    def nic_on(self) -> None:
        """Switch its network card on."""
        self._nic_up = True

    def stop_kubelet(self) -> None:
        """``systemctl stop kubelet``: its containers run on."""
        self._kubelet.stop()

    def start_kubelet(self) -> None:
        """``systemctl start kubelet``."""
        self._kubelet.start()

    def runtime_down(self) -> None:
        """Its container runtime does not answer the kubelet: that lives on, and reports Ready=False."""
        self._api.ready = False

    def runtime_up(self) -> None:
        """Its container runtime answers again."""
        self._api.ready = True

    def boot_id(self) -> str:
        """Return the id of the guest's last boot."""
        return self._machine.boot()

    def end(self) -> None:
        """End the thread."""
        self._over.set()
        self._thread.join()
        self._api.close()

    def _reaches(self) -> bool:
        return self._nic_up and self._machine.running()

    def _live(self) -> None:
        awake = False
        while not self._over.wait(_LOOK_S):
            beaten = self._machine.beaten()
            if not beaten and (self._machine.running() or not awake):
                continue
            awake = beaten
            try:
                self._kubelet.tick(time.monotonic())
            except Exception as error:
                self.bug = error  # the model expects none but those that it catches
                raise


def _view(pod: dict[str, Any]) -> KubeletPod:
    meta, spec, status = pod["metadata"], pod["spec"], pod["status"]
    conditions = {it["type"]: it["status"] for it in status.get("conditions") or []}
    waits = [
        it["state"]["waiting"] for it in status.get("containerStatuses") or [] if "waiting" in it["state"]
    ]
    return KubeletPod(
        uid=meta["uid"],
        namespace=meta["namespace"],
        name=meta["name"],
        volume=volume_of(pod),
        deleted="deletionTimestamp" in meta,
        over=status.get("phase") in {"Succeeded", "Failed"},
        ready=conditions.get("Ready") == "True" or {"reason": CRASH_LOOP} in waits,  # there is no more to say
        grace_s=float(meta.get("deletionGracePeriodSeconds", spec.get("terminationGracePeriodSeconds", 30))),
    )


def _since(status: dict[str, Any]) -> dict[tuple[str, str], str]:
    """Return since when each condition has its status: a report that keeps the status keeps that, too."""
    conditions = status.get("conditions") or []
    known = (it for it in conditions if "lastTransitionTime" in it)
    return {(it["type"], it["status"]): it["lastTransitionTime"] for it in known}


def _reported(status: dict[str, Any]) -> tuple[object, ...]:
    """Return what makes two reports different: the times do not."""
    conditions = {it["type"]: it["status"] for it in status.get("conditions") or []}
    boot_id = status.get("nodeInfo", {}).get("bootID")
    return (conditions.get("Ready"), boot_id, tuple(sorted(status.get("volumesInUse") or [])))


def _path(pod: KubeletPod) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
