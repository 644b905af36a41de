"""How a simulated story is told to people: who did what when, and where the pods are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import click

from fencer.cli.render import BAD, DOUBTFUL, FAINT, GOOD, Cell, clean, paragraph, table, width
from fencer.core.model import Alarm, Reason, Verdict
from fencer.core.text import count
from fencer.core.wire import name_of
from fencer.simulation.objects import ApiPod
from fencer.simulation.stage import Stage, Summary
from fencer.simulation.timeline import StageEvent
from fencer.wording.reasons import TEXTS
from fencer.wording.verdicts import key_of

PAGE = 80
"""Columns of a story where there is no terminal."""
COLOURS = {"world": BAD, "person": "cyan", "kubernetes": "blue", "pods": GOOD, "fencer": DOUBTFUL}
WHO_WIDTH = max(map(len, COLOURS))
GAP = 2
CLOCK_WIDTH = 6

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
REFUSED = key_of(Verdict.REFUSE)
ASIDE_STEPS = frozenset({"to go", "off", "waiting", "drained", "back", "ready"})
"""Steps of a command that say what another line says, too."""

_TYPED = re.compile(r"`[^`]+`")
_FIRM = "\N{NO-BREAK SPACE}"
"""No line is broken there."""
UUID = re.compile(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")


def prose(text: str, *, indent: int = 0) -> Iterator[str]:
    """Wrap a paragraph; what people may type stays in one line."""
    whole = _TYPED.sub(lambda found: found.group().replace(" ", _FIRM), text)
    for part in paragraph(whole, indent=indent, page=PAGE):
        yield part.replace(_FIRM, " ")


def is_aside(event: StageEvent) -> bool:
    """Whether a reader in a hurry misses nothing without this line."""
    if event.data.get("action") == "BindNode" or event.data.get("step") in ASIDE_STEPS:
        return True
    return event.data.get("reason") in ASIDE and event.data.get("verdict") != REFUSED


def clock(at_s: float) -> str:
    """Write the virtual clock: minutes and seconds."""
    minutes, seconds = divmod(round(at_s), 60)
    return f"{minutes:3}:{seconds:02}"


def line(event: StageEvent, node_width: int) -> Iterator[str]:
    """Write one event: the virtual clock, who (of several agents: which), about which node, and what."""
    who = str(event.data.get("by", event.actor))
    text, hang = UUID.sub(r"\1…", clean(event.text)), CLOCK_WIDTH + WHO_WIDTH + node_width + 3 * GAP
    yield from table(
        [
            [
                Cell(clock(event.t_s), FAINT),
                Cell(who.ljust(WHO_WIDTH), COLOURS[event.actor]),
                (event.node or "").ljust(node_width),
                Cell(_breakable(text, (width(PAGE) or PAGE) - hang), _colour(event)),
            ]
        ],
        gap=GAP,
        page=PAGE,
    )


def _breakable(text: str, room: int) -> str:
    """Let words that are too long for a line, like a taint, be broken behind an equals sign."""
    return " ".join(word if len(word) <= room else word.replace("=", "= ") for word in text.split(" "))


def _colour(event: StageEvent) -> str | None:
    """Return the colour that repeats what the words of an event say."""
    data = event.data
    match data["what"]:
        case "double-writer" | "stuck":
            return BAD
        case "recovered":
            return GOOD
        case "answered":
            return GOOD if data.get("done") else DOUBTFUL
        case _ if data.get("death") or data.get("action") == name_of(Alarm):
            return BAD
        case _:
            return DOUBTFUL if data.get("verdict") == REFUSED else None


def is_turn(event: StageEvent) -> bool:
    """Whether it is worth showing, after this event, where the pods are."""
    moved = event.data["what"] == "answered" and event.data["done"] and not event.data["looks"]
    return bool(moved) or event.data["what"] in {"recovered", "stuck"}


def board(stage: Stage) -> Iterator[str]:
    """Draw where the pods are now, except those that every node has; in brackets: not Ready."""
    pods = [pod for pod in stage.simulation.api.pods.values() if not pod.daemon and not pod.over]
    rows: list[list[Cell | str]] = [
        [Cell(name, FAINT), _row(pod for pod in pods if pod.node == name)] for name in stage.simulation.nodes
    ]
    waiting = _row(pod for pod in pods if pod.node is None)
    if waiting:
        rows.append([Cell("nowhere", BAD), waiting])
    yield from table(rows, indent=8, gap=GAP, page=PAGE)


def _row(pods: Iterable[ApiPod]) -> str:
    ordered = sorted(pods, key=lambda pod: pod.name)
    return " ".join(pod.name if pod.ready else f"({pod.name})" for pod in ordered)


def ending_alone(summary: Summary) -> Iterator[str]:
    """Say how it ended without fencer."""
    stuck = f"{count(summary.pods_stuck, 'pod')} stuck, and stuck for ever while that VM stays away"
    text = stuck if summary.pods_stuck else _ready(summary)
    minutes = count(round(summary.duration_s / 60), "minute")
    yield from _sum(f"Kubernetes alone, after {minutes}:", [text, *_counts(summary)])


def ending(summary: Summary) -> Iterator[str]:
    """Say what counts: nodes fenced, pods moved, seconds, double writers."""
    why = None if summary.refused_reason is None else TEXTS[Reason(summary.refused_reason)].says
    if summary.fenced:
        parts = [f"fenced in {_fences(summary)}", _ready(summary), *_kept(summary)]
    elif summary.foreign_taint:
        because = "" if why is None else f", because {why}"
        parts = [f"left somebody else's taint alone{because}", _ready(summary)]
    elif summary.seconds_to_fence is not None:
        parts = [
            f"tainted in {summary.seconds_to_fence:.0f} s, and cleared nothing itself",
            _ready(summary),
        ]
    elif why is not None:
        parts = [f"refused, because {why}"]
    elif summary.answers:
        parts = [summary.answers, f"at most {count(summary.most_down or 0, 'pod')} down at a time"]
    else:
        parts = ["left alone", _ready(summary)]
    for text in _sum("With fencer:", [*parts, *_counts(summary)]):
        yield click.style(text, bold=True)


def _sum(label: str, parts: Sequence[str]) -> Iterator[str]:
    """Write what counts behind a label, and break lines between the parts where that can be."""
    room, lines = (width(PAGE) or PAGE) - len(label) - 1, list(parts[:1])
    for part in parts[1:]:
        longer = f"{lines[-1]} · {part}"
        if len(longer) <= room:
            lines[-1] = longer
        else:
            lines.append(part)
    yield from table(
        [[label if number == 0 else "", text] for number, text in enumerate(lines)], gap=1, page=PAGE
    )


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


def _kept(summary: Summary) -> Iterator[str]:
    """Say why a fence was kept, if one was."""
    reasons = (one.refused_reason for one in summary.incidents if one.fenced)
    why = next((TEXTS[Reason(reason)].says for reason in reasons if reason is not None), None)
    if why is not None:
        yield f"fence kept, because {why}"


def _ready(summary: Summary) -> str:
    """Say when all pods were Ready again, or why they are not."""
    if summary.seconds_to_recover is not None and not summary.pods_down:
        return f"all pods Ready again in {summary.seconds_to_recover:.0f} s"
    down = f"{count(summary.pods_down + summary.pods_stuck, 'pod')} not Ready"
    return (
        f"{down}: so many nodes are silent that Kubernetes replaces none" if summary.evicts_nobody else down
    )


def _counts(summary: Summary) -> tuple[str, ...]:
    return f"pods moved {summary.pods_moved}", f"double writers {summary.double_writers}"
