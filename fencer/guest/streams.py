"""The standard streams when they are closed, full, or read by nobody: for both command lines."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import IO, Any, Callable


class OutputLost(OSError):
    """Stdout cannot be written. Any other `OSError` is about something else."""

    def complaint(self) -> str:
        """Return what to say; empty: its reader has seen enough."""
        if self.errno == errno.EPIPE:
            return ""
        why = "it is closed" if self.errno == errno.EBADF else self.strerror
        return f"the output cannot be written: {why}"


class Output(io.FileIO):
    """The file under stdout: the first failure raises `OutputLost`, and what comes after it goes nowhere."""

    lost = False

    def write(self, data: Any) -> int:
        """See `io.FileIO.write`."""
        if not self.lost:
            try:
                return super().write(data)
            except OSError as error:
                self.lost = True
                raise OutputLost(error.errno, error.strerror) from error
        return len(data)


class Errors(io.FileIO):
    """The file under stderr: nobody can be told that it cannot be written."""

    def write(self, data: Any) -> int:
        """See `io.FileIO.write`."""
        try:
            return super().write(data)
        except OSError:
            return len(data)


def run(program: str, command: Callable[[], int]) -> int:
    """Run a command. If its answer cannot be written, that is one line on stderr, and no success.

    Args:
        program: Its name, for that line.
        command: Returns an exit code, or raises `SystemExit` with it.

    Returns:
        The exit code.
    """
    _guard()
    try:
        try:
            code = command()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        sys.stdout.flush()
    except OutputLost as lost:
        if lost.complaint():
            sys.stderr.write(f"{program}: {lost.complaint()}\n")
        return 1
    return code


def _guard() -> None:
    """Replace the standard streams, so that one that is closed or full ends no command in a traceback.

    Closed ones are opened, for the next file would get their number: stdout so that nothing can be written.

    Source: gnulib's ``stdopen.c`` does the same; Python sets a stream to None if it is closed.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115 - for as long as the process lives
    sys.stdout = _text(Output(_number(sys.stdout, os.O_RDONLY), "w", closefd=False), sys.stdout)
    sys.stderr = _text(Errors(_number(sys.stderr, os.O_WRONLY), "w", closefd=False), sys.stderr)


def _number(stream: IO[str] | None, flags: int) -> int:
    return os.open(os.devnull, flags) if stream is None else stream.fileno()


def _text(file: io.FileIO, like: IO[str] | None) -> io.TextIOWrapper:
    buffered = io.BufferedWriter(file)
    if not isinstance(like, io.TextIOWrapper):
        return io.TextIOWrapper(buffered)
    return io.TextIOWrapper(buffered, like.encoding, like.errors, line_buffering=like.line_buffering)
