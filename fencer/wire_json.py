"""Values as JSON under the keys of `fencer.core.wire`, and back.

A field that came later has its default when an older text is read; one that is gone is left out.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel


@cache
def _carrier(kind: Any) -> type[BaseModel]:
    """Return a model of one field, ``value``. Its settings hold for all below: silence may be infinite."""
    from pydantic import ConfigDict, create_model  # noqa: PLC0415 - not every command needs it

    config = ConfigDict(ser_json_inf_nan="constants")
    return create_model("Carrier", __config__=config, value=(kind, ...))


def write_json(value: object) -> str:
    """Return a value of a wired class as JSON on one line, below ``value``."""
    from pydantic_core import PydanticSerializationError  # noqa: PLC0415 - as above

    kind: Any = type(value)
    carrier = _carrier(kind)(value=value)
    try:
        return carrier.model_dump_json(by_alias=True)
    except PydanticSerializationError:  # a name with half a character, which JSON can only have escaped
        return json.dumps(carrier.model_dump(mode="json", by_alias=True))


def read_json(kind: Hashable, text: str | bytes) -> Any:
    """Return the value of such a text.

    Args:
        kind: Its class.
        text: The JSON.

    Raises:
        ValueError: it is no value of this class; the text says where.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - as above

    try:
        return getattr(_carrier(kind).model_validate(json.loads(text)), "value")  # noqa: B009 - a made field
    except ValidationError as error:
        first, *more = error.errors(include_url=False, include_input=False)
        where = ".".join(map(str, first["loc"]))
        others = f", and {len(more)} more" if more else ""
        raise ValueError(f"{where}: {first['msg']}{others}") from error
    except RecursionError as error:
        raise ValueError(str(error)) from error
