"""What a node and its lease show of a kubelet, over an API in memory and a real one; held against real boots.

A test module runs the contract by subclassing `KubeletContract` and giving it two fixtures::

    class TestMemoryKubelet(KubeletContract):
        boots = 200
        @pytest.fixture
        def api(self): ...          # the implementation, of the type KubeletApi
        @pytest.fixture
        def scene(self): ...        # a Scene of the same node

The kubelet is that of the simulation and of the end-to-end tests. The test rules its clock, so no test waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Protocol

import pytest

from fencer.simulation.kubelet import Kubelet, KubeletTiming
from fencer.simulation.machine import KubeletApi

MEASURED_S = (0.22, 0.23, 0.25, 0.33, 0.40, 0.42, 0.44, 0.88)
"""From the first lease renewal after a cold boot to the report of the new boot id, in eight boots.

Measured on 29 November 2026: Kubernetes 1.36.2, kubelet with the systemd cgroup driver, containerd 1.6.20,
runc 1.1.5, systemd 252. `fencer/simulation/kubelet.py` has the reason.
"""
TIMING = KubeletTiming()


@dataclass(frozen=True, slots=True)
class Seen:
    """A node and its lease at one moment; the versions change with each write."""

    boot_id: str
    ready: bool | None
    node_version: int
    lease_version: int


class Scene(Protocol):
    """Looks at the node behind the kubelet's back."""

    def advance(self, seconds: float) -> None:
        """Let the API server's clock pass, where the test rules it."""

    def look(self) -> Seen:
        """Return what the API shows now."""

    def mark_unknown(self) -> None:
        """Set Ready to Unknown, as a controller does while the kubelet is silent."""


class ColdMachine:
    """A machine without volumes that a test boots and pauses."""

    def __init__(self) -> None:
        self.up, self.boots = True, 1

    def running(self) -> bool:
        """Whether its processors run."""
        return self.up

    def boot(self) -> str:
        """Return the id of the present boot."""
        return f"boot-{self.boots}"

    def mount(self, volume: str) -> None:
        """Refuse: no pod here has a volume."""
        raise AssertionError(volume)

    def unmount(self, volume: str) -> None:
        """Refuse: no pod here has a volume."""
        raise AssertionError(volume)


class Bench:
    """A kubelet whose time the test rules."""

    def __init__(self, api: KubeletApi, scene: Scene) -> None:
        self.scene, self.machine, self.now_s = scene, ColdMachine(), 0.0
        self._kubelet = Kubelet(api, self.machine, Random(1), TIMING)  # noqa: S311 - repeatable on purpose

    def changes(self, seconds: float) -> Iterator[tuple[float, Seen, Seen]]:
        """Run for so long; return each moment that changed something, with what the API showed before it."""
        end_s, before = self.now_s + seconds, self.scene.look()
        while True:
            next_s = self._kubelet.tick(self.now_s)
            after = self.scene.look()
            if after != before:
                yield self.now_s, before, after
                before = after
            step_s = min(next_s, end_s) - self.now_s
            self.scene.advance(step_s)
            self.now_s += step_s
            if next_s > end_s:
                return

    def run(self, seconds: float) -> list[tuple[float, Seen, Seen]]:
        """Run for so long."""
        return list(self.changes(seconds))

    def boot(self) -> tuple[float, float]:
        """Boot cold; return when the lease was first renewed, and when the new boot id was first there."""
        self.machine.boots += 1
        found = self.run(TIMING.boot_s + TIMING.late_s + 1.0)
        renewed = [at_s for at_s, before, after in found if after.lease_version > before.lease_version]
        reported = [at_s for at_s, _, after in found if after.boot_id == self.machine.boot()]
        return renewed[0], reported[0]


class KubeletContract:
    """The contract. Subclasses give the fixtures `api` and `scene`."""

    boots = 200
    """How many cold boots it takes."""

    @pytest.fixture
    def bench(self, api: KubeletApi, scene: Scene) -> Bench:
        """A kubelet that has reported its first boot."""
        bench = Bench(api, scene)
        bench.run(5.0)
        assert scene.look().boot_id == "boot-1"
        return bench

    def test_a_node_comes_with_the_first_report_and_its_lease_at_once(self, bench):
        seen = bench.scene.look()
        assert seen.ready
        assert seen.lease_version

    def test_the_lease_is_renewed_before_the_new_boot_is_reported(self, bench):
        for _ in range(self.boots):
            renewed_s, reported_s = bench.boot()
            delay_s = reported_s - renewed_s
            shortest_s, longest_s = TIMING.status_s
            assert shortest_s <= delay_s <= longest_s or delay_s == pytest.approx(TIMING.late_s)

    def test_a_resumed_kubelet_renews_at_once_and_reports_within_a_period(self, bench, scene):
        for _ in range(5):
            bench.machine.up = False
            bench.run(60)
            scene.mark_unknown()
            bench.machine.up = True
            back_s, boot_id = bench.now_s, scene.look().boot_id
            (first_s, before, after), *others = bench.run(TIMING.renew_s)
            assert first_s == back_s
            assert after.lease_version > before.lease_version
            assert (after.ready, after.node_version) == (None, before.node_version)
            [reported_s] = [at_s for at_s, before, after in others if after.ready and not before.ready]
            assert TIMING.status_s[0] <= reported_s - back_s <= TIMING.renew_s
            assert scene.look().boot_id == boot_id

    def test_a_lease_is_renewed_each_period_and_an_unchanged_status_written_each_five_minutes(self, bench):
        found = bench.run(2 * TIMING.report_s)
        renewed = [at_s for at_s, before, after in found if after.lease_version > before.lease_version]
        written = [at_s for at_s, before, after in found if after.node_version > before.node_version]
        assert len(renewed) == 2 * TIMING.report_s / TIMING.renew_s
        assert len(written) == 2
        assert written[1] - written[0] == pytest.approx(TIMING.report_s)
