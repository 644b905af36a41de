"""What kube-controller-manager does when a node falls silent, with its quirks and its slowness.

Source: kubernetes pkg/controller/nodelifecycle/node_lifecycle_controller.go,
pkg/controller/tainteviction/taint_eviction.go and pkg/controller/podgc/gc_controller.go. Delays were measured
for fencer on Kubernetes 1.36, no record kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from fencer.core.model import OUT_OF_SERVICE, Taint
from fencer.core.text import count
from fencer.simulation.objects import UNREACHABLE, Api, ApiNode, ApiPod
from fencer.simulation.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Timing:
    """Kubernetes' own periods, in seconds; the defaults are Kubernetes' defaults.

    Attributes:
        monitor_s: node-monitor-period.
        grace_s: node-monitor-grace-period since 1.32.
        podgc_s: Period of the pod garbage collector; a constant there.
        orphan_s: How long it watches a pod without a node before it acts.
        taint_every_s: One NoExecute taint for unreachable nodes in this time.
        attach_s: What a storage driver needs to attach.
        detach_s: The same for detach.
        force_detach_s: After this, volumes of pods that are gone are torn off an unhealthy node.
        reaction_s: From a change of an object to what controllers make of it.
        informer_lag_s: How old the nodes are that pod garbage collector and attach/detach look at.
    """

    monitor_s: float = 5.0
    grace_s: float = 50.0
    podgc_s: float = 20.0
    orphan_s: float = 40.0
    taint_every_s: float = 10.0
    attach_s: float = 1.0
    detach_s: float = 1.0
    force_detach_s: float = 360.0
    reaction_s: float = 0.05
    informer_lag_s: float = 0.2


A_MOMENT_S = 0.001
"""The real loop takes a moment for each round, so that its tenth look is just late enough."""


def looks_out_of_service(node: ApiNode, now_s: float, lag_s: float) -> bool:
    """Whether a cache that lags shows the taint. Source: kubernetes#142331, open."""
    return node.out_of_service or now_s < node.out_of_service_until_s + lag_s


def looks_ready(node: ApiNode, now_s: float, lag_s: float) -> bool:
    """Whether a cache that lags shows the node Ready."""
    return node.ready is True and now_s >= node.ready_since_s + lag_s


class NodeLifecycle:
    """Marks silent nodes Unknown and taints them."""

    def __init__(self, api: Api, timing: Timing, timeline: Timeline) -> None:
        self._api = api
        self._timing = timing
        self._timeline = timeline
        self._signs: dict[str, tuple[tuple[str | None, str], float]] = {}
        self._next_taint_s = 0.0

    def monitor(self) -> None:
        """Look at all nodes, once a period: their silence counts from the change seen, on our own clock.

        A report of the status is a sign of life as a renewal of the lease is. Source: kubernetes
        pkg/controller/nodelifecycle/node_lifecycle_controller.go, tryUpdateNodeHealth.
        """
        now_s = self._api.clock.now_s()
        for node in list(self._api.nodes.values()):
            sign = node.lease, node.reported
            known, since_s = self._signs.get(node.name, ((None, ""), now_s))
            if known != sign:
                self._signs[node.name] = sign, now_s
            elif node.ready is not None and now_s - since_s >= self._timing.grace_s - A_MOMENT_S:
                self._mark_unknown(node)
        self._taint(now_s)

    def heard(self, node: ApiNode) -> None:
        """React to a kubelet's report: a node that is back loses unreachable:NoSchedule at once."""
        if node.ready is True and node.tainted(UNREACHABLE, "NoSchedule"):
            self._untaint(node, "NoSchedule")

    def _mark_unknown(self, node: ApiNode) -> None:
        node.ready = None
        taint = Taint(UNREACHABLE, "", "NoSchedule")
        self._api.set_taints(node, (*node.taints, taint))
        self._api.changed(node)
        for pod in self._api.pods_on(node.name):
            if pod.ready:
                pod.ready = False
                self._api.changed(pod)
        text = f"no word from its kubelet for {self._timing.grace_s:.0f} s: NotReady (Ready=Unknown)"
        self._timeline.tell("kubernetes", node.name, "not-ready", text)

    def _taint(self, now_s: float) -> None:
        nodes = list(self._api.nodes.values())
        silent = [node for node in nodes if node.ready is not True]
        for node in nodes:
            if node.tainted(UNREACHABLE, "NoExecute") and (node.ready is True or len(silent) == len(nodes)):
                self._untaint(node, "NoExecute")
        disrupted = self.disrupted()
        for node in silent:
            if disrupted or node.tainted(UNREACHABLE, "NoExecute") or now_s < self._next_taint_s:
                continue
            self._next_taint_s = now_s + self._timing.taint_every_s
            self._api.set_taints(
                node, (*node.taints, Taint(UNREACHABLE, "", "NoExecute", self._api.clock.utc()))
            )

    def disrupted(self) -> bool:
        """Whether so many nodes are silent that it has pods of none of them evicted.

        Source: kubernetes pkg/controller/nodelifecycle/node_lifecycle_controller.go, ComputeZoneState.
        """
        nodes = self._api.nodes.values()
        silent = sum(node.ready is not True for node in nodes)
        return silent == len(nodes) or (silent > 2 and silent >= 0.55 * len(nodes))  # noqa: PLR2004 - its defaults

    def _untaint(self, node: ApiNode, effect: str) -> None:
        kept = (taint for taint in node.taints if (taint.key, taint.effect) != (UNREACHABLE, effect))
        self._api.set_taints(node, kept)


class TaintEviction:
    """Marks pods for deletion that do not tolerate their node's NoExecute taints."""

    def __init__(self, api: Api, timeline: Timeline) -> None:
        self._api = api
        self._timeline = timeline
        self._timed: dict[str, Taint] = {}

    def reconcile(self) -> None:
        """Evict now what must go now, and look again when tolerations have run out."""
        for node in self._api.nodes.values():
            if not node.taints:
                continue
            if node.tainted(OUT_OF_SERVICE, "NoExecute"):
                self._evict(pod for pod in self._api.pods_on(node.name) if not pod.tolerates_out_of_service)
            taint = _unreachable(node)
            if taint is not None and self._timed.get(node.name) is not taint:
                self._timed[node.name] = taint
                self._set_timers(node, taint)

    def _set_timers(self, node: ApiNode, taint: Taint) -> None:
        waits_s = {pod.toleration_s for pod in self._api.pods_on(node.name)} - {None}
        for wait_s in sorted(wait for wait in waits_s if wait is not None):
            self._api.clock.after(wait_s, partial(self._expire, node, taint, wait_s))

    def _expire(self, node: ApiNode, taint: Taint, wait_s: float) -> None:
        if _unreachable(node) is not taint:
            return
        marked = self._evict(pod for pod in self._api.pods_on(node.name) if pod.toleration_s == wait_s)
        if marked:
            text = (
                f"{count(len(marked), 'pod')} marked for deletion; only its silent kubelet could confirm "
                "that, so they read Terminating"
            )
            self._timeline.tell("kubernetes", node.name, "terminating", text, pods=marked)

    def _evict(self, pods: Iterable[ApiPod]) -> list[str]:
        marked = [pod for pod in pods if pod.deleted_s is None]
        for pod in marked:
            pod.disrupted_why = "DeletionByTaintManager"
            self._api.delete_pod(pod)
        return [str(pod) for pod in marked]


def _unreachable(node: ApiNode) -> Taint | None:
    return next((t for t in node.taints if t.key == UNREACHABLE and t.effect == "NoExecute"), None)


class PodGarbageCollector:
    """Force-deletes terminating pods of out-of-service nodes, and pods whose node is gone."""

    def __init__(self, api: Api, timing: Timing, timeline: Timeline) -> None:
        self._api = api
        self._timing = timing
        self._timeline = timeline
        self._orphans_since_s: dict[str, float] = {}
        self.collected: Counter[str] = Counter()
        """Pods that it deleted, by node."""

    def collect(self) -> None:
        """Go over all pods, once a period."""
        now_s, lag_s = self._api.clock.now_s(), self._timing.informer_lag_s
        collected: Counter[str] = Counter()
        suspects = {
            name
            for name, node in self._api.nodes.items()
            if looks_out_of_service(node, now_s, lag_s) and not looks_ready(node, now_s, lag_s)
        }
        for pod in list(self._api.pods.values()):
            if pod.node is None:
                continue
            if (pod.node in suspects and pod.deleted_s is not None) or self._orphaned(pod, now_s):
                self._api.fail_pod(pod, "DeletionByPodGC")
                collected[pod.node] += self._api.delete_pod(pod, force=True)
        self.collected += collected
        for name, pods in (+collected).items():
            text = f"the pod garbage collector deleted {count(pods, 'pod')} of it"
            self._timeline.tell("kubernetes", name, "collected", text, pods=pods)

    def _orphaned(self, pod: ApiPod, now_s: float) -> bool:
        if pod.node in self._api.nodes:
            self._orphans_since_s.pop(pod.uid, None)
            return False
        return now_s - self._orphans_since_s.setdefault(pod.uid, now_s) >= self._timing.orphan_s
