"""Workloads and the scheduler: who makes new pods, when, and where they go.

Measured for fencer on Kubernetes 1.36, no record kept: a StatefulSet waits until the old pod's object is
gone, a Deployment only until it is marked for deletion, a DaemonSet's pods tolerate unreachable nodes but not
the out-of-service taint, and a Job's pods are held by a finalizer until they were counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from fencer.simulation.objects import Api, ApiPod

JOB_FINALIZER = "batch.kubernetes.io/job-tracking"
NAMESPACE = "demo"


class Workload(Protocol):
    """Something that keeps pods."""

    @property
    def owner(self) -> str:
        """Kind and name, like ``StatefulSet/db``."""
        ...

    def reconcile(self, api: Api) -> None:
        """Create (and delete) pods until the workload is what it should be."""
        ...

    def whole(self, api: Api) -> bool:
        """Whether all its pods are Ready."""
        ...


def _blank(api: Api, owner: str, name: str) -> ApiPod:
    return ApiPod(NAMESPACE, name, api.new_uid(), owner, api.clock.now_s())


def _alive(api: Api, owner: str) -> list[ApiPod]:
    return [pod for pod in api.pods_of(owner) if pod.deleted_s is None and not pod.over]


def _ready(api: Api, owner: str) -> int:
    return sum(pod.ready for pod in _alive(api, owner))


@dataclass(frozen=True, slots=True)
class StatefulSet:
    """Pods with names that stay, each with a volume of its own.

    Attributes:
        parallel: podManagementPolicy Parallel; otherwise OrderedReady, one after the other.
        stays: Its pods tolerate every taint: they stay where they are, come what may.
        named_node: The node that their template names, past the scheduler; None: none.
        finalizer: What holds its pods; empty: nothing.
        release_s: So long after a pod is over its finalizer is released; None: never.
        grace_s: How long its pods may take to end, as they say.
    """

    name: str
    replicas: int
    parallel: bool = True
    stays: bool = False
    named_node: str | None = None
    finalizer: str = ""
    release_s: float | None = None
    grace_s: float = 30.0

    @property
    def owner(self) -> str:
        """Kind and name."""
        return f"StatefulSet/{self.name}"

    def reconcile(self, api: Api) -> None:
        """Create what is missing once the name is free; delete what failed."""
        for number in range(self.replicas):
            name = f"{self.name}-{number}"
            pod = api.pod(NAMESPACE, name)
            if pod is None:
                new = _blank(api, self.owner, name)
                new.volume, new.named_node, new.grace_s = f"data-{name}", self.named_node, self.grace_s
                if self.stays:
                    new.tolerates_out_of_service, new.toleration_s = True, None
                new.finalizers = (self.finalizer,) if self.finalizer else ()
                api.create_pod(new)
            elif pod.over:
                self._take_away(api, pod)
            if not self.parallel and (pod is None or not pod.ready or pod.deleted_s is not None):
                return

    def _take_away(self, api: Api, pod: ApiPod) -> None:
        """Delete a pod that is over, and release it in the end."""
        if pod.finalizers and self.release_s is not None:
            api.clock.after(self.release_s, partial(api.release_pod, pod))
        if pod.deleted_s is None:
            api.delete_pod(pod)

    def whole(self, api: Api) -> bool:
        """Whether all its pods are Ready."""
        return _ready(api, self.owner) >= self.replicas


@dataclass(slots=True)
class Deployment:
    """Pods without identity, replaced as soon as they are marked for deletion.

    Attributes:
        tolerates_cordon: No cordon keeps them off.
        named_node: The node that their template names, past the scheduler; None: none.
        volume: Name of the one volume that they use; None: none.
    """

    name: str
    replicas: int
    tolerates_cordon: bool = False
    named_node: str | None = None
    volume: str | None = None
    made: int = field(default=0, init=False)

    @property
    def owner(self) -> str:
        """Kind and name."""
        return f"Deployment/{self.name}"

    def reconcile(self, api: Api) -> None:
        """Create what is missing."""
        for _ in range(self.replicas - len(_alive(api, self.owner))):
            self.made += 1
            new = _blank(api, self.owner, f"{self.name}-{self.made}")
            new.tolerates_cordon, new.named_node = self.tolerates_cordon, self.named_node
            new.volume = self.volume
            api.create_pod(new)

    def whole(self, api: Api) -> bool:
        """Whether all its pods are Ready."""
        return _ready(api, self.owner) >= self.replicas


@dataclass(slots=True)
class DaemonSet:
    """One pod on every node that takes pods."""

    name: str
    made: int = field(default=0, init=False)

    @property
    def owner(self) -> str:
        """Kind and name."""
        return f"DaemonSet/{self.name}"

    def reconcile(self, api: Api) -> None:
        """Create a pod on each node that has none and no taint against it."""
        served = {pod.pinned for pod in api.pods_of(self.owner)}
        for node in api.nodes.values():
            if node.name not in served and not node.taints:
                self.made += 1
                new = _blank(api, self.owner, f"{self.name}-{self.made}")
                new.pinned, new.toleration_s = node.name, None
                api.create_pod(new)

    def whole(self, api: Api) -> bool:
        """Whether every untainted node has its pod Ready."""
        return _ready(api, self.owner) >= sum(not node.taints for node in api.nodes.values())


@dataclass(slots=True)
class Job:
    """Pods that work for ever, held by the finalizer that every Job's pods carry."""

    name: str
    parallelism: int
    count_s: float = 2.0
    made: int = field(default=0, init=False)

    @property
    def owner(self) -> str:
        """Kind and name."""
        return f"Job/{self.name}"

    def reconcile(self, api: Api) -> None:
        """Count finished pods (and then release them), create what is missing."""
        for pod in api.pods_of(self.owner):
            if pod.over and pod.finalizers:
                api.clock.after(self.count_s, partial(api.release_pod, pod))
        for _ in range(self.parallelism - len(_alive(api, self.owner))):
            self.made += 1
            new = _blank(api, self.owner, f"{self.name}-{self.made}")
            new.finalizers = (JOB_FINALIZER,)
            api.create_pod(new)

    def whole(self, api: Api) -> bool:
        """Whether all its pods are Ready."""
        return _ready(api, self.owner) >= self.parallelism


def schedule(api: Api) -> None:
    """Bind pending pods: to the node with the fewest of the same workload, then the fewest at all.

    Like kube-scheduler it asks for taints and cordons, not for Ready.
    """
    for pod in api.pods_on(None):
        if pod.deleted_s is not None:
            continue
        where = pod.pinned or pod.named_node
        if where is not None:
            if where in api.nodes:
                api.bind_pod(pod, where)
            continue
        open_to_it = [
            node.name
            for node in api.nodes.values()
            if not node.taints and (pod.tolerates_cordon or not node.unschedulable)
        ]
        if open_to_it:
            alike = Counter(other.node for other in api.pods_of(pod.owner))
            api.bind_pod(pod, min(open_to_it, key=lambda name: (alike[name], len(api.pods_on(name)), name)))
