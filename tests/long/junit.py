"""What a junit file of pytest says: how many tests ran, and which failed, each with the first line of why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

FAMILY = ("-o", "junit_family=xunit1")
"""Options for pytest: only this kind of file names the file that a test is in."""
RUN_ITSELF = "the run itself"
"""Stands for a run that died, or failed otherwise than by a test."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of some tests.

    Attributes:
        tests_count: How many ran; those left out do not count.
        left_out_count: How many were left out.
        failures: By the failed test's name, as pytest takes it: the first line of why.
    """

    tests_count: int
    failures: Mapping[str, str]
    left_out_count: int = 0


@dataclass(slots=True)
class Tally:
    """What several runs of the same tests had.

    Attributes:
        runs_count: How many.
        tests_count: How many tests ran in all of them.
        failures: By test: in how many runs it failed.
        reasons: By test: why, in the first of them.
    """

    runs_count: int = 0
    tests_count: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)

    def add(self, run: Run) -> None:
        """Count a run."""
        self.runs_count += 1
        self.tests_count += run.tests_count
        for test, reason in run.failures.items():
            self.failures[test] += 1
            self.reasons.setdefault(test, reason)

    def lines(self) -> Iterable[str]:
        """Tell who failed how often, the most frequent first, and all in one line at the end."""
        for test, count in self.failures.most_common():
            yield f"{test}: failed in {count} of {self.runs_count} runs"
            yield f"    {self.reasons[test]}"
        yield f"{self.runs_count} runs, {self.tests_count} tests, {self.failures.total()} failures"


def read(file: Path, code: int, last_line: str) -> Run:
    """Return what a run had.

    Args:
        file: Where pytest was to write; not there, or half of it, if the run died.
        code: The run's exit code.
        last_line: The last thing it said.

    Returns:
        What it had; a run in which nothing ran has failed itself.
    """
    died = {RUN_ITSELF: f"exit code {code}: {last_line}"}
    try:
        cases = list(ET.parse(file).getroot().iter("testcase"))  # noqa: S314 - our own pytest's
    except (OSError, ET.ParseError):
        return Run(0, died)
    failures = {}
    for case in cases:
        for fault in (*case.iter("failure"), *case.iter("error")):
            failures.setdefault(_name(case), _first_line(fault))
    ran = {_name(case) for case in cases if case.find("skipped") is None}
    if not failures and (code or not ran):
        failures = died if code else {RUN_ITSELF: "no test ran"}
    return Run(len(ran), failures, len(cases) - len(ran))


def _name(case: ET.Element) -> str:
    """Return a test's name with the class that it may be in."""
    file = case.get("file", "")
    module = file.removesuffix(".py").replace("/", ".")
    owner = case.get("classname", "").removeprefix(module).strip(".")
    return "::".join(part for part in (file, *owner.split("."), case.get("name", "")) if part)


def _first_line(fault: ET.Element) -> str:
    lines = (fault.get("message") or fault.text or "").strip().splitlines()
    return lines[0] if lines else "no word"
