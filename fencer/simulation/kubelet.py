"""One kubelet, reduced to what fencing depends on: who reports, who writes, and who learns what too late.

The model knows neither the simulated world nor a real API: it talks to a `KubeletApi` (in memory for the
simulation, REST for the end-to-end tests) and asks a `Machine` whether it runs and in which boot. All that it
remembers is the machine's memory: gone with a cold start, and untouched by a pause.

Measured for fencer on real kubelets, no record kept: one renews its lease every 10 s; it mounts a volume once
that is attached and was reported in use; one that was paused and runs on renews its lease at once, but learns
of deletions only when its watches are back, so that its old containers write on for seconds; stopped, it
leaves its containers running.

Lease and status are two timers. A kubelet that starts renews its lease at once, and reports its status, with
the id of its boot, when its container runtime is up: 0.22 to 0.88 s later in eight boots of Kubernetes 1.36.2
with containerd 1.6. Source: kubernetes pkg/kubelet/kubelet.go, Run (updateRuntimeUp comes before the first
syncNodeStatus, and nodeLeaseController does not wait for it).
"""

from __future__ import annotations

import math
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random

from fencer.errors import ClusterConflict, ClusterNotFound, ClusterUnreachable
from fencer.simulation.machine import KubeletApi, KubeletPod, Machine, NodeReport

__all__ = [
    "Kubelet",
    "KubeletApi",
    "KubeletMemory",
    "KubeletPod",
    "KubeletTiming",
    "Machine",
    "NodeReport",
]

OVERTAKEN = (ClusterNotFound, ClusterConflict)
"""The pod changed since it was listed: the next list will tell."""


@dataclass(frozen=True, slots=True)
class KubeletTiming:
    """How quick a kubelet is, in seconds.

    Attributes:
        renew_s: Period of lease renewals, and of looks at the status: what has changed is reported then.
            Source: kubernetes pkg/kubelet/apis/config/v1beta1/defaults.go, NodeStatusUpdateFrequency (10 s)
            and NodeLeaseDurationSeconds (40 s), and pkg/kubelet/kubelet.go, nodeLeaseRenewIntervalFraction.
        boot_s: From power on to the first lease renewal.
        status_s: Shortest and longest time from the first renewal to the first status report, which has the
            new boot id. Source: the boots that are measured above, and twice as long for a slow machine.
        late_s: So long instead where the container runtime or the API server is slow. Source: kubernetes
            pkg/kubelet/kubelet.go, syncNodeStatus: a report that fails is tried again after
            nodeStatusUpdateFrequency.
        late_share: The share of starts for which that is so; an assumption.
        report_s: A status that has not changed is written after so long. A real kubelet adds or subtracts up
            to half of it once after each change. Source: kubernetes
            pkg/kubelet/apis/config/v1beta1/defaults.go, NodeStatusReportFrequency; pkg/kubelet/kubelet.go,
            delayAfterNodeStatusChange.
        relist_s: From the return of a frozen or cut-off kubelet until its watches tell it the news, at most;
            a tenth of it at least. Source: k8s.io/apimachinery pkg/util/net/http.go, readIdleTimeoutSeconds
            and pingTimeoutSeconds: 30 + 15 s at worst.
        start_s: Shortest and longest start of a container.
        end_s: How long a container that is asked to end takes at most, its grace allowing; a tenth of it at
            least.
        least_s: So much it has, however little its grace is. Source: kubernetes
            pkg/kubelet/kuberuntime/kuberuntime_container.go, minimumGracePeriodInSeconds.
    """

    renew_s: float = 10.0
    boot_s: float = 25.0
    status_s: tuple[float, float] = (0.05, 2.0)
    late_s: float = 10.0
    late_share: float = 0.05
    report_s: float = 300.0
    relist_s: float = 20.0
    start_s: tuple[float, float] = (0.3, 2.0)
    end_s: float = 10.0
    least_s: float = 2.0


@dataclass(slots=True)
class _Container:
    """One pod's containers in this machine's memory."""

    pod: KubeletPod
    mounted: bool = False
    ready_at_s: float = math.inf
    ends_at_s: float = math.inf


@dataclass(slots=True)
class KubeletMemory:
    """All that a kubelet knows, in its machine's memory: empty after a cold start.

    Attributes:
        boot_id: Which boot of the machine this is the memory of.
        up_at_s: When it is up.
        lease_at_s: When to renew its lease next.
        status_at_s: When to look at its status next.
        expires_s: After so much more of its own time, it writes a status that has not changed; a pause does
            not count.
        news_at_s: When its watches tell it the news.
        stopped: ``systemctl stop kubelet``.
        started: ``systemctl start kubelet``, and it has not run since.
        asleep: Its machine did not run at the last look.
        cut_off: The API did not answer the last time.
        containers: What runs here, by the pod's UID.
        pods: What it was last told, by UID.
        in_use: Volumes that it reported in use.
    """

    boot_id: str = ""
    up_at_s: float = 0.0
    lease_at_s: float = 0.0
    status_at_s: float = 0.0
    expires_s: float = 0.0
    news_at_s: float = 0.0
    stopped: bool = False
    started: bool = False
    asleep: bool = False
    cut_off: bool = False
    containers: dict[str, _Container] = field(default_factory=dict)
    pods: dict[str, KubeletPod] = field(default_factory=dict)
    in_use: frozenset[str] = frozenset()


class Kubelet:
    """A kubelet. Call `tick` when the machine, the API or time may have something new for it.

    Args:
        api: The API, for this node.
        machine: The machine it runs on.
        chance: Decides how long things take.
        timing: How quick it is.
    """

    def __init__(self, api: KubeletApi, machine: Machine, chance: Random, timing: KubeletTiming) -> None:
        self._api = api
        self._machine = machine
        self._chance = chance
        self._timing = timing
        self._memory = KubeletMemory()

    @property
    def stopped(self) -> bool:
        """Whether somebody stopped it: its containers run on, and nothing is heard of them."""
        return self._memory.stopped

    @property
    def holds_pods(self) -> bool:
        """Whether it has started any pod since its machine booted."""
        return self._memory.boot_id == self._machine.boot() and bool(self._memory.containers)

    @property
    def running(self) -> frozenset[str]:
        """The pods whose containers were started here and have not ended, as ``namespace/name``."""
        started = (it.pod for it in self._memory.containers.values() if it.ready_at_s < math.inf)
        return frozenset(f"{pod.namespace}/{pod.name}" for pod in started)

    def remember(self) -> KubeletMemory:
        """Return a copy of its memory, for a snapshot of its machine."""
        return deepcopy(self._memory)

    def recall(self, memory: KubeletMemory) -> None:
        """Run on with the memory of a snapshot, as if nothing had happened since."""
        self._memory = deepcopy(memory)
        self._memory.asleep = True

    def stop(self) -> None:
        """``systemctl stop kubelet``: its containers run on."""
        self._memory.stopped = True

    def start(self) -> None:
        """``systemctl start kubelet``: reads its pods again and ends what is not among them."""
        self._memory.stopped, self._memory.started = False, True

    def tick(self, now_s: float) -> float:
        """Do what is due.

        Args:
            now_s: Seconds, on any clock that only grows.

        Returns:
            When it wants to be ticked again at the latest; infinity: only when something happens to it.
        """
        if not self._machine.running():
            self._memory.asleep = True
            return math.inf
        if self._machine.boot() != self._memory.boot_id:
            self._boot(now_s)
        if self._memory.asleep:
            self._memory.asleep = False
            self._resume(max(now_s, self._memory.up_at_s))
        if self._memory.stopped:
            return math.inf
        if now_s < self._memory.up_at_s:
            return self._memory.up_at_s
        if self._memory.started:
            self._start_process(now_s, self._first_status_s())
        self._end_due(now_s)
        try:
            self._talk(now_s)
        except ClusterUnreachable:
            self._memory.cut_off = True
        return self._next_s(now_s)

    def _boot(self, now_s: float) -> None:
        """Forget everything. The first boot of all is over already when the world starts."""
        first = not self._memory.boot_id
        up_at_s = now_s if first else now_s + self._timing.boot_s
        self._memory = KubeletMemory(self._machine.boot(), up_at_s)
        self._start_process(up_at_s, 0.0 if first else self._first_status_s())

    def _first_status_s(self) -> float:
        if self._chance.random() < self._timing.late_share:
            return self._timing.late_s
        return self._chance.uniform(*self._timing.status_s)

    def _start_process(self, at_s: float, status_s: float) -> None:
        """Renew the lease first; the status comes once the runtime is up, and no pod is handled before.

        Source: kubernetes pkg/kubelet/kubelet.go, syncLoop, which skips pods while runtimeErrors has one.
        """
        self._memory.started = False
        self._memory.lease_at_s, self._memory.expires_s = at_s, 0.0
        self._memory.status_at_s = self._memory.news_at_s = at_s + status_s

    def _resume(self, now_s: float) -> None:
        """Renew the lease at once. The status follows at its next look; the news comes with the watches."""
        least_s = self._timing.status_s[0]
        self._memory.lease_at_s = now_s
        self._memory.status_at_s = now_s + self._chance.uniform(least_s, self._timing.renew_s)
        self._lose_watches(now_s)

    def _lose_watches(self, now_s: float) -> None:
        self._memory.news_at_s = max(self._memory.news_at_s, now_s + self._up_to(self._timing.relist_s))

    def _talk(self, now_s: float) -> None:
        if now_s >= self._memory.lease_at_s:
            self._renew(now_s)
        if now_s >= self._memory.status_at_s:
            self._report(now_s)
        if now_s >= self._memory.news_at_s:
            self._memory.pods = {pod.uid: pod for pod in self._api.pods()}
            self._start_new()
        self._run_containers(now_s)

    def _renew(self, now_s: float) -> None:
        self._memory.lease_at_s = now_s + self._timing.renew_s
        self._api.renew_lease()
        self._note_answer(now_s)

    def _note_answer(self, now_s: float) -> None:
        """The API answers: after a time without it, the watches have to come back first."""
        if self._memory.cut_off:
            self._memory.cut_off = False
            self._lose_watches(now_s)

    def _report(self, now_s: float) -> None:
        self._memory.status_at_s = now_s + self._timing.renew_s
        self._memory.expires_s -= self._timing.renew_s
        volumes = (container.pod.volume for container in self._memory.containers.values())
        in_use = frozenset(volume for volume in volumes if volume is not None)
        if self._api.report_node(NodeReport(self._memory.boot_id, in_use, self._memory.expires_s <= 0)):
            self._memory.expires_s = self._timing.report_s
        self._memory.in_use = in_use
        self._note_answer(now_s)

    def _start_new(self) -> None:
        for uid, pod in self._memory.pods.items():
            if uid not in self._memory.containers and not pod.deleted and not pod.over:
                self._memory.containers[uid] = _Container(pod)

    def _run_containers(self, now_s: float) -> None:
        for uid, container in self._memory.containers.items():
            listed = self._memory.pods.get(uid)
            if listed is None or listed.deleted or listed.over:
                if container.ends_at_s == math.inf:
                    container.ends_at_s = now_s + self._ending_s(container)
            elif container.ready_at_s == math.inf:
                self._try_start(container, now_s)
            elif not listed.ready and now_s >= container.ready_at_s:
                with suppress(*OVERTAKEN):
                    self._api.report_running(listed)
        self._end_due(now_s)
        self._confirm_ends()

    def _try_start(self, container: _Container, now_s: float) -> None:
        volume = container.pod.volume
        if volume is not None:
            if volume not in self._memory.in_use or volume not in self._api.attached():
                return
            self._machine.mount(volume)
            container.mounted = True
        container.ready_at_s = now_s + self._chance.uniform(*self._timing.start_s)

    def _ending_s(self, container: _Container) -> float:
        if container.ready_at_s == math.inf:
            return 0.0
        return min(max(container.pod.grace_s, self._timing.least_s), self._up_to(self._timing.end_s))

    def _up_to(self, longest_s: float) -> float:
        return self._chance.uniform(longest_s / 10, longest_s)

    def _end_due(self, now_s: float) -> None:
        for uid, container in list(self._memory.containers.items()):
            if now_s >= container.ends_at_s:
                del self._memory.containers[uid]
                if container.mounted and container.pod.volume is not None:
                    self._machine.unmount(container.pod.volume)

    def _confirm_ends(self) -> None:
        for uid, pod in self._memory.pods.items():
            if pod.deleted and uid not in self._memory.containers:
                with suppress(*OVERTAKEN):
                    self._api.confirm_deletion(pod)

    def _next_s(self, now_s: float) -> float:
        due = [self._memory.lease_at_s, self._memory.status_at_s]
        if self._memory.news_at_s > now_s:
            due.append(self._memory.news_at_s)
        for container in self._memory.containers.values():
            at_s = container.ends_at_s if container.ends_at_s != math.inf else container.ready_at_s
            if now_s < at_s < math.inf:
                due.append(at_s)
        return min(due)
