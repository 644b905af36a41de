"""A process that is told something by lines of JSON on its stdin, and answers each with one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Talker:
    """Such a process.

    Args:
        process: With pipes as stdin and stdout.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def ask(self, **words: Any) -> dict[str, Any]:
        """Say something, and return the answer.

        Raises:
            RuntimeError: it has ended.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.process.args!r} has ended")
        return dict(json.loads(answer))


@contextmanager
def talking(module: str, *words: str, log: Path | None = None) -> Iterator[Talker]:
    """Run a module of the tests as such a process; end it in the end.

    Args:
        module: Its name.
        words: Its arguments.
        log: Where its stderr goes; None: with our own.
    """
    command: Sequence[str] = [sys.executable, "-m", module, *words]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FENCER_")}
    with ExitStack() as ending:
        process = ending.enter_context(
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=ending.enter_context(log.open("w")) if log else None,
                text=True,
                cwd=ROOT,
                env=environment,
            )
        )
        ending.callback(process.terminate)
        yield Talker(process)
