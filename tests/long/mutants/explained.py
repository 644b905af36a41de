"""Faults that no test finds, and why nobody could see them: `explained.toml`, by place and text."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.long.mutants.faults import Fault

LIST = Path(__file__).with_name("explained.toml")


@dataclass(frozen=True, slots=True)
class Explained:
    """An entry of the list. Attributes as in `Fault`, and why nobody can see the difference."""

    path: str
    place: str
    before: str
    after: str
    why: str

    def __str__(self) -> str:
        return f"{self.path} {self.place}\n  - {self.before}\n  + {self.after or '(nothing)'}\n  {self.why}"

    def explains(self, fault: Fault) -> bool:
        """Whether the entry is about this fault: numbers of lines do not count."""
        mine = (self.path, self.place, self.before, self.after)
        return mine == (fault.path, fault.place, fault.before, fault.after)


def read(path: Path = LIST) -> list[Explained]:
    """Return the list.

    Raises:
        TypeError: An entry lacks a key, or has one too many.
    """
    return [Explained(**entry) for entry in tomllib.loads(path.read_text()).get("explained", ())]


def unexplained(faults: Iterable[Fault], entries: Iterable[Explained]) -> list[Fault]:
    """Return the faults that no entry is about."""
    entries = list(entries)
    return [fault for fault in faults if not any(entry.explains(fault) for entry in entries)]


def outdated(faults: Iterable[Fault], entries: Iterable[Explained]) -> list[Explained]:
    """Return the entries about these modules that explain none of these faults: code or tests are new."""
    faults = list(faults)
    return [entry for entry in entries if not any(entry.explains(fault) for fault in faults)]
