"""How long the Proxmox hookscript holds a guest's lock: the whole process, from its start to its end.

    ./dev bench hook

Each round runs every command once, so that whatever else the machine does meets all of them alike. Beside the
time on the clock stands the CPU time, which other work disturbs less.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fencer.runtime.hookserver import HookServer
from tests.benchmarks.measure import Row, percentile, program

HOOK = Path(__file__).parents[2] / "config" / "proxmox" / "fencer-hook"
TARGET_MS = 35.0
ROUNDS = 300
AT_ONCE = 200
_SHARE = 0.95


@dataclass(slots=True)
class Times:
    """What a command took, in milliseconds.

    Attributes:
        wall: On the clock.
        cpu: Of a processor.
    """

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    @property
    def p95(self) -> float:
        """The clock's 95th percentile."""
        return percentile(self.wall, _SHARE)

    def __str__(self) -> str:
        """The rest of it, for people."""
        return (
            f"p50 {statistics.median(self.wall):.1f} ms, CPU p50 {statistics.median(self.cpu):.1f} ms, "
            f"p95 {percentile(self.cpu, _SHARE):.1f} ms"
        )


def run(rounds: int = ROUNDS, at_once: int = AT_ONCE) -> list[Row]:
    """Run the hookscript where an agent listens, where none does, and where one hangs; and baselines.

    Args:
        rounds: How often each.
        at_once: How many hookscripts are started together in the end, as at a host's shutdown.
    """
    python = interpreter()[0]
    with tempfile.TemporaryDirectory() as name, ExitStack() as end:
        folder = Path(name)
        hook = [str(HOOK), "101", "post-stop"]
        cases = {
            "hookscript, an agent listens": (hook, end.enter_context(listening(folder / "present"))),
            "hookscript, no agent": (hook, folder / "absent"),
            "hookscript, the agent hangs": (hook, end.enter_context(hanging(folder / "hanging"))),
            "`python3 -c pass`": ([python, "-c", "pass"], folder),
            f"`{' '.join(interpreter())} -c pass`": ([*interpreter(), "-c", "pass"], folder),
            "`/bin/true`": (["/bin/true"], folder),
        }
        taken = {what: Times() for what in cases}
        for _ in range(rounds):
            for what, (command, runs) in cases.items():
                once(command, runs, taken[what])
        rows = [_row(what, times, rounds) for what, times in taken.items()]
        hooks, bare = (taken[what] for what in ("hookscript, an agent listens", "`python3 -c pass`"))
        share = statistics.median(hooks.wall) / statistics.median(bare.wall)
        rows.append(
            Row("hookscript / `python3 -c pass`, p50", "", f"{share:.2f}", None, "of the same rounds")
        )
        return [*rows, flood(folder / "present", at_once)]


def interpreter() -> list[str]:
    """Return how the hookscript's first line starts Python."""
    return HOOK.read_text().splitlines()[0].removeprefix("#!").split()


def once(command: Sequence[str], folder: Path, times: Times) -> None:
    """Run a command to its end as Proxmox would, and note what it took."""
    began_s = time.perf_counter()
    note(start(command, folder), began_s, times)


def note(process: subprocess.Popen[bytes], began_s: float, times: Times) -> None:
    """Wait for the end of a process, and note what it took."""
    _, status, used = os.wait4(process.pid, 0)
    times.wall.append(1000 * (time.perf_counter() - began_s))
    times.cpu.append(1000 * (used.ru_utime + used.ru_stime))
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{process.args!r} ended with {process.returncode}")


def flood(folder: Path, count: int) -> Row:
    """Start many at once; tell when the last of them has ended, and how many failed."""
    began_s = time.perf_counter()
    started = [start([str(HOOK), str(vmid), "post-stop"], folder) for vmid in range(100, 100 + count)]
    failed = sum(process.wait() != 0 for process in started)
    taken_s = time.perf_counter() - began_s
    return Row(
        f"{count} hookscripts at once, until the last has ended",
        "",
        f"{taken_s:.2f} s",
        None,
        f"{1000 * taken_s / count:.1f} ms each on {os.cpu_count()} processors; {failed} failed",
    )


def start(command: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
    """Start a command in the environment that Proxmox gives a hookscript."""
    environment = {
        "PATH": "/sbin:/bin:/usr/sbin:/usr/bin",
        "LC_ALL": "C",
        "FENCER_RUN_DIR": str(folder),
        "FENCER_HOOK_CONF": str(folder / "hook.conf"),
    }
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(
        list(command), env=environment, cwd="/", stdin=nowhere, stdout=nowhere, stderr=nowhere
    )


@contextmanager
def listening(folder: Path) -> Iterator[Path]:
    """Run what an agent hears hooks with."""
    folder.mkdir()
    server = HookServer(folder / "fencer.sock", lambda _guest: None)
    try:
        yield folder
    finally:
        server.close()


@contextmanager
def hanging(folder: Path) -> Iterator[Path]:
    """Have a socket with a full queue, that nobody reads."""
    folder.mkdir()
    path = str(folder / "fencer.sock")
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
    ):
        deaf.bind(path)
        sender.setblocking(False)
        try:
            while True:
                sender.sendto(b"post-stop 1\n", path)
        except BlockingIOError:
            yield folder


def _row(what: str, times: Times, rounds: int) -> Row:
    asked = what.startswith("hookscript")
    return Row(
        f"{what}, p95",
        f"≤ {TARGET_MS:g} ms" if asked else "",
        f"{times.p95:.1f} ms",
        times.p95 <= TARGET_MS if asked else None,
        f"n = {rounds}; {times}",
    )


if __name__ == "__main__":
    program(__doc__, run)
