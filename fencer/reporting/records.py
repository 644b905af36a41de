"""What a record of the log holds: facts, a sentence for people, and perhaps a traceback."""

from __future__ import annotations

import logging
from typing import Any

PRIORITY = {"DEBUG": 7, "INFO": 6, "WARNING": 4, "ERROR": 3, "CRITICAL": 2}
"""Source: sd-daemon(3), which takes the numbers from syslog(3)."""


def facts_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return what it is about, by name; without facts of its own, who logged it."""
    told = getattr(record, "facts", None)
    return {"logger": record.name} if told is None else dict(told)


def node_of(record: logging.LogRecord) -> str:
    """Return the name of the node that it is about; empty: none."""
    return str(facts_of(record).get("node", ""))


def in_text(fact: Any) -> str:
    """Return a fact as text has it; in JSON it keeps its type."""
    return str(fact).lower() if isinstance(fact, bool) else str(fact)


def traceback_of(record: logging.LogRecord) -> list[str]:
    """Return the lines of its traceback, if there is one."""
    text = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
    return text.split("\n") if text else []
