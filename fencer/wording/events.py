"""The reasons of Events on Nodes: a closed list of fencer's own words, and what is told under which.

Events are what ``kubectl describe node`` shows between incidents: what changed something, or needs a person.
What lies between is in the journal. All begin with ``Fencer``, so that none is one of Kubernetes' own.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum

from fencer.core.model import (
    Alarm,
    BindNode,
    ClearPods,
    CordonNode,
    Decision,
    Deed,
    DeleteAttachments,
    DiscardSaved,
    EvictPods,
    ForgetMark,
    Reason,
    RecordDoubts,
    ShutdownGuest,
    StartGuest,
    StopGuest,
    TaintNode,
    Uncordon,
    UntaintNode,
    Verdict,
)


class EventReason(StrEnum):
    """The closed list; `WHEN` says when each is told."""

    FENCED = "FencerFenced"
    GUEST_STOPPED = "FencerGuestStopped"
    MEMORY_DISCARDED = "FencerMemoryDiscarded"
    PODS_CLEARED = "FencerPodsCleared"
    VOLUMES_RELEASED = "FencerVolumesReleased"
    GUEST_STARTED = "FencerGuestStarted"
    UNFENCED = "FencerUnfenced"
    UNCORDONED = "FencerUncordoned"
    REFUSED = "FencerRefused"
    ALARM = "FencerAlarm"
    FAILED = "FencerFailed"
    DRAIN_BEGUN = "FencerDrainBegun"
    DRAINED = "FencerDrained"
    DRAIN_FAILED = "FencerDrainFailed"
    SHUTDOWN_BEGUN = "FencerShutdownBegun"
    SHUT_DOWN = "FencerShutDown"
    SHUTDOWN_FAILED = "FencerShutdownFailed"
    STARTED = "FencerStarted"
    START_FAILED = "FencerStartFailed"
    DRILL_BEGUN = "FencerDrillBegun"
    DRILLED = "FencerDrilled"
    DRILL_FAILED = "FencerDrillFailed"

    @property
    def loud(self) -> bool:
        """Whether its type is Warning: something is wrong, or was lost."""
        return self in _LOUD


_LOUD = frozenset(
    {
        *(EventReason.FENCED, EventReason.GUEST_STOPPED, EventReason.MEMORY_DISCARDED),
        *(EventReason.REFUSED, EventReason.ALARM, EventReason.FAILED),
        *(EventReason.DRAIN_FAILED, EventReason.SHUTDOWN_FAILED, EventReason.START_FAILED),
        EventReason.DRILL_FAILED,
    }
)

WHEN: dict[EventReason, str] = {
    EventReason.FENCED: "its guest is proven off, and the node has the out-of-service taint",
    EventReason.GUEST_STOPPED: "its guest's power was cut",
    EventReason.MEMORY_DISCARDED: "its guest's saved memory was thrown away",
    EventReason.PODS_CLEARED: "the fence is complete: its pods are cleared and its volumes released",
    EventReason.VOLUMES_RELEASED: "the Node was deleted, and what it left attached was released",
    EventReason.GUEST_STARTED: "its guest was started again, after fencer had stopped it",
    EventReason.UNFENCED: "it has booted again, and the taint came off",
    EventReason.UNCORDONED: "fencer's cordon came off",
    EventReason.REFUSED: "fencer does not act where something is wrong; with why, and what would change that",
    EventReason.ALARM: "a person has to look now",
    EventReason.FAILED: "something that was due could not be done; it is tried again",
    EventReason.DRAIN_BEGUN: "it was cordoned, or was already, and its pods are being evicted",
    EventReason.DRAINED: "its pods and volumes are gone; it stays cordoned",
    EventReason.DRAIN_FAILED: "its drain failed or was broken off; with how it stands",
    EventReason.SHUTDOWN_BEGUN: "a planned stop begins",
    EventReason.SHUT_DOWN: "its guest has shut down, as planned, and is proven off",
    EventReason.SHUTDOWN_FAILED: "the planned stop failed or was broken off; with how it stands",
    EventReason.STARTED: "it was started or uncordoned by `fencer start`, and is Ready",
    EventReason.START_FAILED: "`fencer start` failed or was broken off; with how it stands",
    EventReason.DRILL_BEGUN: "a fire drill begins: its guest is stopped hard, and later started again",
    EventReason.DRILLED: "the fire drill passed: it was fenced and cleared, and is back",
    EventReason.DRILL_FAILED: "the fire drill failed or was broken off; with how it stands",
}

ACTIONS: dict[type[Deed], tuple[EventReason | None, str]] = {
    TaintNode: (EventReason.FENCED, "fence it"),
    StopGuest: (EventReason.GUEST_STOPPED, "stop its guest"),
    DiscardSaved: (EventReason.MEMORY_DISCARDED, "throw its guest's saved memory away"),
    DeleteAttachments: (EventReason.VOLUMES_RELEASED, "release its volumes"),
    StartGuest: (EventReason.GUEST_STARTED, "start its guest"),
    UntaintNode: (EventReason.UNFENCED, "lift its fence"),
    Uncordon: (EventReason.UNCORDONED, "uncordon it"),
    CordonNode: (EventReason.DRAIN_BEGUN, "cordon it"),
    Alarm: (EventReason.ALARM, "tell of it"),
    ClearPods: (None, "clear its pods"),  # told once, when all are: by its decision
    EvictPods: (None, "evict its pods"),
    ShutdownGuest: (None, "ask its guest to shut down"),
    BindNode: (None, "note which guest it is"),
    RecordDoubts: (None, "note whose word does not count"),
    ForgetMark: (None, "take off the mark of an older fence"),
}
"""What an action is told under when it was done (None: it is no news), and what could not be done if not."""


NO_CASE = frozenset({Reason.NOTHING_TO_CLEAR, Reason.NOT_FENCED, Reason.MAINTENANCE})
"""Refusals because there is nothing to do, or not now, by the configuration: no person is needed."""


def needs_a_person(decision: Decision) -> bool:
    """Whether a decision is itself worth an Event: fencer does not act, and somebody should."""
    return decision.verdict is Verdict.REFUSE and decision.reason not in NO_CASE


@dataclass(frozen=True, slots=True)
class Milestones:
    """The Events of a change that a person asked for.

    Attributes:
        begun: Told with the first action on a node; None: its beginning is no news.
        done: Told when all went well.
        failed: Told when it did not.
        purpose: What it is.
    """

    begun: EventReason | None
    done: EventReason
    failed: EventReason
    purpose: str

    def beginning(self, action: type[Deed], by: str) -> str:
        """Return what is told with the first action: ``cordoned for a planned stop by root@pve1``."""
        return f"{BEGINNINGS.get(action, 'begun')} for {self.purpose} by {by}"


BEGINNINGS: dict[type[Deed], str] = {
    CordonNode: "cordoned",
    EvictPods: "pods being evicted",
    ShutdownGuest: "asked to shut down",
    StopGuest: "its guest is stopped hard, and later started again,",
}
"""What the first action on a node is called."""
DRAIN = Milestones(EventReason.DRAIN_BEGUN, EventReason.DRAINED, EventReason.DRAIN_FAILED, "a drain")
HOOK_DRAIN = replace(DRAIN, purpose="a stop in Proxmox")
SHUTDOWN = Milestones(
    EventReason.SHUTDOWN_BEGUN, EventReason.SHUT_DOWN, EventReason.SHUTDOWN_FAILED, "a planned stop"
)
START = Milestones(None, EventReason.STARTED, EventReason.START_FAILED, "a start")
DRILL = Milestones(EventReason.DRILL_BEGUN, EventReason.DRILLED, EventReason.DRILL_FAILED, "a fire drill")
DRAINED = "drained; it stays cordoned"


def started(done: Collection[type[Deed]]) -> str:
    """Return what a start did: ``started, Ready, uncordoned``."""
    words = ((StartGuest, "started"), (None, "Ready"), (UntaintNode, "unfenced"), (Uncordon, "uncordoned"))
    return ", ".join(word for action, word in words if action is None or action in done)


def shut_down(done: Collection[type[Deed]], *, drained: bool) -> str:
    """Return what a planned stop did: ``drained, shut down, proven off``."""
    first = "drained, " if drained else ""
    left = "; what was left on it is cleared, so it is fenced" if TaintNode in done else ""
    return f"{first}shut down, proven off{left}"


def table() -> str:
    """Return all reasons of Events as a Markdown table, for the documentation."""
    rows = (
        f"| `{reason.value}` | {'Warning' if reason.loud else 'Normal'} | {WHEN[reason]} |"
        for reason in EventReason
    )
    return "\n".join(("| Event | type | when |", "| --- | --- | --- |", *rows, ""))
