"""The lock of a state file: one agent at a time writes it."""

from __future__ import annotations

import fcntl
import os
import weakref
from contextlib import suppress
from pathlib import Path

from fencer.own_file import create_file


class FileLock:
    """A lock on a file of its own, which stays empty.

    It is held until it is released, or this object or its process is gone. A process that executes another
    program, or itself again, releases it.

    Args:
        path: The file; it and its folder are created where they are missing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._close: weakref.finalize[[int], FileLock] | None = None

    @property
    def is_held(self) -> bool:
        """Whether this object holds it."""
        return self._close is not None

    def take(self) -> bool:
        """Take it, if this object does not hold it yet. Does not wait.

        Returns:
            False: another process holds it.

        Raises:
            OSError: the file cannot be created or opened, or its file system has no locks.
        """
        if self._close is not None:
            return True
        with suppress(FileExistsError):  # also if it is no folder: then the file in it cannot be opened
            self._path.parent.mkdir(mode=0o700, parents=True)
        descriptor = self._open()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                return False
            raise
        self._close = weakref.finalize(self, os.close, descriptor)
        return True

    def release(self) -> None:
        """Release it, if this object holds it."""
        if self._close is not None:
            self._close()
            self._close = None

    def _open(self) -> int:
        try:
            return create_file(self._path)
        except FileExistsError:
            return os.open(self._path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
