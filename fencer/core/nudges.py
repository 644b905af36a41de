"""Nudges that travel: a hook's hint reaches the agent that holds the guest's hypervisor, on its Lease.

A nudge proves nothing and decides nothing: that agent reads the guest live a moment sooner.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import replace

from fencer.core.election import LeaseRecord

NUDGE = "fencer.dev/nudge-"
"""Begins the key of each nudge; the guest's id follows, as the hook knows it."""
MOST = 32
"""So many wait on a Lease at most: more of them say nothing that the next sweep does not."""
_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,55}[A-Za-z0-9])?")
"""With `NUDGE` a key that the API takes. Source: apimachinery pkg/util/validation, qualifiedNameMaxLength: 63
characters after the slash."""


def can_travel(guest: str) -> bool:
    """Whether a guest's id, which is anybody's, can be written on a Lease."""
    return _ID.fullmatch(guest) is not None


def sent(record: LeaseRecord, guests: Collection[str], by: str) -> LeaseRecord | None:
    """Return what to write on a Lease for its holder; None: nothing, all of them wait there already.

    Args:
        record: The Lease, as it was read.
        guests: Whom the hooks named.
        by: Which agent passes it on.
    """
    waiting = [key for key in record.notes if key.startswith(NUDGE)]
    room_count = max(0, MOST - len(waiting))
    new = [NUDGE + guest for guest in sorted(set(guests)) if can_travel(guest)]
    new = [key for key in new if key not in record.notes][:room_count]
    if not new:
        return None
    text = json.dumps({"at": record.utc, "by": by}, separators=(",", ":"))
    return replace(record, notes={**record.notes, **dict.fromkeys(new, text)})


def taken(record: LeaseRecord) -> tuple[LeaseRecord, tuple[str, ...]]:
    """Take all nudges off a Lease.

    Args:
        record: As it is to be written by its holder.

    Returns:
        The same without them, and the guests that they name.
    """
    keys = sorted(key for key in record.notes if key.startswith(NUDGE))
    notes = {key: text for key, text in record.notes.items() if not key.startswith(NUDGE)}
    guests = [guest for key in keys if can_travel(guest := key.removeprefix(NUDGE))]
    return replace(record, notes=notes), tuple(guests[:MOST])
