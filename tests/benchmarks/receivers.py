"""Many nodes die while nobody takes a message well: does any fence wait for that?

    ./dev bench receivers [--rounds 3]

`many_deaths` again and again, in turns: with nobody to be told and nothing served, and with a receiver that
is dead, one that hangs, one that drips, one that floods and one that sends messages elsewhere, while a crowd
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
    quiet: list[Deaths] = []
    loud: list[Deaths] = []
    asked = 0
    for _ in range(rounds):
        quiet.append(many_deaths.run(api, nodes, deaths, sections={"web": {"enabled": False}}, **how).many)
        with bad_receivers() as urls, crowd() as (port, answered):
            loud.append(many_deaths.run(api, nodes, deaths, sections=sections(urls, port), **how).many)
        asked += sum(answered)
    return [row("last pod gone", quiet, loud, asked), row("last taint", quiet, loud, asked, tainted=True)]


def sections(urls: Mapping[str, str], port: int) -> dict[str, Any]:
    """Return what the configuration says of receivers that all behave badly, and of the page."""
    receivers = [
        {"name": name, "type": "ntfy", "server": url, "topic": "nodes"} for name, url in urls.items()
    ]
    return {"notify": {"receivers": receivers}, "web": {"listen": f"127.0.0.1:{port}"}}


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


def row(
    what: str, quiet: Sequence[Deaths], loud: Sequence[Deaths], asked: int, *, tainted: bool = False
) -> Row:
    """Compare one moment."""
    alone, beside = (
        statistics.median(one.tainted_s[-1] if tainted else one.last_gone_s for one in runs)
        for runs in (quiet, loud)
    )
    return Row(
        f"{quiet[0].nodes} nodes die at once beside five bad receivers and a crowd: {what}",
        f"≤ {SLACK_S:g} s more than alone",
        f"{beside:.2f} s, alone {alone:.2f} s ({beside / alone:.2f} times)",
        beside <= alone + SLACK_S,
        f"medians of {len(quiet)} rounds each, in turns; pages served meanwhile: {asked:,}",
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
