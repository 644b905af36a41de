"""Tasks: what a POST starts, whose UPID it returns, and which may fail long after its HTTP 200.

What a task does is a generator: it yields the seconds until its next step, or a `Phase`, at which a test may
hold it, or a line for its log; it raises `TaskFailed` with its last words, and returns when it ended well.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from tests.support.pve.clock import Clock
from tests.support.pve.model import Host

ROOT = "root@pam"
LOCK_WAIT_S = 10.0
_LOOK_S = 0.25
_PATIENCE_S = 3600.0


class TaskFailed(Exception):
    """The task ends with this text."""


class Aborted(Exception):
    """Thrown into a task that is stopped from outside; what it does before it ends is its own."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A step that has a name, and lasts for some seconds unless a test holds the task."""

    name: str
    lasts_s: float


Steps = Generator[float | Phase | str, None, None]


@dataclass(slots=True, eq=False)
class Task:
    """One task. Made by `Tasks.start`.

    Attributes:
        exitstatus: How it ended; None: it runs.
        phase: The present phase, where it has any.
        ended_at: Unix seconds.
    """

    clock: Clock
    host: Host
    kind: str
    guest: str
    user: str
    number: int
    started_at: int
    by_hand: bool = False
    exitstatus: str | None = None
    phase: str | None = None
    ended_at: int | None = None
    log: list[str] = field(default_factory=list)
    _steps: Steps | None = None
    _turn: int = 0

    @property
    def upid(self) -> str:
        """Its unique id, as the API writes it."""
        numbers = f"{self.number:08X}:{600_000 + self.number:08X}:{self.started_at:08X}"
        return f"UPID:{self.host.name}:{numbers}:{self.kind}:{self.guest}:{self.user}:"

    @property
    def owner(self) -> dict[str, str]:
        """User and, where it was a token, its id."""
        user, _, token = self.user.partition("!")
        return {"user": user, "tokenid": token} if token else {"user": user}

    def row(self) -> dict[str, Any]:
        """Return what every reply tells of it."""
        return {
            "upid": self.upid,
            "node": self.host.name,
            "pid": self.number,
            "pstart": 600_000 + self.number,
            "starttime": self.started_at,
            "type": self.kind,
            "id": self.guest,
            **self.owner,
        }

    def finish(self) -> str:
        """Let time pass until it ends; return how it did."""
        waited_s = 0.0
        while self.exitstatus is None and waited_s < _PATIENCE_S:
            self.clock.advance(_LOOK_S)
            waited_s += _LOOK_S
        assert self.exitstatus is not None, f"{self.kind} {self.guest} hangs in {self.phase}"
        return self.exitstatus

    def step(self) -> str | None:
        """End the present phase of a task held by hand; return the next one, None when it is over."""
        with self.clock.lock:
            before = self.phase
            self.resume(self._turn)
            while self.exitstatus is None and self.phase == before:
                self.clock.advance(_LOOK_S)
            return self.phase if self.exitstatus is None else None

    def abort(self) -> None:
        """Stop it from outside."""
        with self.clock.lock:
            self.clock.now_s()
            if self._steps is not None and self.exitstatus is None:
                self._turn += 1
                try:
                    self._steps.throw(Aborted("received interrupt"))
                except (TaskFailed, Aborted) as failure:
                    self.end(str(failure))
                except StopIteration:
                    self.end("OK")

    def resume(self, turn: int) -> None:
        """Do the next step, unless something else happened to the task since `turn`."""
        if self._steps is None or self.exitstatus is not None or turn != self._turn:
            return
        self._turn += 1
        turn = self._turn
        try:
            while isinstance(pause := next(self._steps), str):
                self.log.append(pause)
        except StopIteration:
            self.end("OK")
        except TaskFailed as failure:
            self.end(str(failure))
        else:
            if isinstance(pause, Phase):
                self.phase = pause.name
            if not (self.by_hand and isinstance(pause, Phase)):
                lasts_s = pause.lasts_s if isinstance(pause, Phase) else pause
                self.clock.after(lasts_s, lambda: self.resume(turn))

    def end(self, exitstatus: str) -> None:
        """Write the last line of the log."""
        self.exitstatus = exitstatus
        self.ended_at = self.clock.unix_s()
        self.log.append("TASK OK" if exitstatus == "OK" else f"TASK ERROR: {exitstatus}")

    def cut_off(self) -> None:
        """Its host lost power: the log just ends."""
        if self.exitstatus is None:
            if self._steps is not None:
                self._steps.close()
            self.exitstatus, self.ended_at = "unexpected status", self.clock.unix_s()

    def begin(self, steps: Steps) -> None:
        """Do the first step now."""
        self._steps = steps
        self.resume(self._turn)


class Tasks:
    """All tasks of a cluster, newest last."""

    def __init__(self, clock: Clock) -> None:
        self.all: list[Task] = []
        self._clock = clock
        self._numbers = itertools.count(1000, 7)

    def start(
        self, host: Host, kind: str, guest: int | str, user: str, steps: Steps, *, by_hand: bool = False
    ) -> Task:
        """Start a task on a host."""
        now = self._clock.unix_s()
        task = Task(self._clock, host, kind, str(guest), user, next(self._numbers), now, by_hand)
        self.all.append(task)
        task.begin(steps)
        return task

    def background(self, host: Host, steps: Steps) -> None:
        """Do something that is no task: nobody sees it, and its failure goes to a log that nobody reads."""
        Task(self._clock, host, "", "", ROOT, next(self._numbers), self._clock.unix_s()).begin(steps)

    def find(self, upid: str) -> Task | None:
        """Return the task of a UPID."""
        return next((task for task in self.all if task.upid == upid), None)

    def active(self, host: Host) -> list[Task]:
        """Return what runs on a host."""
        return [task for task in self.all if task.host is host and task.exitstatus is None]


def locked(host: Host, vmid: int, steps: Steps, patience_s: float = LOCK_WAIT_S) -> Steps:
    """Do something under the lock of a guest's configuration file, or fail where it is not free in time."""
    waited_s = 0.0
    while vmid in host.flocks:
        if waited_s >= patience_s:
            raise TaskFailed(f"can't lock file '/var/lock/qemu-server/lock-{vmid}.conf' - got timeout")
        yield _LOOK_S
        waited_s += _LOOK_S
    host.flocks.add(vmid)
    try:
        yield from steps
    finally:
        host.flocks.discard(vmid)


def nothing() -> Steps:
    """What a task does whose work is told elsewhere."""
    yield from ()
