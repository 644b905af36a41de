"""Judges who hypervisors say they are: one of them under two names, and any that cannot tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fencer.core.policy import Mode
from fencer.core.text import listing, printable
from fencer.ports import EndpointInfo
from fencer.preflight.finding import Finding, Level

_TWICE = (
    "one entry under `hypervisors:` for each hypervisor, whatever ways lead to it; in `nodes:` and under "
    "`host_power:` the name that stays"
)


def judge(mode: Mode, described: Mapping[str, EndpointInfo]) -> Iterator[Finding]:
    """Judge the identities of all endpoints that described themselves.

    Args:
        mode: What fencer may do.
        described: How each endpoint describes itself, by its name in the configuration.
    """
    yield from _twice(described)
    for name, info in described.items():
        if info.identity is None:
            note = (
                "it cannot be told which hypervisor this is: an armed fencer gives it no power orders, as no "
                "other agent could know that it does"
            )
            tries = (f"what stands in the row of {printable(name)} above",)
            level = Level.FAIL if mode is Mode.ARMED else Level.WARN
            yield Finding("identity", printable(name), level, note, tries)


def _twice(described: Mapping[str, EndpointInfo]) -> Iterator[Finding]:
    """Name endpoints that are one hypervisor: its guests would be copies of each other."""
    same: dict[tuple[str, str], list[str]] = {}
    for name, info in described.items():
        if info.identity:
            same.setdefault((info.kind, info.identity), []).append(name)
    for (_, identity), names in same.items():
        if len(names) > 1:
            who = printable(identity)
            note = f"one hypervisor under {len(names)} names ({who}): each of its guests seems to have a copy"
            yield Finding("identity", listing(names), Level.FAIL, note, (_TWICE,))
