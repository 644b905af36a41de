"""Many nodes die at once: how long until the last is fenced and cleared, beside a single death.

    ./dev bench many_deaths [--nodes 40 --deaths 15] [--patience-s 300]

A real API server, nodes of real size with heartbeats, pods and an attached volume each; ``fencer watch`` as a
process by the quickest recipe, over a hypervisor that is a switch (`switched_fencer`) and tells of a death by
an event. No controllers: nobody but fencer does anything. What became of whom is seen by watches of the
benchmark's own; requests are counted by the API server's audit log. In the end a bare client with 8
connections makes the same writes for as many living nodes: quicker than that the API server is not.
"""

from __future__ import annotations

import argparse
import json
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.benchmarks import fleet
from tests.benchmarks.bare import BareClient, Server, connected
from tests.benchmarks.heartbeats import beating, make_nodes, remove_nodes
from tests.benchmarks.lab import control_plane, seconds_of, through, watching
from tests.benchmarks.measure import (
    Row,
    cpu_of,
    files_of,
    machine,
    resident_mib,
    table,
    threads_of,
)
from tests.benchmarks.talker import Talker
from tests.controlplane.binaries import API_SERVER
from tests.controlplane.flags import COUNTED
from tests.support import LateError, wait_until
from tests.support.backstage import NODES, PODS
from tests.support.controlplane import ControlPlane

SIZES = ((40, 15), (1_000, 200))
"""Nodes, and how many of them die at once."""
SINGLES = 3
"""Deaths one after the other, before: the median of them is a single death."""
PODS_EACH = 3
PATIENCE_S = 300.0
SETTLED_S = 15.0
FEW = 50
"""Up to so many deaths at once, the goal counts in single deaths; beyond, it is the API server's limit."""
LAST_GONE_S = 20.0
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


@dataclass(slots=True)
class Deaths:
    """What became of some nodes that died at once; seconds since their death.

    Attributes:
        nodes: Their numbers.
        tainted_s: When each was tainted, in order.
        gone_s: When the last pod of each was gone, in order.
        asked: What fencer asked of the API server until then, by verb and resource.
        took_s: How long the API server took for each of these, all together.
        cpu_s: fencer's CPU seconds until then.
        api_cpu_s: The API server's.
    """

    nodes: int
    tainted_s: list[float] = field(default_factory=list)
    gone_s: list[float] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    took_s: dict[str, float] = field(default_factory=dict)
    cpu_s: float = 0.0
    api_cpu_s: float = 0.0

    @property
    def last_gone_s(self) -> float:
        """When the last pod of all was gone; infinity: not while we looked."""
        return self.gone_s[-1] if len(self.gone_s) == self.nodes else float("inf")

    @property
    def requests_each(self) -> float:
        """Requests for each death."""
        return sum(self.asked.values()) / self.nodes


@dataclass(frozen=True, slots=True)
class Measured:
    """One run.

    Attributes:
        nodes: How many there were.
        singles: Deaths one after the other.
        many: Those at once.
        floor_s: What the same writes take a bare client.
        floor_cpu_s: The API server's CPU seconds for them.
        grown: fencer's memory in MiB, threads and file descriptors, before all deaths and after them.
    """

    nodes: int
    singles: Sequence[Deaths]
    many: Deaths
    floor_s: float
    floor_cpu_s: float
    grown: tuple[tuple[float, int, int], tuple[float, int, int]]


def run(
    api: ControlPlane,
    nodes: int,
    deaths: int,
    *,
    patience_s: float = PATIENCE_S,
    singles: int = SINGLES,
    settled_s: float = SETTLED_S,
    sections: Mapping[str, Any] | None = None,
) -> Measured:
    """Measure.

    Args:
        api: Without controllers.
        nodes: How many.
        deaths: How many of them die at once.
        patience_s: How long to wait for the last pod.
        singles: How many die before, one after the other.
        settled_s: How long nothing happens before that.
        sections: What else fencer's configuration says.
    """
    make_nodes(api, range(nodes), pods=PODS_EACH, attachments=True)
    policy = {"require_not_ready": False, "lease_silent_s": 0, "confirm_s": 0, "max_fenced": nodes}
    try:
        with (
            TemporaryDirectory() as name,
            beating(api, nodes) as beats,
            seeing(api) as seen,
            watching(
                Path(name), through(api, api.url, Path(name), COUNTED[0]), nodes, policy, sections
            ) as agent,
        ):
            threading.Event().wait(settled_s)
            before = _size(agent)
            scene = Scene(api, beats, agent, seen)
            alone = [scene.let_die([number], patience_s) for number in range(singles)]
            many = scene.let_die(range(singles, singles + deaths), patience_s)
            after = _size(agent)
        living = range(singles + deaths, min(nodes, singles + 2 * deaths))
        used_s = cpu_of(api.pid(API_SERVER))
        floor_s = floor(api, living) * deaths / len(living)
        floor_cpu_s = (cpu_of(api.pid(API_SERVER)) - used_s) * deaths / len(living)
    finally:
        remove_nodes(api, range(nodes))
    return Measured(nodes, alone, many, floor_s, floor_cpu_s, (before, after))


def _size(agent: Talker) -> tuple[float, int, int]:
    return resident_mib(agent.pid), threads_of(agent.pid), files_of(agent.pid)


class Seen:
    """When things were first seen, by `time.monotonic`.

    Attributes:
        tainted_s: Node → taint.
        gone_s: Pod → end.
    """

    def __init__(self) -> None:
        self.tainted_s: dict[str, float] = {}
        self.gone_s: dict[str, float] = {}

    def node(self, event: bytes) -> None:
        """Take in an event about a node."""
        if OUT_OF_SERVICE.encode() in event:
            self.tainted_s.setdefault(json.loads(event)["object"]["metadata"]["name"], time.monotonic())

    def pod(self, event: bytes) -> None:
        """Take in an event about a pod."""
        if event.startswith(b'{"type":"DELETED"'):
            self.gone_s[json.loads(event)["object"]["metadata"]["name"]] = time.monotonic()


@contextmanager
def seeing(api: ControlPlane) -> Iterator[Seen]:
    """Watch nodes and pods from now on."""
    seen, server = Seen(), Server.of(api)
    ways: list[tuple[str, Callable[[bytes], None]]] = [(NODES, seen.node), (PODS, seen.pod)]
    with ExitStack() as ending:
        for path, take in ways:
            client = BareClient(server)
            version = client.send("GET", f"{path}?limit=1")["metadata"]["resourceVersion"]

            def follow(
                client: BareClient = client,
                path: str = f"{path}?watch=1&resourceVersion={version}",
                take: Callable[[bytes], None] = take,
            ) -> None:
                for event in client.watch(path):
                    take(event)

            thread = threading.Thread(target=follow, daemon=True)
            thread.start()
            for what in (client.close, thread.join, client.end):  # the last one first
                ending.callback(what)
        yield seen


@dataclass(frozen=True, slots=True)
class Scene:
    """A cluster with a watching fencer, whose nodes can be killed."""

    api: ControlPlane
    beats: Talker
    agent: Talker
    seen: Seen

    def let_die(self, numbers: Sequence[int], patience_s: float) -> Deaths:
        """Cut the power of guests at once, and wait until their nodes have no pod any more."""
        names = [fleet.node_view(number).name for number in numbers]
        pods = {f"{name}-{pod}" for name in names for pod in range(PODS_EACH)}
        audited = len(self.api.audit_events())
        used = cpu_of(self.agent.pid), cpu_of(self.api.pid(API_SERVER))
        self.beats.ask(stop=list(numbers))
        died_s = time.monotonic()
        self.agent.ask(off=list(numbers))
        with suppress(LateError):  # those that came are told
            wait_until(lambda: pods <= self.seen.gone_s.keys(), "end of all pods", timeout_s=patience_s)
        found = Deaths(len(names))
        found.cpu_s = cpu_of(self.agent.pid) - used[0]
        found.api_cpu_s = cpu_of(self.api.pid(API_SERVER)) - used[1]
        threading.Event().wait(1.0)  # the audit log is written a little later
        for event in self.api.audit_events()[audited:]:
            if event["user"]["username"] == COUNTED[0] and event["stage"] == "ResponseComplete":
                asked = _asked(event)
                found.asked[asked] += 1
                found.took_s[asked] = found.took_s.get(asked, 0.0) + _took_s(event)
        gone = [
            max(self.seen.gone_s.get(f"{name}-{pod}", float("inf")) for pod in range(PODS_EACH))
            for name in names
        ]
        found.tainted_s = sorted(at_s - died_s for name in names if (at_s := self.seen.tainted_s.get(name)))
        found.gone_s = sorted(at_s - died_s for at_s in gone if at_s < float("inf"))
        return found


def _asked(event: dict[str, Any]) -> str:
    what = event.get("objectRef", {})
    parts = (what.get("resource", event["requestURI"]), what.get("subresource"))
    return f"{event['verb']} {'/'.join(part for part in parts if part)}"


def _took_s(event: dict[str, Any]) -> float:
    began, ended = (
        datetime.fromisoformat(event[name]) for name in ("requestReceivedTimestamp", "stageTimestamp")
    )
    return (ended - began).total_seconds()


def floor(api: ControlPlane, numbers: Sequence[int]) -> float:
    """Return the seconds that the same writes take a client that looks at nothing."""

    def fence(client: BareClient, number: int) -> None:
        name = fleet.node_view(number).name
        client.send("PATCH", f"{NODES}/{name}", {"metadata": {"annotations": {"example.com/mark": "mine"}}})
        taint = {"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}
        client.send("PATCH", f"{NODES}/{name}", {"spec": {"taints": [taint], "unschedulable": True}})
        for pod in range(PODS_EACH):
            path = f"{PODS}/{name}-{pod}"
            client.send("PATCH", f"{path}/status", {"status": {"phase": "Failed"}})
            client.send("DELETE", path, {"gracePeriodSeconds": 0})

    with connected(Server.of(api)) as for_each:
        return seconds_of(lambda: for_each(fence, numbers))


def rows(one: Measured) -> list[Row]:
    """Return what was measured, with the goals."""
    many, single_s = one.many, statistics.median(death.last_gone_s for death in one.singles)
    few = many.nodes <= FEW
    goal_s = 2 * single_s + 1 if few else max(LAST_GONE_S, one.floor_s)
    taint = statistics.median(death.tainted_s[0] for death in one.singles if death.tainted_s)
    what = f"{many.nodes} of {one.nodes:,} nodes die at once"
    (rss, threads, files), (rss_after, threads_after, files_after) = one.grown
    tainted = f"{len(many.tainted_s)} taints"
    if many.tainted_s:
        tainted += f" at {many.tainted_s[0]:.2f} … {many.tainted_s[-1]:.2f} s"
    return [
        Row(
            f"{what}: last pod gone",
            f"≤ {goal_s:.1f} s: {'2 × a single death + 1 s' if few else '20 s, or the API server’s limit'}",
            f"{many.last_gone_s:.1f} s"
            if many.last_gone_s < float("inf")
            else f"{len(many.gone_s)} nodes only",
            many.last_gone_s <= goal_s,
            f"{tainted}; a single one: taint {taint:.2f} s, last pod {single_s:.2f} s (median of "
            f"{len(one.singles)}), {_times(many.last_gone_s / single_s)}; {PODS_EACH} pods each",
        ),
        Row(
            f"{what}: the same writes by a bare client, 8 connections",
            "",
            f"{one.floor_s:.1f} s",
            None,
            f"for {one.floor_cpu_s:.1f} s of the API server's CPU, and {many.api_cpu_s:.1f} s with fencer; "
            f"fencer itself {many.cpu_s:.1f} s",
        ),
        Row(
            f"{what}: requests for each",
            "",
            f"{many.requests_each:.1f}",
            None,
            f"a single death: {statistics.median(death.requests_each for death in one.singles):.0f}; "
            + ", ".join(
                f"{count / many.nodes:.1f} {asked} of {many.took_s[asked] / count * 1000:.0f} ms"
                for asked, count in many.asked.most_common(10)
            ),
        ),
        Row(
            f"{what}: what is left of it in fencer",
            "",
            f"{rss_after - rss:+.0f} MiB, {threads_after - threads:+d} threads, "
            f"{files_after - files:+d} files",
            None,
            f"from {rss:.0f} MiB, {threads} threads, {files} file descriptors",
        ),
    ]


def _times(ratio: float) -> str:
    return f"so {ratio:.1f} times as long" if ratio < float("inf") else "and never for all of them"


def alone() -> list[Row]:
    """Measure at full size, each on a control plane of its own."""
    found: list[Row] = []
    for nodes, deaths in SIZES:
        with control_plane(controllers=False) as api:
            found += rows(run(api, nodes, deaths))
    return found


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, help="how many; without: 40 and 1,000")
    parser.add_argument("--deaths", type=int, default=15, help="how many of them die at once")
    parser.add_argument("--patience-s", type=float, default=PATIENCE_S, help="how long to wait for the last")
    asked = parser.parse_args()
    if asked.nodes is None:
        found = alone()
    else:
        with control_plane(controllers=False) as api:
            found = rows(run(api, asked.nodes, asked.deaths, patience_s=asked.patience_s))
    print(f"{table(found)}\n\n{machine()}")  # noqa: T201 - this is a command


if __name__ == "__main__":
    main()
