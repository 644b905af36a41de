"""The controllers together: they react shortly after a change, and some of them only at their own pace."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fencer.simulation.clock import Alarm
from fencer.simulation.controllers import NodeLifecycle, PodGarbageCollector, TaintEviction, Timing
from fencer.simulation.objects import Api, ApiNode, ApiObject
from fencer.simulation.timeline import Timeline
from fencer.simulation.volumes import AttachDetach
from fencer.simulation.workloads import Workload, schedule


class ControlPlane:
    """kube-controller-manager and kube-scheduler over one `Api`.

    Args:
        api: The objects.
        workloads: What is to run.
        timing: How slow it is.
        timeline: Where its doings are told.
    """

    def __init__(self, api: Api, workloads: Sequence[Workload], timing: Timing, timeline: Timeline) -> None:
        self.workloads = workloads
        self._api = api
        self._timing = timing
        self._lifecycle = NodeLifecycle(api, timing, timeline)
        self.podgc = PodGarbageCollector(api, timing, timeline)
        self._evictions = TaintEviction(api, timeline)
        self._volumes = AttachDetach(api, timing, timeline)
        self._alarm = Alarm(api.clock, self._reconcile)
        api.watchers.append(self._changed)

    def start(self) -> None:
        """Begin; both periods count from a moment that the seed decides."""
        self._every(self._timing.monitor_s, self._lifecycle.monitor)
        self._every(self._timing.podgc_s, self.podgc.collect)
        self._alarm.soon(self._timing.reaction_s)

    def whole(self) -> bool:
        """Whether all workloads are Ready."""
        return all(workload.whole(self._api) for workload in self.workloads)

    def evicts_nobody(self) -> bool:
        """Whether so many nodes are silent that no pods are replaced."""
        return self._lifecycle.disrupted()

    def _every(self, period_s: float, call: Callable[[], None]) -> None:
        def again() -> None:
            self._api.clock.after(period_s, again)
            if self._api.down_why is None:
                call()

        self._api.clock.after(self._api.chance.uniform(0, period_s), again)

    def _changed(self, obj: ApiObject) -> None:
        if isinstance(obj, ApiNode):
            self._lifecycle.heard(obj)
        self._alarm.soon(self._timing.reaction_s)

    def _reconcile(self) -> None:
        if self._api.down_why is not None:
            self._alarm.soon(1.0)
            return
        self._evictions.reconcile()
        for workload in self.workloads:
            workload.reconcile(self._api)
        schedule(self._api)
        self._volumes.reconcile()
