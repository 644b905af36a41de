"""Rows, folded into incidents, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from fencer.journal.incidents import ALARM, NOTES, Incident, raises_alarm, ready_unheeded, shows_fence
from fencer.journal.rows import Entry, Kind

LEFT_S = 3600.0
"""A command of which nothing was heard for so long has ended, and nobody wrote that down."""


@dataclass
class _Open:
    """An incident that goes on while rows are read."""

    node: str
    entries: list[Entry] = field(default_factory=list)
    fenced: bool = False
    by_command: bool = False
    well: bool = False
    """The newest row about its node says so."""
    down: bool = False
    """Its node was fenced, or not Ready while fencing was paused: if it is Ready then, it is back."""
    stands: bool = False
    """It carries a fence, whoever set it."""
    in_alarm: bool = False
    """An alarm was raised: if its node is at rest without one, the alarm is over."""

    def saw(self, entry: Entry, *, ready: bool | None) -> None:
        """Take note of what a decision says; `ready` as `ready_unheeded` has it."""
        if ready is None:
            self.stands = shows_fence(entry)
        self.down = self.down or self.stands or ready is False
        self.in_alarm = self.in_alarm or raises_alarm(entry)

    def take(self, entry: Entry, *, ready: bool | None) -> None:
        """Take one row in; `ready` as `ready_unheeded` has it."""
        self.entries.append(entry)
        if entry.kind is Kind.DECISION:
            self.saw(entry, ready=ready)
        if entry.kind is Kind.ACTION and entry.body.get("ok"):
            self.did(entry.body.get("action"))

    def is_well(self, entry: Entry, *, healthy: bool, ready: bool | None) -> bool:
        """Whether a row says that its node is well: a decision that raises an alarm never does."""
        if raises_alarm(entry):
            return False
        return healthy or (ready is True and (self.down or self.in_alarm) and not self.stands)

    def did(self, action: object) -> None:
        """Take note of what was done."""
        self.fenced = (self.fenced or action == "TaintNode") and action != "UntaintNode"
        self.stands = (self.stands or action == "TaintNode") and action != "UntaintNode"
        self.down = self.down or self.fenced


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
        self._asked: list[Entry] = []
        """All of them, ended or not."""
        self._heard: dict[str, datetime] = {}
        """When those that have not ended were last heard of."""
        self._outlived: dict[tuple[str, str], _Open] = {}
        """What was over before a command about it had ended, by session and node."""

    def take(self, entry: Entry) -> None:
        """Take one row in."""
        if entry.session in self._heard:
            self._heard[entry.session] = entry.at
        self._leave(entry)
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
        shown = {row.number for one, _ in every for row in one.entries}
        every += [
            (_Open("", [asked], by_command=True), False) for asked in self._asked if asked.number not in shown
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
        ready, action = ready_unheeded(entry), entry.body.get("action")
        one = self._open.get(entry.uid)
        outlived = self._outlived.get((entry.session, entry.uid))
        if one is None and outlived is not None and action != "TaintNode":
            outlived.entries.append(entry)
            return
        alone = one is None and action == ALARM  # an older fencer recorded no decision before it
        if one is None:
            quiet = healthy or action in NOTES or ready
            if quiet and not (raises_alarm(entry) or alone):
                return
            one = self._open[entry.uid] = _Open(entry.node, by_command=entry.session in self._commands)
        asked = self._commands.get(entry.session)
        if asked is not None and all(row.number != asked.number for row in one.entries):
            one.entries.append(asked)  # also late: an agent may have written first of what a command did
        one.take(entry, ready=ready)
        well = one.is_well(entry, healthy=healthy, ready=ready)
        if action not in NOTES:
            one.well = well
        if (well or alone) and not (one.by_command and one.entries[0].session in self._commands):
            self._close(entry.uid, over=True)

    def _close(self, uid: str, *, over: bool) -> None:
        one = self._open.pop(uid)
        self._over.append((one, over))
        for row in one.entries:
            if row.kind is Kind.COMMAND and row.session in self._commands:
                self._outlived[row.session, uid] = one

    def _leave(self, entry: Entry) -> None:
        """Let commands end of which nothing was heard for long: somebody has killed them, as it seems."""
        late = [one for one, at in self._heard.items() if (entry.at - at).total_seconds() > LEFT_S]
        for session in late:
            del self._heard[session]
            self._commands.pop(session, None)
            for uid, one in tuple(self._open.items()):
                if one.by_command and one.entries[0].session == session and not one.fenced:
                    self._close(uid, over=one.well)

    def _ask(self, entry: Entry) -> None:
        """Take in what a person asks for: a command before it whose node is well has ended."""
        self._commands[entry.session] = entry
        self._asked.append(entry)
        self._heard[entry.session] = entry.at
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
        self._heard.pop(entry.session, None)
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


def _id(entries: Sequence[Entry]) -> str:
    found = (one.incident.removesuffix("-shutdown").removeprefix("drill-") for one in entries if one.incident)
    return next(found, entries[0].session)


def _typed(entries: Sequence[Entry]) -> str:
    return ", ".join(map(str, entries[0].body.get("nodes", ())))
