"""The log: ``key=value`` lines for people, JSON for machines, one line, no matter what a name contains."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

from fencer.core.done import Done
from fencer.core.model import Decision, Deed, NodeView
from fencer.core.text import printable
from fencer.wording.reports import action_word, decision_text, is_alarming, is_loud

_BARE = re.compile(r"[^\s\"'=\\]+")
_PRIORITY = {"DEBUG": 7, "INFO": 6, "WARNING": 4, "ERROR": 3, "CRITICAL": 2}
"""Source: sd-daemon(3), which takes the numbers from syslog(3)."""


def set_up(
    stream: TextIO,
    *,
    as_json: bool | None = None,
    level: int = logging.INFO,
    environ: Mapping[str, str] = os.environ,
) -> None:
    """Send the log to a stream. Of other libraries only warnings pass.

    Args:
        stream: The stream: stderr.
        as_json: None: JSON when the stream leads to systemd's journal, else ``key=value``.
        level: The level of fencer's own loggers.
        environ: The environment, in which systemd names the journal's stream.
    """
    journal = leads_to_journal(stream, environ)
    handler = _Handler(stream)
    wanted = journal if as_json is None else as_json
    handler.setFormatter(JsonFormatter(priority=journal) if wanted else KeyValueFormatter())
    root = logging.getLogger()
    for earlier in [known for known in root.handlers if isinstance(known, _Handler)]:
        root.removeHandler(earlier)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("fencer").setLevel(level)


def leads_to_journal(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether a stream is the one that systemd connected with its journal.

    The variable alone is not enough: a program that such a service starts in a terminal inherits it.

    Source: systemd.exec(5), $JOURNAL_STREAM.
    """
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


class KeyValueFormatter(logging.Formatter):
    """``time=… level=info node=k8s-2 text="…"``; a traceback follows on indented lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line, with its traceback below."""
        line = " ".join(f"{name}={_value(str(value))}" for name, value in _facts(record).items())
        return "\n    ".join([line, *map(printable, _traceback(self, record))])


class PlainFormatter(logging.Formatter):
    """``fencer: …``, for commands: other libraries' log lines contain words from servers."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line, with the error in a word instead of its traceback."""
        error = record.exc_info[1] if record.exc_info else None
        return f"fencer: {printable(record.getMessage())}" + (f" ({printable(str(error))})" if error else "")


class JsonFormatter(logging.Formatter):
    """One JSON object per line, in ASCII.

    Args:
        priority: Put systemd's priority, like ``<4>``, in front; the journal takes it off again.
    """

    def __init__(self, *, priority: bool = False) -> None:
        super().__init__()
        self._priority = priority

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        facts = _facts(record)
        if lines := _traceback(self, record):
            facts["traceback"] = "\n".join(lines)
        prefix = f"<{_PRIORITY.get(record.levelname, 6)}>" if self._priority else ""
        return prefix + json.dumps(facts, default=str)


class LogReporter:
    """`Reporter` that logs a line per changed decision and per action.

    Args:
        logger: The logger.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def decided(self, node: NodeView, decision: Decision) -> None:
        """See `fencer.ports.Reporter.decided`."""
        facts: dict[str, Any] = {
            "node": node.name,
            "verdict": decision.verdict.value,
            "reason": decision.reason.value,
        }
        if decision.guest is not None:
            facts["guest"] = str(decision.guest)
        self._log(decision_text(decision), warning=is_loud(decision), facts=facts)

    def acted(self, node: NodeView, action: Deed, done: Done) -> None:
        """See `fencer.ports.Reporter.acted`."""
        facts = {"node": node.name, "action": action_word(action, ok=True), "ok": str(done.ok).lower()}
        self._log(str(done), warning=is_alarming(action, ok=done.ok), facts=facts)

    def said(self, text: str, *, warning: bool) -> None:
        """See `fencer.ports.Reporter.said`."""
        self._log(text, warning=warning, facts={})

    def _log(self, text: str, *, warning: bool, facts: Mapping[str, Any]) -> None:
        level = logging.WARNING if warning else logging.INFO
        self._logger.log(level, "%s", text, extra={"facts": facts})


class _Handler(logging.StreamHandler[TextIO]):
    def handleError(self, _record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Go on: a log that cannot be written must not stop a fence."""


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    facts: dict[str, Any] = {"time": time.replace("+00:00", "Z"), "level": record.levelname.lower()}
    told = getattr(record, "facts", None)
    facts |= {"logger": record.name} if told is None else told
    return {**facts, "text": record.getMessage()}


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> list[str]:
    text = formatter.formatException(record.exc_info) if record.exc_info else ""
    return text.split("\n") if text else []


def _value(text: str) -> str:
    if _BARE.fullmatch(text) and text.isprintable():
        return text
    return '"' + printable(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'
