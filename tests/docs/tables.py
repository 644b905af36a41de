"""Makes tables of the documentation out of the code itself, and reads those that people write."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from fencer.core import ladders
from fencer.core.holds import HOLDS, Act
from fencer.core.ladders import LADDERS, Choice, Ladder, Row
from fencer.core.model import PowerState, Reason
from fencer.wording.distrust import TRUST
from fencer.wording.reasons import NOTHING, TEXTS
from fencer.wording.ways_out import WAYS
from tests.docs.citations import anchor

_ROW = re.compile(r"^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


ALL: dict[str, Ladder] = {name: value for name, value in vars(ladders).items() if isinstance(value, Ladder)}
"""Every ladder that there is, by its name."""

ALSO = {
    Reason.WITNESS_CONTRADICTED: f". Where other nodes are named: {TRUST.format(endpoint='ENDPOINT')}",
}
"""What else helps in some cases of a reason."""


def climbed() -> str:
    """Make the table of which ladder is climbed when; what differs in one column only is one row."""
    askers: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for (intent, stage), row in LADDERS.items():
        for states, told in _by_ladder(row):
            askers[stage, states, told].append(intent)
    stages: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for (stage, states, told), intents in askers.items():
        stages[", ".join(intents), states, told].append(stage)
    lines = ["| who asks | the node is | its guest reads | climbed |", "| --- | --- | --- | --- |"]
    for (intents_told, states, told), of in stages.items():
        lines.append(f"| {intents_told} | {', '.join(of)} | {states} | {told} |")
    return "\n".join(lines)


def rungs() -> str:
    """Make the table of each ladder's rungs and ending."""
    lines = ["| ladder | rungs, in the order in which they are asked | ends in |", "| --- | --- | --- |"]
    for name, ladder in ALL.items():
        asked = ", ".join(rung for rung, _ in ladder.rungs)
        lines.append(f"| `{name}` | {asked} | `{_where(ladder.ending)}` |")
    return "\n".join(lines)


def holds() -> str:
    """Make the table of what holds fencer back, and from what."""
    columns = ["hold", "for whom", *Act]
    rows = [[hold.name, hold.whom, *(hold.may(act) for act in Act)] for hold in HOLDS]
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def written(text: str, heading: str) -> dict[str, str]:
    """Return the second column of the tables with three columns under a heading, by the first.

    Args:
        text: Of a page.
        heading: As it stands there, with its signs.
    """
    level = heading.split(maxsplit=1)[0]
    section = text.partition(f"\n{heading}\n")[2].split(f"\n{level} ")[0]
    return {first: second.strip("` ") for first, second, _ in _ROW.findall(section)}


def _by_ladder(row: Row) -> Iterator[tuple[str, str]]:
    """Put together the states that lead to the same, in the order of `PowerState`."""
    states: defaultdict[str, list[PowerState]] = defaultdict(list)
    for state in PowerState:
        states[_told(row[state])].append(state)
    for told, of in states.items():
        yield "anything" if len(of) == len(PowerState) else ", ".join(of), told


def _told(found: Ladder | Mapping[Choice, Ladder]) -> str:
    if isinstance(found, Ladder):
        return f"`{_name(found)}`"
    return "; ".join(f"`{_key(choice)}: {choice}`: `{_name(ladder)}`" for choice, ladder in found.items())


def _name(ladder: Ladder) -> str:
    return next(name for name, known in ALL.items() if known is ladder)


def _key(choice: Choice) -> str:
    """Return the key of the policy that chooses: it bears its type's name."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(choice).__name__).lower()


def _where(function: Callable[..., Any]) -> str:
    function = function.func if isinstance(function, partial) else function
    path = function.__module__.removeprefix("fencer.").replace(".", "/")
    return f"{path}.py:{function.__qualname__}"


def ways() -> str:
    """Make the tables of what helps for each reason: what to type, or what it waits for."""
    typed = [
        f"| [`{reason.value}`](reasons.md#{reason.value}) | {text.says} | {_for_anybody(WAYS[reason])}"
        f"{ALSO.get(reason, '')} |"
        for reason, text in TEXTS.items()
        if reason in WAYS
    ]
    passing = [
        f"| [`{reason.value}`](reasons.md#{reason.value}) | {text.says} | {text.change} |"
        for reason, text in TEXTS.items()
        if reason not in WAYS and text.change != NOTHING
    ]
    well = [
        f"[`{reason.value}`](reasons.md#{reason.value})"
        for reason, text in TEXTS.items()
        if text.change == NOTHING
    ]
    head = ["| reason | it says | what to type |", "| --- | --- | --- |"]
    waits = ["| reason | it says | it waits for |", "| --- | --- | --- |"]
    return "\n".join(
        [
            *("**Somebody can do something:**", "", *head, *typed, ""),
            *("**It waits, for this:**", "", *waits, *passing, ""),
            f"**As it should be, or on its way:** {', '.join(well)}.",
        ]
    )


def contents(text: str) -> str:
    """Make the contents of a page of questions: its parts, each with its questions.

    Args:
        text: Of the page.
    """
    parts = re.findall(r"(?ms)^## ([^\n]+)\n(.*?)(?=^## |\Z)", text)
    questions = {part: re.findall(r"(?m)^### (.+)$", body) for part, body in parts}
    return "\n\n".join(
        f"**{part}**\n\n" + "\n".join(f"- [{one}](#{anchor(one)})" for one in asked)
        for part, asked in questions.items()
        if asked
    )


def _for_anybody(way: str) -> str:
    """Write a way out for no node in particular."""
    return way.format(node="NODE", path="the configuration", guest="ENDPOINT/GUEST", bound="UUID")
