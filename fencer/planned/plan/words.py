"""The words of a plan as types: all possible findings, and how bad each is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is."""

    BLOCKS = "blocks"
    """The drain does not finish as things are."""
    UNKNOWN = "unknown"
    """Something was not looked at that could block."""
    DISRUPTS = "disrupts"
    """The drain ends, but something is interrupted, lost, or waits until the node is back."""
    NOTE = "note"
    """Worth knowing; nothing is lost."""


class Outlook(StrEnum):
    """The outcome of a plan: what its worst finding says."""

    CLEAR = "clear"
    DISRUPTIVE = "disruptive"
    UNKNOWN = "unknown"
    BLOCKED = "blocked"

    @property
    def goes(self) -> bool:
        """Whether the drain would finish."""
        return self in {Outlook.CLEAR, Outlook.DISRUPTIVE}


VERDICTS = {
    Severity.BLOCKS: Outlook.BLOCKED,
    Severity.UNKNOWN: Outlook.UNKNOWN,
    Severity.DISRUPTS: Outlook.DISRUPTIVE,
    Severity.NOTE: Outlook.CLEAR,
}
"""In the order in which the worst is looked for."""


class What(StrEnum):
    """What a drain would hit."""

    NODE_SILENT = "node-silent"
    """Its kubelet is not heard: evicted pods would stay Terminating. One that says "not Ready" is heard."""
    QUORUM = "quorum"
    """With these nodes off, etcd has no majority."""
    BUDGET_NEVER = "budget-never"
    """The budget needs all the pods there are: it never allows an eviction."""
    BUDGET_NOT_NOW = "budget-not-now"
    """The budget allows no eviction now."""
    BUDGET_BROKEN = "budget-broken"
    """The budget's controller cannot count its pods, so it allows nothing."""
    BUDGET_STALLS = "budget-stalls"
    """The first pods use the budget up and cannot start elsewhere, so the rest can never go."""
    BUDGET_UNHEALTHY = "budget-unhealthy"
    """A budget holds pods that are not Ready while too few others are Ready, as in a crash loop."""
    TWO_BUDGETS = "two-budgets"
    """More than one budget selects the pod: the API never evicts it."""
    UNMANAGED = "unmanaged"
    """No controller recreates the pod: the drain leaves it alone, unless forced."""
    EMPTYDIR = "emptydir"
    """The pod would lose its emptyDir: the drain leaves it alone, unless told otherwise."""
    MAY_BLOCK = "may-block"
    """Not looked at, and it could block."""
    UNMANAGED_LOST = "unmanaged-lost"
    """The pod is gone for good."""
    EMPTYDIR_LOST = "emptydir-lost"
    """What is in its emptyDir is lost."""
    SINGLE_REPLICA = "single-replica"
    """The only pod of its controller: away until it is Ready elsewhere."""
    ALL_REPLICAS = "all-replicas"
    """All Ready pods of a controller are on this node, and go at once."""
    JOB_RESTARTS = "job-anew"
    """A Job's pod: its work begins again."""
    NO_PRE_STOP = "no-pre-stop"
    """A Service leads to the pod, and nothing delays its end: requests may fail."""
    PRE_STOP_UNCLEAR = "pre-stop-unclear"
    """A Service leads to the pod, and its preStop hook may end it at once: it is not known to wait."""
    PRE_STOP_OVER_GRACE = "pre-stop-over-grace"
    """Its preStop hook takes all of its grace period: it is killed before it can end by itself."""
    COMES_BACK = "comes-back"
    """It tolerates the cordon: its replacement may be bound to this node, and end with it again."""
    FINALIZERS = "finalizers"
    """Its object stays until its controller takes a finalizer off. A drain waits only for its containers, but
    a StatefulSet makes no other pod of that name until it is gone."""
    VOLUME_STAYS = "volume-stays"
    """Its volume can be used on no other node that takes pods: it waits until this one is back."""
    HOST_PATH = "host-path"
    """It writes a directory of the node; elsewhere it finds another one."""
    NO_ROOM = "no-room"
    """The other nodes cannot take all of the pods."""
    POD_TOO_BIG = "pod-too-big"
    """No other node has room for this pod."""
    GRACE_OVER_TIMEOUT = "grace-over-timeout"
    """It may take longer to end than the drain waits."""
    MAY_DISRUPT = "may-disrupt"
    """Not looked at; it could not block."""
    GRACE_OVER_SHUTDOWN = "grace-over-shutdown"
    """It may take longer to end than the guest's shutdown: it has to be drained before."""
    GRACE_ZERO = "grace-zero"
    """It would end at once; the drain gives it a second."""
    BUDGET_WAVES = "budget-waves"
    """The budget lets only some go at a time."""
    VOLUME_MOVES = "volume-moves"
    """Its volume is on one node at a time: detached here, then attached there."""

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return SEVERITIES[self]


SEVERITIES = {
    What.NODE_SILENT: Severity.BLOCKS,
    What.QUORUM: Severity.BLOCKS,
    What.BUDGET_NEVER: Severity.BLOCKS,
    What.BUDGET_NOT_NOW: Severity.BLOCKS,
    What.BUDGET_BROKEN: Severity.BLOCKS,
    What.BUDGET_STALLS: Severity.BLOCKS,
    What.BUDGET_UNHEALTHY: Severity.BLOCKS,
    What.TWO_BUDGETS: Severity.BLOCKS,
    What.UNMANAGED: Severity.BLOCKS,
    What.EMPTYDIR: Severity.BLOCKS,
    What.MAY_BLOCK: Severity.UNKNOWN,
    What.UNMANAGED_LOST: Severity.DISRUPTS,
    What.EMPTYDIR_LOST: Severity.DISRUPTS,
    What.SINGLE_REPLICA: Severity.DISRUPTS,
    What.ALL_REPLICAS: Severity.DISRUPTS,
    What.JOB_RESTARTS: Severity.DISRUPTS,
    What.NO_PRE_STOP: Severity.DISRUPTS,
    What.PRE_STOP_UNCLEAR: Severity.DISRUPTS,
    What.PRE_STOP_OVER_GRACE: Severity.DISRUPTS,
    What.COMES_BACK: Severity.DISRUPTS,
    What.FINALIZERS: Severity.DISRUPTS,
    What.VOLUME_STAYS: Severity.DISRUPTS,
    What.HOST_PATH: Severity.DISRUPTS,
    What.NO_ROOM: Severity.DISRUPTS,
    What.POD_TOO_BIG: Severity.DISRUPTS,
    What.GRACE_OVER_TIMEOUT: Severity.DISRUPTS,
    What.MAY_DISRUPT: Severity.DISRUPTS,
    What.GRACE_OVER_SHUTDOWN: Severity.NOTE,
    What.GRACE_ZERO: Severity.NOTE,
    What.BUDGET_WAVES: Severity.NOTE,
    What.VOLUME_MOVES: Severity.NOTE,
}
"""One for each, and no default: that could let a drain begin which does not end."""


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing that the drain would hit.

    Attributes:
        what: From the closed list.
        about: The budget, controller or node that it is about.
        text: What would happen, for people.
        way: What would change it; empty: nothing that we know of.
        pods: Which pods, as ``namespace/name``.
    """

    what: What
    about: str
    text: str
    way: str = ""
    pods: tuple[str, ...] = ()

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return self.what.severity


@dataclass(frozen=True, slots=True)
class Span:
    """A range of seconds; no upper end if it is not known."""

    low_s: float
    high_s: float | None


@dataclass(frozen=True, slots=True)
class NodePlan:
    """One node's part.

    Attributes:
        name: The node.
        leave: How many pods would leave it.
        stay: How many pods a drain leaves where they are (DaemonSet, mirror, finished).
        held: How many pods it does not touch, though they should leave (unmanaged, emptyDir).
        takes: How long it takes: evictions, volumes, the guest's shutdown.
    """

    name: str
    leave: int
    stay: int
    held: int
    takes: Span


@dataclass(frozen=True, slots=True)
class Room:
    """One resource, here and there.

    Attributes:
        resource: ``cpu`` (thousandths of a core), ``memory`` (bytes) or ``pods``.
        needed: What the pods that leave request.
        free: What the other nodes that take pods have left, all together.
    """

    resource: str
    needed: int
    free: int

    @property
    def fits(self) -> bool:
        """Whether it is enough, judged by the sum."""
        return self.needed <= self.free


@dataclass(frozen=True, slots=True)
class Plan:
    """What a drain of some nodes, one after the other, would hit.

    Attributes:
        nodes: Each node's part, in their order.
        findings: The worst first.
        homes: Names of the other nodes that take pods.
        room: What they have left.
        takes: How long all of it takes.
    """

    nodes: tuple[NodePlan, ...]
    findings: tuple[Remark, ...]
    homes: tuple[str, ...]
    room: tuple[Room, ...]
    takes: Span

    @property
    def verdict(self) -> Outlook:
        """What the worst finding says."""
        return worst(self.findings)


def worst(findings: Iterable[Remark]) -> Outlook:
    """Return what the worst of some findings says."""
    seen = {finding.severity for finding in findings}
    return next((verdict for severity, verdict in VERDICTS.items() if severity in seen), Outlook.CLEAR)
