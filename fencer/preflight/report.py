"""The result of a check, in words and as data. The command decides how it looks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencer.core.policy import Mode
from fencer.core.text import count, printable
from fencer.preflight.finding import Finding, Level

ACTS = "Ready, and armed: `fencer watch` acts."


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a check.

    Attributes:
        path: Of the configuration.
        mode: What it says; None: it could not be read.
        findings: In the order in which they are shown.
    """

    path: Path
    mode: Mode | None
    findings: tuple[Finding, ...]

    @property
    def failed(self) -> tuple[str, ...]:
        """What fails, each named once."""
        return tuple(dict.fromkeys(one.what for one in self.findings if one.level is Level.FAIL))

    @property
    def verdict(self) -> str:
        """The conclusion, in a line."""
        levels = [one.level for one in self.findings]
        failures, warnings = levels.count(Level.FAIL), levels.count(Level.WARN)
        if self.failed:
            ready = f"Not ready to be armed: {', '.join(self.failed)}."
        elif self.mode is Mode.ARMED:
            idle = dict.fromkeys(one.idle for one in self.findings if one.idle)
            ready = f"Ready, and armed, but {' and '.join(idle)}." if idle else ACTS
        else:
            ready = f"Ready to be armed: `mode: armed` in {self.path}."
        return f"{count(failures, 'failure')}, {count(warnings, 'warning')}. {printable(ready)}"

    def data(self) -> dict[str, Any]:
        """Return all of it for programs."""
        rows = [
            {
                "what": one.what,
                "about": one.about,
                "level": one.level.lower(),
                "note": one.note,
                "points": list(one.points),
                "try": list(one.tries),
            }
            for one in self.findings
        ]
        return {"ready": not self.failed, "verdict": self.verdict, "findings": rows}
