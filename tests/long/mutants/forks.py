"""Processes forked from this one: they have imported what it has, and change nothing of it."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable
from typing import Any

BROKEN = 9
"""Exit code of `end_with` where there is none: an exception."""


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
        finally:
            os._exit(0)  # whatever went wrong is told by what is not in the pipe
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(pid, 0)
    return pickle.loads(told) if told else "the tests ended without a word"  # noqa: S301 - our own child's


def end_with(what: Callable[[], int], within_s: int) -> None:
    """Do something in silence, and end this process with its exit code; or by SIGALRM, if it takes long."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(within_s)
    _silence(1, 2)
    code = BROKEN
    try:
        code = what()
    finally:
        os._exit(code)


def _silence(*outputs: int) -> None:
    sys.stdout.flush()
    quiet = os.open(os.devnull, os.O_WRONLY)
    for output in outputs:
        os.dup2(quiet, output)
    os.close(quiet)
