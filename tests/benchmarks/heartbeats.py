"""Nodes of real size on a real API server, and their heartbeats: what kubelets write while nothing happens.

    python -m tests.benchmarks.heartbeats URL CA CERT KEY NODES

Each node's lease is renewed every 10 s and its status is written every 5 minutes, as by a kubelet, every node
in a moment of its own. The program is a process of its own, so that its work does not count as anybody's, and
tells what it costs. It obeys lines of JSON, each with an answer: ``{"stop": [3, 4]}`` lets those nodes fall
silent, ``{"tell": true}`` asks how it goes since it was last asked.

Source: kubernetes pkg/kubelet/apis/config/v1beta1/defaults.go: a lease of 40 s is renewed four times in it,
nodeStatusReportFrequency is 5 minutes where nothing changes.
"""

from __future__ import annotations

import heapq
import json
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from fencer.core import annotations as keys
from tests.benchmarks import fleet
from tests.benchmarks.bare import BareClient, Server, connected
from tests.benchmarks.lab import NODE_INFO, agents_key
from tests.benchmarks.talker import Talker, talking
from tests.support.backstage import ATTACHMENTS, LEASES, NODES, PODS, ApiBackstage
from tests.support.controlplane import ControlPlane

RENEW_S, REPORT_S = 10.0, 300.0
THREADS = 4
IMAGES = 50
"""A kubelet reports so many at most, and a node that has been used for a while has as many."""


def make_nodes(
    api: ControlPlane, numbers: Sequence[int], *, pods: int = 0, attachments: bool = False
) -> None:
    """Make healthy, bound nodes as `fleet.node_view` names them: 19 kB each, with a lease.

    Args:
        api: Where.
        numbers: Which.
        pods: So many running pods on each.
        attachments: One volume is attached to each.
    """
    key = agents_key(ApiBackstage(api))

    def make(client: BareClient, number: int) -> None:
        name = fleet.node_view(number).name
        made = client.send("POST", f"{NODES}?fieldManager=kubelet", {"metadata": _metadata(name)})
        seal = keys.Seal(key, made["metadata"]["uid"])
        bound = {keys.BINDING: keys.write_binding(fleet.binding(number), seal)}
        client.send("PATCH", f"{NODES}/{name}", {"metadata": {"annotations": bound}})
        client.send("PATCH", f"{NODES}/{name}/status?fieldManager=kubelet", {"status": _status(number)})
        client.send("POST", LEASES, {"metadata": {"name": name}, "spec": _lease(name)})
        for pod in range(pods):
            _make_pod(client, name, f"{name}-{pod}")
        if attachments:
            _attach(client, name)

    with connected(Server.of(api)) as for_each:
        for_each(make, numbers)


def remove_nodes(api: ControlPlane, numbers: Sequence[int]) -> None:
    """Remove what `make_nodes` made, and what is left of it."""

    def remove(client: BareClient, path: str) -> None:
        client.send("DELETE", path, {"gracePeriodSeconds": 0})

    with connected(Server.of(api)) as for_each:
        names = {fleet.node_view(number).name for number in numbers}
        backstage = ApiBackstage(api)
        pods = [it for it in backstage.send("GET", PODS)["items"] if it["spec"].get("nodeName") in names]
        volumes = [
            it for it in backstage.send("GET", ATTACHMENTS)["items"] if it["spec"]["nodeName"] in names
        ]
        for_each(remove, [f"{PODS}/{pod['metadata']['name']}" for pod in pods])
        for_each(remove, [f"{ATTACHMENTS}/{volume['metadata']['name']}" for volume in volumes])
        for_each(remove, [f"{LEASES}/{name}" for name in names])
        for_each(remove, [f"{NODES}/{name}" for name in names])


@dataclass(frozen=True, slots=True)
class Beaten:
    """How it went since it was last asked.

    Attributes:
        renewals: Leases renewed.
        reports: Statuses written.
        late_s: The most that any of them came late: the API server has its limit there.
        cpu_s: Of the whole process, since its start.
    """

    renewals: int
    reports: int
    late_s: float
    cpu_s: float


@contextmanager
def beating(api: ControlPlane, nodes: int) -> Iterator[Talker]:
    """Let the first so many nodes have their heartbeats."""
    with talking("tests.benchmarks.heartbeats", *Server.of(api).words, str(nodes)) as process:
        process.ask(tell=True)  # it has begun
        yield process


# -- the process ------------------------------------------------------------------------------------------


class _Lane:
    """One thread with one connection, and the heartbeats of some nodes."""

    def __init__(self, server: Server, numbers: Sequence[int], nodes: int, silent: set[int]) -> None:
        self.renewals = self.reports = 0
        self.late_s = 0.0
        self.sending = threading.Lock()
        self._client, self._silent = BareClient(server), silent
        began_s = time.monotonic()
        self._due = [
            (began_s + every_s * number / nodes, every_s, number)
            for number in numbers
            for every_s in (RENEW_S, REPORT_S)
        ]
        heapq.heapify(self._due)

    def live(self) -> None:
        pause = threading.Event()
        while True:
            at_s, every_s, number = self._due[0]
            wait_s = at_s - time.monotonic()
            if wait_s > 0:
                pause.wait(wait_s)
            self.late_s = max(self.late_s, -wait_s)
            with self.sending:
                if number not in self._silent:
                    self._send(number, renewal=every_s == RENEW_S)
            heapq.heapreplace(self._due, (at_s + every_s, every_s, number))

    def _send(self, number: int, *, renewal: bool) -> None:
        name = fleet.node_view(number).name
        if renewal:
            self._client.send_raw("PATCH", f"{LEASES}/{name}", {"spec": {"renewTime": _now()}})
            self.renewals += 1
        else:
            report = {"status": {"conditions": _conditions()}}
            self._client.send_raw("PATCH", f"{NODES}/{name}/status?fieldManager=kubelet", report)
            self.reports += 1


def beat(server: Server, nodes: int) -> None:
    """Be the process: send heartbeats, and obey what is said, until nobody says anything any more."""
    silent: set[int] = set()
    lanes = [
        _Lane(server, range(first, nodes, THREADS), nodes, silent) for first in range(min(THREADS, nodes))
    ]
    for lane in lanes:
        threading.Thread(target=lane.live, daemon=True).start()
    for line in sys.stdin:
        said = json.loads(line)
        silent.update(said.get("stop", ()))
        with ExitStack() as all_:
            for lane in lanes:  # what was on its way has arrived by then
                all_.enter_context(lane.sending)
            told = Beaten(
                sum(lane.renewals for lane in lanes),
                sum(lane.reports for lane in lanes),
                max(lane.late_s for lane in lanes),
                time.process_time(),
            )
            for lane in lanes:
                lane.renewals, lane.reports, lane.late_s = 0, 0, 0.0
        print(json.dumps(asdict(told)), flush=True)  # noqa: T201 - it is how it answers


# -- what they look like ----------------------------------------------------------------------------------


def _metadata(name: str) -> dict[str, Any]:
    labels = {f"example.com/label-{number}": f"value-{number}" for number in range(20)}
    notes = {f"example.com/annotation-{number}": "of some length, as they are" for number in range(10)}
    return {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}, "annotations": notes}


def _status(number: int) -> dict[str, Any]:
    view = fleet.node_view(number)
    amounts = {
        "cpu": "8",
        "memory": "32Gi",
        "pods": "110",
        "ephemeral-storage": "100Gi",
        "hugepages-2Mi": "0",
    }
    return {
        "nodeInfo": dict.fromkeys(NODE_INFO, "as it is")
        | {"systemUUID": view.system_uuid, "bootID": view.boot_id},
        "conditions": _conditions(),
        "addresses": [
            {"type": "InternalIP", "address": "10.0.0.9"},
            {"type": "Hostname", "address": view.name},
        ],
        "capacity": amounts,
        "allocatable": amounts,
        "images": [_image(image) for image in range(IMAGES)],
    }


def _image(number: int) -> dict[str, Any]:
    name = f"registry.example.com/some-team/some-project/an-application-by-number-{number}"
    digest = "0123456789abcdef" * 4
    return {"names": [f"{name}@sha256:{digest}", f"{name}:1.2.{number}"], "sizeBytes": 10_000_000 + number}


def _conditions() -> list[dict[str, str]]:
    now = _now()[:19] + "Z"
    return [
        {
            "type": name,
            "status": "True" if name == "Ready" else "False",
            "lastHeartbeatTime": now,
            "lastTransitionTime": fleet.UTC,
            "reason": f"KubeletHas{name}",
            "message": f"kubelet says that {name} is as it should be",
        }
        for name in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]


def _lease(name: str) -> dict[str, Any]:
    return {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": _now()}


def _now() -> str:
    return datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _make_pod(client: BareClient, node: str, name: str) -> None:
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "none"}]}
    client.send("POST", PODS, {"metadata": {"name": name}, "spec": spec})
    client.send("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Running"}})


def _attach(client: BareClient, node: str) -> None:
    spec = {"attacher": "csi.example.com", "nodeName": node, "source": {"persistentVolumeName": f"pv-{node}"}}
    client.send("POST", ATTACHMENTS, {"metadata": {"name": f"csi-{node}"}, "spec": spec})
    client.send("PATCH", f"{ATTACHMENTS}/csi-{node}/status", {"status": {"attached": True}})


if __name__ == "__main__":
    *words, nodes = sys.argv[1:]
    beat(Server(*words), int(nodes))
