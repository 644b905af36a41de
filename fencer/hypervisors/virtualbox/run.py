"""Processes that may hang: started without a shell, bounded in time and size, ended with their children."""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import IO, Final

from fencer.errors import HypervisorDenied, HypervisorError, HypervisorProtocol, HypervisorUnreachable

MAX_BYTES = 4 * 1024 * 1024
"""No answer about a machine is longer; each of 2,000 machines takes 100 bytes of a list."""

_CHUNK_BYTES = 65_536
_LOOK_S = 0.05
"""How long a program may be gone unnoticed whose heirs hold its output open: ssh's master process does."""

_REAP_S = 1.0
"""Wait this long for a killed process, then leave it."""

PLAIN: Final = re.compile(r"-{0,2}[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*")
"""Words that are safe in a shell: ssh passes all words to one on the other side."""
ANY: Final = re.compile(r"[^\0]+")


class Late(HypervisorUnreachable):
    """The deadline passed; the program was ended, and what it had begun may go on."""


@dataclass(frozen=True, slots=True)
class Output:
    """The result of a program.

    Attributes:
        code: Its exit code; negative: the signal that killed it.
        stdout: Decoded; what is no UTF-8 is replaced, and so are the line ends of Windows.
        stderr: The same.
        is_cut: It had printed enough, and was ended for that.
    """

    code: int
    stdout: str
    stderr: str
    is_cut: bool = False


@dataclass(eq=False, slots=True)
class _Attempt:
    """A program that runs, what it has printed so far, and its pipes that are still open."""

    process: subprocess.Popen[bytes]
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    open: set[IO[bytes]] = field(default_factory=set)

    @property
    def size(self) -> int:
        return len(self.stdout) + len(self.stderr)

    def output(self, code: int) -> Output:
        return Output(code, _text(self.stdout), _text(self.stderr))

    def read(self, pipe: IO[bytes], into: bytearray) -> bool:
        """Take in what a pipe has; return whether that was its end."""
        try:
            chunk = os.read(pipe.fileno(), _CHUNK_BYTES)
        except BlockingIOError:
            return False
        into += chunk
        if not chunk:
            self.open.discard(pipe)
        return not chunk


class Runner:
    """Runs one endpoint's command. Safe from any thread.

    Args:
        endpoint: The endpoint's name, for people.
        command: The program and its first words: ``("ssh", "me@box", "VBoxManage")``.
        fit: Words that may be added to it; the caller has to quote words that are not `PLAIN`.
    """

    def __init__(self, endpoint: str, command: Sequence[str], fit: re.Pattern[str] = PLAIN) -> None:
        self._endpoint = endpoint
        self._command = tuple(command)
        self._fit = fit
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = threading.Event()

    def run(
        self,
        *words: str,
        deadline_s: float,
        enough_bytes: int | None = None,
        again_s: float | None = None,
    ) -> Output:
        """Run the command with some words, and wait for its end.

        Args:
            words: Fixed words and UUIDs only, unless the runner was made for others.
            deadline_s: Seconds from now after which it is killed with its children.
            enough_bytes: End it, as a success, once it has printed this much.
            again_s: Seconds after which it is run again in parallel, for commands that only read; the first
                result is returned, and the other one killed. None: never.

        Raises:
            Late: it was not done by then.
            HypervisorUnreachable: there is no such program, or the endpoint was closed.
            HypervisorDenied: it must not be run.
            HypervisorProtocol: it prints without end, or a word is none.
        """
        if unfit := [word for word in words if not self._fit.fullmatch(word)]:
            raise HypervisorProtocol(
                f"{self._endpoint}: {unfit[0]!r} is not given to a program: no plain word"
            )
        if self._closed.is_set():
            raise HypervisorUnreachable(f"{self._endpoint}: fencer is closing, nothing is asked any more")
        now_s = time.monotonic()
        until_s, again_at_s = now_s + deadline_s, now_s + (deadline_s if again_s is None else again_s)
        with ExitStack() as started, selectors.DefaultSelector() as selector:
            attempts = [self._attempt(words, selector, started)]
            while (now_s := time.monotonic()) < until_s:
                if len(attempts) == 1 and now_s >= again_at_s:
                    attempts.append(self._attempt(words, selector, started))
                patience_s = min(_LOOK_S, until_s - now_s)
                if (output := _first(attempts, selector, patience_s, enough_bytes)) is not None:
                    return output
                if any(attempt.size > max(MAX_BYTES, enough_bytes or 0) for attempt in attempts):
                    raise HypervisorProtocol(
                        f"{self._endpoint}: `{_line(words)}` prints more than {MAX_BYTES} bytes"
                    )
        raise Late(f"{self._endpoint}: `{_line(words)}` did not answer within {deadline_s:.1f} s")

    def rest(self, seconds: float) -> None:
        """Wait, unless everything ends."""
        self._closed.wait(seconds)

    def close(self) -> None:
        """End all running commands; from now on none is run. Never blocks."""
        self._closed.set()
        with self._lock:
            for process in self._running:
                _kill(process)

    def _attempt(
        self, words: Sequence[str], selector: selectors.BaseSelector, started: ExitStack
    ) -> _Attempt:
        """Start the command, to be ended with `started`."""
        process = self._start(words)
        started.callback(self._end, process)
        attempt = _Attempt(process)
        for pipe, said in ((process.stdout, attempt.stdout), (process.stderr, attempt.stderr)):
            assert pipe is not None  # noqa: S101 - asked for in Popen
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ, (attempt, pipe, said))
            attempt.open.add(pipe)
        return attempt

    def _start(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        # Own session: the group can be killed as one, and ssh finds no terminal to ask a question on.
        # VirtualBox's words are the same in every language only where it is told so.
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "SSH_ASKPASS_REQUIRE": "never"}
        try:
            process = subprocess.Popen(  # noqa: S603 - a list without a shell, from the configuration
                [*self._command, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise self._not_startable(error, words) from error
        with self._lock:
            self._running.add(process)
            if self._closed.is_set():
                _kill(process)
        return process

    def _not_startable(self, error: OSError, words: Sequence[str]) -> HypervisorError:
        kind = HypervisorDenied if isinstance(error, PermissionError) else HypervisorUnreachable
        return kind(
            f"{self._endpoint}: cannot run {[*self._command, *words][0]}: {error.strerror}. "
            "Is VirtualBox installed here? Name the program with its path in `command`"
        )

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Leave nothing behind: no process of the group, no open pipe, no zombie."""
        _kill(process)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_REAP_S)  # a process in the kernel's hands goes later
        with self._lock:
            self._running.discard(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a group whose leader was not reaped yet: until then its number cannot be used again."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _first(
    attempts: Sequence[_Attempt],
    selector: selectors.BaseSelector,
    patience_s: float,
    enough_bytes: int | None,
) -> Output | None:
    """Read the attempts' output for a moment; return the result of one that is done, if any."""
    gone = {attempt for attempt in attempts if attempt.process.poll() is not None}
    ready = selector.select(0.0 if gone else patience_s)
    for chosen, _ in ready:
        attempt, pipe, said = chosen.data
        if attempt.read(pipe, said):
            selector.unregister(pipe)
    heard = {chosen.fileobj for chosen, _ in ready}
    for attempt in attempts:
        if enough_bytes is not None and len(attempt.stdout) >= enough_bytes:
            return replace(attempt.output(0), is_cut=True)
        if not attempt.open:
            with suppress(subprocess.TimeoutExpired):
                return attempt.output(attempt.process.wait(_LOOK_S))
        elif attempt in gone and heard.isdisjoint(attempt.open):
            return attempt.output(attempt.process.returncode)  # somebody else holds the pipes
    return None


def _text(said: bytearray) -> str:
    return said.decode("utf-8", "replace").replace("\r\n", "\n")


def _line(words: Sequence[str]) -> str:
    return " ".join(words)
