"""Safe access to data from outside: missing or wrongly typed values read as empty."""

from __future__ import annotations

import json
import time
from typing import Any


def mapping(value: Any) -> dict[str, Any]:
    """Return a JSON object, or an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """Return a JSON array, or an empty one."""
    return value if isinstance(value, list) else []


def utc_of(text: Any, form: str) -> str:
    """Return the UTC in a text, as RFC 3339; empty: another form.

    Args:
        text: Any value.
        form: As `time.strptime` knows it.
    """
    try:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.strptime(text, form))
    except (ValueError, TypeError):
        return ""


def printable(text: str, but: str = "") -> str:
    """Escape, as JSON does, everything not plainly visible: it could forge a line, or drive a terminal.

    Args:
        text: Any text.
        but: Characters that stay as they are.
    """
    return "".join(it if it.isprintable() or it in but else json.dumps(it)[1:-1] for it in text)
