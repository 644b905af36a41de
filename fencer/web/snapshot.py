"""What is shown, as one frozen value: whoever shows something works on that."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from fencer.core.election import Seat
from fencer.core.model import Reason
from fencer.core.policy import Mode, Policy
from fencer.ports.runtime import Sight


class Result(StrEnum):
    """What became of a pass."""

    OK = "ok"
    """All nodes, and all endpoints that had to be asked."""
    PARTIAL = "partial"
    """All nodes; but some endpoint gave no answer that can be used."""
    FAILED = "failed"
    """The API server gave none."""


class Phase(StrEnum):
    """A stretch of a fence, as this agent saw it."""

    PROOF = "proof"
    """From the first suspicion to the taint."""
    PODS = "pods"
    """From the taint until no pod was left to clear."""
    VOLUMES = "volumes"
    """From then until all volumes were released."""
    TOTAL = "total"
    """All of these."""


BUCKETS_S = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 300.0, 600.0, 1800.0, 3600.0)
"""Upper bounds of durations, in seconds: densest around the minute that the defaults take."""


@dataclass(frozen=True, slots=True)
class Step:
    """Something that was decided, done or said.

    Attributes:
        at: When, by this machine's clock.
        node: The node's name; empty: it concerns no single node.
        text: What, as the log has it, after the node's name. Printable.
        loud: It is worth a person's attention.
    """

    at: datetime
    node: str
    text: str
    loud: bool


@dataclass(frozen=True, slots=True)
class EndpointSeen:
    """One endpoint, or the API server.

    Attributes:
        name: Its name; `Snapshot.api` is the API server's.
        error: Why it gave no answer that can be used when it was last asked; empty: it answered.
        asked: It was asked at all.
        last_success: When it last answered, by this machine's clock. None: it never did.
        success_age_s: How long ago that was, in seconds. None: it never was.
    """

    name: str
    error: str = ""
    asked: bool = False
    last_success: datetime | None = None
    success_age_s: float | None = None

    @property
    def up(self) -> bool:
        """Whether it answered when it was last asked."""
        return self.asked and not self.error


@dataclass(frozen=True, slots=True)
class Durations:
    """How long a phase took, each time.

    Attributes:
        counts: How many were within each of `BUCKETS_S`, but not within a smaller one; and at the end how
            many were longer than all of them.
        sum_s: All of them together, in seconds.
    """

    counts: tuple[int, ...] = (0,) * (len(BUCKETS_S) + 1)
    sum_s: float = 0.0

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.counts)

    def and_(self, took_s: float) -> Durations:
        """Return these with another one."""
        place = bisect_left(BUCKETS_S, took_s)
        counts = (*self.counts[:place], self.counts[place] + 1, *self.counts[place + 1 :])
        return Durations(counts, self.sum_s + took_s)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that is shown, at one moment.

    Attributes:
        version: Of fencer.
        by: Which agent: ``fencer@pve1``.
        policy: What is in force, with the mode.
        journal: The journal's file. None: none is kept.
        began: When the agent began, by this machine's clock, as all other times here.
        now: When this was taken.
        now_s: The same on the agent's monotonic clock, which `Sight.at_s` is on.
        sight: What the newest pass has left. None: there was no pass yet.
        alive_age_s: How long ago the agent last gave a sign of life, in seconds.
        pass_age_s: How long ago the newest pass ended, in seconds. None: there was none yet.
        failing: Why the last try to pass failed; empty: it did not.
        tried: A pass ended or failed at all.
        api: What the API server is called among `endpoints`.
        endpoints: The API server, and every endpoint, in their order.
        passes: How many passes there were, by result.
        actions: How many actions, by the action and whether it was ``done`` or ``failed``.
        refusals: How many times a node began to be refused, by reason.
        durations: How long fences took, by phase.
        ends: When the credentials for the cluster end. None: not known, or never.
        steps: By the name of a node that is not healthy: what was decided and done, oldest first. Only what
            this agent has seen since it began.
        recent: What was last told of everything, oldest first.
    """

    version: str
    by: str
    policy: Policy
    journal: Path | None
    began: datetime
    now: datetime
    now_s: float
    sight: Sight | None = None
    alive_age_s: float = 0.0
    pass_age_s: float | None = None
    failing: str = ""
    tried: bool = False
    api: str = ""
    endpoints: tuple[EndpointSeen, ...] = ()
    passes: Mapping[Result, int] = field(default_factory=dict)
    actions: Mapping[tuple[str, str], int] = field(default_factory=dict)
    refusals: Mapping[Reason, int] = field(default_factory=dict)
    durations: Mapping[Phase, Durations] = field(default_factory=dict)
    ends: datetime | None = None
    steps: Mapping[str, tuple[Step, ...]] = field(default_factory=dict)
    recent: tuple[Step, ...] = ()

    @property
    def mode(self) -> Mode:
        """What the agent may do by itself."""
        return self.policy.mode

    @property
    def armed(self) -> bool:
        """Whether it may fence."""
        return self.mode is Mode.ARMED

    @property
    def unfilled(self) -> dict[str, str]:
        """The endpoints to which an armed agent gives no power orders, as there is no Lease to hold; why."""
        tenures = {} if self.sight is None or not self.armed else self.sight.tenures
        return {name: one.why for name, one in tenures.items() if one.seat is Seat.UNFILLED}
