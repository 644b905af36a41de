"""The report as Markdown, for a ticket: what others have named stays text in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from fencer.core.text import printable
from fencer.report.steps import Step
from fencer.report.story import Report
from fencer.report.words import Clock, took
from fencer.report.workloads import Replacement

_SIGNS = re.compile(r"([\\`*_{}\[\]<>|#!~$^&])")
"""Each of them means something in some Markdown; with a backslash none does.

Source: https://spec.commonmark.org/0.31.2/#backslash-escapes; https://github.github.com/gfm/.
"""
_MENTION = re.compile(r"(?<!\w)@(?=\w)")
"""A tracker would tell whoever is called so. That is looked for after backslashes are gone: only something
between helps."""
_LINK = re.compile(r":(?=//)")
"""What makes a link of an address."""
_LEAD = re.compile(r"^(\s*)([-+=]|\d+[.)])")
"""What makes a line a list, or the line before it a heading."""


def escaped(text: object) -> str:
    """Return a text from outside as one line that Markdown shows as it is."""
    shown = _SIGNS.sub(r"\\\1", printable(str(text)))
    return _LEAD.sub(_as_text, _LINK.sub(r"\\:", _MENTION.sub("@\N{WORD JOINER}", shown)))


def _as_text(lead: re.Match[str]) -> str:
    return f"{lead[1]}{lead[2][:-1]}\\{lead[2][-1]}"


def markdown(told: Report) -> str:
    """Return the report."""
    return "\n".join((*_head(told), *_phases(told), *_workloads(told), *_people(told), *_steps(told))) + "\n"


def _head(told: Report) -> Iterator[str]:
    clock = Clock(told.begin, told.written.tzinfo)
    yield from (f"# {escaped(told.node)}, incident {escaped(told.id)}", "", escaped(told.headline), "")
    yield from (" ".join(map(_typed, told.sentences)), "")
    goes_on = "" if told.over else ", and it goes on"
    yield f"- When: {clock.day}, {clock(told.begin)} to {clock(told.end)}{goes_on}; times are {clock.zone}"
    if told.guest:
        yield f"- Guest: {escaped(told.guest)}"
    yield f"- Written by: {escaped('; '.join(told.fencer or told.by))}"
    yield from (f"- {figure.value} {escaped(figure.about)}" for figure in told.figures)


def _phases(told: Report) -> Iterator[str]:
    if not told.phases:
        return
    clock = Clock(told.begin, told.written.tzinfo)
    yield from ("", "## Where the time went", "")
    rows = (
        (clock(one.begin), "goes on" if one.goes_on else took(one.seconds), one.name, one.waited_for)
        for one in told.phases
    )
    yield from _table(("From", "Took", "What", "It waited for"), rows)


def _workloads(told: Report) -> Iterator[str]:
    if not told.workloads:
        return
    clock, asked = Clock(told.begin, told.written.tzinfo), any(one.replacement for one in told.workloads)
    yield from ("", "## Workloads", "")
    rows = (
        (
            one.pod,
            one.controller or "nobody",
            clock(one.cleared) if one.cleared else f"not seen{': ' if one.held else ''}{one.held}",
            "not known" if one.downtime_s is None else took(one.downtime_s),
            *((_replaced(one.replacement, clock),) if asked else ()),
        )
        for one in told.workloads
    )
    heads = ("Pod", "Recreated by", "Its old pod was gone", "Down at least")
    yield from _table((*heads, "In its place now") if asked else heads, rows)
    yield from ("", "When a replacement was Ready is not in the journal: each was down for longer than this.")


def _replaced(pod: Replacement | None, clock: Clock) -> str:
    if pod is None:
        return "nobody yet"
    where = f" on {pod.node}" if pod.node else ""
    ready = "Ready" if pod.ready else "not Ready"
    return f"{pod.pod}{where}, made at {clock(pod.created)}, {ready} when this was written"


def _people(told: Report) -> Iterator[str]:
    clock = Clock(told.begin, told.written.tzinfo)
    if told.asked:
        yield from ("", "## What people asked for", "")
    for one in told.asked:
        why = "".join(f"; {escaped(option)}: {escaped(words)}" for option, words in one.why)
        end = "" if one.code is None else f"; exit code {one.code}"
        yield f"- {clock(one.at)} {escaped(one.by)}: {escaped(one.words)}{why}{end}"
    yield from ("", "## What went wrong on the way", "")
    yield from (f"- {clock(one.at)} {_typed(one.text)}" for one in told.troubles)
    if not told.troubles:
        yield "Nothing that the journal tells of."


def _steps(told: Report) -> Iterator[str]:
    clock = Clock(told.begin, told.written.tzinfo)
    yield from ("", "## Step by step", "")
    for step in told.steps:
        text = f" {_typed(step.text)}" if step.text != step.what else ""
        yield f"- {clock(step.at)} **{escaped(step.what)}**{text}"
        yield from (f"  - {line}" for line in _proof(step))


def _proof(step: Step) -> Iterator[str]:
    """Give the checks before what cannot be taken back, and the one that said no."""
    if step.proves:
        for check in step.checks:
            if check.outcome == "passed":
                yield f"✓ {escaped(check.name)}: {_typed(check.seen)}"
    for check in step.checks:
        if check.outcome == "failed":
            needs = f"; needs: {_typed(check.needs)}" if check.needs else ""
            yield f"✗ {escaped(check.name)}: {_typed(check.seen)}{needs}"


def _typed(text: str) -> str:
    """Write a sentence of fencer's, in which what one types stands between backticks."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escaped(text)
    return "".join(_code(part) if place % 2 else escaped(part) for place, part in enumerate(parts))


def _code(text: str) -> str:
    inside = printable(text).replace("|", "\\|")  # or a table's cell ends there
    return f"`{inside}`" if inside.strip() else escaped(f"`{text}`")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    yield from (f"| {' | '.join(map(_typed, row))} |" for row in rows)
