"""Renders the result of `check`: a table for people, JSON for programs."""

from __future__ import annotations

import json
import textwrap
from typing import Sequence

from fencer.guest.facts import Facts
from fencer.guest.judge import Finding, Level
from fencer.guest.ways import Way

WIDTH = 110
SCHEMA = 1


def as_text(facts: Facts, findings: Sequence[Finding], ways: Sequence[Way]) -> str:
    """Render for people; `WIDTH` columns."""
    lines = [f"node {facts.connection.node or 'unknown'}, systemd {facts.systemd or 'none'}", ""]
    width = max(len(finding.subject) for finding in findings) + 2
    for finding in findings:
        lines += _row(finding.subject.ljust(width) + finding.level.value.ljust(6), finding.text)
        lines += _row("".ljust(width + 6), f"→ {finding.change}") if finding.change else []
    lines += ["", "What happens to the pods when this machine is stopped by …", ""]
    for way in ways:
        lines += [f"  {way.how}", *_row(f"    {way.outcome.value}: ", way.text, hang=6)]
    return "\n".join([*lines, "", _verdict(findings)])


def as_json(facts: Facts, findings: Sequence[Finding], ways: Sequence[Way]) -> str:
    """Render for programs."""
    content = {
        "schema": SCHEMA,
        "node": facts.connection.node,
        "findings": [
            {"subject": it.subject, "level": it.level.value, "text": it.text, "change": it.change}
            for it in findings
        ],
        "ways": [{"how": way.how, "outcome": way.outcome.value, "text": way.text} for way in ways],
        "ok": not failed(findings),
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def failed(findings: Sequence[Finding]) -> bool:
    """Whether anything is wrong."""
    return any(finding.level is Level.FAIL for finding in findings)


def _verdict(findings: Sequence[Finding]) -> str:
    count = {level: sum(finding.level is level for finding in findings) for level in Level}
    return f"{count[Level.FAIL]} wrong, {count[Level.WARN]} to look at."


def _row(head: str, text: str, hang: int | None = None) -> list[str]:
    indent = " " * (len(head) if hang is None else hang)
    return textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent=indent) or [head.rstrip()]
