"""What all agents of a cluster share on one Lease: the last power order, and who is about to fence how much.

Both are written *before* what they are about is done, and each write fails where somebody else has written
meanwhile. So the power window and the brake hold over all agents, however late each of them sees the others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from fencer.core.election import LeaseRecord
from fencer.core.model import Unreadable
from fencer.core.times import MOST_APART_S, Moment, parse_utc, seconds_between

POWER = "fencer.dev/last-power"
BRAKE = "fencer.dev/brake"
SCHEMA = 1

SLOT_S = 60.0
"""For so long a slot counts, used or not: by then every agent sees the fence, or no write of it is left on
its way. Source: kube-apiserver, ``--request-timeout``: 60 s."""
FRESH_S = 10.0
"""A slot this young may be used: a taint that follows it is seen by all before the slot has ended."""
WHOLE_SECONDS_S = 2.0
"""How far in the future a slot may lie that is used: times are whole seconds, and answers take a moment."""
MOST_SLOTS = 2000
"""So many fit on a Lease: an object may have 262,144 bytes of annotations.

Source: k8s.io/apimachinery pkg/api/validation objectmeta.go, TotalAnnotationSizeLimitB."""


@dataclass(frozen=True, slots=True)
class PowerOrder:
    """The last order that ended a guest.

    Attributes:
        at_utc: When it was about to be given, by the faster of two clocks.
        by: Which agent or person.
        guest: Whom, for people.
    """

    at_utc: str
    by: str
    guest: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """What is written there.

    Attributes:
        power: The last power order; None: none.
        slots: Slots of the brake (`fencer.core.brake.slots_for`) of nodes that are about to be tainted, or
            were a moment ago: since when, by the faster of two clocks.
    """

    power: PowerOrder | None = None
    slots: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def at(self, now: Moment) -> Ledger:
        """Return it without the slots that no longer count.

        A slot is old by the slower clock only. What both clocks put further into the future than two of them
        may be apart was written before a clock was set back (E26).
        """
        young = {
            uid: since
            for uid, since in self.slots.items()
            if _plausible(since, now) and seconds_between(since, now.earliest_utc) < SLOT_S
        }
        return replace(self, slots=young)

    def has_slot(self, uid: str, now: Moment) -> bool:
        """Whether a node has a slot that lasts long enough to be used: reserved a moment ago.

        It is fresh only if the faster clock says so; one that lies in the future is reserved again.
        """
        since = self.slots.get(uid)
        return since is not None and -WHOLE_SECONDS_S <= seconds_between(since, now.latest_utc) < FRESH_S

    def with_slot(self, uid: str, now: Moment) -> Ledger:
        """Return it with a slot for a node, and without those that no longer count."""
        return replace(self, slots={**self.at(now).slots, uid: now.latest_utc})

    def power_age_s(self, now: Moment) -> float | None:
        """Return how long ago the last power order was at least; None: there was none that counts."""
        if self.power is None or not _plausible(self.power.at_utc, now):
            return None
        return max(0.0, seconds_between(self.power.at_utc, now.earliest_utc))


def _plausible(at_utc: str, now: Moment) -> bool:
    """Whether a time may have passed: it lies no further ahead than the clocks of two agents may be apart."""
    return seconds_between(now.latest_utc, at_utc) <= 2 * MOST_APART_S


def read_ledger(record: LeaseRecord) -> Ledger | Unreadable:
    """Read what is shared.

    Args:
        record: The Lease `fencer.core.election.CLUSTER_LEASE`.
    """
    key = POWER
    try:
        power = _power(json.loads(record.notes[POWER])) if POWER in record.notes else None
        key = BRAKE
        slots = _slots(json.loads(record.notes[BRAKE])) if BRAKE in record.notes else {}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return Unreadable(f"annotation {key} of lease {record.name}: {type(error).__name__}: {error}")
    return Ledger(power, slots)


def written(record: LeaseRecord, ledger: Ledger) -> LeaseRecord:
    """Return the Lease with what is shared written on it."""
    notes = {key: text for key, text in record.notes.items() if key not in {POWER, BRAKE}}
    if ledger.power is not None:
        order = {"at": ledger.power.at_utc, "by": ledger.power.by, "guest": ledger.power.guest}
        notes[POWER] = _text(order)
    if ledger.slots:
        notes[BRAKE] = _text({"slots": dict(ledger.slots)})
    return replace(record, notes=notes)


def _text(data: Mapping[str, Any]) -> str:
    return json.dumps({"schema": SCHEMA, **data}, separators=(",", ":"), sort_keys=True)


def _power(data: Any) -> PowerOrder:
    _check_schema(data)
    return PowerOrder(_moment(data["at"]), _string(data["by"]), _string(data["guest"]))


def _slots(data: Any) -> dict[str, str]:
    _check_schema(data)
    slots = data["slots"]
    if not isinstance(slots, dict):
        raise TypeError(f"expected slots, not {slots!r}")
    return {uid: _moment(since) for uid, since in slots.items()}


def _check_schema(data: Any) -> None:
    if data["schema"] != SCHEMA:
        raise ValueError(f"schema {data['schema']!r} (this fencer reads {SCHEMA})")


def _moment(value: Any) -> str:
    """Return a time that can be read."""
    if parse_utc(_string(value)) == parse_utc(""):
        raise ValueError(f"{value!r} is no time")
    return str(value)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, not {value!r}")
    return value
