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
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from fencer.errors import HypervisorDenied, HypervisorError, HypervisorProtocol, HypervisorUnreachable

MAX_BYTES = 4 * 1024 * 1024
"""More than this nobody says about a machine; one of 2,000 machines takes 100 bytes of a list."""

_CHUNK_BYTES = 65_536
_LOOK_S = 0.05
"""How long a program may be gone unnoticed whose heirs hold its output open: ssh's master process does."""

_REAP_S = 1.0
_WORD = re.compile(r"-{0,2}[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*")


class Late(HypervisorUnreachable):
    """The deadline passed; the program was ended, and what it had begun may go on."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a program left.

    Attributes:
        code: Its exit code; negative: the signal that killed it.
        stdout: Decoded; what is no UTF-8 is replaced, and so are the line ends of Windows.
        stderr: The same.
    """

    code: int
    stdout: str
    stderr: str


class Runner:
    """Runs one endpoint's command. Safe from any thread.

    Args:
        endpoint: The endpoint's name, for people.
        command: The program and its first words: ``("ssh", "me@box", "VBoxManage")``.
    """

    def __init__(self, endpoint: str, command: Sequence[str]) -> None:
        self._endpoint = endpoint
        self._command = tuple(command)
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = threading.Event()

    def run(self, *words: str, deadline_s: float, enough_bytes: int | None = None) -> Output:
        """Run the command with some words, and wait for its end.

        Args:
            words: Fixed words and UUIDs only: ssh gives them to a shell on the other side.
            deadline_s: Seconds from now after which it is killed with its children.
            enough_bytes: End it, as a success, once it has printed that much.

        Raises:
            Late: it was not done by then.
            HypervisorUnreachable: there is no such program, or the endpoint was closed.
            HypervisorDenied: it must not be run.
            HypervisorProtocol: it prints without end, or a word is none.
        """
        if unfit := [word for word in words if not _WORD.fullmatch(word)]:
            raise HypervisorProtocol(
                f"{self._endpoint}: {unfit[0]!r} is not given to a program: no plain word"
            )
        if self._closed.is_set():
            raise HypervisorUnreachable(f"{self._endpoint}: fencer is closing, nothing is asked any more")
        until_s = time.monotonic() + deadline_s
        process = self._start(words)
        try:
            return self._attend(process, words, until_s, deadline_s, enough_bytes)
        finally:
            self._end(process)

    def rest(self, seconds: float) -> None:
        """Wait, unless everything ends."""
        self._closed.wait(seconds)

    def close(self) -> None:
        """End what runs; from now on nothing is run. Never blocks."""
        self._closed.set()
        with self._lock:
            for process in self._running:
                _kill(process)

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
            raise self._not_startable(error) from error
        with self._lock:
            self._running.add(process)
            if self._closed.is_set():
                _kill(process)
        return process

    def _not_startable(self, error: OSError) -> HypervisorError:
        kind = HypervisorDenied if isinstance(error, PermissionError) else HypervisorUnreachable
        return kind(
            f"{self._endpoint}: cannot run {self._command[0]}: {error.strerror}. "
            "Is VirtualBox installed here? Name the program with its path in `command`"
        )

    def _attend(
        self,
        process: subprocess.Popen[bytes],
        words: Sequence[str],
        until_s: float,
        deadline_s: float,
        enough_bytes: int | None,
    ) -> Output:
        said = {"stdout": bytearray(), "stderr": bytearray()}
        with selectors.DefaultSelector() as selector:
            for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
                _register(selector, pipe, name)
            while selector.get_map():
                self._refuse_if_late(until_s, deadline_s, words)
                gone = process.poll() is not None
                ready = selector.select(0.0 if gone else min(_LOOK_S, max(0.0, until_s - time.monotonic())))
                if gone and not ready:
                    break  # somebody else holds the pipes
                for chosen, _ in ready:
                    _read(selector, chosen, said[chosen.data])
                if enough_bytes is not None and len(said["stdout"]) >= enough_bytes:
                    return Output(0, _text(said["stdout"]), _text(said["stderr"]))
                if sum(map(len, said.values())) > MAX_BYTES:
                    raise HypervisorProtocol(
                        f"{self._endpoint}: `{_line(words)}` prints more than {MAX_BYTES} bytes"
                    )
        try:
            code = process.wait(max(0.0, until_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise self._late(deadline_s, words) from None
        return Output(code, _text(said["stdout"]), _text(said["stderr"]))

    def _refuse_if_late(self, until_s: float, deadline_s: float, words: Sequence[str]) -> None:
        if time.monotonic() >= until_s:
            raise self._late(deadline_s, words)

    def _late(self, deadline_s: float, words: Sequence[str]) -> Late:
        return Late(f"{self._endpoint}: `{_line(words)}` did not answer within {deadline_s:.1f} s")

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
    """Kill a group whose leader was not reaped yet: until then nobody else can have its number."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _register(selector: selectors.BaseSelector, pipe: IO[bytes] | None, name: str) -> None:
    assert pipe is not None  # noqa: S101 - asked for in Popen
    os.set_blocking(pipe.fileno(), False)
    selector.register(pipe, selectors.EVENT_READ, name)


def _read(selector: selectors.BaseSelector, chosen: selectors.SelectorKey, into: bytearray) -> None:
    try:
        chunk = os.read(chosen.fd, _CHUNK_BYTES)
    except BlockingIOError:
        return
    if chunk:
        into += chunk
    else:
        selector.unregister(chosen.fileobj)


def _text(said: bytearray) -> str:
    return said.decode("utf-8", "replace").replace("\r\n", "\n")


def _line(words: Sequence[str]) -> str:
    return " ".join(words)
