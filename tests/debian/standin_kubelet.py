"""A stand-in for k3s: registers its node, keeps it Ready, runs pods in name only, and ends them when told.

Inside a guest it is started by `k3s.service` as root, with nothing but Python and the modules of
`fencer-guest`, whose client it borrows; in the tests' own process it plays the other nodes.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fencer.guest import kubeconfig
from fencer.guest.api import Answer, Api
from fencer.guest.errors import GuestError, Unreachable
from fencer.guest.kubeconfig import Access
from fencer.guest.system import boot_id, run

Json = dict[str, Any]
VOLUME = "tests/volume"
"""Annotation of a pod: the volume that it uses."""
STOPS_AFTER = "tests/stops-after"
"""Annotation of a pod: how many seconds it needs to end."""
STOPS_ONCE_REPLACED = "tests/stops-once-replaced"
"""Annotation of a pod: it does not end before another of its controller's is bound here, and may stay."""
_TICK_S = 0.5
_TICK_IN_GUEST_S = 1.0  # it is emulated, and has other things to do
_WITHIN_S = 10
_UNMOUNT_S = 2.0
_REPORT_EVERY_S = 10.0
_RENEW_EVERY_S = 2.0
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_FULL = {"cpu": "8", "memory": "16Gi", "pods": "200"}


class StandInKubelet:
    """One node's kubelet; `tick` does what is to be done now.

    Args:
        api: With the rights of that kubelet.
        node: The node's name.
        boot: What it reports as its boot id.
        uuid: What it reports as its machine's UUID.
    """

    def __init__(self, api: Api, node: str, boot: str, uuid: str = "stand-in") -> None:
        self._api = api
        self._node = node
        self._boot = boot
        self._uuid = uuid
        self._renewed_s = 0.0
        self._deleted: dict[str, float] = {}
        self._mounted: dict[str, float | None] = {}
        self._reported: list[str] | None = None
        self._reported_s = 0.0

    def tick(self) -> None:
        """Report, and run or end the pods that are bound here."""
        pods = self._ask("GET", f"/api/v1/pods?fieldSelector={quote('spec.nodeName=' + self._node)}")["items"]
        for pod in pods:
            self._handle(pod, pods)
        self._unmount({_volume(pod) for pod in pods})
        volumes = sorted(f"kubernetes.io/csi/tests^{volume}" for volume in self._mounted)
        if self._reported is None:
            self._register()
        if time.monotonic() > self._renewed_s + _RENEW_EVERY_S:
            self._renew()  # a kubelet that starts renews its lease before it reports its boot
        if volumes != self._reported or time.monotonic() > self._reported_s + _REPORT_EVERY_S:
            self._report(volumes)

    def _handle(self, pod: Json, pods: list[Json]) -> None:
        meta, status = pod["metadata"], pod.get("status", {})
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        if "deletionTimestamp" in meta:
            needs_s = float(meta.get("annotations", {}).get(STOPS_AFTER, "0"))
            since_s = self._deleted.setdefault(meta["uid"], time.monotonic())
            if time.monotonic() >= since_s + needs_s and _may_end(pod, pods):
                gone = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
                self._ask("DELETE", path, gone, (404, 409))
        elif status.get("phase") == "Pending":
            ready = [
                {"type": kind, "status": "True", "lastTransitionTime": _now()}
                for kind in ("Ready", "ContainersReady")
            ]
            self._ask(
                "PATCH", f"{path}/status", {"status": {"phase": "Running", "conditions": ready}}, (404, 409)
            )
            if _volume(pod):
                self._mounted[_volume(pod)] = None

    def _unmount(self, used: set[str]) -> None:
        for volume, gone_s in list(self._mounted.items()):
            if volume in used:
                self._mounted[volume] = None
            elif gone_s is None:
                self._mounted[volume] = time.monotonic()
            elif time.monotonic() > gone_s + _UNMOUNT_S:
                del self._mounted[volume]

    def _register(self) -> None:
        labels = {"kubernetes.io/hostname": self._node}
        self._ask("POST", "/api/v1/nodes", {"metadata": {"name": self._node, "labels": labels}}, (409,))

    def _report(self, volumes: list[str]) -> None:
        condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
        condition["lastHeartbeatTime"] = condition["lastTransitionTime"] = _now()
        info = dict.fromkeys(
            (
                *("machineID", "kernelVersion", "osImage", "containerRuntimeVersion"),
                *("kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture"),
            ),
            "stand-in",
        )
        status = {
            "conditions": [condition],
            "nodeInfo": {**info, "bootID": self._boot, "systemUUID": self._uuid},
            "capacity": _FULL,
            "allocatable": _FULL,
            "volumesInUse": volumes,
        }
        self._ask("PATCH", f"/api/v1/nodes/{self._node}/status", {"status": status})
        self._reported, self._reported_s = volumes, time.monotonic()

    def _renew(self) -> None:
        """Renew the node's lease, or create it; none is counted that the API server did not take."""
        spec = {"holderIdentity": self._node, "leaseDurationSeconds": 40, "renewTime": _now("%f")}
        lease = {"metadata": {"name": self._node}, "spec": spec}
        if not self._ask("PATCH", f"{_LEASES}/{self._node}", lease, (404,)).get("spec"):
            self._ask("POST", _LEASES, lease)
        self._renewed_s = time.monotonic()

    def _ask(self, method: str, path: str, body: Json | None = None, also_fine: tuple[int, ...] = ()) -> Json:
        answer = self._api.ask(method, path, body, within_s=_WITHIN_S)
        if answer.status >= 300 and answer.status not in also_fine:
            raise GuestError(f"{method} {path}: {answer.status} {answer.message}")
        return answer.body


class KeptApi(Api):
    """Keeps its connection open, as kubelets do: an emulated processor takes long to shake hands."""

    _kept: HTTPSConnection | None = None

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        within_s: float,
        at: Access | None = None,  # noqa: ARG002 - there is one server
    ) -> Answer:
        """Ask one thing; where the connection was closed meanwhile, once more over a new one."""
        content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
        sent = None if body is None else json.dumps(body)
        for connection in filter(None, (self._kept, self._connect(within_s))):
            self._kept = connection
            try:
                connection.request(method, path, sent, {"Content-Type": content_type})
                response = connection.getresponse()
                return Answer(response.status, json.loads(response.read()))
            except (OSError, HTTPException) as error:
                connection.close()
                self._kept = None
                trouble = error
        raise Unreachable(str(trouble))

    def _connect(self, within_s: float) -> HTTPSConnection:
        return HTTPSConnection(self.access.host, self.access.port, timeout=within_s, context=self._tls)


def tick_until(
    over: threading.Event, kubelet: StandInKubelet, say: Callable[[str], object], every_s: float = _TICK_S
) -> None:
    """Let a kubelet live until an event is set; trouble with the API server passes."""
    while not over.wait(every_s):
        try:
            kubelet.tick()
        except GuestError as error:
            say(str(error))


def _may_end(pod: Json, pods: list[Json]) -> bool:
    return STOPS_ONCE_REPLACED not in pod["metadata"].get("annotations", {}) or any(
        _controllers(other) == _controllers(pod) and "deletionTimestamp" not in other["metadata"]
        for other in pods
    )


def _controllers(pod: Json) -> list[str]:
    return [owner["uid"] for owner in pod["metadata"].get("ownerReferences", [])]


def _volume(pod: Json) -> str:
    return str(pod["metadata"].get("annotations", {}).get(VOLUME, ""))


def _say(text: str) -> None:
    sys.stdout.write(f"k3s: {text}\n")
    sys.stdout.flush()


def _now(fraction: str = "") -> str:
    return datetime.now(UTC).strftime(f"%Y-%m-%dT%H:%M:%S{'.' if fraction else ''}{fraction}Z")


def main() -> None:
    """Run as this machine's kubelet until systemd stops it."""
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    access = kubeconfig.read(Path("/var/lib/rancher/k3s/agent/kubelet.kubeconfig"), run)
    node = kubeconfig.node_name(access.certificate)
    if node is None:
        sys.exit("no node's name in the kubelet's certificate")
    uuid = Path("/sys/class/dmi/id/product_uuid").read_text(encoding="ascii").strip()
    _say(f"stand-in for {node} begins")
    tick_until(over, StandInKubelet(KeptApi(access), node, boot_id(), uuid), _say, _TICK_IN_GUEST_S)
    _say("stand-in stopped")


if __name__ == "__main__":
    main()
