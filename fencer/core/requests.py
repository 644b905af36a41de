"""What other controllers of the cluster ask of fencer: custom resources that name a node and call for help.

A request is a trigger, never a proof: it changes who may act and which ladder is climbed, and no rung of the
proof. Who calls: medik8s NodeHealthCheck and Cluster API MachineHealthCheck.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from fencer.core.policy import Policy, Remediation
from fencer.core.wire import wire

GROUP = "remediation.fencer.dev"
"""The API group of both kinds, `FencerRemediation` and `FencerRemediationTemplate`."""

RESERVATIONS = "medik8s-leases"
"""Where medik8s' controllers keep one Lease for each node that one of them works on.

Source: github.com/medik8s/common pkg/lease/manager.go.
"""

REMEMBERED_S = 60.0
"""What cannot be read for longer counts no more: longer than an API server takes to restart."""


class Strategy(StrEnum):
    """How far a request goes."""

    PROVE = "prove"
    """A guest that is off is proven off, and its node fenced. Its power is touched as the policy says."""
    STOP = "stop"
    """A guest that runs unheard is stopped first, as by ``unresponsive_guest: stop``."""


@wire("namespace name uid version node strategy asked_by problem waits deleting given_up adopted told")
@dataclass(frozen=True, slots=True)
class Request:
    """One FencerRemediation, as the API has it.

    Attributes:
        namespace: Where it is.
        name: Its name there.
        uid: The object's UID.
        version: Its resourceVersion.
        node: Which node it is about; empty: that cannot be said.
        strategy: How far it goes.
        asked_by: Who made it, for people: ``NodeHealthCheck workers``; empty: nobody's name is on it.
        problem: Why it cannot be honoured, for people; empty: nothing is wrong with it.
        waits: That problem may pass by itself.
        deleting: It was deleted, and waits for its finalizers.
        given_up: Its owner gave it up: nothing may be done for it any more.
        adopted: It carries fencer's finalizer.
        told: What its status says; None: nothing yet.
    """

    namespace: str
    name: str
    uid: str
    version: str
    node: str
    strategy: Strategy = Strategy.PROVE
    asked_by: str = ""
    problem: str = ""
    waits: bool = False
    deleting: bool = False
    given_up: bool = False
    adopted: bool = False
    told: Progress | None = None

    @property
    def live(self) -> bool:
        """Whether somebody still waits for what it asks for."""
        return not (self.deleting or self.given_up or self.problem)

    @property
    def refused(self) -> bool:
        """Whether it was told no. It is still asked for, but for power: another remedy may be at work."""
        return self.told is not None and self.told.succeeded is False

    @property
    def answered(self) -> bool:
        """Whether its answer is final. It asks for no power any more: what it was about is over."""
        return self.told is not None and self.told.final

    def __str__(self) -> str:
        """``FencerRemediation medik8s/k8s-3 (NodeHealthCheck workers)``."""
        by = f" ({self.asked_by})" if self.asked_by else ""
        return f"FencerRemediation {self.namespace}/{self.name}{by}"


@wire("succeeded reason message")
@dataclass(frozen=True, slots=True)
class Progress:
    """What the status of a request tells, as conditions ``Processing`` and ``Succeeded``.

    Attributes:
        succeeded: True: fenced and cleared. False: it will not be; whoever called need not wait. None: not
            known yet.
        reason: A word for programs, like ``GuestRunning``.
        message: The same for people.
    """

    succeeded: bool | None
    reason: str
    message: str = field(default="", compare=False)

    @property
    def final(self) -> bool:
        """Whether nothing more follows."""
        return self.succeeded is not None


@dataclass(frozen=True, slots=True)
class Asked:
    """All that is asked at one moment.

    Attributes:
        requests: Every FencerRemediation that can be read.
        reservations: Who holds the Lease that medik8s' controllers keep for a node, by the node's name.
        malformed: Those that cannot be read, each with why.
    """

    requests: tuple[Request, ...] = ()
    reservations: Mapping[str, str] = field(default_factory=dict)
    malformed: tuple[str, ...] = ()


@wire("strategy by given_up reserved_by")
@dataclass(frozen=True, slots=True)
class Call:
    """What all that is asked amounts to for one node.

    Attributes:
        strategy: How far the farthest request goes; None: nobody asks for anything.
        by: The requests, for people.
        given_up: A request that its owner gave up, for people; empty: there is none.
        reserved_by: Who works on the node by its medik8s Lease; empty: nobody.
    """

    strategy: Strategy | None = None
    by: str = ""
    given_up: str = ""
    reserved_by: str = ""


NO_CALL = Call()


def call_for(about: Sequence[Request], reserved_by: str = "") -> Call:
    """Sum up what is asked about one node.

    Args:
        about: The requests about it.
        reserved_by: Who holds its medik8s Lease; empty: nobody.
    """
    if any(one.deleting and not (one.given_up or one.refused) for one in about):
        reserved_by = ""  # by whoever asked fencer, until that request is gone
    live = [one for one in about if one.live]
    given_up = next((str(one) for one in about if one.given_up and not one.deleting), "")
    stops = any(one.strategy is Strategy.STOP and not one.answered for one in live)
    strategy = None if not live else Strategy.STOP if stops else Strategy.PROVE
    return Call(strategy, ", ".join(map(str, live)), given_up, reserved_by)


def counting(call: Call, policy: Policy, unread_s: float) -> Call:
    """Return what a call counts for.

    That there may be another one, which cannot be read, must keep nobody from being fenced; and a power order
    has to rest on what was read now.

    Args:
        call: As it was last read.
        policy: For the most that anybody may ask for.
        unread_s: How long ago that was.
    """
    if unread_s > REMEMBERED_S:
        return NO_CALL
    may_stop = policy.remediation is Remediation.STOP and unread_s <= policy.evidence_max_age_s
    return call if may_stop or call.strategy is not Strategy.STOP else replace(call, strategy=Strategy.PROVE)
