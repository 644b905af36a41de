"""A pause: what people write to keep fencer's hands off, cluster-wide or for one node, and whether it holds.

The annotation `fencer.dev/pause` is theirs; fencer only reads it. Its value is a plain text, which says why
and has no end, or what `fencer pause` writes: JSON with an end. Whatever cannot be read is a pause without an
end: it never counts for less than what somebody may have meant.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from fencer.core.text import printable
from fencer.core.times import parse_utc, seconds_between

SCHEMA = 1
LONGEST_S = 7 * 24 * 3600
"""Who types a longer end than a week is asked again: it is a slip, or a pause without an end is meant. An end
that is written on the object and lies further away is taken as it is."""
NO_REASON = "no reason given"

_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9]{2}:[0-9]{2})")
"""A time whose zone is written: without it, nobody knows when it is."""


@dataclass(frozen=True, slots=True)
class PauseNote:
    """What somebody wrote.

    Attributes:
        why: Their words.
        until_utc: When it ends, by the API server's clock, RFC 3339; empty: it does not end by itself.
        by: Who; empty: not told.
        since_utc: When they wrote it, by the same clock; empty: not told.
    """

    why: str
    until_utc: str = ""
    by: str = ""
    since_utc: str = ""

    def over(self, utc: str) -> bool:
        """Whether its end has passed.

        Args:
            utc: The API server's clock, RFC 3339; one that cannot be read is before every end.
        """
        return bool(self.until_utc) and seconds_between(self.until_utc, utc) >= 0

    def __str__(self) -> str:
        """Say it for people: ``storage work (until 2026-11-27T04:00:00Z, by anna@box)``."""
        until = f"until {self.until_utc}" if self.until_utc else ""
        more = ", ".join(filter(None, (until, self.by and f"by {self.by}")))
        return printable(f"{self.why} ({more})" if more else self.why)


def write(pause: PauseNote) -> str:
    """Return the annotation's text for a pause."""
    told = {"why": pause.why, "until": pause.until_utc, "by": pause.by, "since": pause.since_utc}
    written = {name: value for name, value in told.items() if value}
    return json.dumps({"schema": SCHEMA, **written}, separators=(",", ":"), sort_keys=True)


def read(text: str | None) -> PauseNote | None:
    """Read the annotation's text, whoever wrote it.

    Args:
        text: As it is on the object; None: there is none.

    Returns:
        What was written; None: nothing, or the word ``false``.
    """
    if text is None or text.strip().lower() == "false":
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):  # plain words
        return PauseNote(text.strip() or NO_REASON)
    if not isinstance(data, dict):
        return PauseNote(text.strip())
    return _read(data) or PauseNote(f"{text.strip()}: not as `fencer pause` writes it, so it has no end")


def standing(text: str | None, utc: str) -> PauseNote | None:
    """Return the pause that holds at a time; None: none does.

    Args:
        text: The annotation's text; None: there is none.
        utc: The API server's clock, RFC 3339.
    """
    pause = read(text)
    return None if pause is None or pause.over(utc) else pause


def told(text: str | None, utc: str, latest_utc: str = "") -> str | None:
    """Return for people the pause that holds at a time; arguments and None as `standing`.

    Args:
        text: The annotation's text; None: there is none.
        utc: The slower of two clocks: by that one a pause ends (E26).
        latest_utc: The faster one; empty: not known, and before every end.
    """
    pause = standing(text, utc)
    if pause is not None and pause.over(latest_utc):
        return f"{pause}; one of two clocks is past its end: it holds until both are"
    return None if pause is None else str(pause)


def _read(data: dict[str, Any]) -> PauseNote | None:
    """Read what `fencer pause` writes; None: this is something else."""
    why, until, by, since = (data.get(name, "") for name in ("why", "until", "by", "since"))
    texts = all(isinstance(value, str) for value in (why, until, by, since))
    if not texts or data.get("schema") != SCHEMA or (until and not _is_moment(until)):
        return None
    return PauseNote(why.strip() or NO_REASON, until, by, since)


def _is_moment(text: str) -> bool:
    return _MOMENT.fullmatch(text) is not None and parse_utc(text) != parse_utc("")
