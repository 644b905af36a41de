"""What `fencer check` foresees of adapters of others: whether "off" could be believed of their guests."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from fencer.cli.findings import Finding, Level
from fencer.config.settings import AdapterEndpoint, Config
from fencer.core.model import Evidence, PowerState
from fencer.core.text import listing
from fencer.hypervisors.plausible import Lack, lacks
from fencer.runtime.reconcile import Pass

WORDS = {
    Lack.HOST: "{name} names no host for {whose}, and `one_host` is not set: a guest may run on another host",
    Lack.RUN: "{name} names no run (incarnation) of {whose}: a start in between would not show",
    Lack.WITNESS: "{name} does not say whose word it tells of {whose} (witness)",
}
TRIES = {
    Lack.HOST: "`one_host: true` under {name}, if it is one host; else an adapter that names hosts",
    Lack.RUN: "an adapter that names runs: docs/adapters.md",
    Lack.WITNESS: "an adapter that names its witness: docs/adapters.md",
}


def provable_findings(
    config: Config, nodes: Collection[tuple[str, str, str]], seen: Pass
) -> Iterator[Finding]:
    """Name what is missing in what adapters of others say of guests that run: off, it would be no proof.

    Args:
        config: For the endpoints.
        nodes: The keys of guests that are nodes.
        seen: One look.
    """
    for endpoint in config.endpoints:
        if not isinstance(endpoint, AdapterEndpoint):
            continue  # fencer's own are held to that by their tests
        run = [
            reading
            for reading in seen.scene.evidence.values()
            if reading.guest.endpoint == endpoint.name
            and reading.guest.key in nodes
            and reading.power_state is PowerState.RUNNING
        ]
        yield from _lacking(endpoint, run)


def _lacking(endpoint: AdapterEndpoint, run: Collection[Evidence]) -> Iterator[Finding]:
    lacking = {reading.guest: lacks(reading, one_host=endpoint.one_host) for reading in run}
    points, tries = list[str](), list[str]()
    for lack in Lack:
        without = [guest for guest, all_ in lacking.items() if lack in all_]
        whose = "its guests" if len(without) == len(run) else listing(without)
        if without:
            points.append(WORDS[lack].format(name=endpoint.name, whose=whose))
            tries.append(TRIES[lack].format(name=endpoint.name))
    held = [guest for guest, all_ in lacking.items() if all_]
    if held:
        all_of_them = len(held) == len(run)
        text = "none of its guests will be believed off" if all_of_them else "not all will be believed off"
        yield Finding("proof", endpoint.name, Level.WARN, text, tuple(tries), tuple(points))
