"""The journal: every changed decision and every action as one JSON object per line, for people to look back.

No decision reads it. The file is opened again for each line, so that it may be moved away at any time.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fencer.core.done import Done, Happened
from fencer.core.model import Decision, Deed, NodeView
from fencer.wording.reports import action_word, decision_text

log = logging.getLogger(__name__)

SCHEMA = 1
_OPEN = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
"""So as not to wait for a reader, in case the path is a pipe."""


def utc_now() -> str:
    """Return the time of day, RFC 3339 in UTC with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class JournalReporter:
    """`Reporter` that appends to a file. What cannot be written is lost; the first loss in a row is logged.

    Args:
        path: The file; it is made if missing, its directory is not.
        utc: Tells the time of day as text.
    """

    def __init__(self, path: Path, utc: Callable[[], str] = utc_now) -> None:
        self._path = path
        self._utc = utc
        self._lost_count = 0
        self._torn = False

    def decided(self, node: NodeView, decision: Decision) -> None:
        """See `fencer.ports.Reporter.decided`."""
        self._append(
            "decision",
            node=node.name,
            node_uid=node.uid,
            verdict=decision.verdict,
            reason=decision.reason,
            text=decision_text(decision),
            guest=asdict(decision.guest) if decision.guest else None,
            checks=[asdict(check) for check in decision.checks],
            actions=[action_word(action, ok=True) for action in decision.actions],
        )

    def acted(self, node: NodeView, action: Deed, done: Done) -> None:
        """See `fencer.ports.Reporter.acted`."""
        more = {} if isinstance(done, Happened) else {"done": asdict(done)}
        self._append(
            "action",
            node=node.name,
            node_uid=node.uid,
            action=action_word(action, ok=True),
            ok=done.ok,
            text=str(done),
            on=asdict(action),
            **more,
        )

    def said(self, text: str, *, warning: bool) -> None:
        """See `fencer.ports.Reporter.said`."""
        self._append("notice", text=text, warning=warning)

    def _append(self, kind: str, **facts: Any) -> None:
        record = {"schema": SCHEMA, "at": self._utc(), "kind": kind, **facts}
        line = json.dumps(record, separators=(",", ":")) + "\n"
        try:
            self._write(line.encode())
        except OSError as error:
            if not self._lost_count:
                log.error("the journal %s cannot be written: %s", self._path, error.strerror)  # noqa: TRY400 - no bug
            self._lost_count += 1
            return
        if self._lost_count:
            log.info("the journal %s is written again; %d lines were lost", self._path, self._lost_count)
            self._lost_count = 0

    def _write(self, line: bytes) -> None:
        """Append one line, in one write, so that several agents may share a file.

        Raises:
            OSError: it was not written, or not completely.
        """
        descriptor = os.open(self._path, _OPEN, 0o640)
        try:
            rest = b"\n" + line if self._torn else line
            while rest:
                written = os.write(descriptor, rest)
                rest = rest[written:]
                self._torn = bool(rest)
        finally:
            os.close(descriptor)
