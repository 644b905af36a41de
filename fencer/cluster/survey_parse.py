"""From the API's JSON to what a plan looks at: pure, strict about types, one object at a time.

For any JSON, a function here returns its record or raises `ClusterProtocol` naming the field.
"""

from __future__ import annotations

from typing import Any

from fencer.cluster import parse, podspec
from fencer.cluster.fields import expect, flag, mapping, number, required, sequence, shown, text, texts
from fencer.errors import ClusterProtocol
from fencer.ports.inventory import Budget, Claim, Machine, Service, Tenant, Volume
from fencer.ports.selectors import NodeSelector, NodeTerm, Operator, Requirement, Selector

_ONE_NODE = frozenset({"ReadWriteOnce", "ReadWriteOncePod"})

NO_KEY = b""
"""A plan looks at what runs where; what fencer has signed is nothing to it."""


def node(data: Any) -> Machine:
    """Read a Node with labels, addresses, and what it offers to pods; what it does not report is no room."""
    room = mapping(data, "status", "allocatable")
    return Machine(
        node=parse.node(data).opened(NO_KEY),
        labels=_pairs(data, "metadata", "labels"),
        cpu_m=_amount(room, "cpu", 1000),
        memory_b=_amount(room, "memory", 1),
        pod_slots=_amount(room, "pods", 1),
        addresses=tuple(
            filter(None, (text(one, "address") for one in sequence(data, "status", "addresses")))
        ),
    )


def pod(data: Any) -> Tenant:
    """Read a Pod, where it is, which directories of its node it may write, how it ends and how it fares."""
    waiting, restarts = podspec.waiting(data)
    requests = podspec.requests(data)
    return Tenant(
        parse.pod(data),
        node=text(data, "spec", "nodeName"),
        host_paths=_host_paths(data),
        containers=podspec.containers(data),
        waiting=waiting,
        restarts=restarts,
        cpu_m=requests.cpu_m,
        memory_b=requests.memory_b,
    )


def budget(data: Any) -> Budget:
    """Read a PodDisruptionBudget. Without a status nothing was counted, and nothing is allowed.

    Source: k8s.io/api policy/v1: a missing selector means no pod, an empty one every pod of the namespace.
    """
    selector = mapping(data, "spec").get("selector")
    generation = number(data, "metadata", "generation") or 0
    return Budget(
        namespace=required(data, "metadata", "namespace"),
        name=required(data, "metadata", "name"),
        selector=None if selector is None else label_selector(data, "spec", "selector"),
        allowed=number(data, "status", "disruptionsAllowed") or 0,
        desired=number(data, "status", "desiredHealthy") or 0,
        healthy=number(data, "status", "currentHealthy") or 0,
        expected=number(data, "status", "expectedPods") or 0,
        always_allow=text(data, "spec", "unhealthyPodEvictionPolicy") == "AlwaysAllow",
        counted=(number(data, "status", "observedGeneration") or 0) >= generation,
        problem=_sync_failure(data),
    )


def service(data: Any) -> Service | None:
    """Read a Service; None: it selects no pods (its endpoints come from elsewhere)."""
    namespace, name = required(data, "metadata", "namespace"), required(data, "metadata", "name")
    chosen = texts(data, "spec", "selector")
    if not chosen or text(data, "spec", "type") == "ExternalName":
        return None
    return Service(
        namespace,
        name,
        _equal(chosen),
        unready_too=flag(data, "spec", "publishNotReadyAddresses"),
        targets=frozenset(_target(port) for port in sequence(data, "spec", "ports")),
    )


def claim(data: Any) -> Claim:
    """Read a PersistentVolumeClaim."""
    modes = {expect(mode, str, "accessModes[]") for mode in sequence(data, "spec", "accessModes")}
    return Claim(
        namespace=required(data, "metadata", "namespace"),
        name=required(data, "metadata", "name"),
        volume=text(data, "spec", "volumeName"),
        one_node=bool(modes) and modes <= _ONE_NODE,
    )


def volume(data: Any) -> Volume:
    """Read a PersistentVolume."""
    affinity = mapping(data, "spec", "nodeAffinity").get("required")
    return Volume(
        name=required(data, "metadata", "name"),
        host_path="hostPath" in mapping(data, "spec"),
        nodes=None if affinity is None else node_selector(data, "spec", "nodeAffinity", "required"),
    )


def label_selector(data: Any, *path: str) -> Selector:
    """Read the LabelSelector at a path: ``matchLabels`` and ``matchExpressions`` together."""
    written = tuple(_requirement(item) for item in sequence(data, *path, "matchExpressions"))
    return Selector((*_equal(texts(data, *path, "matchLabels")).requirements, *written))


def node_selector(data: Any, *path: str) -> NodeSelector:
    """Read the NodeSelector at a path."""
    return NodeSelector(
        tuple(
            NodeTerm(
                labels=tuple(_requirement(item) for item in sequence(term, "matchExpressions")),
                fields=tuple(_requirement(item) for item in sequence(term, "matchFields")),
            )
            for term in sequence(data, *path, "nodeSelectorTerms")
        )
    )


def _equal(labels: dict[str, str]) -> Selector:
    return Selector(tuple(Requirement(key, Operator.IN, (value,)) for key, value in sorted(labels.items())))


def _requirement(item: Any) -> Requirement:
    word = required(item, "operator")
    try:
        operator = Operator(word)
    except ValueError as error:
        raise ClusterProtocol(f"operator {shown(word)} is not known") from error
    values = tuple(expect(value, str, "values[]") for value in sequence(item, "values"))
    return Requirement(required(item, "key"), operator, values)


def _target(port: Any) -> str:
    """Return the name or number of the container port that a Service's port leads to.

    Source: k8s.io/api core/v1, ServicePort: without a target it is the same number.
    """
    target = expect(port, dict, "spec.ports[]").get("targetPort")
    if isinstance(target, str) and target:
        return target
    return str(number(port, "targetPort") or number(port, "port") or 0)


def _host_paths(data: Any) -> tuple[str, ...]:
    """Return the hostPath volumes that some container may write."""
    paths = {
        required(one, "name"): required(one, "hostPath", "path")
        for one in sequence(data, "spec", "volumes")
        if mapping(one, "hostPath")
    }
    containers = [*sequence(data, "spec", "containers"), *sequence(data, "spec", "initContainers")]
    mounts = [mount for container in containers for mount in sequence(container, "volumeMounts")]
    written = {required(mount, "name") for mount in mounts if not flag(mount, "readOnly")}
    return tuple(path for name, path in paths.items() if name in written)


def _sync_failure(data: Any) -> str:
    """Return why the controller cannot count a budget's pods; empty: it can.

    Source: k8s.io/api policy/v1, condition DisruptionAllowed with the reason SyncFailed.
    """
    for condition in sequence(data, "status", "conditions"):
        if text(condition, "type") == "DisruptionAllowed" and text(condition, "reason") == "SyncFailed":
            return text(condition, "message") or "SyncFailed"
    return ""


def _amount(room: dict[str, Any], resource: str, scale: int) -> int:
    return int(podspec.quantity(text(room, resource) or "0") * scale)


def _pairs(data: Any, *path: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(texts(data, *path).items()))
