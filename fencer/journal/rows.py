"""What a row of the journal is, before it is written and as it is kept; and where rows go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Protocol

from fencer.core.model import Observation
from fencer.journal.codec import unpack

UNKEPT = "unkept_bytes"
"""Of a row's body: what was known had so many bytes, and is not kept."""


class Kind(StrEnum):
    """What a row tells."""

    SESSION = "session"
    """An agent or a command begins: who, which version, under which policy."""
    DECISION = "decision"
    """A node's verdict or reason is another one; with all that was known then."""
    INTENT = "intent"
    """This is about to be done."""
    ACTION = "action"
    """This was done, or has failed."""
    NOTICE = "notice"
    """What concerns no single node."""
    COMMAND = "command"
    """A person asks for something, with their words."""
    ENDED = "ended"
    """How that ended."""
    LOST = "lost"
    """So many rows could not be written."""


BY_HAND = " (by hand)"
"""Ends the name of a person who typed a command; an agent's has no such end."""


@dataclass(frozen=True, slots=True)
class Row:
    """What is to be written.

    Attributes:
        at_utc: When, by this machine's clock: RFC 3339 in UTC, with milliseconds.
        at_s: The same by the monotonic clock of its session: how long something took is told by that.
        kind: What it tells.
        body: Makes the rest, as JSON has it. Called by whoever writes, so that nobody else waits for it.
        node: Which node it is about; empty: none.
        uid: That node's UID.
        incident: Id of the incident.
        seen: All that was known.
    """

    at_utc: str
    at_s: float
    kind: Kind
    body: Callable[[], Mapping[str, Any]]
    node: str = ""
    uid: str = ""
    incident: str = ""
    seen: Observation | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A row as it is kept.

    Attributes:
        number: Its place: rows are numbered one after the other.
        at: When, in UTC.
        at_s: The same by the monotonic clock of its session.
        session: Which run of an agent or of a command wrote it.
        by: Who that is, like ``fencer@pve1`` or ``root@pve1 (by hand)``.
        kind: What it tells.
        node: Which node it is about; empty: none.
        uid: That node's UID.
        incident: Id of the incident.
        body: The rest, by kind, see `fencer.journal.recorder`.
        packed: All that was known; None: nothing is kept of that.
        digest: Of this row and all before it.
    """

    number: int
    at: datetime
    at_s: float
    session: str
    by: str
    kind: Kind
    node: str
    uid: str
    incident: str
    body: Mapping[str, Any] = field(default_factory=dict)
    packed: bytes | None = None
    digest: str = ""

    @property
    def seen(self) -> Observation | None:
        """All that was known, read anew at each call; None: nothing is kept of that.

        Raises:
            JournalError: it is damaged, or of another fencer.
        """
        return None if self.packed is None else unpack(self.packed)


class Journal(Protocol):
    """Where rows go."""

    def put(self, row: Row) -> int:
        """Have a row written, soon. Never waits, and never raises.

        Returns:
            Its ticket, for `written`.
        """
        ...

    def written(self, ticket: int, patience_s: float) -> bool:
        """Wait until a row is on the disk, so long at most; return whether it is.

        False at once while the disk is known to hang or to refuse. Also False for a row that was lost, and
        for every row before it: the writer does not keep what became of each.
        """
        ...


def text_of(when: datetime) -> str:
    """Return a time as rows have it: RFC 3339 in UTC, with milliseconds."""
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
