"""What a drain needs to know of a Pod: its owner, what it loses, how it ends, what it needs elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from fencer.cluster import hooks
from fencer.cluster.fields import expect, flag, number, required, sequence, text, texts
from fencer.ports.inventory import Container

DEFAULT_GRACE_S = 30.0
"""Source: k8s.io/api core/v1, DefaultTerminationGracePeriodSeconds."""
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,2}))?")
_FACTORS = {
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", 1)},
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", 1)},
    **{suffix: Decimal(1000) ** -power for power, suffix in enumerate("mun", 1)},
}


@dataclass(frozen=True, slots=True)
class Requests:
    """What the scheduler sets aside for a pod: thousandths of a core, and bytes."""

    cpu_m: int
    memory_b: int


def controller(data: Any) -> str:
    """Return kind and name of the owner that controls the pod, like ``ReplicaSet/web-6f``; empty: none."""
    for owner in sequence(data, "metadata", "ownerReferences"):
        if flag(owner, "controller"):
            return f"{required(owner, 'kind')}/{required(owner, 'name')}"
    return ""


def local_data(volumes: Iterable[Any]) -> bool:
    """Whether a volume is an emptyDir."""
    return any(expect(volume, dict, "spec.volumes[]").get("emptyDir") is not None for volume in volumes)


def claims(volumes: Iterable[Any], pod: str) -> tuple[str, ...]:
    """Return the names of the volume claims; that of a generic ephemeral volume follows from the pod's.

    Source: kubernetes, "Ephemeral Volumes", PersistentVolumeClaim naming.
    """
    found = []
    for volume in volumes:
        if expect(volume, dict, "spec.volumes[]").get("ephemeral") is not None:
            found.append(f"{pod}-{required(volume, 'name')}")
        elif claim := text(volume, "persistentVolumeClaim", "claimName"):
            found.append(claim)
    return tuple(found)


def grace_s(data: Any) -> float:
    """Return the pod's termination grace period, in seconds."""
    seconds = number(data, "spec", "terminationGracePeriodSeconds")
    return DEFAULT_GRACE_S if seconds is None else float(min(seconds, hooks.LONGEST_S))


def containers(data: Any) -> tuple[Container, ...]:
    """Return the containers that run as long as the pod does, with the ports that they declare."""
    return tuple(
        Container(
            name=text(one, "name"),
            ports=tuple(_port_names(one)),
            hook=hooks.pre_stop(one),
            sidecar=text(one, "restartPolicy") == "Always",
        )
        for one in _lasting(data)
    )


def waiting(data: Any) -> tuple[str, int]:
    """Return why a container waits, and how often it was started again.

    Where none waits that is no reason, and the restarts of the one that was started again most often.

    Source: k8s.io/api core/v1, ContainerStateWaiting; sidecars are among the init containers' statuses.
    """
    statuses = [
        *sequence(data, "status", "containerStatuses"),
        *sequence(data, "status", "initContainerStatuses"),
    ]
    found = [(text(one, "state", "waiting", "reason"), number(one, "restartCount") or 0) for one in statuses]
    return max(found, key=lambda one: (bool(one[0]), one[1]), default=("", 0))


def requests(data: Any) -> Requests:
    """Return what the scheduler sets aside: containers together, or an init container's peak; and overhead.

    Source: kubernetes pkg/api/v1/resource helpers, PodRequests. Requests of the whole pod
    (``spec.resources``) replace the sum.
    """
    return Requests(_total(data, "cpu", 1000), _total(data, "memory", 1))


def quantity(written: str) -> Decimal:
    """Read a quantity like ``250m`` or ``1Gi``; what is none reads 0: it must not hide the pod.

    Source: k8s.io/apimachinery pkg/api/resource, Quantity.
    """
    match = _QUANTITY.fullmatch(written)
    if match is None:
        return Decimal(0)
    number, suffix, exponent = match.groups()
    factor = Decimal(10) ** int(exponent) if exponent else _FACTORS.get(suffix or "", Decimal(1))
    return Decimal(number) * factor


def _total(data: Any, resource: str, scale: int) -> int:
    sidecars = peak = Decimal(0)
    for container in sequence(data, "spec", "initContainers"):
        request = _request(container, resource)
        if text(container, "restartPolicy") == "Always":
            sidecars += request
        peak = max(peak, sidecars + (0 if text(container, "restartPolicy") == "Always" else request))
    together = sum((_request(one, resource) for one in sequence(data, "spec", "containers")), sidecars)
    whole = texts(data, "spec", "resources", "requests").get(resource)
    needed = max(together, peak) if whole is None else quantity(whole)
    overhead = quantity(texts(data, "spec", "overhead").get(resource, "0"))
    return int(((needed + overhead) * scale).to_integral_value())


def _request(container: Any, resource: str) -> Decimal:
    return quantity(texts(container, "resources", "requests").get(resource, "0"))


def _lasting(data: Any) -> list[Any]:
    """Return the containers that run as long as the pod does: sidecars are init containers that stay."""
    sidecars = [
        one for one in sequence(data, "spec", "initContainers") if text(one, "restartPolicy") == "Always"
    ]
    return [*sequence(data, "spec", "containers"), *sidecars]


def _port_names(container: Any) -> Iterator[str]:
    for port in sequence(container, "ports"):
        if name := text(port, "name"):
            yield name
        if (written := number(port, "containerPort")) is not None:
            yield str(written)
