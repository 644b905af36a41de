"""What one agent remembers of an endpoint's guests between two looks. Losing it only causes delays.

A guest's process is told from its next one by host, process id and start; a guest that is off, by the task
that last started it. `cluster/resources` tells neither, so its rows are held against the last live reading.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field

from fencer.core.model import Evidence, PowerState
from fencer.hypervisors.proxmox.ha import HaState
from fencer.hypervisors.proxmox.parse import Config, Row, Status
from fencer.hypervisors.proxmox.tasks import BACKUP_LOCK

CLOCK_PLAY_S = 10.0
"""How far two estimates of the same start may lie apart: whole seconds of uptime, and slow answers …"""

CLOCK_DRIFT = 0.001
"""… and this part of the uptime, because two clocks count it."""

STALE_S = 25.0
"""A row whose uptime ends longer ago is old: hosts tell theirs every 10 s, or a little later.

Source: pve-manager, PVE/Service/pvestatd.pm; docs/proxmox.md, "What the cluster repeats".
"""

WORD_S = 15.0
"""Hosts renew their own figures every 10 s: an agent that listens less often cannot say when they did."""

SILENT_S = 30.0
"""A host that did not answer is left alone for this long."""

PENDING_S = 60.0
"""A start that has been due for this long is no longer expected: six rounds of HA's daemons."""


@dataclass(slots=True)
class Run:
    """One run of a guest: one process, from its start to its end.

    Attributes:
        token: Names it.
        host: Where.
        pid: Its process.
        started_s: On our clock, as far as uptimes in whole seconds tell.
        cold_start: False: it began with old memory. None: not known, or not looked into.
        judged: It was looked into.
    """

    token: str
    host: str
    pid: int | None
    started_s: float
    cold_start: bool | None = None
    judged: bool = False


@dataclass(slots=True)
class Sighting:
    """When and where a guest was last read running, live.

    Attributes:
        at_s: On our clock.
        utc_s: On the cluster's clock, Unix seconds; None: the server did not tell.
    """

    host: str
    at_s: float
    utc_s: float | None


@dataclass(frozen=True, slots=True)
class Lost:
    """An order that was sent, and of which nobody heard again: it may be carried out at any time.

    Attributes:
        kind: Of its task.
        utc_s: When it was given, by the cluster's clock.
    """

    kind: str
    utc_s: float


@dataclass(slots=True)
class Known:
    """What is known of one guest.

    Attributes:
        uuid: By its configuration, as of `learnt_s`; None: never read.
        run: Its current run, by the last live reading; None: it was off then.
        off_token: Names the time since its last start, while it is off.
        saved: It was last read with its memory on disk.
        rested: The last thing by which it may have come to run, as of when it was read off for good, with no
            process since but a backup's; None: it was not.
        sighting: When it was last read running.
        earlier: It was read running on another host before that.
        last: Its last live reading.
        due: What is said to start it again soon, and since when.
        locked: The lock that stands without a task at work, and since when.
        row_uptime_s: Of its last row in this run.
        read_s: When it was last read live.
        tried_s: When a sweep last wanted to read it live.
        nudged: Something is said to have happened to it.
        lost: The last order for it that was lost.
    """

    uuid: str | None = None
    name: str = ""
    learnt_s: float = float("-inf")
    run: Run | None = None
    off_token: str | None = None
    saved: bool = False
    rested: str | None = None
    sighting: Sighting | None = None
    earlier: bool = False
    last: Evidence | None = None
    due: tuple[str, float] | None = None
    locked: tuple[str, float] | None = None
    row_uptime_s: int = 0
    read_s: float = float("-inf")
    tried_s: float = float("-inf")
    nudged: bool = False
    lost: Lost | None = None


@dataclass(slots=True)
class Word:
    """What a server repeats of another host, which counts up while the two hear each other.

    Attributes:
        said: As it was last repeated.
        first_s: When it was first heard, on our clock; again after we had not listened for `WORD_S`.
        last_s: When it was last heard.
        moved_s: When it was first heard so, after it had been another; None: it never was.
    """

    said: int
    first_s: float
    last_s: float
    moved_s: float | None = None


@dataclass(slots=True)
class Memory:
    """All guests of an endpoint. Answers of abandoned calls may come late and out of order.

    Attributes:
        lock: Held while anything here is read and changed as one.
        guests: By number.
        former: When guests were last seen running whose number is another's now, by number and UUID.
        attended: Numbers of the guests that are nodes.
        silent: Host, or server as people read it → when it last did not answer.
        silent_lists: Host → when it last did not answer with its list of processes.
        servers: Server, as people read it → which host it is.
        heard: Server, as people read it → what it has heard of other hosts.
        ha: What the HA fold remembers.
    """

    lock: threading.RLock = field(default_factory=threading.RLock)
    guests: dict[int, Known] = field(default_factory=dict)
    former: dict[tuple[int, str], Sighting] = field(default_factory=dict)
    attended: frozenset[int] = frozenset()
    silent: dict[str, float] = field(default_factory=dict)
    silent_lists: dict[str, float] = field(default_factory=dict)
    servers: dict[str, str] = field(default_factory=dict)
    heard: dict[str, dict[str, Word]] = field(default_factory=dict)
    ha: HaState = field(default_factory=HaState)
    _count: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def unlisted(self, host: str, now_s: float) -> bool:
        """Whether a host did not answer with its list of processes a while ago."""
        return now_s - self.silent_lists.get(host, -SILENT_S) < SILENT_S

    def heard_from(self, server: str, what: str, said: int, now_s: float) -> None:
        """Take in what a server repeats of another host."""
        words = self.heard.setdefault(server, {})
        known = words.get(what)
        if known is None or now_s - known.last_s > WORD_S:  # when it moved meanwhile, nobody knows
            words[what] = Word(said, now_s, now_s)
        elif now_s > known.last_s:
            known.last_s = now_s
            if known.said != said:
                known.said, known.moved_s = said, now_s

    def moved_s(self, server: str, now_s: float) -> float | None:
        """Return how long ago the last of these words moved; None: none of them was seen to."""
        moved = [word.moved_s for word in self.heard.get(server, {}).values() if word.moved_s is not None]
        return now_s - max(moved) if moved else None

    def is_new(self, server: str, what: str, since_s: float) -> bool:
        """Whether a word was heard for the first time lately, and cannot have moved yet."""
        word = self.heard.get(server, {}).get(what)
        return word is not None and word.moved_s is None and word.first_s >= since_s

    def of(self, vmid: int) -> Known:
        """Return what is known of a guest, to be changed under the lock."""
        return self.guests.setdefault(vmid, Known())

    def learn(self, vmid: int, config: Config, now_s: float) -> Known:
        """Take in a configuration. Another UUID means another guest under an old number."""
        with self.lock:
            known = self.of(vmid)
            if known.uuid is not None and known.uuid != config.uuid:
                if known.sighting is not None:
                    self.former[vmid, known.uuid] = known.sighting
                known = self.guests[vmid] = Known()
            known.uuid, known.name, known.learnt_s = config.uuid, config.name, now_s
            return known

    def runs(self, vmid: int, host: str, status: Status, began_s: float) -> Run:
        """Take in a live reading of a guest that has a process.

        Args:
            vmid: Its number.
            host: Where it was read.
            status: What was read.
            began_s: When the call began.
        """
        started_s = began_s - status.uptime_s
        with self.lock:
            known = self.of(vmid)
            run = known.run
            same = (
                run is not None
                and (run.host, run.pid) == (host, status.pid)
                and abs(run.started_s - started_s) <= CLOCK_PLAY_S + CLOCK_DRIFT * status.uptime_s
            )
            if run is None or not same:
                token = f"{host}/{status.pid}/{next(self._count)}"
                run = Run(token, host, status.pid, started_s, cold_start=False if known.saved else None)
                known.row_uptime_s = 0
            if began_s >= known.read_s:
                known.run, known.read_s, run.started_s = run, began_s, started_s
                known.saved, known.due = False, None
                if status.lock != BACKUP_LOCK:  # under that, QEMU may only not have said that it stands still
                    known.rested = None
            return run

    def sighted(self, vmid: int, sighting: Sighting) -> None:
        """Remember where a guest was read running."""
        with self.lock:
            known = self.of(vmid)
            if known.sighting is None or known.sighting.at_s <= sighting.at_s:
                known.earlier |= known.sighting is not None and known.sighting.host != sighting.host
                known.sighting = sighting

    def is_off(self, vmid: int, state: PowerState, token: str | None, began_s: float) -> None:
        """Take in a live reading of a guest that has no process."""
        with self.lock:
            known = self.of(vmid)
            if began_s < known.read_s:
                return
            known.run, known.read_s, known.row_uptime_s = None, began_s, 0
            known.saved = state is PowerState.SAVED
            known.off_token = token
            if known.saved:
                known.rested = None

    def rests(self, vmid: int, last_beginning: str, began_s: float) -> None:
        """Take in that a guest was read off for good, and by what it had come to run last."""
        with self.lock:
            known = self.of(vmid)
            if began_s >= known.read_s:
                known.rested = last_beginning

    def rested(self, vmid: int, last_beginning: str) -> bool:
        """Whether a guest was read off for good, and nothing that starts one is on record since."""
        with self.lock:
            return self.of(vmid).rested == last_beginning

    def keep(self, vmid: int, evidence: Evidence) -> Evidence:
        """Keep a live reading as the last one, and return it."""
        with self.lock:
            known = self.of(vmid)
            if known.last is None or known.last.observed_at_s <= evidence.observed_at_s:
                known.last = evidence
        return evidence

    def still_due(self, vmid: int, why: str | None, now_s: float) -> bool:
        """Whether something is still to be expected that would start a guest again.

        Args:
            vmid: Its number.
            why: What is said to do so now; None: nothing.
            now_s: Our clock.
        """
        with self.lock:
            known = self.of(vmid)
            if why is None:
                known.due = None
                return False
            if known.due is None or known.due[0] != why:
                known.due = (why, now_s)
            return now_s - known.due[1] <= PENDING_S

    def lock_stands_s(self, vmid: int, lock: str | None, now_s: float) -> float:
        """Return for how long this agent has seen a lock stand, with nobody at work.

        Args:
            vmid: The guest's number.
            lock: Its lock; None: there is none, or somebody is at work.
            now_s: Our clock.
        """
        with self.lock:
            known = self.of(vmid)
            if lock is None:
                known.locked = None
                return 0.0
            if known.locked is None or known.locked[0] != lock:
                known.locked = (lock, now_s)
            return now_s - known.locked[1]

    def goes_on(self, row: Row, now_s: float) -> Run | None:
        """Return the run that a row of `cluster/resources` shows to go on; None: that needs a live reading.

        A row counts if it continues the run that was last read live, running, on the same host, and its
        uptime reaches to within `STALE_S` of now: that host has seen that very process so short a while ago.
        """
        with self.lock:
            known = self.of(row.vmid)
            run, shrank = known.run, row.uptime_s < known.row_uptime_s
            known.row_uptime_s = row.uptime_s
            if run is None or row.status != "running" or row.host != run.host or shrank:
                return None
            if known.last is None or known.last.power_state is not PowerState.RUNNING:
                return None  # the row may be older than that
            age_s = now_s - (run.started_s + row.uptime_s)
            return run if -CLOCK_PLAY_S <= age_s <= STALE_S else None
