"""Which of several agents gives a hypervisor its orders: one Lease each, held by one at a time.

A Lease is an object of the Kubernetes API, so etcd decides who gets it. Nobody compares clocks: an agent
takes a Lease over only after it has itself seen no change of it for `DURATION_S`, by its own clock, and a
holder counts its own time from *before* the request that renewed it, and ends sooner, after `VALID_S`. Both
clocks have to count suspension.

Source of the three times: client-go's defaults, k8s.io/component-base config/v1alpha1 defaults.go
(LeaseDuration 15 s, RenewDeadline 10 s, RetryPeriod 2 s).
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from fencer.core.wire import wire

DURATION_S = 15.0
"""Others take a Lease over once they have seen no change of it for so long."""
VALID_S = 10.0
"""A holder is one until so long after it began its last renewal."""
RETRY_S = 2.0
"""Between two looks at a Lease, or two renewals."""

NAMESPACE = "fencer"
"""Where the Leases are; the same for every account, as for the key."""
CLUSTER_LEASE = "fencer-cluster"
"""The one Lease that nobody holds: on it all agents of a cluster write what they share."""
HYPERVISOR = "fencer.dev/hypervisor"
"""On a hypervisor's Lease: which one it is, for people."""

_HASH_LENGTH = 16
_ODD = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A Lease of fencer's, as the API has it.

    Attributes:
        name: Of the object.
        holder: ``holderIdentity``: `Holder` as text; empty: nobody.
        transitions: ``leaseTransitions``: how often another one took it.
        acquired: ``acquireTime``, by the holder's clock, RFC 3339 with six digits; empty: none.
        renewed: ``renewTime``, likewise.
        given_back: Its last holder wrote that it is free. That it merely names nobody says nothing of that.
        notes: Its annotations.
        uid: The object's UID.
        version: Its resourceVersion.
        utc: The API server's clock when it answered, RFC 3339.
        noted: Those annotations of fencer's that it had when it was read: a write takes off what is in
            `notes` no longer.
    """

    name: str
    holder: str = ""
    transitions: int = 0
    acquired: str = ""
    renewed: str = ""
    given_back: bool = False
    notes: Mapping[str, str] = field(default_factory=dict)
    uid: str = ""
    version: str = ""
    utc: str = ""
    noted: frozenset[str] = frozenset()

    @property
    def released(self) -> bool:
        """Whether its last holder gave it back: it may be taken at once.

        One that is new, or that a person has emptied, may not: its holder may not know that yet.
        """
        return not self.holder and self.given_back

    @property
    def state(self) -> tuple[str, str, int]:
        """What a holder changes by renewing it. Not the version: a note changes that as well."""
        return self.holder, self.renewed, self.transitions


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a Lease: an agent in one life of its process.

    Attributes:
        by: The agent, as it calls itself in marks: ``fencer@pve2``.
        boot: The boot of its machine, shortened.
        instance: Its process, by chance.
    """

    by: str
    boot: str
    instance: str

    def __str__(self) -> str:
        """``fencer@pve2/1f0c2d3e/9a8b7c6d``."""
        return "/".join(part.replace("/", "-") for part in (self.by, self.boot, self.instance))


def holder_name(holder: str) -> str:
    """Return which agent a holder is, for people: ``fencer@pve2``."""
    return holder.partition("/")[0]


def lease_name(kind: str, identity: str) -> str:
    """Return the name of a hypervisor's Lease.

    Args:
        kind: Like ``libvirt``.
        identity: The hypervisor's own name for itself, see `fencer.ports.EndpointInfo.identity`.
    """
    kind = _ODD.sub("-", kind.lower()).strip("-")[:20] or "other"
    return f"fencer-{kind}-{hmac.digest(b'fencer', identity.encode(), 'sha256').hex()[:_HASH_LENGTH]}"


@dataclass(frozen=True, slots=True)
class Campaign:
    """What one agent knows of one Lease.

    Attributes:
        me: Its `Holder`, as text.
        record: The Lease as it was last read or written; None: not yet.
        changed_s: When its state was last seen to have changed: the answer had come, by the own clock.
        valid_s: Until when this agent holds it, by the own clock; minus infinity: it does not.
        heard_s: When it was last seen to change between two reads: a sign of life of whoever holds it.
    """

    me: str
    record: LeaseRecord | None = None
    changed_s: float = float("-inf")
    valid_s: float = float("-inf")
    heard_s: float = float("-inf")

    def read(self, record: LeaseRecord, now_s: float) -> Campaign:
        """Take in a Lease that was read.

        That it names this agent, after a renewal whose outcome was unknown, makes nothing valid: only a
        renewal whose beginning is known does.

        Args:
            record: What was read.
            now_s: When the answer had come.
        """
        before = self.record
        same = before is not None and before.uid == record.uid and before.state == record.state
        valid_s = self.valid_s if record.holder == self.me else float("-inf")
        changed = not same and before is not None and before.uid == record.uid
        heard_s = now_s if changed else self.heard_s
        changed_s = self.changed_s if same else now_s
        return replace(self, record=record, changed_s=changed_s, valid_s=valid_s, heard_s=heard_s)

    def wrote(self, record: LeaseRecord, began_s: float, now_s: float) -> Campaign:
        """Take in the answer to a write of this agent's own: it is the holder.

        Args:
            record: The Lease as it is now.
            began_s: When the request began.
            now_s: When the answer had come.
        """
        valid_s = began_s + VALID_S if record.holder == self.me else float("-inf")
        return replace(self, record=record, changed_s=now_s, valid_s=valid_s)

    def due(self, now_s: float, utc: str) -> LeaseRecord | None:
        """Return what to write now, to renew the Lease or to take it over; None: not yet, or it is another's.

        Args:
            now_s: The own clock.
            utc: The wall clock, RFC 3339 with six digits: for people, nobody compares it.
        """
        record = self.record
        if record is None:
            return None
        if record.holder == self.me:
            return replace(record, renewed=utc)
        if not record.released and now_s - self.changed_s < DURATION_S:
            return None
        taken = replace(record, holder=self.me, acquired=utc, renewed=utc, given_back=False)
        return replace(taken, transitions=record.transitions + 1)

    def released(self, utc: str) -> LeaseRecord | None:
        """Return what to write to give the Lease back at once; None: it is not held."""
        record = self.record
        if record is None or record.holder != self.me:
            return None
        return replace(record, holder="", renewed=utc, given_back=True)


class Seat(StrEnum):
    """What an agent is to a hypervisor."""

    HOLDER = "holder"
    """It gives the orders."""
    STANDBY = "standby"
    """Another one does."""
    UNSETTLED = "unsettled"
    """It is not clear yet, or not any more."""
    UNFILLED = "unfilled"
    """There is no Lease that it could hold, or it may not."""


@wire("seat lease until_s holder why heard_s")
@dataclass(frozen=True, slots=True)
class Tenure:
    """What an agent is to a hypervisor, as of now.

    Attributes:
        seat: What it is.
        lease: The Lease's name; empty: not known yet.
        until_s: For a holder: until when, by its own clock.
        holder: Who holds it, as people know them; empty: nobody, or not known.
        why: Why it is not clear, or cannot be.
        heard_s: When the holder was last seen to renew it, by this agent's own clock; minus infinity: never.
    """

    seat: Seat
    lease: str = ""
    until_s: float = float("-inf")
    holder: str = ""
    why: str = ""
    heard_s: float = float("-inf")

    def holds(self, now_s: float) -> bool:
        """Whether this agent may give orders at this moment."""
        return self.seat is Seat.HOLDER and now_s < self.until_s
