"""Single values from the API's JSON. Missing or odd ones raise HypervisorProtocol.

Numbers come as numbers or as texts; booleans as 0 and 1, "0", "1", "" or not at all, by version and by call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencer.core.text import printable
from fencer.errors import HypervisorProtocol

_SHOWN = 60  # characters
_LONGEST = 20  # digits of a number
_FLAGS = {None: False, 0: False, 1: True, "0": False, "1": True, "": False}


def record(data: Any, what: str) -> dict[str, Any]:
    """Return the data as an object."""
    if not isinstance(data, dict):
        raise HypervisorProtocol(f"{what}: an object was expected, {brief(data)} came")
    return data


def items(data: Any, what: str) -> list[Any]:
    """Return the data as a list."""
    if not isinstance(data, list):
        raise HypervisorProtocol(f"{what}: a list was expected, {brief(data)} came")
    return data


def text(of: Mapping[str, Any], key: str, what: str, default: str | None = None) -> str:
    """Return a text; `default` where there is none."""
    value = of.get(key)
    if value is None and default is not None:
        return default
    if isinstance(value, int) and not isinstance(value, bool):  # a guest may well be called 42
        return str(value)
    if not isinstance(value, str):
        raise HypervisorProtocol(f"{what}: {key}: a text was expected, {brief(value)} came")
    return value


def text_or_none(of: Mapping[str, Any], key: str, what: str) -> str | None:
    """Return a text; None where there is none, or an empty one."""
    return text(of, key, what, default="") or None


def number(of: Mapping[str, Any], key: str, what: str, default: int | None = None) -> int:
    """Return a whole number; `default` where there is none."""
    value = of.get(key)
    if value is None and default is not None:
        return default
    found = number_or_none(value)
    if found is None:
        raise HypervisorProtocol(f"{what}: {key}: a number was expected, {brief(value)} came")
    return found


def number_or_none(value: Any) -> int | None:
    """Return a value as a whole number of at least 0; None where it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and len(value) <= _LONGEST and value.isascii() and value.isdigit():
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and value >= 0 else None


def flag(of: Mapping[str, Any], key: str, what: str) -> bool:
    """Return a boolean; False where there is none."""
    value = of.get(key)
    if isinstance(value, bool):
        return value
    if not isinstance(value, str | int | None) or value not in _FLAGS:
        raise HypervisorProtocol(f"{what}: {key}: yes or no was expected, {brief(value)} came")
    return _FLAGS[value]


def brief(value: Any) -> str:
    """Show a foreign value in a few characters."""
    shown = printable(repr(value))
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
