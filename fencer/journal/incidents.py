"""Rows, folded into incidents: what happened to one node, from the first sign until it was over.

Also a drain, a planned stop and a start are incidents here, and a command that did nothing to any node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from fencer.journal.rows import Entry, Kind

NOTES = frozenset({"Alarm", "BindNode", "RecordDoubts", "ForgetMark"})
"""What is done without taking anything from anybody: alone it is no incident. See `Incident.deeds`."""

CAUSES = {
    "pause_too_short": "paused",
    "guest_paused": "paused",
    "guest_saved": "saved",
    "guest_unresponsive": "unresponsive",
    "host_silent": "host silent",
    "storage_stall": "storage stalled",
}
"""What a reason says of how it began; of others the state of the guest does."""

PROOFS = {"ha_recovery": "host fenced by HA", "host_power": "host without power", "operator": "off"}
"""What a proof says of how it began."""

ENDED_S = 3600.0
"""A command of which nothing was heard for so long, with its node well, has ended: somebody killed it."""

REFUSED = frozenset({"refuse"})
"""Verdicts after which a person should look."""

LEFT_S = 3600.0
"""After so long without a word from a command, what an agent tells of its node is another incident."""


@dataclass(frozen=True)
class Incident:
    """What happened to a node.

    Attributes:
        id: For people to name it: the incident's id as it is on the Node, or the session of the command; and
            ``.2`` behind it where there was one before in the same boot.
        node: The node's name; of a command without any, the names that were typed.
        entries: Its rows, oldest first.
        over: It is over; otherwise it goes on, as far as the journal knows.
    """

    id: str
    node: str
    entries: tuple[Entry, ...]
    over: bool

    @property
    def began(self) -> datetime:
        """When it was first noticed."""
        return self.entries[0].at

    @property
    def last(self) -> datetime:
        """When it was last heard of."""
        return self.entries[-1].at

    @cached_property
    def decisions(self) -> tuple[Entry, ...]:
        """The rows that tell a decision."""
        return self._of(Kind.DECISION)

    @cached_property
    def deeds(self) -> tuple[Entry, ...]:
        """The rows that tell of something that was done, or failed: notes and alarms are none."""
        return tuple(one for one in self._of(Kind.ACTION) if one.body.get("action") not in NOTES)

    @cached_property
    def commands(self) -> tuple[Entry, ...]:
        """The rows that tell what people asked for."""
        return self._of(Kind.COMMAND)

    @property
    def guest(self) -> str:
        """Its guest, as last told; empty: none."""
        return next((str(one.body["guest"]) for one in reversed(self.decisions) if one.body.get("guest")), "")

    @property
    def cause(self) -> str:
        """How it began, in a word or two: ``paused``, ``stopped``, ``silent``."""
        told = (CAUSES.get(str(one.body.get("reason"))) for one in self.decisions)
        found = next((cause for cause in told if cause), "")
        taint = self._done("TaintNode")
        if found or taint is None:
            return found or "silent"
        done = _facts(taint)
        return PROOFS.get(str(done.get("proof"))) or str(done.get("power_state") or "silent")

    @property
    def tainted(self) -> Entry | None:
        """The row that tells of the fence; None: it was not fenced."""
        return self._done("TaintNode")

    @property
    def cleared(self) -> Entry | None:
        """The row that tells that nothing was left on it; None: that did not come."""
        after = self.tainted.number if self.tainted else 0
        return next((one for one in self._reasons("pods_cleared") if one.number > after), None)

    @property
    def lifted(self) -> Entry | None:
        """The row that tells that the fence was lifted; None: it was not."""
        return self._done("UntaintNode", last=True)

    @property
    def healthy(self) -> Entry | None:
        """The row that tells that all was well again; None: that did not come."""
        last = self.decisions[-1] if self.decisions else None
        return last if last is not None and last.body.get("verdict") == "healthy" else None

    @property
    def refusal(self) -> Entry | None:
        """The last row that says no, if a person should look at that; None: there is none."""
        return next((one for one in reversed(self.decisions) if one.body.get("verdict") in REFUSED), None)

    @property
    def pods(self) -> tuple[str, ...]:
        """The pods that were cleared or evicted; where none is left in the end, also those that were held."""
        kinds = ("gone", "held", "changed") if self.cleared else ("gone",)
        cleared = [_facts(one).get(kind) or () for one in self._all("ClearPods") for kind in kinds]
        evicted = [one.body.get("on", {}).get("pods", ()) for one in self._all("EvictPods")]
        return tuple(dict.fromkeys(str(pod) for pods in (*cleared, *evicted) for pod in pods))

    @property
    def volumes(self) -> int:
        """How many volumes were to be released."""
        return int(_facts(self.tainted).get("volumes", 0)) if self.tainted else 0

    @property
    def code(self) -> int | None:
        """The exit code of the last command; None: there was none, or it has not ended."""
        ended = self._of(Kind.ENDED)
        return int(ended[-1].body.get("code", 1)) if ended else None

    @property
    def worth_telling(self) -> bool:
        """Whether anything was done or asked for, or a person should have looked."""
        return bool(self.deeds or self.commands or self.refusal)

    def seconds(self, until: Entry) -> float:
        """Return how long after its beginning a row was written, in seconds."""
        return seconds_between(self.entries[0], until)

    def _of(self, kind: Kind) -> tuple[Entry, ...]:
        return tuple(one for one in self.entries if one.kind is kind)

    def _reasons(self, reason: str) -> Iterator[Entry]:
        return (one for one in self.decisions if one.body.get("reason") == reason)

    def _all(self, action: str) -> Iterator[Entry]:
        return (one for one in self.deeds if one.body.get("action") == action and one.body.get("ok"))

    def _done(self, action: str, *, last: bool = False) -> Entry | None:
        found = list(self._all(action))
        return found[-1 if last else 0] if found else None


def seconds_between(earlier: Entry, later: Entry) -> float:
    """Return the seconds from one row to another: by the monotonic clock, if one session wrote both."""
    if earlier.session == later.session:
        return max(0.0, later.at_s - earlier.at_s)
    return max(0.0, (later.at - earlier.at).total_seconds())


def _facts(entry: Entry) -> dict[str, Any]:
    done = entry.body.get("done")
    return done if isinstance(done, dict) else {}


@dataclass
class _Open:
    """An incident that goes on while rows are read."""

    node: str
    entries: list[Entry] = field(default_factory=list)
    fenced: bool = False
    by_command: bool = False
    well: bool = False
    """The newest row about its node says so."""

    def goes_on_with(self, entry: Entry) -> bool:
        """Whether a row still belongs to it, after its node was well: of the command, or soon after."""
        soon = (entry.at - self.entries[-1].at).total_seconds() < ENDED_S
        return soon or entry.session in {row.session for row in self.entries if row.kind is Kind.COMMAND}


def incidents(entries: Iterable[Entry]) -> list[Incident]:
    """Fold rows, oldest first, into incidents: in the order in which they began."""
    fold = _Fold()
    for entry in entries:
        fold.take(entry)
    return fold.told()


class _Fold:
    """Reads rows one after the other."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}
        self._over: list[tuple[_Open, bool]] = []
        self._commands: dict[str, Entry] = {}
        """Those that have not ended, by session."""
        self._outlived: dict[tuple[str, str], _Open] = {}
        """What was over before a command about it had ended, by session and node."""

    def take(self, entry: Entry) -> None:
        """Take one row in."""
        match entry.kind:
            case Kind.COMMAND:
                self._ask(entry)
            case Kind.ENDED:
                self._end(entry)
            case Kind.NOTICE | Kind.LOST:
                for one in self._open.values():
                    if not self._of_another(one, entry):
                        one.entries.append(entry)
            case Kind.DECISION | Kind.INTENT | Kind.ACTION if entry.uid:
                self._take_of_node(entry)

    def told(self) -> list[Incident]:
        """Return all incidents so far."""
        every = [*self._over, *((one, False) for one in self._open.values())]
        every += [
            (_Open("", [asked], by_command=True), False)
            for asked in self._commands.values()
            if not self._touched(asked)
        ]
        named, seen = [], dict[str, int]()
        for one, over in sorted(every, key=lambda found: found[0].entries[0].number):
            name = _id(one.entries)
            seen[name] = seen.get(name, 0) + 1
            number = f".{seen[name]}" if seen[name] > 1 else ""
            named.append(
                Incident(f"{name}{number}", one.node or _typed(one.entries), tuple(one.entries), over)
            )
        return named

    def _take_of_node(self, entry: Entry) -> None:
        healthy = entry.kind is Kind.DECISION and entry.body.get("verdict") == "healthy"
        one = self._open.get(entry.uid)
        if one is not None and one.by_command and one.well and not one.goes_on_with(entry):
            self._close(entry.uid, over=True)
            one = None
        elif one is not None and self._is_left(one, entry):
            self._close(entry.uid, over=False)
            one = None
        outlived = self._outlived.get((entry.session, entry.uid))
        if one is None and outlived is not None and entry.body.get("action") != "TaintNode":
            outlived.entries.append(entry)
            return
        if one is None:
            if healthy or entry.body.get("action") in NOTES:
                return
            one = self._open[entry.uid] = _Open(entry.node)
            asked = self._commands.get(entry.session)
            if asked is not None:
                one.by_command = True
                one.entries.append(asked)
        one.entries.append(entry)
        if entry.body.get("action") not in NOTES:
            one.well = healthy
        if entry.kind is Kind.ACTION and entry.body.get("ok"):
            action = entry.body.get("action")
            one.fenced = (one.fenced or action == "TaintNode") and action != "UntaintNode"
        if healthy and not (one.by_command and one.entries[0].session in self._commands):
            self._close(entry.uid, over=True)

    def _close(self, uid: str, *, over: bool) -> None:
        one = self._open.pop(uid)
        self._over.append((one, over))
        for row in one.entries:
            if row.kind is Kind.COMMAND and row.session in self._commands:
                self._outlived[row.session, uid] = one

    def _is_left(self, one: _Open, entry: Entry) -> bool:
        """Whether a command has begun this and was never heard of again: it was killed, as it seems."""
        session = one.entries[0].session
        if not one.by_command or one.fenced or session not in self._commands or entry.session == session:
            return False
        heard = max(row.at for row in one.entries if row.session == session)
        return (entry.at - heard).total_seconds() > LEFT_S

    def _ask(self, entry: Entry) -> None:
        """Take in what a person asks for: a command before it whose node is well has ended."""
        self._commands[entry.session] = entry
        for uid, one in tuple(self._open.items()):
            if one.node not in entry.body.get("nodes", ()):
                continue
            if one.by_command and one.well:
                self._over.append((self._open.pop(uid), True))
            else:
                one.entries.append(entry)

    def _end(self, entry: Entry) -> None:
        """Take in that a command has ended: what it began is over, unless it left a fence."""
        asked = self._commands.pop(entry.session, None)
        touched = [
            (uid, one)
            for uid, one in self._open.items()
            if any(row.session == entry.session for row in one.entries)
        ]
        for uid, one in touched:
            one.entries.append(entry)
            if one.by_command and not one.fenced:
                self._over.append((self._open.pop(uid), True))
        late = [key for key in self._outlived if key[0] == entry.session]
        for key in late:
            self._outlived.pop(key).entries.append(entry)
        if not touched and not late and asked is not None:
            self._over.append((_Open("", [asked, entry], by_command=True), True))

    def _of_another(self, one: _Open, entry: Entry) -> bool:
        """Whether a notice is about another node."""
        who = str(entry.body.get("text", "")).partition(": ")[0]
        return who != one.node and any(other.node == who for other in self._open.values())

    def _touched(self, asked: Entry) -> bool:
        told = (*self._open.values(), *(one for one, _ in self._over))
        return any(row is asked for one in told for row in one.entries)


def _id(entries: Sequence[Entry]) -> str:
    found = (one.incident.removesuffix("-shutdown").removeprefix("drill-") for one in entries if one.incident)
    return next(found, entries[0].session)


def _typed(entries: Sequence[Entry]) -> str:
    return ", ".join(map(str, entries[0].body.get("nodes", ())))
