"""An observation as bytes, and back: all that one decision knew, so that it can be made again.

The keys are those of `fencer.core.wire`. A field that came later has its default when an older journal is
read; one that is gone is left out.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Hashable
from functools import cache
from typing import TYPE_CHECKING, Any

from fencer.core.model import Observation
from fencer.core.policy import Policy
from fencer.errors import JournalError

if TYPE_CHECKING:
    from pydantic import BaseModel

LARGEST_BYTES = 64 * 2**20
"""Of one observation, unpacked: 500 pods are 0.3 MB."""


@cache
def _carrier(kind: Any) -> type[BaseModel]:
    """Return a model of one field, ``value``. Its settings hold for all below: silence may be infinite."""
    from pydantic import ConfigDict, create_model  # noqa: PLC0415 - not every command needs it

    config = ConfigDict(ser_json_inf_nan="constants")
    return create_model("Carrier", __config__=config, value=(kind, ...))


def _text(value: Observation | Policy) -> str:
    from pydantic_core import PydanticSerializationError  # noqa: PLC0415 - as below

    kind: Any = type(value)
    carrier = _carrier(kind)(value=value)
    try:
        return carrier.model_dump_json(by_alias=True)
    except PydanticSerializationError:  # a name with half a character, which JSON can only have escaped
        return json.dumps(carrier.model_dump(mode="json", by_alias=True))


def _read(kind: Hashable, text: str | bytes, what: str) -> Any:
    """Read a value.

    Raises:
        JournalError: it is none of this fencer's.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - as below

    try:
        return getattr(_carrier(kind).model_validate(json.loads(text)), "value")  # noqa: B009 - a made field
    except (ValueError, RecursionError) as error:
        if not isinstance(error, ValidationError):  # no JSON
            raise JournalError(f"{what} cannot be read: {error}") from error
        first, *more = error.errors(include_url=False, include_input=False)
        where = ".".join(map(str, first["loc"]))
        others = f", and {len(more)} more" if more else ""
        raise JournalError(f"{what} cannot be read: {where}: {first['msg']}{others}") from error


def pack(seen: Observation) -> bytes:
    """Return an observation as compressed JSON."""
    return zlib.compress(_text(seen).encode(), 1)


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
    return _text(policy)


def policy_from(text: str) -> Policy:
    """Return the policy of such a text.

    Raises:
        JournalError: it is of a fencer whose policies are different ones.
    """
    found = _read(Policy, text, "a policy")
    assert isinstance(found, Policy)  # noqa: S101 - as the model says
    return found
