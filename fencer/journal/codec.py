"""An observation as bytes, and back: all that one decision knew, so that it can be made again.

A field that came later has its default when an older journal is read; one that is gone is left out.
"""

from __future__ import annotations

import zlib

from pydantic import BaseModel, ConfigDict, ValidationError

from fencer.core.model import Observation
from fencer.core.policy import Policy
from fencer.errors import JournalError

LARGEST_BYTES = 64 * 2**20
"""Of one observation, unpacked: 500 pods are 0.3 MB."""


class _Seen(BaseModel):
    """Carries the settings to all that is in an observation: silence may be infinite."""

    model_config = ConfigDict(ser_json_inf_nan="constants")
    seen: Observation


class _Careful(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="constants")
    policy: Policy


def pack(seen: Observation) -> bytes:
    """Return an observation as compressed JSON."""
    return zlib.compress(_Seen(seen=seen).model_dump_json().encode(), 1)


def unpack(packed: bytes) -> Observation:
    """Return an observation as it was packed.

    Raises:
        JournalError: it is damaged, or of a fencer whose observations are different ones.
    """
    try:
        return _Seen.model_validate_json(text_of_packed(packed)).seen
    except ValidationError as error:
        raise JournalError(f"an observation cannot be read: {_first(error)}") from error


def text_of_packed(packed: bytes) -> bytes:
    """Return an observation as JSON.

    Raises:
        JournalError: it is damaged.
    """
    try:
        return zlib.decompressobj().decompress(packed, LARGEST_BYTES)
    except zlib.error as error:
        raise JournalError(f"an observation cannot be read: {error}") from error


def policy_text(policy: Policy) -> str:
    """Return a policy as JSON."""
    return _Careful(policy=policy).model_dump_json()


def policy_from(text: str) -> Policy:
    """Return the policy of such a text.

    Raises:
        JournalError: it is of a fencer whose policies are different ones.
    """
    try:
        return _Careful.model_validate_json(text).policy
    except ValidationError as error:
        raise JournalError(f"a policy cannot be read: {_first(error)}") from error


def _first(error: ValidationError) -> str:
    first, *more = error.errors(include_url=False, include_input=False)
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" + (f", and {len(more)} more" if more else "")
