"""What was concluded, done, asked for and told, step by step, each with what it rests on. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fencer.core.model import Outcome, Verdict
from fencer.core.text import age, count
from fencer.core.wire import dump_by_keys
from fencer.journal.incidents import PROVED
from fencer.journal.rows import Kind
from fencer.report.lanes import DEEDS, deed_word
from fencer.report.sights import Sight
from fencer.wording.verdicts import recorded_adjective

LONGEST = 40_000
"""Characters of one raw observation; of 500 pods there may be hundreds of thousands."""


@dataclass(frozen=True, slots=True)
class Proof:
    """One check of a decision, as the journal has it."""

    name: str
    outcome: str
    seen: str
    needs: str


@dataclass(frozen=True, slots=True)
class Step:
    """Something that was concluded, done, asked for or told.

    Attributes:
        at: When.
        by: Who.
        kind: What sort of row it is.
        what: A word or two.
        text: A sentence.
        loud: A person should look at it.
        proves: An action follows that cannot be undone: its whole proof belongs to it.
        checks: The ladder of a decision.
        evidence: What was known, in lines: a name and what was read.
        raw: All that was known, as JSON; empty: nothing is kept of it.
    """

    at: datetime
    by: str
    kind: Kind
    what: str
    text: str
    loud: bool = False
    proves: bool = False
    checks: tuple[Proof, ...] = ()
    evidence: tuple[tuple[str, str], ...] = ()
    raw: str = ""


def step_of(row: Sight) -> Iterator[Step]:
    """Give what a row tells; an intent tells nothing that its action does not."""
    entry, body = row.entry, row.entry.body
    match entry.kind:
        case Kind.DECISION:
            yield Step(
                *(entry.at, entry.by, entry.kind),
                what=recorded_adjective(str(body.get("verdict")), str(body.get("reason"))),
                text=str(body.get("text", "")),
                loud=body.get("verdict") == Verdict.REFUSE,
                proves=bool(PROVED & set(body.get("actions") or ())),
                checks=tuple(map(_proof, body.get("checks") or ())),
                evidence=evidence(row),
                raw=_raw(row),
            )
        case Kind.ACTION:
            ok = bool(body.get("ok"))
            what, needless = deed_word(entry), DEEDS.get(str(body.get("action")), ("", ""))[1]
            text = str(body.get("text", "")).removeprefix(needless)
            yield Step(entry.at, entry.by, entry.kind, what if ok else f"{what}: failed", text, loud=not ok)
        case Kind.COMMAND:
            yield Step(entry.at, entry.by, entry.kind, "command", f"fencer {body.get('words', '')}")
        case Kind.ENDED:
            code = body.get("code")
            yield Step(entry.at, entry.by, entry.kind, "ended", f"exit code {code}", loud=code != 0)
        case Kind.NOTICE:
            loud = bool(body.get("warning"))
            yield Step(entry.at, entry.by, entry.kind, "notice", str(body.get("text", "")), loud=loud)
        case Kind.LOST:
            text = f"{count(int(body.get('rows') or 0), 'row')} could not be written"
            yield Step(entry.at, entry.by, entry.kind, "lost", text, loud=True)
        case _:  # an intent is told with what came of it, and a session at the top
            return


def _proof(check: dict[str, Any]) -> Proof:
    outcomes = {
        Outcome.PASSED.value: "passed",
        Outcome.FAILED.value: "failed",
        Outcome.ALARM.value: "failed",
    }
    told = outcomes.get(str(check.get("outcome")), "not asked")
    return Proof(str(check.get("name")), told, str(check.get("seen") or ""), str(check.get("needs") or ""))


def evidence(row: Sight) -> tuple[tuple[str, str], ...]:
    """Return what a decision rests on, in lines."""
    if row.seen is None:
        return (("observation", row.unread or "nothing new was seen since the row before"),)
    seen, node, run = row.seen, row.seen.node, row.seen.history.run
    lines = {"guest": "no guest is known", "node": _node(row)}
    if seen.evidence is not None:
        reading = seen.evidence
        ago_s = max(0.0, seen.now_s - reading.observed_at_s)
        lines["guest"] = f"{reading.raw} ({reading.source}, {age(ago_s)} before)"
    elif seen.evidence_error:
        lines["guest"] = seen.evidence_error
    if run is not None:
        lasted = f"{count(run.readings, 'time')} over {age(max(0.0, run.last_s - run.since_s))}"
        lines["readings"] = f"{run.power_state} {lasted}, run {run.incarnation or 'not named'}"
    if seen.pods is not None:
        lines["pods"] = ", ".join(map(str, seen.pods)) or "none"
    if seen.attachments is not None:
        lines["volumes"] = ", ".join(one.volume for one in seen.attachments) or "none"
    fleet = seen.fleet
    lines["other nodes"] = (
        f"{count(fleet.nodes, 'node')}, {fleet.silent} silent, {fleet.young_fences} fenced in the last hour"
    )
    if node.taints:
        lines["taints"] = ", ".join(f"{one.key}={one.value}:{one.effect}" for one in node.taints)
    return tuple(lines.items())


def _node(row: Sight) -> str:
    assert row.seen is not None  # noqa: S101 - its caller has looked
    node = row.seen.node
    ready = {True: "True", False: "False", None: "Unknown"}[node.ready]
    lease = "no lease seen" if node.lease_age_s is None else f"lease renewed {age(node.lease_age_s)} before"
    return f"Ready={ready}; {lease}; boot id {node.boot_id}"


def _raw(row: Sight) -> str:
    if row.seen is None:
        return ""
    text = as_json(dump_by_keys(row.seen))
    left = len(text) - LONGEST
    return text if left <= 0 else f"{text[:LONGEST]}\n… {left} more characters are in the journal"


def as_json(value: Any) -> str:
    """Return a value as indented JSON, whatever is in it."""
    return json.dumps(value, indent=1, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else str(value)
