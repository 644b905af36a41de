"""Anything that apprise knows, by a process of its own, which may hang, crash and fill its memory alone.

There is one such process at a time, however many receivers there are: together they could take all memory.

Source: github.com/caronc/apprise, the wiki's Development_API.
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

from fencer.bounded import Bounds, Unbounded, bounded_lines
from fencer.errors import ReceiverError
from fencer.notify.hidden import parts_of, read_secrets, shown
from fencer.notify.message import Message
from fencer.notify.receiver import DEADLINE_S, Manner
from fencer.notify.settings import AppriseSettings
from fencer.notify.texts import plain, subject
from fencer.wording.occasions import Occasion

_CHILD = Path(__file__).parent.parent / "apprise_child.py"
_ENVIRONMENT = ("LANG", "LC_ALL", "SSL_CERT_DIR", "SSL_CERT_FILE", "TZ")
"""All that it gets of ours, and a PATH. It needs no more, and would take proxies and plug-ins from others."""
_NOT_INSTALLED = 3  # as the child says it
_REAP_S = 2.0
"""Wait this long for a killed process, then leave it."""
_ANSWER_BYTES = 64 << 10
_MOST_TOLD = 10_000
_MARGIN_S = 1
"""The child ends by itself so much later than it is ended."""
_TURN = threading.Lock()
"""Held by the receiver whose child runs."""

_TYPE = {
    Occasion.FENCED: "warning",
    Occasion.REFUSED: "failure",
    Occasion.ALARM: "failure",
    Occasion.BLIND: "failure",
    Occasion.BACK: "success",
}
_TITLE_BYTES = 250
_TEXT_BYTES = 16 << 10
_SHOWN_BYTES = 300


class Apprise:
    """Sends to each URL of a file.

    Args:
        settings: Which file.
        source: Which fencer.
        page_url: Named at the end of a message; empty: is not.
        deadline_s: Seconds for all of it.
    """

    def __init__(
        self, settings: AppriseSettings, source: str, page_url: str, deadline_s: float = DEADLINE_S
    ) -> None:
        self.name = settings.name
        self.manner = Manner()
        self._settings, self._source, self._page_url = settings, source, page_url
        self._deadline_s = deadline_s
        self._told: dict[tuple[str, str, int], None] = {}
        """Which URLs took what another one did not: URL, key and number."""
        self._worst = ""
        """The URL that failed first: it is told last, so that it takes no other one's time."""

    def send(self, messages: Sequence[Message]) -> None:
        """See `Receiver.send`. If one of several URLs fails, the others are not told a second time."""
        for message in messages:
            self._send(message, read_secrets(self._settings.urls_file))

    def _send(self, message: Message, urls: tuple[str, ...]) -> None:
        parts = message.parts or ((message.key, message.number),)
        untold = [url for url in urls if any((url, *part) not in self._told for part in parts)]
        untold.sort(key=lambda url: url == self._worst)
        text = plain(message.text, _TEXT_BYTES)
        order = {
            "title": subject(self._source, message.title, _TITLE_BYTES),
            "text": f"{text}\n\n{self._page_url}" if self._page_url else text,
            "type": _TYPE[message.told_as],
            "urls": untold,
        }
        hide = tuple(part for url in urls for part in (url.partition("://")[2] or url, *parts_of(url)))
        errors, failed = [], []
        for url, (told, why) in zip(untold, self._ask(order, hide), strict=True):
            if told:
                self._told.update(dict.fromkeys((url, *part) for part in parts))
            else:
                reason = shown(why, hide, _SHOWN_BYTES) or "it was not told"
                failed.append(url)
                errors.append(f"URL {urls.index(url) + 1}{_kind(url)}: {reason}")
        if failed:
            self._worst = failed[0]
            self._told = dict(list(self._told.items())[-_MOST_TOLD:])
            raise ReceiverError("; ".join(errors), works=len(failed) < len(urls))
        for url, part in product(urls, parts):
            self._told.pop((url, *part), None)

    def _ask(self, order: dict[str, Any], hide: tuple[str, ...]) -> list[tuple[bool, str]]:
        """Run the child, and return what it says of each URL; where it did not come to one, how it ended."""
        said: list[bytes] = []
        try:
            code = _run(json.dumps(order).encode(), self._deadline_s, said)
        except ReceiverError as error:
            ended = str(error)
        else:
            if code == _NOT_INSTALLED:
                raise ReceiverError("apprise is not installed: pip install 'fencer-agent[apprise]'")
            other = [line for line in said if _answer(line) is None]
            last = shown(other[-1].decode(errors="replace"), hide, _SHOWN_BYTES) if other else ""
            ended = f"apprise ended with {code}" + (f": {last}" if last else "")
        answers = [answer for line in said if (answer := _answer(line)) is not None]
        wanted = len(order["urls"])
        return answers[:wanted] + [(False, ended)] * (wanted - len(answers))


def _answer(line: bytes) -> tuple[bool, str] | None:
    """Read what the child says of one URL; None: the line is something else."""
    try:
        told, why = json.loads(line)
    except (ValueError, TypeError, RecursionError):
        return None
    return (told, why) if isinstance(told, bool) and isinstance(why, str) else None


def _kind(url: str) -> str:
    found = re.match(r"[a-z][a-z0-9]{0,19}://", url)
    return f" ({found[0]}…)" if found else ""


def _run(order: bytes, deadline_s: float, said: list[bytes]) -> int:
    """Run the child, once it is its turn, until it ends, or its time does; what it started ends with it."""
    bounds = Bounds(deadline_s, _ANSWER_BYTES)
    if not _TURN.acquire(timeout=deadline_s / 2):  # what is left has to do for the child
        raise ReceiverError("apprise is busy for another receiver; this one is told later")
    try:
        return _run_alone(order, bounds, deadline_s, said)
    finally:
        _TURN.release()


def _run_alone(order: bytes, bounds: Bounds, deadline_s: float, said: list[bytes]) -> int:
    ours, theirs = socket.socketpair()  # unlike pipes, a socket has a time limit for each byte, both ways
    with ours:
        process = _started(theirs, math.ceil(deadline_s) + _MARGIN_S)
        try:
            _tell(ours, order, bounds, said)
            return process.wait(bounds.left_s())
        except (TimeoutError, subprocess.TimeoutExpired) as error:
            text = f"apprise did not end within {deadline_s:.3g} s; whether anybody was told is not known"
            raise ReceiverError(text) from error
        except (Unbounded, OSError) as error:
            raise ReceiverError(f"apprise: {error}") from error
        finally:
            _end(process)


def _tell(ours: socket.socket, order: bytes, bounds: Bounds, said: list[bytes]) -> None:
    """Send the order, and add each line that the child says: they count also if it does not end."""
    try:
        ours.settimeout(bounds.left_s())
        ours.sendall(order)
        ours.shutdown(socket.SHUT_WR)
        for line in bounded_lines(ours, bounds):
            said.append(line)  # noqa: PERF402 - what came before an error is kept
    except ConnectionError:  # it ended before it had read everything: its exit status says more
        pass


def _started(theirs: socket.socket, within_s: int) -> subprocess.Popen[bytes]:
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    with theirs:
        try:
            return subprocess.Popen(  # noqa: S603 - this Python, and a file of ours
                [sys.executable, "-I", str(_CHILD), str(within_s)],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=theirs.fileno(),
                cwd="/",
                env={"PATH": os.defpath, **environment},
                start_new_session=True,
            )
        except OSError as error:
            raise ReceiverError(f"cannot run {sys.executable}: {error.strerror}") from error


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the group of a process that was not reaped yet: afterwards its number may be used again."""
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_REAP_S)
