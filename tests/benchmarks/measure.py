"""What every benchmark needs: rows of one table, CPU time and memory as the kernel counts, percentiles."""

from __future__ import annotations

import argparse
import math
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Row:
    """One number.

    Attributes:
        what: What was measured.
        target: What was asked for (docs/performance.md), as text; empty: by nobody, told for comparison.
        measured: What was seen, as text.
        met: Whether the target is met; None: there is none.
        note: How it was measured.
    """

    what: str
    target: str
    measured: str
    met: bool | None
    note: str = ""


@dataclass(slots=True)
class Cost:
    """CPU seconds that this process (and its threads) used inside a `cpu` block."""

    cpu_s: float = 0.0


@contextmanager
def cpu() -> Iterator[Cost]:
    """Count the CPU seconds of a block: user and system, all threads."""
    cost, before_s = Cost(), time.process_time()
    try:
        yield cost
    finally:
        cost.cpu_s = time.process_time() - before_s


def cpu_of(pid: int) -> float:
    """Return the CPU seconds that another process has used so far. Source: proc(5), /proc/pid/stat."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident_mib(pid: int | str = "self", *, peak: bool = False) -> float:
    """Return resident memory, in MiB; `peak`: the most there ever was of it."""
    name = "VmHWM:" if peak else "VmRSS:"
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024 / MIB
    raise RuntimeError(f"process {pid} tells no {name}")


def proportional_mib(pid: int) -> float:
    """Return a process' proportional share of memory (PSS), in MiB: pages that n processes share count 1/n.

    Source: proc(5), /proc/pid/smaps_rollup.
    """
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024 / MIB
    raise RuntimeError(f"process {pid} tells no Pss")


def threads_of(pid: int | str = "self") -> int:
    """Return how many threads a process has."""
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def files_of(pid: int | str = "self") -> int:
    """Return how many file descriptors a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = ["| what | target | measured | met | how |", "|---|---|---|---|---|"]
    words = {True: "yes", False: "**no**", None: "–"}
    lines += [
        f"| {row.what} | {row.target or '–'} | {row.measured} | {words[row.met]} | {row.note} |"
        for row in rows
    ]
    return "\n".join(lines)


def machine() -> str:
    """Return one line on what the numbers were taken on, and how busy it was."""
    model = next(
        (line.partition(":")[2].strip() for line in _cpuinfo() if line.startswith("model name")),
        "unknown CPU",
    )
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{os.cpu_count()} × {model}, Linux {platform.release()}, Python {platform.python_version()}; "
        f"load average {load}"
    )


def program(doc: str | None, run: Callable[[], Sequence[Row]]) -> None:
    """Be the program of a benchmark: measure at full size, and print the table."""
    argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    rows = run()
    print(table(rows))  # noqa: T201 - it is what the program is for
    print(f"\n{machine()}")  # noqa: T201 - this is a command


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []
