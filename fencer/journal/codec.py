"""An observation as bytes, and back: all that one decision knew, so that it can be made again.

The keys are those of `fencer.core.wire`, written by `fencer.wire_json`.
"""

from __future__ import annotations

import zlib
from collections.abc import Hashable
from typing import Any

from fencer.core.model import Observation
from fencer.core.policy import Policy
from fencer.errors import JournalError
from fencer.wire_json import read_json, write_json

LARGEST_BYTES = 64 * 2**20
"""Of one observation, unpacked: 500 pods are 0.3 MB."""


def _read(kind: Hashable, text: str | bytes, what: str) -> Any:
    """Read a value.

    Raises:
        JournalError: it is none of this fencer's.
    """
    try:
        return read_json(kind, text)
    except ValueError as error:
        raise JournalError(f"{what} cannot be read: {error}") from error


def pack(seen: Observation) -> bytes:
    """Return an observation as compressed JSON."""
    return zlib.compress(write_json(seen).encode(), 1)


def unpack(packed: bytes) -> Observation:
    """Return an observation as it was packed.

    Raises:
        JournalError: it is damaged, or of a fencer whose observations are different ones.
    """
    found = _read(Observation, unpacked(packed), "an observation")
    assert isinstance(found, Observation)  # noqa: S101 - as the model says
    return found


def unpacked(packed: bytes) -> bytes:
    """Return an observation as JSON, below ``value``.

    Raises:
        JournalError: it is damaged.
    """
    try:
        return zlib.decompressobj().decompress(packed, LARGEST_BYTES)
    except zlib.error as error:
        raise JournalError(f"an observation cannot be read: {error}") from error


def policy_text(policy: Policy) -> str:
    """Return a policy as JSON."""
    return write_json(policy)


def policy_from(text: str) -> Policy:
    """Return the policy of such a text.

    Raises:
        JournalError: it is of a fencer whose policies are different ones.
    """
    found = _read(Policy, text, "a policy")
    assert isinstance(found, Policy)  # noqa: S101 - as the model says
    return found
