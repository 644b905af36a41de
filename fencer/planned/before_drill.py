"""Whether a fire drill may begin: the node is sound, and fencer would fence it if it died. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from fencer.core.decide import decide
from fencer.core.identity import subject_of
from fencer.core.model import (
    Decision,
    Intent,
    Judged,
    NodeView,
    Observation,
    PowerState,
    Reason,
    Run,
    Verdict,
)
from fencer.core.policy import Policy
from fencer.core.rung import Subject
from fencer.core.text import listing
from fencer.wording.reasons import change, says

LONG_S = 3600.0
"""Longer than any silence, and any reading, that is waited for."""


@dataclass(frozen=True, slots=True)
class No:
    """Why a drill does not begin, and what would change that."""

    why: str
    change: str


def refusal(judged: Judged, policy: Policy) -> No | None:
    """Say why the guest of this node may not be stopped for a drill; None: it may.

    Args:
        judged: The node, read closely, on behalf of a shutdown: whether its guest may be powered.
        policy: How careful the agent is.
    """
    seen, decision = judged.observation, judged.decision
    if seen.evidence is not None and seen.evidence.gone:
        name = seen.node.name
        return No("its VM is off already", f"`fencer start {name}`; `fencer explain {name}` says why")
    if decision.verdict is not Verdict.ASK:
        return No(says(decision), change(decision))
    subject = subject_of(seen)
    assert subject is not None  # noqa: S101 - otherwise it could not be asked to shut down
    unsound = next((no for there, no in _unsound(seen, subject) if there), None)
    if unsound is not None:
        return unsound
    dead = if_it_died(seen, policy)
    if dead.verdict is Verdict.FENCE:
        return None
    nothing = dead.reason is Reason.NOTHING_TO_CLEAR
    ways = "a pod on it that may go elsewhere, or a drill of another node" if nothing else change(dead)
    return No(f"it would not be fenced: {says(dead)}", ways)


def _unsound(seen: Observation, subject: Subject) -> Iterator[tuple[bool, No]]:
    """Name all that may be wrong with the node, and whether it is."""
    node, explain = seen.node, f"`fencer explain {seen.node.name}` says what it waits for"
    fenced = node.out_of_service is not None or node.mark is not None
    unseen = f"no agent has seen {subject.guest} alive with the node yet, so none would fence it"
    yield not subject.proven, No(unseen, "an agent that has watched it for two renewals of its lease (20 s)")
    yield fenced, No("it is fenced, or was a moment ago", explain)
    forgotten = "its hypervisor would forget its VM once it is off, and nobody could start it again"
    fleeting = seen.evidence is not None and seen.evidence.fleeting
    yield fleeting, No(forgotten, "a VM that is defined: `virsh dumpxml`, and `virsh define`")
    yield node.ready is not True, No("it is not Ready, so this is no drill", explain)
    yield node.unschedulable, No("it is cordoned", f"`kubectl uncordon {node.name}`")
    yield bool(node.doubts), No("what its hypervisor says of its VM was wrong before", explain)
    twins = f"{listing(seen.claimed_by)} may be alive, and says that it is {subject.guest}, too"
    right = "the right UUID reported, or the older Node deleted, if its VM is gone for good"
    yield bool(seen.claimed_by), No(twins, right)


def if_it_died(seen: Observation, policy: Policy) -> Decision:
    """Rehearse: return what the agent would decide if this guest had been off, and its node silent, for long.

    Args:
        seen: A close look at a healthy node.
        policy: How careful the agent is.
    """
    node, evidence = seen.node, seen.evidence
    assert evidence is not None  # noqa: S101 - its guest runs
    off = replace(evidence, power_state=PowerState.STOPPED, raw="stopped (if it died)")
    run = Run(
        *(PowerState.STOPPED, evidence.incarnation, seen.now_s - LONG_S, seen.now_s, 2),
        *(node.lease_renewals, node.boot_id),
    )
    dead = replace(
        seen,
        intent=Intent.WATCH,
        node=replace(node, ready=None, not_ready_s=LONG_S, lease_age_s=LONG_S, asked=True),
        evidence=off,
        history=replace(seen.history, run=run, running_seen=True, ran_as=evidence.guest),
        fleet=replace(seen.fleet, silent=seen.fleet.silent + 1),
    )
    return decide(dead, policy)


def others_in_trouble(
    name: str, nodes: Iterable[NodeView], not_running: Collection[str], silent: Collection[str] = ()
) -> No | None:
    """Say which other nodes are in trouble: an emergency beside a drill would be one too many; None: none.

    Args:
        name: The node of the drill.
        nodes: All nodes.
        not_running: Names of those whose guests do not run.
        silent: Endpoints that do not answer: nobody knows of their guests, and nobody fences their nodes.
    """
    if silent:
        whose = f"{listing(sorted(silent))} {'does' if len(silent) == 1 else 'do'} not answer"
        return No(
            f"{whose}, so nobody knows how other nodes are", "all hypervisors answering: `fencer check`"
        )
    troubled = {
        node.name: word
        for node in nodes
        if node.name != name and (word := _trouble(node, node.name in not_running))
    }
    if not troubled:
        return None
    what = listing([f"{node} {word}" for node, word in sorted(troubled.items())])
    return No(f"another node is in trouble: {what}", "all other nodes Ready, running and not fenced")


def _trouble(node: NodeView, stopped: bool) -> str:  # noqa: FBT001 - as it is known of it
    if node.out_of_service is not None:
        return "is fenced"
    if node.ready is not True:
        return "is not Ready"
    return "has a VM that does not run" if stopped else ""
