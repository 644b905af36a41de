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
    """Tell whether a process runs; one that only waits to be reaped does not."""
    try:
        return _state(Path(f"/proc/{pid}/stat")) not in _ENDED
    except (FileNotFoundError, ProcessLookupError):  # the latter: it went while it was read
        return False


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
    try:
        states = {_state(stat) for stat in Path(f"/proc/{pid}/task").glob("*/stat")}
    except (FileNotFoundError, ProcessLookupError):  # one of its threads has ended just now
        return False
    return states <= _STOPPED | _ENDED


def _state(stat: Path) -> str:
    """Return the letter behind the name in parentheses. Source: proc(5)."""
    return stat.read_text(errors="replace").rpartition(")")[2].split()[0]
