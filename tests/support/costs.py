"""What each part of the tests costs: a plugin that prints time and CPU seconds at the end of a run.

CPU counts with all that a part started: API servers, libvirtd, QEMU, commands. So it says what a part costs
also where tests run beside each other, and where time says little.
"""

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_TESTS = Path(__file__).parents[1]
_BY_FILE = {"e2e"}
"""Folders of which each file is a part of its own."""
_TICKS = os.sysconf("SC_CLK_TCK")
_UNDER = "costs"


class Costs:
    """Notes where the time of one process goes, while it runs tests.

    Attributes:
        tests_count: By part.
        time_s: By part: its tests' own time, fixtures included.
        cpu_s: By part: of this process and of all that it started.
    """

    def __init__(self) -> None:
        self.tests_count: dict[str, float] = defaultdict(int)
        self.time_s: dict[str, float] = defaultdict(float)
        self.cpu_s: dict[str, float] = defaultdict(float)
        self._part = ""
        self._cpu_before_s = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        """Time a test with what it sets up and tears down."""
        part = part_of(item.path)
        self._turn_to(part)
        began_s = time.monotonic()
        result = yield
        self.tests_count[part] += 1
        self.time_s[part] += time.monotonic() - began_s
        return result

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Close the account; a worker hands it to the process that prints."""
        self._turn_to("")
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_UNDER] = [dict(self.tests_count), dict(self.time_s), dict(self.cpu_s)]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over a worker's account."""
        for mine, theirs in zip(
            (self.tests_count, self.time_s, self.cpu_s),
            getattr(node, "workeroutput", {}).get(_UNDER, ()),
            strict=False,
        ):
            for part, amount in theirs.items():
                mine[part] += amount

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a line for each part, the most expensive first."""
        if len(self.tests_count) < 2:
            return
        terminalreporter.section("what each part costs: time, CPU seconds with all that it started")
        by_cost = sorted(self.cpu_s, key=self.cpu_s.__getitem__, reverse=True)
        for name, parts in [*((part, [part]) for part in by_cost), ("all", by_cost)]:
            tests_count, time_s, cpu_s = (
                sum(amounts[part] for part in parts)
                for amounts in (self.tests_count, self.time_s, self.cpu_s)
            )
            told = f"{name:<32} {tests_count:>5} tests {time_s:>7.0f} s {cpu_s:>7.0f} CPU s"
            terminalreporter.write_line(told)

    def _turn_to(self, part: str) -> None:
        if part == self._part:
            return
        now_s = cpu_used_s(os.getpid())
        if self._part:
            self.cpu_s[self._part] += now_s - self._cpu_before_s
        self._part, self._cpu_before_s = part, now_s


def part_of(path: Path) -> str:
    """Name the part that a test file belongs to: its room, end to end the file itself."""
    room, *rest = path.relative_to(_TESTS).parts
    return f"{room}/{Path(rest[-1]).stem}" if room in _BY_FILE else room


def cpu_used_s(root: int) -> float:
    """Return the CPU seconds that a process and all its descendants have used so far, ended ones included.

    Source: proc(5): `stat` has user and system time of a process and of the children that it has reaped.
    """
    used: dict[int, int] = {}
    parent_of: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        pid = int(stat.parent.name)
        parent_of[pid] = int(fields[1])
        used[pid] = sum(map(int, fields[11:15]))
    family = {root}
    while more := {pid for pid, parent in parent_of.items() if parent in family} - family:
        family |= more
    return sum(used.get(pid, 0) for pid in family) / _TICKS


def pytest_configure(config: pytest.Config) -> None:
    """Keep an account in each process that runs tests, and in the one that prints."""
    config.pluginmanager.register(Costs(), "fencer-costs")
