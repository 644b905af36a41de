"""Judges adapters of others: could their "off" be believed?"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from fencer.config.settings import AdapterEndpoint, Endpoint
from fencer.core.model import Evidence, PowerState
from fencer.core.text import listing
from fencer.hypervisors.plausible import Lack, lacks
from fencer.preflight.facts import NodeFacts
from fencer.preflight.finding import Finding, Level

WORDS = {
    Lack.HOST: "{name} names no host for {whose}, and `one_host` is not set: a guest may run on another host",
    Lack.RUN: "{name} names no run (incarnation) of {whose}: a start in between would not show",
    Lack.WITNESS: "{name} does not name its witness for {whose}",
}
TRIES = {
    Lack.HOST: "`one_host: true` under {name}, if it is one host; else an adapter that names hosts",
    Lack.RUN: "an adapter that names runs: docs/adapters.md",
    Lack.WITNESS: "an adapter that names its witness: docs/adapters.md",
}


def judge(endpoints: Sequence[Endpoint], nodes: NodeFacts) -> Iterator[Finding]:
    """Name what adapters of others do not say about running guests: without it, their "off" is no proof."""
    keys, evidence = {one.guest.key for one in nodes.subjects}, nodes.scene.evidence.values()
    run = [one for one in evidence if one.guest.key in keys and one.power_state is PowerState.RUNNING]
    for endpoint in endpoints:
        if isinstance(endpoint, AdapterEndpoint):  # tests hold fencer's own to that
            yield from _lacking(endpoint, [one for one in run if one.guest.endpoint == endpoint.name])


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
