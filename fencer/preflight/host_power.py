"""Judges whether a host's death can be proven: what power witnesses say, and which hosts have none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fencer.core.text import count, listing
from fencer.errors import FencerError
from fencer.hosts.settings import FenceAgentSettings
from fencer.preflight.facts import Answer, NodeFacts
from fencer.preflight.finding import Finding, Level


def judge(witnesses: Mapping[str, FenceAgentSettings], nodes: NodeFacts) -> Iterator[Finding]:
    """Judge what power witnesses say about running hosts, and name the nodes whose host has none."""
    subjects = nodes.subjects
    if not subjects:  # then nobody was asked
        return
    for host, witness in witnesses.items():
        yield Finding("host power", host, *_judged(nodes.hosts_off[host], witness.agent))
    names = [one.node.name for one in subjects if f"{one.guest.endpoint}/{one.guest.host}" not in witnesses]
    about = f"{len(subjects) - len(names)} of {count(len(subjects), 'node')} provable"
    if not names:
        yield Finding("host death", about)
        return
    text = (
        f"{listing(names)}: if the host itself dies, nothing is left to prove it (except an HA stack that "
        "recovers the guest), and fencer refuses; `fencer fence NODE --confirm-guest-off WHY` takes your "
        "word"
    )
    tries = ("a power witness of that host: `host_power:` under its hypervisor",)
    yield Finding("host death", about, Level.NOTE, text, tries)


def _judged(off: Answer, agent: str) -> tuple[Level, str, tuple[str, ...]]:
    tries = (f"{agent} by hand, with the same options and action=status",)
    if isinstance(off, FencerError):
        return Level.FAIL, str(off), tries
    if off is None:
        return Level.FAIL, "neither on nor off for all of it: it would prove nothing", tries
    if off:
        return Level.FAIL, "says off: unless that host is really off, it reads a different one", tries
    return Level.OK, "says on", ()
