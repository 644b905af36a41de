"""``fencer`` as a process that need not import everything first: forked from one that has.

Imports are nearly all that a command costs (0.4 CPU seconds). So one process, started as the console script
is, imports them once, and forks for each call a process that runs `main` and ends as the script does: with
its own stdout and stderr, with the interpreter's traceback and exit code. It has no threads, unlike that of
the tests, so that forking is sound.

What is shown of being started (the entry point, an argv that is no text, that a command imports what it
needs) is shown with the real one.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Self

_HEAVY = (
    "fencer.cluster.kubernetes",
    "fencer.config.load",
    "fencer.hypervisors.virtualbox",
    "kubernetes.client.api_client",
    "kubernetes.config",
)
"""What commands import where they need it."""
WITHIN_S = 300
"""A call that takes longer is killed, and its code says so. Far more than a busy machine needs."""


class Forge:
    """Runs commands, each in a process forked for it.

    Args:
        environment: What all of them find.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(environment)
        )

    def run(self, words: Sequence[str]) -> tuple[int, bytes, bytes]:
        """Run ``fencer WORDS…``; return its exit code, stdout and stderr."""
        assert self._process.stdin
        assert self._process.stdout
        with TemporaryFile() as out, TemporaryFile() as err:
            files = [f"/proc/{os.getpid()}/fd/{file.fileno()}" for file in (out, err)]
            self._process.stdin.write(f"{json.dumps([words, *files])}\n".encode())
            self._process.stdin.flush()
            code = int(self._process.stdout.readline())
            return code, Path(files[0]).read_bytes(), Path(files[1]).read_bytes()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()


def forge() -> None:
    """Fork a process for each line of stdin and write its exit code. Returns in each of them."""
    while line := sys.stdin.readline():
        words, out, err = json.loads(line)
        pid = os.fork()
        if pid == 0:
            for number, path, flags in (
                (0, os.devnull, os.O_RDONLY),
                (1, out, os.O_WRONLY),
                (2, err, os.O_WRONLY),
            ):
                os.dup2(os.open(path, flags), number)
            sys.argv = ["fencer", *words]
            signal.alarm(WITHIN_S)
            return
        _, status = os.waitpid(pid, 0)
        os.write(1, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    sys.exit()


if __name__ == "__main__":
    from fencer.cli.main import COMMANDS, main

    for _module in (*(place.partition(":")[0] for place in COMMANDS.values()), *_HEAVY):
        import_module(_module)
    gc.freeze()  # no call goes through all of it again, which would copy it
    forge()
    sys.exit(main())
