"""JSON from outside, without surprises: what is missing or of another type reads as empty."""

from __future__ import annotations

from typing import Any


def mapping(value: Any) -> dict[str, Any]:
    """Return a JSON object, or an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """Return a JSON array, or an empty one."""
    return value if isinstance(value, list) else []
