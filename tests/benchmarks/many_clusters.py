"""What ten agents on one machine cost beside one: a process for each fenced cluster.

./dev bench many_clusters

All watch the same real API server, as if it were that many clusters: an agent does not know the difference,
and what the API server itself takes is not counted.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.heartbeats import beating, make_nodes, remove_nodes
from tests.benchmarks.lab import control_plane, watching
from tests.benchmarks.measure import Row, cpu_of, program, proportional_mib
from tests.support.controlplane import ControlPlane

AGENTS, NODES = 10, 100
SECONDS = 60.0
SETTLED_S = 40.0
"""After the first pass: by then every lease has been renewed twice, and every binding is proven."""
MOST = 1.1
"""What each of ten may cost, as a share of one alone: a few pages are shared, and nothing is contended."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What agents took together: MiB of memory (PSS), and the share of one core."""

    mib: float
    share: float


def run(api: ControlPlane, agents: int = AGENTS, nodes: int = NODES, seconds: float = SECONDS) -> list[Row]:
    """Measure one, then several at once.

    Args:
        api: Without controllers.
        agents: How many.
        nodes: Of each cluster, all healthy.
        seconds: For how long each time.
    """
    make_nodes(api, range(nodes))
    try:
        with beating(api, nodes):
            one = _cost(api.kubeconfig(), 1, nodes, seconds)
            several = _cost(api.kubeconfig(), agents, nodes, seconds)
    finally:
        remove_nodes(api, range(nodes))
    note = f"agents with default settings, {nodes} healthy nodes each, over {seconds:g} s"
    return [
        _row(f"{agents} idle agents beside one: memory (PSS)", one.mib, several.mib, agents, "MiB", note),
        _row(
            f"{agents} idle agents beside one: CPU",
            one.share * 100,
            several.share * 100,
            agents,
            "% of a core",
            note,
        ),
    ]


def _row(what: str, one: float, several: float, agents: int, unit: str, note: str) -> Row:
    ratio = several / one if one else 0.0
    measured = f"{several:.1f} {unit} beside {one:.1f}: {ratio:.1f} ×"
    return Row(what, f"≤ {MOST * agents:g} ×", measured, ratio <= MOST * agents, note)


def _cost(kubeconfig: Path, agents: int, nodes: int, seconds: float) -> Cost:
    with TemporaryDirectory() as name, ExitStack() as running:
        folders = [Path(name) / str(number) for number in range(agents)]
        for folder in folders:
            folder.mkdir()
        # A page each, as they would have; on loopback addresses of their own, so that one port does.
        pages = [{"web": {"listen": f"127.0.0.{number + 2}:9721"}} for number in range(agents)]
        started = [
            running.enter_context(watching(folder, kubeconfig, nodes, sections=page))
            for folder, page in zip(folders, pages, strict=True)
        ]
        pids = [agent.pid for agent in started]
        threading.Event().wait(min(SETTLED_S, seconds))
        before_s, began_s = sum(map(cpu_of, pids)), time.monotonic()
        threading.Event().wait(seconds)
        used_s, passed_s = sum(map(cpu_of, pids)) - before_s, time.monotonic() - began_s
        return Cost(sum(map(proportional_mib, pids)), used_s / passed_s)


def alone() -> list[Row]:
    """Measure at full size, on a control plane of its own."""
    with control_plane(controllers=False) as api:
        return run(api)


if __name__ == "__main__":
    program(__doc__, alone)
