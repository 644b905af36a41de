"""A daemon of the tests' own that ends with all that it started when the tests are over, however they end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_KEEPER = Path(__file__).with_name("keeper.py")


class Kept:
    """A daemon that may be started again and again, each time as a new process.

    Args:
        folder: For its log; removed at its end.
        command: The daemon, which stays in the foreground.
        environment: All that it gets.
        user: As whom it runs.
    """

    def __init__(
        self, folder: Path, command: Sequence[str], environment: Mapping[str, str], user: str
    ) -> None:
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_KEEPER), str(folder), user, *command],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def start(self) -> int:
        """Start the daemon, and return its process id."""
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.write("start\n")
        self._keeper.stdin.flush()
        return int(self._keeper.stdout.readline())

    def end(self) -> None:
        """End it, and all that it started."""
        self._keeper.communicate()  # closes the keeper's input

    @property
    def pid(self) -> int:
        """The process above all of it."""
        return self._keeper.pid
