"""Where a step works: it runs commands in the checkout, and all that they say is in one file."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
HOUR_S = 3600.0


def required() -> Mapping[str, str]:
    """Return the variable by which a missing real part is a failure, unless it was set to something else."""
    return {"FENCER_REQUIRE_REAL": os.environ.get("FENCER_REQUIRE_REAL", "1")}


class Site:
    """The files of one step, again each time; what was said the last time is kept beside it, until the next.

    Attributes:
        folder: For whatever it keeps.
        log: What its commands were and what they said.
        seed: What is drawn by chance is drawn by this number.
    """

    def __init__(self, results: Path, name: str, seed: int) -> None:
        self.folder = results / name
        self.log = results / f"{name}.log"
        self.seed = seed
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        if self.log.exists():
            self.log.replace(results / f"{name}.before.log")
        self.log.write_bytes(b"")

    def run(
        self,
        *command: str,
        cwd: Path = CHECKOUT,
        within_s: float = 4 * HOUR_S,
        environment: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> int:
        """Run a command to its end; return its exit code, or minus the signal that ended it.

        Args:
            command: A program, found on PATH, and its words.
            cwd: Where.
            within_s: Seconds after which it is ended, with all that it started in its session.
            environment: None: ours.
            variables: In the environment besides, and told with the command.
        """
        variables = variables or {}
        with self.log.open("ab") as log:
            told = shlex.join([*(f"{name}={value}" for name, value in variables.items()), *command])
            log.write(f"\n$ {told}\n".encode())
            log.flush()
            with subprocess.Popen(
                command,
                cwd=cwd,
                env={**(os.environ if environment is None else environment), **variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            ) as process:
                try:
                    return process.wait(within_s)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    log.write(f"\nended: it took more than {within_s:g} s\n".encode())
                    return process.wait()
                except BaseException:
                    os.killpg(process.pid, signal.SIGKILL)
                    raise

    def last_line(self) -> str:
        """Return the last thing that was said, without pytest's frame and colours."""
        lines = [line.strip("= \n") for line in self.log.read_text(errors="replace").splitlines()]
        return next((line for line in reversed(lines) if line), "no word")
