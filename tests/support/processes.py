"""Processes of others: whether one lives, and how to freeze it.

SIGSTOP is obeyed thread by thread: one on another core may give an answer yet. So a freeze is waited for.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path

from tests.support import wait_until

_ENDED = {"Z", "X"}
_STOPPED = {"T"}


def alive(pid: int) -> bool:
    """Tell whether any thread of a process runs; one that only waits to be reaped does not.

    Its first thread may be over before the others: until the last one is, its files are open and locked.
    """
    return not _states(pid) <= _ENDED


def freeze(pid: int) -> None:
    """Stop a process with SIGSTOP; return when none of its threads runs any more, or it has ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: _is_still(pid), f"standstill of process {pid}")


def thaw(pid: int) -> None:
    """Let a frozen process go on; nothing happens where it has ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def _is_still(pid: int) -> bool:
    return _states(pid) <= _STOPPED | _ENDED


def _states(pid: int) -> set[str]:
    """Return the states of a process's threads; of one that is gone there is none."""
    states = set()
    with suppress(FileNotFoundError):  # the process has ended just now
        for stat in list(Path(f"/proc/{pid}/task").glob("*/stat")):
            with suppress(FileNotFoundError, ProcessLookupError):  # this thread has
                states.add(_state(stat))
    return states


def _state(stat: Path) -> str:
    """Return the letter behind the name in parentheses. Source: proc(5)."""
    return stat.read_text(errors="replace").rpartition(")")[2].split()[0]
