"""Processes forked from this one: they have imported what it has, and change nothing of it."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

BROKEN = 9
"""Exit code of `end_with` where there is none: an exception, which is told on standard error."""


def in_fork(what: Callable[[], Any]) -> Any:
    """Do something in a process of its own, and return what it returns."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        _silence(1)
        try:
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(what(), pipe)
        except BaseException:  # noqa: BLE001 - nothing may get out of this process
            traceback.print_exc()
        finally:
            os._exit(0)  # an empty pipe shows that it failed
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(pid, 0)
    return pickle.loads(told) if told else "the tests ended without a word"  # noqa: S301 - our own child's


def end_with(what: Callable[[], int], cpu_s: float, within_s: float) -> None:
    """Do something in silence, and end this process with its exit code.

    Args:
        what: Returns the exit code.
        cpu_s: SIGPROF ends the process once it has used this much CPU time.
        within_s: SIGALRM ends it once this much time has passed: it waits, or the machine is busy.
    """
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, within_s)
    told = os.dup(2)
    _silence(1, 2)
    code = BROKEN
    try:
        code = what()
    except BaseException:  # noqa: BLE001 - nothing may get out of this process
        os.write(told, traceback.format_exc().encode())
    finally:
        os._exit(code)


@dataclass(frozen=True, slots=True)
class Tell:
    """The end of a pipe at which a forked process says something, a line each time."""

    pipe: int

    def __call__(self, line: str) -> None:
        """Say it."""
        os.write(self.pipe, f"{line}\n".encode())


def tell_through_a_pipe() -> tuple[int, Tell]:
    """Return the two ends of a pipe: where it is heard, and where it is said."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)  # a process that a test has left behind may hold the other end
    return reading, Tell(writing)


def heard_from(reading: int) -> list[str]:
    """Return what a process has said before it ended, and close the pipe."""
    with os.fdopen(reading, "rb") as pipe:
        return (pipe.read() or b"").decode().splitlines()


def _silence(*outputs: int) -> None:
    sys.stdout.flush()
    quiet = os.open(os.devnull, os.O_WRONLY)
    for output in outputs:
        os.dup2(quiet, output)
    os.close(quiet)
