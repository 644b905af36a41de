"""What ``fencer watch`` costs while nothing happens, from 10 nodes to 5,000, on a real API server.

    ./dev bench idle_scale [--sizes 10 100 1000 5000] [--seconds 60] [--plot FILE]

Nodes have their real size, 19 kB, and their heartbeats come from a process of its own (`heartbeats`). fencer
has its default settings and a hypervisor that costs next to nothing (`switched_fencer`). All bytes that it
receives from the API server are counted on their way. Prints the goals, and how the costs grow.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from tests.benchmarks.counting_proxy import counted
from tests.benchmarks.heartbeats import beating, make_nodes, remove_nodes
from tests.benchmarks.lab import control_plane, through, watching
from tests.benchmarks.measure import (
    Row,
    cpu_of,
    files_of,
    machine,
    resident_mib,
    table,
    threads_of,
)
from tests.benchmarks.plot import Line, Panel, lines
from tests.controlplane.binaries import API_SERVER, ETCD
from tests.support.controlplane import ControlPlane

SIZES = (10, 100, 1_000, 5_000)
SECONDS = 60.0
SETTLED_S = 40.0
"""After the first pass: by then every lease has been renewed twice, and every binding is proven."""
KB = 1_000


@dataclass(frozen=True, slots=True)
class Goal:
    """What is asked for at one size; None: nothing.

    Attributes:
        cpu: Share of a core.
        received: Bytes a second from the API server.
        resident_mib: Memory in MiB.
    """

    cpu: float | None
    received: float | None
    resident_mib: float


GOALS = {
    100: Goal(None, None, 75),
    1_000: Goal(0.02, 100 * KB, 100 * 1e6 / (1 << 20)),
    5_000: Goal(0.10, 500 * KB, 150 * 1e6 / (1 << 20)),
}


@dataclass(frozen=True, slots=True)
class Idle:
    """What was measured at one size, over a window in which nothing happened. Shares are of one core.

    Attributes:
        nodes: How many.
        seconds: The window.
        cpu: fencer's share.
        sweeps_cpu: The stand-in hypervisor's share within that.
        pass_s: Between two passes.
        received: Bytes a second from the API server.
        resident_mib: fencer's memory at the end of the window.
        grown_mib: How much more that is than at its beginning.
        peak_mib: The most there ever was of it, mostly while it started.
        threads: fencer's.
        files: Its file descriptors.
        api_cpu: The API server's share.
        api_cpu_without: The same before fencer was started.
        etcd_cpu: etcd's share.
        beats_cpu: The share of the process that sends the heartbeats; it is nobody's.
        late_s: The most that a heartbeat came late: more than a moment, and the machine is at its limit.
    """

    nodes: int
    seconds: float
    cpu: float
    sweeps_cpu: float
    pass_s: float
    received: float
    resident_mib: float
    grown_mib: float
    peak_mib: float
    threads: int
    files: int
    api_cpu: float
    api_cpu_without: float
    etcd_cpu: float
    beats_cpu: float
    late_s: float


class Costs(Protocol):
    """What the picture shows of one size; see `Idle`."""

    nodes: int
    cpu: float
    received: float
    resident_mib: float


def run(api: ControlPlane, sizes: Sequence[int] = SIZES, seconds: float = SECONDS) -> list[Idle]:
    """Measure one size after the other; each adds nodes to those that are there.

    Args:
        api: Without controllers.
        sizes: Numbers of nodes, each larger than the one before.
        seconds: For how long at each.
    """
    try:
        measured, made = [], 0
        for nodes in sizes:
            print(f"{nodes:,} nodes …", file=sys.stderr, flush=True)  # noqa: T201 - it takes minutes
            make_nodes(api, range(made, nodes))
            made = nodes
            measured.append(idle(api, nodes, seconds))
    finally:
        remove_nodes(api, range(made))
    return measured


def idle(api: ControlPlane, nodes: int, seconds: float) -> Idle:
    """Measure with so many nodes, which are there."""
    wait = threading.Event().wait
    settled_s = min(SETTLED_S, seconds)
    pids = {API_SERVER: api.pid(API_SERVER), ETCD: api.pid(ETCD)}
    with TemporaryDirectory() as name, beating(api, nodes) as beats, counted(api.url) as proxy:
        wait(settled_s)
        before, began_s = cpu_of(pids[API_SERVER]), time.monotonic()
        wait(seconds / 2)
        api_cpu_without = (cpu_of(pids[API_SERVER]) - before) / (time.monotonic() - began_s)
        with watching(Path(name), through(api, proxy.url, Path(name)), nodes) as agent:
            wait(settled_s)
            pids |= {"fencer": agent.pid, "beats": beats.pid}
            used = {what: cpu_of(pid) for what, pid in pids.items()}
            swept, received, began_s = agent.ask(tell=True), proxy.received, time.monotonic()
            beats.ask(tell=True)
            small_mib = resident_mib(agent.pid)
            wait(seconds)
            passed_s = time.monotonic() - began_s
            received = proxy.received - received
            share = {what: (cpu_of(pid) - used[what]) / passed_s for what, pid in pids.items()}
            after, beaten = agent.ask(tell=True), beats.ask(tell=True)
            return Idle(
                nodes,
                passed_s,
                cpu=share["fencer"],
                sweeps_cpu=(after["cpu_s"] - swept["cpu_s"]) / passed_s,
                pass_s=passed_s / max(1, after["sweeps"] - swept["sweeps"]),
                received=received / passed_s,
                resident_mib=resident_mib(agent.pid),
                grown_mib=resident_mib(agent.pid) - small_mib,
                peak_mib=resident_mib(agent.pid, peak=True),
                threads=threads_of(agent.pid),
                files=files_of(agent.pid),
                api_cpu=share[API_SERVER],
                api_cpu_without=api_cpu_without,
                etcd_cpu=share[ETCD],
                beats_cpu=share["beats"],
                late_s=beaten["late_s"],
            )


def rows(measured: Sequence[Idle]) -> list[Row]:
    """Return the goals, as far as their sizes were measured."""
    return [row for one in measured if one.nodes in GOALS for row in _rows(one, GOALS[one.nodes])]


def _rows(one: Idle, goal: Goal) -> list[Row]:
    how = f"over {one.seconds:.0f} s, a pass every {one.pass_s:.1f} s"
    found = []
    if goal.cpu is not None and goal.received is not None:
        found = [
            Row(
                f"idle, {one.nodes:,} nodes: share of one core",
                f"≤ {goal.cpu:.0%}",
                f"{one.cpu:.1%}",
                one.cpu <= goal.cpu,
                f"{how}; {one.sweeps_cpu:.1%} of it the stand-in hypervisor; API server "
                f"{one.api_cpu_without:.0%} without fencer, {one.api_cpu:.0%} with it",
            ),
            Row(
                f"idle, {one.nodes:,} nodes: received from the API server",
                f"≤ {goal.received / KB:.0f} kB/s",
                f"{one.received / KB:,.1f} kB/s",
                one.received <= goal.received,
                "every byte, TLS included",
            ),
        ]
    return [
        *found,
        Row(
            f"idle, {one.nodes:,} nodes: resident memory",
            f"≤ {goal.resident_mib:.0f} MiB",
            f"{one.resident_mib:.0f} MiB",
            one.resident_mib <= goal.resident_mib,
            f"peak {one.peak_mib:.0f} MiB, {one.grown_mib:+.1f} MiB in the window; {one.threads} threads, "
            f"{one.files} file descriptors",
        ),
    ]


def growth(measured: Sequence[Idle]) -> str:
    """Return how the costs grow with the cluster, as a Markdown table."""
    lines = [
        "| nodes | CPU per minute | of a core | CPU per pass | pass every | received | memory (peak) "
        "| threads | files | API server without, with | etcd | heartbeats: of a core, late by |",
        f"|{'---|' * 12}",
    ]
    lines += [
        f"| {one.nodes:,} | {one.cpu * 60:.2f} s | {one.cpu:.1%} "
        f"| {one.cpu * one.pass_s * 1000:.0f} ms | {one.pass_s:.1f} s "
        f"| {one.received / KB:,.1f} kB/s | {one.resident_mib:.0f} ({one.peak_mib:.0f}) MiB "
        f"| {one.threads} | {one.files} | {one.api_cpu_without:.1%}, {one.api_cpu:.1%} "
        f"| {one.etcd_cpu:.1%} | {one.beats_cpu:.1%}, {one.late_s:.1f} s |"
        for one in measured
    ]
    return "\n".join(lines)


NAME = (
    "What fencer costs while nothing happens",
    "Three lines that grow with the number of nodes, and stay below their goals: fencer's CPU in seconds a "
    "minute, kB a second that it receives from the API server, and its memory in MiB. The numbers are in the "
    "table.",
)
"""Of the picture."""


def plot(measured: Sequence[Costs]) -> str:
    """Return the same as a picture: SVG."""
    by_title: dict[str, tuple[Callable[[Costs], float], Callable[[Goal], float | None]]] = {
        "CPU, s per minute": (lambda one: one.cpu * 60, lambda goal: goal.cpu and goal.cpu * 60),
        "received, kB/s": (lambda one: one.received / KB, lambda goal: goal.received and goal.received / KB),
        "memory, MiB": (lambda one: one.resident_mib, lambda goal: goal.resident_mib),
    }
    return lines(
        NAME,
        "nodes",
        [
            Panel(
                title,
                [Line("", [(one.nodes, max(told(one), 0.001)) for one in measured])],
                [(nodes, goal) for nodes, asked in GOALS.items() if (goal := asked_for(asked))],
            )
            for title, (told, asked_for) in by_title.items()
        ],
    )


def main() -> None:
    """Measure, and print goals and growth."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of nodes, growing")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long each is measured")
    parser.add_argument("--plot", type=Path, help="where to write the growth as SVG")
    asked = parser.parse_args()
    with control_plane(controllers=False) as api:
        measured = run(api, asked.sizes, asked.seconds)
    print(f"{table(rows(measured))}\n\n{growth(measured)}\n\n{machine()}")  # noqa: T201 - this is a command
    if asked.plot:
        asked.plot.write_text(plot(measured))


if __name__ == "__main__":
    main()
