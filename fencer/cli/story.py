"""How a simulated story is told to people: who did what when, and where the pods are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import click

from fencer.cli.render import BAD, DOUBTFUL, FAINT, GOOD, Cell, clean, table
from fencer.core.model import Reason, Verdict
from fencer.core.text import count
from fencer.simulation.objects import ApiPod
from fencer.simulation.stage import Stage, Summary
from fencer.simulation.timeline import StageEvent
from fencer.wording.reasons import TEXTS

COLOURS = {"world": BAD, "person": "cyan", "kubernetes": "blue", "pods": GOOD, "fencer": DOUBTFUL}
WHO_WIDTH = max(map(len, COLOURS))

ASIDE = frozenset(
    {
        Reason.NODE_READY,
        Reason.SILENCE_TOO_SHORT,
        Reason.CLEARING_PODS,
        Reason.RELEASING_VOLUMES,
        Reason.AWAITING_RENEWALS,
        Reason.BOOTED_ANEW,
        Reason.SETTLING,
        Reason.SETTLED,
        Reason.NODE_HEALTHY,
    }
)
"""Decisions that only link two lines of the story, unless they are refusals."""

UUID = re.compile(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")


def is_aside(event: StageEvent) -> bool:
    """Whether a reader in a hurry misses nothing without this line."""
    if event.data.get("action") == "BindNode":
        return True
    return event.data.get("reason") in ASIDE and event.data.get("verdict") != Verdict.REFUSE


def line(event: StageEvent, node_width: int) -> Iterator[str]:
    """Write one event: the virtual clock, who, about which node, and what."""
    minutes, seconds = divmod(round(event.t_s), 60)
    colour = COLOURS[event.actor]
    yield from table(
        [
            [
                Cell(f"{minutes:3}:{seconds:02}", FAINT),
                Cell(event.actor.ljust(WHO_WIDTH), colour),
                (event.node or "").ljust(node_width),
                Cell(
                    UUID.sub(r"\1…", clean(event.text)),
                    BAD if event.data["what"] == "double-writer" else None,
                ),
            ]
        ],
        gap=2,
    )


def board(stage: Stage) -> Iterator[str]:
    """Draw where the pods are now, except those that every node has; in brackets: not Ready."""
    pods = [pod for pod in stage.simulation.api.pods.values() if not pod.daemon and not pod.over]
    rows: list[list[Cell | str]] = [
        [Cell(name, FAINT), _row(pod for pod in pods if pod.node == name)] for name in stage.simulation.nodes
    ]
    waiting = _row(pod for pod in pods if pod.node is None)
    if waiting:
        rows.append([Cell("nowhere", BAD), waiting])
    yield from table(rows, indent=8, gap=2)


def _row(pods: Iterable[ApiPod]) -> str:
    ordered = sorted(pods, key=lambda pod: pod.name)
    return " ".join(pod.name if pod.ready else f"({pod.name})" for pod in ordered)


def ending_alone(summary: Summary) -> Iterator[str]:
    """Say how it ended without fencer."""
    stuck = f"{count(summary.pods_stuck, 'pod')} stuck, and stuck for ever while that VM stays away"
    text = stuck if summary.pods_stuck else _ready(summary)
    minutes = count(round(summary.duration_s / 60), "minute")
    yield from table([[f"Kubernetes alone, after {minutes}: {text} · {_counts(summary)}"]])


def ending(summary: Summary) -> Iterator[str]:
    """Say what counts: nodes fenced, pods moved, seconds, double writers."""
    why = None if summary.refused_reason is None else TEXTS[Reason(summary.refused_reason)].says
    if summary.fenced:
        text = f"fenced in {_fences(summary)} · {_ready(summary)}{_kept(summary)}"
    elif summary.foreign_taint:
        text = (
            f"left somebody else's taint alone{'' if why is None else f', because {why}'} · {_ready(summary)}"
        )
    elif summary.seconds_to_fence is not None:
        text = f"tainted in {summary.seconds_to_fence:.0f} s, and cleared nothing itself · {_ready(summary)}"
    else:
        text = f"left alone · {_ready(summary)}" if why is None else f"refused, because {why}"
    for part in table([[f"With fencer: {text} · {_counts(summary)}"]]):
        yield click.style(part, bold=True)


def _fences(summary: Summary) -> str:
    """Say how long the slowest fence took; of several deaths, how many were fenced, and why not all."""
    took, nodes = f"{summary.seconds_to_fence:.0f} s", {one.node for one in summary.incidents}
    fenced = {one.node for one in summary.incidents if one.fenced}
    if len(nodes) == 1:
        return took
    refused = {
        one.node: TEXTS[Reason(one.refused_reason)].says
        for one in summary.incidents
        if one.node not in fenced and one.refused_reason is not None
    }
    others = "".join(f"; {node} refused, because {why}" for node, why in refused.items())
    return f"{took} ({len(fenced)} of {len(nodes)} nodes{others})"


def _kept(summary: Summary) -> str:
    """Say why a fence was kept; empty: none was."""
    reasons = (one.refused_reason for one in summary.incidents if one.fenced)
    why = next((TEXTS[Reason(reason)].says for reason in reasons if reason is not None), None)
    return "" if why is None else f" · fence kept, because {why}"


def _ready(summary: Summary) -> str:
    """Say when all pods were Ready again, or why they are not."""
    if summary.seconds_to_recover is not None and not summary.pods_down:
        return f"all pods Ready again in {summary.seconds_to_recover:.0f} s"
    down = f"{count(summary.pods_down + summary.pods_stuck, 'pod')} not Ready"
    return (
        f"{down}: so many nodes are silent that Kubernetes replaces none" if summary.evicts_nobody else down
    )


def _counts(summary: Summary) -> str:
    return f"pods moved {summary.pods_moved} · double writers {summary.double_writers}"
