"""What holds fencer back, and from what: one table. Whoever acts asks it, and docs/safety.md is made from it.

A hold never says that a guest lives, or that its host does. It says that something must not be done *now*.
What holds fencer back from acting never holds it back from remembering (`fencer.core.learn`, D3).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from fencer.core.annotations import EXCLUDE, EXCLUDE_LABEL
from fencer.core.model import (
    Action,
    BindNode,
    ClearPods,
    DeleteAttachments,
    DiscardSaved,
    Intent,
    NodeView,
    Observation,
    Reason,
    RecordDoubts,
    StartGuest,
    StopGuest,
    TaintNode,
    Uncordon,
    Unreadable,
    UntaintNode,
)
from fencer.core.policy import Mode, Policy


class Act(StrEnum):
    """What may be held back."""

    REMEMBER = "remember"
    TAINT = "taint"
    STOP = "stop, discard"
    START = "start"
    CLEAR = "clear"
    LIFT = "lift"
    UNDO = "undo a wrong fence"
    UNCORDON = "uncordon"


class May(StrEnum):
    """Whether it is done all the same."""

    YES = "yes"
    NO = "no"
    STATE_FILE = "state file"
    """Only on the agent's own disk."""
    ALARM = "no: alarm with the one command"
    """A person is told which command lets it be done."""


@dataclass(frozen=True, slots=True)
class Hold:
    """One row of the table.

    Attributes:
        name: For people.
        reasons: Those of the closed list by which a decision says that this holds it back.
        whom: Whom it holds back.
        done: What is done all the same; everything else is not.
        elsewhere: What is done in another way.
    """

    name: str
    reasons: tuple[Reason, ...]
    whom: str
    done: frozenset[Act]
    elsewhere: tuple[tuple[Act, May], ...] = ()

    def may(self, act: Act) -> May:
        """Return whether something is done all the same."""
        return dict(self.elsewhere).get(act, May.YES if act in self.done else May.NO)


AGENT, BOTH = "agent", "agent and commands"
_BACK = frozenset({Act.LIFT, Act.UNDO, Act.UNCORDON})
"""The way back of a node that lives."""
_IN_THE_STATE_FILE = ((Act.REMEMBER, May.STATE_FILE),)

HOLDS = (
    Hold(
        "cluster pause, node pause, exclude",
        (Reason.FENCING_PAUSED, Reason.NODE_PAUSED, Reason.NODE_EXCLUDED),
        BOTH,
        frozenset({Act.REMEMBER}),
        ((Act.UNDO, May.ALARM),),
    ),
    Hold("maintenance window", (Reason.MAINTENANCE,), AGENT, _BACK | {Act.REMEMBER, Act.CLEAR}),
    Hold("`mode: observe`", (Reason.OBSERVE_MODE,), AGENT, frozenset(), _IN_THE_STATE_FILE),
    Hold(
        "not the leader of the hypervisor, or its Lease lost",
        (Reason.STANDBY, Reason.NO_LEASE),
        AGENT,
        _BACK | {Act.REMEMBER, Act.TAINT, Act.CLEAR},
    ),
    Hold(
        "reserved by another controller, handed over",
        (Reason.NODE_RESERVED, Reason.HANDED_OVER),
        AGENT,
        _BACK | {Act.REMEMBER, Act.CLEAR},
    ),
    Hold("given up by the controller that asked", (Reason.GIVEN_UP,), AGENT, _BACK | {Act.REMEMBER}),
    Hold(
        "mark or notes on the Node unreadable",
        (Reason.MARK_UNREADABLE, Reason.DOUBTS_UNREADABLE),
        BOTH,
        frozenset(),
        _IN_THE_STATE_FILE,
    ),
    Hold("mark on the Node not signed", (Reason.MARK_UNSIGNED,), BOTH, frozenset({Act.REMEMBER})),
    Hold(
        "notes not written or not read yet, or the API server just back",
        (Reason.NOTES_FIRST,),
        BOTH,
        _BACK | {Act.REMEMBER},
    ),
    Hold(
        "the hypervisor does not answer",
        (Reason.BLIND, Reason.EVIDENCE_MISSING, Reason.EVIDENCE_STALE),
        BOTH,
        _BACK | {Act.REMEMBER},
    ),
)
"""The law. `tests/core/test_holds.py` tries each cell, and that whatever only holds back has a row."""

BY_REASON: Mapping[Reason, Hold] = MappingProxyType(
    {reason: hold for hold in HOLDS for reason in hold.reasons}
)

_ACTS: Mapping[type, Act] = MappingProxyType(
    {
        BindNode: Act.REMEMBER,
        RecordDoubts: Act.REMEMBER,
        TaintNode: Act.TAINT,
        StopGuest: Act.STOP,
        DiscardSaved: Act.STOP,
        StartGuest: Act.START,
        ClearPods: Act.CLEAR,
        DeleteAttachments: Act.CLEAR,
        UntaintNode: Act.LIFT,
        Uncordon: Act.UNCORDON,
    }
)


def allows(reason: Reason, act: Act) -> bool:
    """Whether a hold leaves room for something."""
    return BY_REASON[reason].may(act) is May.YES


def allowed(reason: Reason, actions: Collection[Action]) -> tuple[Action, ...]:
    """Return those actions that a hold leaves room for; one that is in no column of the table always is."""
    return tuple(
        action for action in actions if type(action) not in _ACTS or allows(reason, _ACTS[type(action)])
    )


def writes_notes(seen: Observation, policy: Policy) -> bool:
    """Whether what is learnt is written on the Node; otherwise it only lies in the agent's state file.

    Args:
        seen: The node, and on whose behalf.
        policy: For the mode.
    """
    observes = seen.intent is Intent.WATCH and policy.mode is not Mode.ARMED
    return not (
        observes or isinstance(seen.node.mark, Unreadable) or isinstance(seen.node.doubts, Unreadable)
    )


def command_to_resume(node: NodeView, reason: Reason) -> str:
    """Return the command that ends what keeps fencer's hands off a node, for people.

    Args:
        node: The node.
        reason: How a decision names it.
    """
    if reason is Reason.FENCING_PAUSED:
        return "`fencer resume`"
    if reason is Reason.NODE_PAUSED:
        return f"`fencer resume {node.name}`"
    verb = "label" if EXCLUDE_LABEL in node.excluded_by else "annotate"
    return f"`kubectl {verb} node {node.name} {EXCLUDE_LABEL if verb == 'label' else EXCLUDE}-`"
