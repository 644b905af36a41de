"""A big fleet for benchmarks: nodes, leases and guests as records and as JSON, and ports that hand them out.

JSON of a node is as large as it is in the wild: 10.6 kB, of which labels, conditions, managed fields and the
list of images make the most.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fencer.core import annotations as keys
from fencer.core.done import Done
from fencer.core.model import Binding, Decision, Deed, Evidence, GuestRef, NodeView, PowerState
from fencer.errors import FencerError
from fencer.ports import Heartbeats, Lease, Nodes
from tests.support.in_turn import InTurn

UTC = "2026-11-20T10:41:12Z"
POLL_S = 2.0
RENEW_S = 10.0
ENDPOINT = "home"
KEY = b"the key of all agents of a cluster"
_NAMESPACE = uuid.UUID("6f1c0000-0000-4000-8000-0000000000e2")
_IMAGES = 44
"""A kubelet reports 50 at most; so many bring a node to the size that was measured."""


def guest_ref(number: int) -> GuestRef:
    """Return the guest of that number."""
    text = str(uuid.uuid5(_NAMESPACE, str(number)))
    return GuestRef(ENDPOINT, str(1000 + number), text, f"k8s-{number}", f"pve{number % 40}")


def binding(number: int) -> Binding:
    """Return the binding of the node of that number."""
    return Binding(guest_ref(number), (f"boot-{number}",))


def node_view(number: int) -> NodeView:
    """Return a healthy, bound node."""
    return NodeView(
        name=f"k8s-{number}",
        uid=f"uid-{number}",
        system_uuid=guest_ref(number).uuid.upper(),
        boot_id=f"boot-{number}",
        ready=True,
        version="7",
        binding=binding(number),
    )


def renew_time(number: int, pass_number: int) -> str:
    """Return a lease's renewTime as it stands in a pass: each moves every tenth second."""
    renewed = int((pass_number * POLL_S + number % RENEW_S) // RENEW_S)
    return f"2026-11-20T{10 + renewed // 60}:{renewed % 60:02d}:00.000000Z"


def lease_version(pass_number: int) -> int:
    """Return a resourceVersion that no lease that was written by then exceeds."""
    return 1_000 + pass_number


def lease(number: int, pass_number: int) -> Lease:
    """Return a lease as it stands in a pass."""
    written_s = pass_number * POLL_S - (pass_number * POLL_S + number % RENEW_S) % RENEW_S
    return Lease(renew_time(number, pass_number), lease_version(int(written_s // POLL_S)))


def evidence(number: int, now_s: float) -> Evidence:
    """Return the reading of a running guest."""
    guest = guest_ref(number)
    return Evidence(
        guest,
        PowerState.RUNNING,
        True,
        f"{guest.host}/{number}",
        True,
        "running",
        "cluster/resources",
        now_s,
    )


# -- as JSON ----------------------------------------------------------------------------------------------


def node_json(number: int) -> dict[str, Any]:
    """Return the same node as the API tells it."""
    view = node_view(number)
    conditions = [
        {
            "type": name,
            "status": "True" if name == "Ready" else "False",
            "lastHeartbeatTime": UTC,
            "lastTransitionTime": UTC,
            "reason": f"KubeletHas{name}",
            "message": f"kubelet says that {name} is as it should be",
        }
        for name in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    fields: dict[str, Any] = {f"f:example.com/key-{n}": {"f:value": {}, ".": {}} for n in range(40)}
    return {
        "metadata": {
            "name": view.name,
            "uid": view.uid,
            "resourceVersion": view.version,
            "creationTimestamp": UTC,
            "labels": {f"example.com/label-{n}": f"value-{n}" for n in range(20)},
            "annotations": {
                keys.BINDING: keys.write_binding(binding(number), keys.Seal(KEY, f"uid-{number}")),
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
            "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": fields}],
        },
        "spec": {
            "providerID": f"proxmox://{view.name}",
            "podCIDR": "10.42.0.0/24",
            "podCIDRs": ["10.42.0.0/24"],
        },
        "status": {
            "conditions": conditions,
            "images": images(),
            "nodeInfo": {"systemUUID": view.system_uuid, "bootID": view.boot_id, "kernelVersion": "6.1.0"},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.9"}],
            "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
        },
    }


def images() -> list[dict[str, Any]]:
    """Return the images that a node tells of, which make most of its size."""
    digest = "0123456789abcdef" * 4
    return [
        {
            "names": [f"registry.example.com/team/app-{n}@sha256:{digest}", f"app-{n}:1.{n}"],
            "sizeBytes": 10_000_000 + n,
        }
        for n in range(_IMAGES)
    ]


def lease_json(number: int, pass_number: int) -> dict[str, Any]:
    """Return a node's lease as the API tells it."""
    name = f"k8s-{number}"
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": f"uid-{number}"}
    return {
        "metadata": {
            "name": name,
            "namespace": "kube-node-lease",
            "uid": f"lease-{number}",
            "resourceVersion": str(lease(number, pass_number).version),
            "creationTimestamp": UTC,
            "ownerReferences": [owner],
            "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:spec": {}}}],
        },
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": 40,
            "renewTime": renew_time(number, pass_number),
        },
    }


def resource_row(number: int) -> dict[str, Any]:
    """Return a row of Proxmox VE's ``cluster/resources``."""
    guest = guest_ref(number)
    numbers = "cpu disk diskread diskwrite maxcpu maxdisk maxmem mem memhost netin netout"
    return {
        "id": f"qemu/{guest.id}",
        "type": "qemu",
        "vmid": int(guest.id),
        "name": guest.name,
        "node": guest.host,
        "status": "running",
        "uptime": 86_400 + number,
        "template": 0,
        "tags": "fencer;k8s",
        **dict.fromkeys(numbers.split(), 1_073_741_824),
    }


def pages(kind: str, items: Sequence[Mapping[str, Any]], size: int, version: int) -> dict[str, bytes]:
    """Cut a list of a version into pages: what ``continue`` asks for (empty: the first) → the page's JSON."""
    cut = [items[start : start + size] for start in range(0, len(items), size)] or [[]]
    return {
        "" if number == 0 else f"page-{number}": json.dumps(
            {
                "kind": kind,
                "metadata": {
                    "continue": f"page-{number + 1}" if number + 1 < len(cut) else "",
                    "resourceVersion": str(version),
                },
                "items": page,
            }
        ).encode()
        for number, page in enumerate(cut)
    }


# -- as ports ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Time:
    """A clock that is set by hand, and waits for nobody."""

    at_s: float = 1000.0

    def now_s(self) -> float:
        return self.at_s

    def wait(self, timeout_s: float) -> bool:
        self.at_s += timeout_s
        return False

    def wake(self) -> None:
        """Nobody waits."""


class Direct(InTurn):
    """An `Asker` that runs every call at once, in the caller's thread."""

    def ask(self, _endpoint: str, call: Callable[[], Any], _deadline_s: float) -> Any:
        return call()

    def ask_all(
        self,
        calls: Mapping[str, Callable[[], Any]],
        _deadline_s: float,
        *,
        patient: bool = False,  # noqa: ARG002 - as an Asker is called
    ) -> dict[str, Any]:
        answers: dict[str, Any] = {}
        for name, call in calls.items():
            try:
                answers[name] = call()
            except FencerError as error:
                answers[name] = error
        return answers


class Silent:
    """A `Reporter` that counts."""

    def __init__(self) -> None:
        self.told = 0

    def decided(self, node: NodeView, decision: Decision) -> None:  # noqa: ARG002 - as a Reporter is called
        self.told += 1

    def acted(self, node: NodeView, action: Deed, done: Done) -> None:  # noqa: ARG002 - as a Reporter is called
        self.told += 1

    def said(self, text: str, *, warning: bool) -> None:  # noqa: ARG002 - as a Reporter is called
        self.told += 1


class RecordCluster:
    """A cluster that hands out records of nodes, as a watch keeps them; any other question is refused.

    Args:
        nodes: How many.
        clock: By which their leases are renewed.

    Attributes:
        leases_asked: Of how many nodes the lease was asked for.
    """

    def __init__(self, nodes: int, clock: Time) -> None:
        self._views = tuple(node_view(number) for number in range(nodes))
        self._clock, self._began_s = clock, clock.now_s()
        self.leases_asked = 0

    def nodes(self) -> Nodes:
        return Nodes(self._views)

    def heartbeats(self, nodes: Collection[str] | None) -> Heartbeats:
        asked = [view.name for view in self._views] if nodes is None else nodes
        self.leases_asked += len(asked)
        pass_number = int((self._clock.now_s() - self._began_s) / POLL_S)
        names = {self._views[0].name, *asked}
        leases = {name: lease(int(name.rpartition("-")[2]), pass_number) for name in names}
        return Heartbeats(leases, lease_version(pass_number), UTC)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a pass over healthy nodes called {name}")


@dataclass(slots=True)
class RecordHypervisor:
    """An endpoint that reads every guest running."""

    guests: int
    clock: Time
    _first: list[Evidence] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        return ENDPOINT

    def sweep(self) -> list[Evidence]:
        if not self._first:
            self._first = [evidence(number, 0.0) for number in range(self.guests)]
        now_s = self.clock.now_s()
        return [replace(reading, observed_at_s=now_s) for reading in self._first]

    def subscribe(self, _wake: Callable[[], None]) -> None:
        """Nothing ever happens here."""

    def attend(self, _guests: Collection[GuestRef]) -> None:
        """Nothing ever happens here."""
