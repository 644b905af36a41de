"""What one pass over a big fleet costs: CPU seconds, resident memory, and calls.

    ./dev bench pass_scale

Twice, each in a process of its own: over ports that hand out records, what core and runtime cost, and
through the Kubernetes adapter against an HTTP stand-in with nodes of real size, which is what an agent costs.
Nothing changes meanwhile but leases; `idle_scale` measures on a real API server, where statuses are written.
"""

from __future__ import annotations

import base64
import json
import statistics
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qs, urlsplit

from fencer.core.model import Verdict
from fencer.core.policy import Mode, Policy
from fencer.hypervisors.proxmox.parse import read_listing
from fencer.runtime.footprint import trim
from fencer.runtime.reconcile import Agent
from fencer.runtime.world import World
from tests.benchmarks import fleet
from tests.benchmarks.fleet import Time
from tests.benchmarks.measure import Row, cpu, program, resident_mib
from tests.support import PATIENCE_S

NODES, GUESTS = 5_000, 10_000
PASSES = 16
"""Until every binding is proven, and some more."""
SETTLED = 4
"""So many passes at the end are those of an agent that knows all nodes."""
CPU_S, RSS_MIB = 3.0, 150.0
PAGE = 500


@dataclass(frozen=True, slots=True)
class Told:
    """What the measured process tells.

    Attributes:
        first_s: CPU seconds of the first pass.
        dearest_s: CPU seconds of the dearest of the others.
        settled_s: CPU seconds of the median of the last ones.
        rss_mib: The most resident memory there ever was.
        healthy: Nodes that were judged healthy in the last pass.
    """

    first_s: float
    dearest_s: float
    settled_s: float
    rss_mib: float
    healthy: int


def agent(connect: Callable[[Time], Any], guests: int, passes: int) -> Told:
    """Run an agent's passes over a cluster, and tell what they cost."""
    clock = Time()
    cluster, hypervisor = connect(clock), fleet.RecordHypervisor(guests, clock)
    hypervisor.sweep()
    world = World(cluster, {fleet.ENDPOINT: hypervisor}, fleet.Direct(), clock, fleet.Silent())  # type: ignore[dict-item]  # as far as it is needed
    watching = Agent(world, Policy(mode=Mode.ARMED))
    trim()
    costs, healthy = [], 0
    for _ in range(passes):
        with cpu() as cost:
            judged = watching.tick().judged.values()
        costs.append(cost.cpu_s)
        healthy = sum(item.decision.verdict is Verdict.HEALTHY for item in judged)
        del judged  # as the agent forgets it
        clock.wait(fleet.POLL_S)
    settled_s = statistics.median(costs[-SETTLED:])
    return Told(costs[0], max(costs[1:]), settled_s, resident_mib(peak=True), healthy)


def agent_over_records(nodes: int, guests: int, passes: int) -> Told:
    """Measure core and runtime alone."""
    return agent(lambda clock: fleet.RecordCluster(nodes, clock), guests, passes)


def agent_over_http(url: str, guests: int, passes: int) -> Told:
    """Measure with the Kubernetes adapter and its watch. The first list counts with the first pass."""
    from fencer.cluster.kubernetes import KubernetesCluster  # noqa: PLC0415 - heavy; not for the other process
    from fencer.cluster.settings import ClusterSettings  # noqa: PLC0415 - heavy; not for the other process

    content = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "c", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "current-context": "c",
    }
    with TemporaryDirectory() as folder:
        path = Path(folder) / "kubeconfig"
        path.write_text(json.dumps(content))
        cluster = KubernetesCluster(ClusterSettings(path, unauthenticated=True), page=PAGE)
        listed = threading.Event()
        with cpu() as listing:
            cluster.subscribe(listed.set)
            if not listed.wait(PATIENCE_S):
                raise RuntimeError("the nodes were not listed")
        told = agent(lambda _clock: cluster, guests, passes)
        return replace(told, first_s=told.first_s + listing.cpu_s)


class ApiServer(ThreadingHTTPServer):
    """Answers lists of nodes and leases, page by page, and counts what it is asked; its watch tells nothing.

    Attributes:
        asked: In the present pass.
        passes: What was asked in each pass before: it ends with the question for kube-system.
    """

    daemon_threads = True

    def __init__(self, nodes: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.nodes = nodes
        self.asked: Counter[str] = Counter()
        self.passes: list[Counter[str]] = []
        self.node_pages = fleet.pages("NodeList", [fleet.node_json(n) for n in range(nodes)], PAGE, 1_000)
        self.over = threading.Event()

    def answer(self, target: str) -> bytes:
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        page = query.get("continue", "")
        match parts.path.split("/")[3:]:
            case ["namespaces", "kube-system"]:
                self.passes.append(Counter(self.asked))
                self.asked.clear()
                return b'{"kind": "Namespace", "metadata": {"name": "kube-system", "uid": "cluster-1"}}'
            case [*_, "leases"]:
                self.asked["page of leases"] += 1
                return self.leases(int(query["limit"]))[page]
            case [*_, "leases", name]:
                self.asked["one lease"] += 1
                return json.dumps(fleet.lease_json(int(name.rpartition("-")[2]), len(self.passes))).encode()
            case ["nodes"]:
                self.asked["page of nodes"] += 1
                return self.node_pages[page]
            case [*_, "fencer-key"]:  # once in an agent's life
                data = {"key": base64.b64encode(fleet.KEY).decode()}
                return json.dumps({"metadata": {"name": "fencer-key"}, "data": data}).encode()
            case _:
                self.asked[f"one object: {parts.path}"] += 1
                return b"{}"

    def leases(self, limit: int) -> dict[str, bytes]:
        """Return the pages of the list of leases: only the first where no second can be wanted."""
        now = len(self.passes)
        wanted = self.nodes if limit == PAGE else limit
        leases = [fleet.lease_json(number, now) for number in range(wanted)]
        return fleet.pages("LeaseList", leases, limit, fleet.lease_version(now))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ApiServer

    def do_GET(self) -> None:
        if "watch=true" in self.path:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.flush()
            self.server.over.wait()
            return
        body = self.server.answer(self.path)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@contextmanager
def api_server(nodes: int) -> Iterator[tuple[ApiServer, str]]:
    server = ApiServer(nodes)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def measured(*arguments: str) -> Told:
    """Run a measurement in a fresh process, so that its memory is its own."""
    command = [sys.executable, "-m", "tests.benchmarks.pass_scale", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Told(**json.loads(done.stdout))


def run(nodes: int = NODES, guests: int = GUESTS, passes: int = PASSES) -> list[Row]:
    """Measure both ways.

    Args:
        nodes: How many nodes; each is bound to a guest.
        guests: How many guests.
        passes: How many passes, of which the first is told apart.
    """
    alone = measured("--records", str(nodes), str(guests), str(passes))
    with api_server(nodes) as (server, url):
        whole = measured("--http", url, str(guests), str(passes))
        settled, size_mib = server.passes[-1], sum(map(len, server.node_pages.values())) / (1 << 20)
    of_one = sum(count for what, count in settled.items() if what.startswith("one"))
    healthy = alone.healthy == whole.healthy == nodes
    listing = json.dumps({"data": [fleet.resource_row(n) for n in range(guests)]}).encode()
    with cpu() as parsing:
        read_listing(json.loads(listing)["data"])
    fleet_text = f"{nodes:,} nodes, {guests:,} guests"
    target = f"≤ {CPU_S:g} s CPU"
    return [
        Row(
            f"one pass over {fleet_text}",
            target,
            f"{whole.settled_s:.3f} s (the first: {whole.first_s:.2f} s)",
            max(whole.first_s, whole.dearest_s) <= CPU_S,
            f"Kubernetes adapter over HTTP; the first one lists {size_mib:.0f} MiB of nodes; until all are "
            f"known, {whole.dearest_s:.2f} s at most",
        ),
        Row(
            "its resident memory",
            f"≤ {RSS_MIB:g} MiB",
            f"{whole.rss_mib:.0f} MiB",
            whole.rss_mib <= RSS_MIB,
            "peak",
        ),
        Row(
            "its calls for single healthy nodes",
            "none",
            str(of_one),
            of_one == 0 and healthy,
            f"{sum(settled.values()) + 1} requests a pass: "
            + ", ".join(["kube-system", *(f"{count} {what}" for what, count in settled.items())]),
        ),
        Row(
            "thereof core and runtime alone",
            "",
            f"{alone.settled_s:.3f} s (the first: {alone.first_s:.2f} s)",
            None,
            f"over records in memory; until all are known, {alone.dearest_s:.2f} s at most; "
            f"peak {alone.rss_mib:.0f} MiB",
        ),
        Row(
            f"besides, reading {guests:,} rows of Proxmox VE's cluster/resources",
            "",
            f"{parsing.cpu_s:.2f} s",
            None,
            f"JSON of {len(listing) / (1 << 20):.1f} MiB to records",
        ),
    ]


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--records", nodes, guests, passes]:
            print(json.dumps(asdict(agent_over_records(int(nodes), int(guests), int(passes)))))  # noqa: T201 - this is a command
        case ["--http", url, guests, passes]:
            print(json.dumps(asdict(agent_over_http(url, int(guests), int(passes)))))  # noqa: T201 - this is a command
        case _:
            program(__doc__, run)
