"""Many nodes die while nobody takes a message well, or while a crowd asks for the page: does a fence wait?

    ./dev bench receivers [--rounds 3]

`many_deaths` again and again, in turns: with nobody to be told and nothing served; with a receiver that is
dead, one that hangs, one that drips, one that floods and one that sends messages elsewhere; and while a crowd
asks for the page and the metrics as fast as it gets them. Compares when the last pod is gone.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from typing import Any

from tests.benchmarks import many_deaths
from tests.benchmarks.lab import control_plane
from tests.benchmarks.many_deaths import Deaths
from tests.benchmarks.measure import Row, machine, table
from tests.support.bad_receivers import bad_receivers
from tests.support.controlplane import ControlPlane

ROUNDS = 3
NODES, DIE = 40, 15
CROWD = 8
"""Connections that ask for the page and the metrics without a rest."""
PAGES = ("/", "/metrics", "/healthz")
SLACK_S = 0.5
"""Between two runs of the same, on a busy machine."""


def run(
    api: ControlPlane, rounds: int = ROUNDS, nodes: int = NODES, deaths: int = DIE, **how: Any
) -> list[Row]:
    """Measure both, in turns.

    Args:
        api: Without controllers.
        rounds: How often each.
        nodes: How many.
        deaths: How many of them die at once.
        how: As `many_deaths.run` takes it.
    """
    alone: list[Deaths] = []
    told: list[Deaths] = []
    watched: list[Deaths] = []
    pages = 0

    def let_die(sections: Mapping[str, Any]) -> Deaths:
        return many_deaths.run(api, nodes, deaths, sections=sections, **how).many

    for _ in range(rounds):
        alone.append(let_die({"web": {"enabled": False}}))
        with bad_receivers() as urls:
            told.append(let_die(receivers(urls)))
        with crowd() as (port, answered):
            watched.append(let_die({"web": {"listen": f"127.0.0.1:{port}"}}))
        pages += sum(answered)
    return [
        row("five bad receivers", alone, told, "dead, hanging, dripping, flooding, redirecting"),
        row("a crowd on the page", alone, watched, f"{pages:,} pages and metrics served to {CROWD} at once"),
    ]


def receivers(urls: Mapping[str, str]) -> dict[str, Any]:
    """Return what the configuration says of receivers that all behave badly."""
    bad = [{"name": name, "type": "ntfy", "server": url, "topic": "nodes"} for name, url in urls.items()]
    return {"notify": {"receivers": bad}, "web": {"enabled": False}}


@contextmanager
def crowd() -> Iterator[tuple[int, list[int]]]:
    """Ask for pages as fast as they come; give the port to listen on, and how often each got an answer."""
    port, over, answered = _free_port(), threading.Event(), [0] * CROWD

    def ask(place: int) -> None:
        while not over.is_set():
            with suppress(OSError, HTTPException):
                connection = HTTPConnection("127.0.0.1", port, timeout=5)
                for page in PAGES * 10:
                    connection.request("GET", page)
                    connection.getresponse().read()
                    answered[place] += 1
            over.wait(0.05)

    threads = [threading.Thread(target=ask, args=(place,), daemon=True) for place in range(CROWD)]
    for thread in threads:
        thread.start()
    try:
        yield port, answered
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def row(beside: str, alone: Sequence[Deaths], runs: Sequence[Deaths], note: str) -> Row:
    """Compare when the last pod was gone."""
    gone_s, alone_s = (statistics.median(one.last_gone_s for one in some) for some in (runs, alone))
    tainted_s, alone_tainted_s = (
        statistics.median(one.tainted_s[-1] for one in some) for some in (runs, alone)
    )
    return Row(
        f"{alone[0].nodes} nodes die at once beside {beside}: last pod gone",
        f"≤ {SLACK_S:g} s more than alone",
        f"{gone_s:.2f} s, alone {alone_s:.2f} s ({gone_s / alone_s:.2f} times)",
        gone_s <= alone_s + SLACK_S,
        f"last taint {tainted_s:.2f} s, alone {alone_tainted_s:.2f} s; medians of {len(alone)} rounds each, "
        f"in turns; {note}",
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure at full size, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each")
    asked = parser.parse_args(arguments)
    with control_plane(controllers=False) as api:
        rows = run(api, asked.rounds)
    sys.stdout.write(f"{table(rows)}\n\n{machine()}\n")


if __name__ == "__main__":
    main()
