"""What ten agents on one machine cost beside one: a process for each fenced cluster.

./dev bench many_clusters

All watch the same real API server, as if it were that many clusters: an agent does not know the difference, and
what the API server itself takes is not counted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.idle_agent import NODES, SECONDS, SETTLED_S, renewing, watching
from tests.benchmarks.lab import control_plane, make_nodes, remove_nodes
from tests.benchmarks.measure import Row, cpu_of, program, proportional_mib
from tests.support.controlplane import ControlPlane

AGENTS = 10
MOST = 1.1
"""What each of ten may cost, as a share of one alone: nothing is shared but a few pages, and nothing contended."""


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
    numbers = range(nodes)
    make_nodes(api, numbers, pods=0)
    with renewing(api, numbers):
        one = _cost(api, 1, numbers, seconds)
        all_of_them = _cost(api, agents, numbers, seconds)
    remove_nodes(api, numbers)
    note = f"`fencer watch`, {nodes} healthy nodes each, over {seconds:g} s"
    return [
        _row(f"{agents} idle agents beside one: memory (PSS)", one.mib, all_of_them.mib, agents, "MiB", note),
        _row(
            f"{agents} idle agents beside one: CPU",
            one.share * 100,
            all_of_them.share * 100,
            agents,
            "% of a core",
            note,
        ),
    ]


def _row(what: str, one: float, several: float, agents: int, unit: str, note: str) -> Row:
    ratio = several / one if one else 0.0
    measured = f"{several:.1f} {unit} beside {one:.1f}: {ratio:.1f} ×"
    return Row(what, f"≤ {MOST * agents:g} ×", measured, ratio <= MOST * agents, note)


def _cost(api: ControlPlane, agents: int, numbers: Sequence[int], seconds: float) -> Cost:
    with TemporaryDirectory() as name, ExitStack() as running:
        pids = []
        for number in range(agents):
            folder = Path(name) / str(number)
            folder.mkdir()
            web = {"web": {"listen": f"127.0.0.{number + 2}:9721"}}
            pids.append(running.enter_context(watching(folder, api, numbers, web)).pid)
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
