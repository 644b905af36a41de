"""What a check says about one thing that it looked at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    NOTE = "note"
    WARN = "warn"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One row.

    Attributes:
        what: What was looked at, in a word.
        about: What it is: a path, an address, a count.
        level: How bad it is.
        note: What was seen.
        tries: What to try, a line each.
        points: What is wrong with it, where that is more than one thing: a sentence each.
        idle: What of it the verdict says to who believes to be guarded: "armed, but …"; empty: nothing.
    """

    what: str
    about: str
    level: Level = Level.OK
    note: str = ""
    tries: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    idle: str = ""
