"""Whose cordon it is, and who takes it off after a boot. Pure; `fencer.core.cordon` has the agent's rules."""

from __future__ import annotations

from enum import Enum

from fencer.guest.notes import AGENT, DRAIN, PASSING, Cordon, OwnNode, Unreadable


class Step(str, Enum):
    """What to do about a cordon after boot."""

    UNCORDON = "uncordon"
    UNLESS_DOWN = "unless down"
    """Uncordon, unless the machine is going down now, or may be."""
    FORGET = "forget"
    """Somebody uncordoned the node; remove our note about it."""
    WAIT = "wait"
    LEAVE = "leave"


NO_RECORD = (
    "cordoned with the note of the drain in this guest, but the API server has no record of who set that "
    "cordon (managedFields)"
)


def after_boot(node: OwnNode, boot_id: str, manager: str, start: str = "") -> tuple[Step, str]:
    """Decide about the cordon of a node that has booted; the text says why.

    Only a cordon that a drain in this guest set is taken off: in an earlier run of the system, or for a
    shutdown of this one that was called off. And only if nobody has cordoned since: the note alone does not
    tell, because `kubectl uncordon` and `kubectl cordon` leave it in place.

    It does not wait for Ready: a pod that makes the node Ready may wait for a place on it.

    Args:
        node: The node.
        boot_id: This boot's id.
        manager: The field manager of our own drains.
        start: When this system was started, from `system.started`; empty: not known.
    """
    if not node.unschedulable:
        noted = isinstance(node.cordon, Cordon) and node.cordon.by == DRAIN
        return (Step.FORGET, "uncordoned by somebody else") if noted else (Step.LEAVE, "not cordoned")
    cordon = _ours(node, manager)
    if isinstance(cordon, str):
        return Step.LEAVE, cordon
    step, why = _over(cordon, boot_id, start)
    if step is Step.LEAVE:
        return step, why
    if node.boot_id != boot_id:
        return Step.WAIT, "the kubelet has not reported this boot yet"
    if node.fenced:
        return Step.WAIT, f"fenced: {node.fenced} is there"
    return step, why


def cordon_is_ours(node: OwnNode, manager: str) -> bool:
    """Whether there is a cordon that `after_boot` would take off now or after a later boot.

    Args:
        node: The node.
        manager: The field manager of our own drains.
    """
    return node.unschedulable and isinstance(_ours(node, manager), Cordon)


def cordon_unrecorded(node: OwnNode) -> bool:
    """Whether only the note says that a cordon is from a drain in here: nothing but a person lifts it."""
    noted = isinstance(node.cordon, Cordon) and node.cordon.by == DRAIN
    return node.unschedulable and noted and not node.recorded


def cordon_passes(node: OwnNode) -> bool:
    """Whether there is a cordon that the agent takes off by itself, even during a drain."""
    noted = isinstance(node.cordon, Cordon) and node.cordon.by in PASSING
    return node.unschedulable and noted and node.cordoner == AGENT


def _over(cordon: Cordon, boot_id: str, start: str) -> tuple[Step, str]:
    """Whether the shutdown that our drain was for is over."""
    if cordon.boot_id != boot_id:
        return Step.UNCORDON, "it was cordoned by the drain of an earlier boot"
    if cordon.start and start and cordon.start != start:
        return Step.UNCORDON, "it was cordoned by a drain, and the system was started again since"
    if cordon.shutdown:
        return Step.UNLESS_DOWN, "the shutdown was called off"
    return Step.LEAVE, "cordoned by a drain in this boot"


def _ours(node: OwnNode, manager: str) -> Cordon | str:
    """Return the note on a cordon that a drain in this guest set, or say whose cordon it is."""
    cordon = node.cordon
    if isinstance(cordon, Unreadable):
        return f"cordoned by another version of fencer ({cordon.why})"
    if cordon is None:
        return "cordoned by somebody else"
    if cordon.by != DRAIN:
        return f"cordoned by the agent ({cordon.by}), which takes it off itself"
    # One that a drain in here took over from the agent stays the agent's by the API server's record, as its
    # value does not change; but the agent, when it cordons, notes neither a start nor a shutdown.
    if not node.recorded:
        # C9: the drain was another process, and an administrator may have cordoned since.
        return f"{NO_RECORD}: `kubectl uncordon {node.name}`, unless an administrator cordoned it since"
    taken_over = node.cordoner == AGENT and bool(cordon.start or cordon.shutdown)
    if node.cordoner != manager and not taken_over:
        return f"cordoned by {node.cordoner or 'somebody'}, not by the drain in this guest"
    return cordon
