"""A terminal at which somebody types: a paste goes in at once, and questions are answered as they come."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.long.step import StepFailed

PROMPT = "ready> "
_LOOK_S = 0.3
_SHOWN = 1500
_CONTROL_C = b"\x03"
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """A shell on a terminal of its own. A context manager: it is hung up in the end.

    Args:
        command: What runs there: a shell whose prompt is `PROMPT`.
        log: Gets all that is on the screen.
    """

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command, self._log = command, log
        self._pid, self._line = 0, -1
        self._new = ""

    def __enter__(self) -> Self:
        self._pid, self._line = pty.fork()
        if self._pid == 0:
            os.execvp(self._command[0], self._command)  # noqa: S606 - a list, no shell
        self.wait(PROMPT, 60.0)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._line)
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)

    def type(self, text: str) -> None:
        """Type, or paste, a text and Enter."""
        os.write(self._line, f"{text}\n".encode())

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        os.write(self._line, _CONTROL_C)

    def wait(self, text: str, within_s: float, answers: Mapping[str, str] | None = None) -> str:
        """Wait until a text is on the screen, behind what was waited for before; return all up to it.

        Args:
            text: It.
            within_s: Seconds; longer is a failure.
            answers: What is typed where a question ends like that, each once.

        Raises:
            StepFailed: it does not come. The message has the end of the screen.
        """
        left = dict(answers or {})
        until = time.monotonic() + within_s
        answered = 0
        while (at := self._new.find(text, answered)) < 0:
            if time.monotonic() > until or not self._read():
                raise StepFailed(f"{text!r} does not come: {self._new[-_SHOWN:]}")
            for question in [one for one in left if one in self._new[answered:]]:
                answered = self._new.index(question, answered) + len(question)
                self.type(left.pop(question))
        if left:
            raise StepFailed(f"nobody asked {', '.join(left)}: {self._new[-_SHOWN:]}")
        shown, self._new = self._new[:at], self._new[at + len(text) :]
        return shown

    def _read(self) -> bool:
        """Read what is there within a moment; false: nothing will come any more."""
        if not select.select([self._line], [], [], _LOOK_S)[0]:
            return True
        try:
            told = os.read(self._line, 65536).decode(errors="replace")
        except OSError:  # the shell has ended
            return False
        with self._log.open("a") as log:
            log.write(told)
        self._new += _COLOUR.sub("", told)
        return bool(told)
