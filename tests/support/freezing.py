"""Freezing a process: SIGSTOP is obeyed thread by thread, and one on another core may give an answer yet."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from tests.support import wait_until


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
    threads = Path(f"/proc/{pid}/task")
    try:
        stats = [stat.read_text(errors="replace") for stat in threads.glob("*/stat")]
    except OSError:  # one of them has ended just now
        return False
    # The state is the first word after the name in parentheses: T is stopped, Z ended. Source: proc(5).
    return {stat.rpartition(")")[2].split()[0] for stat in stats} <= {"T", "Z"}
