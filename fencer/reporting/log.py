"""The log: people on a terminal, systemd's journal and machines read it, each in their own form.

One line a record, no matter what a name contains.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

from fencer.core.text import printable
from fencer.reporting.journald import JournalHandler
from fencer.reporting.records import PRIORITY, facts_of, in_text, node_of, traceback_of

_BARE = re.compile(r"[^\s\"'=\\]+")
_PLAIN, _BOLD, _FAINT = "\x1b[0m", "\x1b[1m", "\x1b[90m"
_COLOURS = {"DEBUG": _FAINT, "WARNING": "\x1b[33m", "ERROR": "\x1b[31m", "CRITICAL": "\x1b[31m"}


def set_up(
    stream: TextIO,
    *,
    as_json: bool = False,
    level: int = logging.INFO,
    environ: Mapping[str, str] = os.environ,
) -> None:
    """Send the log where a stream leads. Of other libraries only warnings pass.

    Args:
        stream: The stream: stderr. Where it leads to systemd's journal, that gets fields; a terminal gets
            what people read; anything else ``key=value``.
        as_json: JSON instead, wherever it leads.
        level: The level of fencer's own loggers.
        environ: The environment: systemd names the journal's stream there, and people refuse colour.
    """
    root = logging.getLogger()
    for earlier in [known for known in root.handlers if isinstance(known, _Handler | JournalHandler)]:
        root.removeHandler(earlier)
        earlier.close()
    root.addHandler(_handler(stream, environ, as_json=as_json))
    root.setLevel(logging.WARNING)
    logging.getLogger("fencer").setLevel(level)


def _handler(stream: TextIO, environ: Mapping[str, str], *, as_json: bool) -> logging.Handler:
    journal = leads_to_journal(stream, environ)
    if journal and not as_json:
        return JournalHandler(stream)
    handler = _Handler(stream)
    if as_json:
        handler.setFormatter(JsonFormatter(priority=journal))
    elif stream.isatty():
        handler.setFormatter(TerminalFormatter(colour=_shows_colour(environ)))
    else:
        handler.setFormatter(KeyValueFormatter())
    return handler


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


def _shows_colour(environ: Mapping[str, str]) -> bool:
    """Source: https://no-color.org; terminfo(5) for "dumb"."""
    return not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def local(seconds: float) -> datetime:
    """Return a time of day by the zone of this machine."""
    return datetime.fromtimestamp(seconds, UTC).astimezone()


class TerminalFormatter(logging.Formatter):
    """``02:14:07 k8s-2 healthy again``, in local time; a line of its own says which day and zone that is.

    Args:
        colour: Times are faint, warnings and errors coloured: that says nothing that words do not.
        clock: From a record's time to the one that people read.
    """

    def __init__(self, *, colour: bool, clock: Callable[[float], datetime] = local) -> None:
        super().__init__()
        self._colour = colour
        self._clock = clock
        self._day = ""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line; before it the day and the zone, where these are new."""
        when, node, text = self._clock(record.created), node_of(record), printable(record.getMessage())
        told = self._in(_COLOURS.get(record.levelname, ""), text)
        named = f"{self._in(_BOLD, printable(node))} " if node else ""
        line = f"{self._in(_FAINT, f'{when:%H:%M:%S}')} {named}{told}"
        day, self._day = self._day, _day(when)
        first = [] if day == self._day else [self._in(_FAINT, self._day)]
        return "\n".join([*first, line, *(f"    {printable(part)}" for part in traceback_of(record))])

    def _in(self, colour: str, text: str) -> str:
        return f"{colour}{text}{_PLAIN}" if self._colour and colour else text


class KeyValueFormatter(logging.Formatter):
    """``time=… level=info node=k8s-2 text="…"``; a traceback follows on indented lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line, with its traceback below."""
        line = " ".join(f"{name}={_value(in_text(value))}" for name, value in _dated(record).items())
        return "\n    ".join([line, *map(printable, traceback_of(record))])


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
        facts = _dated(record)
        if lines := traceback_of(record):
            facts["traceback"] = "\n".join(lines)
        prefix = f"<{PRIORITY.get(record.levelname, 6)}>" if self._priority else ""
        return prefix + json.dumps(facts, default=str)


class _Handler(logging.StreamHandler[TextIO]):
    def handleError(self, _record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Go on: a log that cannot be written must not stop a fence."""


def _dated(record: logging.LogRecord) -> dict[str, Any]:
    time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    facts = {"time": time.replace("+00:00", "Z"), "level": record.levelname.lower()}
    return {**facts, **facts_of(record), "text": record.getMessage()}


def _day(when: datetime) -> str:
    offset = f"{when:%z}"
    return f"{when:%A, %Y-%m-%d}, times in {when:%Z} (UTC{offset[:3]}:{offset[3:5]})"


def _value(text: str) -> str:
    if _BARE.fullmatch(text) and text.isprintable():
        return text
    return '"' + printable(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'
