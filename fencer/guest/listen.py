"""Shows what a shutdown looks like from in here, as it comes: logind's signal, the locks, the queue of jobs.

Any program for the bus that is there hears the signal; each prints its name, and then its value.

systemd signals its jobs only as long as somebody has subscribed to them, so the queue is looked at instead.
Source: org.freedesktop.login1(5), PrepareForShutdown; busctl(1), `monitor`; dbus-monitor(1); gdbus(1).
"""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import time
from shutil import which
from typing import Callable, Iterator, Sequence

from fencer.guest.collect import locks, systemd_version
from fencer.guest.errors import DONE, REFUSED, Unusable
from fencer.guest.facts import DRAIN_UNIT
from fencer.guest.system import Run

Say = Callable[[str], None]

_LOGIND, _OBJECT = "org.freedesktop.login1", "/org/freedesktop/login1"
_MATCH = f"type='signal',sender='{_LOGIND}',path='{_OBJECT}',interface='{_LOGIND}.Manager'"
_MATCH += ",member='PrepareForShutdown'"
"""On the system bus every user may send signals with any name: the sender counts."""
_MONITORS = (
    ("busctl", "monitor", f"--match={_MATCH}"),
    ("dbus-monitor", "--system", _MATCH),
    ("gdbus", "monitor", "--system", "--dest", _LOGIND, "--object-path", _OBJECT),
)
_BUSCTL_LISTENS = 221
"""Older ones asked for all messages in a way that newer buses refuse. Source: systemd NEWS, 221."""
_LOOK_S = 0.5
"""Between looks at the queue: a shutdown ends an ssh session within moments."""
_SIGNAL = re.compile(r"PrepareForShutdown\b")
_VALUE = re.compile(r"\b(true|false)\b")
_ENDS = re.compile(r"(shutdown|poweroff|reboot|halt|kexec|soft-reboot|exit|rescue|emergency)\.target")
_PIECE = 1 << 16
_JOB = 4
"""Number, unit, type, state."""


def monitor(run: Run, there: Callable[[str], object] = which) -> tuple[str, ...]:
    """Return the command that prints the signals of the bus.

    Raises:
        Unusable: there is none.
    """
    for command in _MONITORS:
        if there(command[0]) and (command[0] != "busctl" or systemd_version(run) >= _BUSCTL_LISTENS):
            return command
    raise Unusable("no program here listens to the system bus: install dbus-monitor (dbus-bin, dbus-tools)")


class Ear:
    """Finds the signal in a monitor's output, piece by piece."""

    def __init__(self) -> None:
        self._rest, self._named = "", False

    def hear(self, piece: str) -> Iterator[bool]:
        """Yield the value of each complete signal: going down, or no longer."""
        *lines, self._rest = (self._rest + piece).split("\n")
        for line in lines:
            named = _SIGNAL.search(line)
            self._named = self._named or bool(named)
            value = _VALUE.search(line, named.end() if named else 0)
            if self._named and value:
                self._named = False
                yield value.group() == "true"


class Queue:
    """Finds new jobs in systemd's queue that end the machine, or drain it."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._seen: set[tuple[str, str]] = set()

    def news(self) -> Iterator[str]:
        """Yield new jobs."""
        text = self._run(["systemctl", "list-jobs", "--no-legend", "--no-pager"]).text
        jobs = {(job[1], job[2]) for job in map(str.split, text.splitlines()) if len(job) >= _JOB}
        wanted = {it for it in jobs if it[0] == DRAIN_UNIT or (_ENDS.fullmatch(it[0]) and it[1] == "start")}
        for unit, kind in sorted(wanted - self._seen):
            yield f"queued: {kind} {unit}"
        self._seen = wanted


def listen(run: Run, say: Say, within_s: float | None) -> int:
    """Say what happens, with the local time, until Ctrl-C; return whether a shutdown was announced.

    Args:
        run: Runs commands.
        say: Called with each line.
        within_s: Seconds to listen; None: for ever.

    Raises:
        Unusable: nothing here can listen, or it may not.
    """
    command = monitor(run)

    def tell(text: str) -> None:
        say(f"{time.strftime('%Y-%m-%d %H:%M:%S %z')}  {text}")

    tell(f"listening by {command[0]}; Ctrl-C ends it; {held(run)}")
    heard = ending = False
    queue = Queue(run)
    try:
        for going in _signals(command, within_s):
            if going is not None:
                heard = heard or going
                tell(f"PrepareForShutdown {str(going).lower()}; {held(run)}")
            for line in queue.news():
                ending = True
                tell(line)
    except KeyboardInterrupt:
        pass
    except Unusable:
        if not heard and not ending:
            raise  # otherwise the bus is gone with the machine
    tell("a shutdown was announced" if heard else "no shutdown was announced")
    return DONE if heard else REFUSED


def held(run: Run) -> str:
    """Say who holds a lock on shutdowns."""
    locked, unheard = locks(run)
    found = [
        f"{it.who} ({it.mode}{f', of user {it.uid}' if it.uid else ''})"
        for it in locked
        if it.on_shutdown("")
    ]
    return f"locks on shutdown: {', '.join(found) or (f'not known ({unheard})' if unheard else 'none')}"


def _signals(command: Sequence[str], within_s: float | None) -> Iterator[bool | None]:
    """Yield signals as they come; None in between."""
    ear, said = Ear(), ""
    end_s = float("inf") if within_s is None else time.monotonic() + within_s
    with subprocess.Popen(  # noqa: S603 - a fixed command, no shell
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process, selectors.DefaultSelector() as waited:
        out = process.stdout.fileno()  # type: ignore[union-attr]  # it is a pipe
        waited.register(out, selectors.EVENT_READ)
        try:
            while time.monotonic() < end_s:
                yield None
                if waited.select(min(_LOOK_S, max(end_s - time.monotonic(), 0))):
                    piece = os.read(out, _PIECE).decode(errors="replace")
                    said = (said + piece)[-_PIECE:]
                    yield from ear.hear(piece)
                    if not piece:
                        why = said.strip().splitlines()[-1:] or ["it ended"]
                        raise Unusable(f"{command[0]}: {why[0]}")
        finally:
            process.kill()
