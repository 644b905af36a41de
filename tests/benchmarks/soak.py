"""Whether time makes an agent larger: a simulated day of a cluster of 1,000 nodes, with 50 incidents.

    ./dev bench soak [--nodes 1000] [--poll-s 10] [--hours 24]

Scaled: with the default `poll_s` of 2 a day has 43,200 passes, which would take half an hour here. So the
agent polls every 10 s, and by `--nodes 100 --poll-s 2` a smaller cluster has all of them. What happens at a
hypervisor still wakes it, and during an incident it comes again as often as it wants. Guests die, are
paused, saved or cut off in turn, and come back after ten minutes; then the API or the hypervisor is away for
a minute.

What the agent holds is counted object by object, so that the simulated world around it does not count; the
process as a whole is told beside it.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import FunctionType, ModuleType
from typing import Any

from fencer.runtime.reconcile import Agent
from fencer.runtime.world import World
from fencer.simulation.assembly import Shape
from fencer.simulation.crew import StagePorts
from fencer.simulation.faults import Fault, What
from fencer.simulation.incidents import BACK, CUT_OFF, DEATHS
from fencer.simulation.scenario import ARMED, Scenario
from fencer.simulation.stage import Stage
from fencer.simulation.workloads import StatefulSet
from tests.benchmarks.measure import Row, cpu, files_of, machine, resident_mib, table, threads_of

NODES, POLL_S, HOURS, INCIDENTS = 1_000, 10.0, 24.0, 50
PARTS = 6
DOWN_S = 600.0
"""How long a guest is away."""
TROUBLES = {What.UNREACHABLE: What.TRUTHFUL, What.API_DOWN: What.API_UP, What.HANG: What.TRUTHFUL}
TROUBLE_S = 60.0
MOST_GROWTH = 1.05
"""From the first sixth to the end: dictionaries grow by leaps, and a node more or less may be remembered."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One moment.

    Attributes:
        hour: Of the story.
        passes: How many there were so far.
        held_kb: What the agent holds.
        objects: How many objects that is.
        resident_mib: The whole process, the simulated world included.
        threads: Of the process.
        files: File descriptors of the process.
    """

    hour: float
    passes: int
    held_kb: float
    objects: int
    resident_mib: float
    threads: int
    files: int


class _Counted(Agent):
    """The agent, with a count of its passes."""

    passes = 0

    def tick(self, *args: Any) -> Any:
        self.passes += 1
        return super().tick(*args)


@dataclass(frozen=True, slots=True)
class Day:
    """A day that was played.

    Attributes:
        nodes: How many.
        poll_s: Between two passes, while nothing happens.
        hours: Its length.
        incidents: How many.
        fences: How many nodes were fenced for them.
        cpu_s: What playing it took, in CPU seconds.
        samples: Of its beginning, after each sixth, and of its end.
    """

    nodes: int
    poll_s: float
    hours: float
    incidents: int
    fences: int
    cpu_s: float
    samples: Sequence[Sample]


def rows(day: Day) -> list[Row]:
    """Judge whether the agent stayed as large as it was after the first sixth."""
    _, first, *_, last = day.samples
    return [
        Row(
            f"{day.hours:g} h with {day.nodes:,} nodes and {day.incidents} incidents: what the agent holds",
            f"≤ {MOST_GROWTH:.2f} × the first sixth",
            f"{last.held_kb / first.held_kb:.3f} × ({first.held_kb:,.0f} → {last.held_kb:,.0f} kB)",
            last.held_kb <= MOST_GROWTH * first.held_kb,
            f"`poll_s: {day.poll_s:g}`, {last.passes:,} passes, {day.fences} fences; {day.cpu_s:.0f} s "
            "of CPU, the simulated world included",
        ),
        Row(
            "its threads and file descriptors",
            "as many",
            f"{last.threads - first.threads:+d}, {last.files - first.files:+d}",
            (last.threads, last.files) == (first.threads, first.files),
            "of the process, whose calls the simulation makes in line; for a real process see `idle_scale` "
            "and `many_deaths`",
        ),
    ]


def play(nodes: int = NODES, poll_s: float = POLL_S, hours: float = HOURS, incidents: int = INCIDENTS) -> Day:
    """Play a day.

    Args:
        nodes: How many.
        poll_s: The policy's; deadlines that have to be longer than two polls are.
        hours: How long the day is.
        incidents: How many, one after the other.
    """
    agents: list[_Counted] = []

    def build(ports: StagePorts) -> Agent:
        world = World(ports.cluster, ports.hypervisors, ports.asker, ports.clock, ports.reporter)
        agents.append(_Counted(world, ports.policy, ports.rules))
        return agents[-1]

    with cpu() as cost:
        stage = Stage(_story(nodes, poll_s, hours, incidents), build, seed=1)
        samples: list[Sample] = []
        clock, began_s = stage.simulation.clock, stage.simulation.timeline.began_s
        for part in range(PARTS + 1):
            # The first one after two passes, the last one before the end.
            after_s = min(max(2 * poll_s, part * hours * 3600 / PARTS), hours * 3600 - 1)
            clock.at(began_s + after_s, lambda: samples.append(_sample(agents[0], clock.now_s() - began_s)))
        for _ in stage.play():
            pass
    fences = sum(one.fenced for one in stage.summary().incidents)
    return Day(nodes, poll_s, hours, incidents, fences, cost.cpu_s, samples)


def held(root: object, without: Iterable[object] = ()) -> tuple[int, int]:
    """Return the bytes, and the number, of all objects that something leads to, but by way of others."""
    seen = set(map(id, without))
    size = count = 0
    left = [root]
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, type | ModuleType | FunctionType):
            continue
        seen.add(id(one))
        size, count = size + sys.getsizeof(one), count + 1
        left.extend(gc.get_referents(one))
    return size, count


def _sample(agent: _Counted, after_s: float) -> Sample:
    gc.collect()
    world: World = agent._world
    ports = (world, world.cluster, world.asker, world.clock, world.reporter, *world.hypervisors.values())
    size, objects = held(agent, ports)
    return Sample(
        after_s / 3600, agent.passes, size / 1000, objects, resident_mib(), threads_of(), files_of()
    )


def _story(nodes: int, poll_s: float, hours: float, incidents: int) -> Scenario:
    names = tuple(f"k8s-{number}" for number in range(nodes))
    return Scenario(
        name="soak",
        title="A day",
        story=(),
        script=tuple(sorted(_script(names, hours, incidents), key=lambda fault: fault.at_s)),
        fenced=(),
        refused=None,
        duration_s=hours * 3600,
        workloads=lambda: (StatefulSet("db", nodes),),
        shape=Shape(nodes=names, hosts=tuple(f"pve{number}" for number in range(min(nodes, 40)))),
        policy=replace(
            ARMED,
            poll_s=poll_s,
            evidence_max_age_s=max(ARMED.evidence_max_age_s, 2 * poll_s),
            confirm_s=max(ARMED.confirm_s, 2 * poll_s),
        ),
    )


def _script(names: Sequence[str], hours: float, incidents: int) -> Iterator[Fault]:
    every_s = hours * 3600 / incidents
    kinds, troubles = (*DEATHS, *CUT_OFF), tuple(TROUBLES)
    for number in range(incidents):
        began_s, victim = every_s * (number + 0.25), names[(17 + number * 7919) % len(names)]
        kind, trouble = kinds[number % len(kinds)], troubles[number % len(troubles)]
        returns = (CUT_OFF[kind],) if kind in CUT_OFF else BACK.get(kind, (What.START,))
        yield Fault(began_s, kind, victim, death=True)
        yield from (Fault(began_s + DOWN_S + turn, what, victim) for turn, what in enumerate(returns))
        yield Fault(began_s + 2 * DOWN_S, trouble)
        yield Fault(began_s + 2 * DOWN_S + TROUBLE_S, TROUBLES[trouble])


def growth(samples: Sequence[Sample]) -> str:
    """Return the samples as a Markdown table."""
    lines = [
        "| hour | passes | the agent holds | objects | process | threads | files |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.hour:.1f} | {one.passes:,} | {one.held_kb:,.0f} kB | {one.objects:,} "
        f"| {one.resident_mib:.0f} MiB | {one.threads} | {one.files} |"
        for one in samples
    ]
    return "\n".join(lines)


def main() -> None:
    """Play, and print how it went."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--poll-s", type=float, default=POLL_S, help="seconds between two passes")
    parser.add_argument("--hours", type=float, default=HOURS)
    parser.add_argument("--incidents", type=int, default=INCIDENTS)
    asked = parser.parse_args()
    day = play(asked.nodes, asked.poll_s, asked.hours, asked.incidents)
    print(f"{table(rows(day))}\n\n{growth(day.samples)}\n\n{machine()}")  # noqa: T201 - this is a command


if __name__ == "__main__":
    main()
