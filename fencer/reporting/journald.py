"""Records as systemd's journal takes them: one datagram each, with fields to filter by.

So ``journalctl -u fencer FENCER_NODE=k8s-2`` finds a node's story. What the journal does not take at once
goes to stderr, which systemd connected with it, too: nothing is lost, and nobody waits for a journal that
hangs.

Source: https://systemd.io/JOURNAL_NATIVE_PROTOCOL; fields: systemd.journal-fields(7).
"""

from __future__ import annotations

import logging
import select
import socket
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import TextIO

from fencer.core.text import printable
from fencer.reporting.records import PRIORITY, facts_of, in_text, node_of, traceback_of

SOCKET = "/run/systemd/journal/socket"
LONGEST_BYTES = 8192
"""Of one field. All of them together are far below what a datagram may hold: 212,992 bytes, Linux' usual
net.core.wmem_default."""
KEPT_LINES = 1000
"""So many wait for a stderr that takes nothing; of more, the oldest are lost."""


class JournalHandler(logging.Handler):
    """Sends records to systemd's journal; what that does not take, to stderr.

    Args:
        stream: Stderr, as systemd connected it.
        address: The journal's own socket.
    """

    def __init__(self, stream: TextIO, address: str = SOCKET) -> None:
        super().__init__()
        self._stream = stream
        self._address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(0.0)
        self._waiting: deque[str] = deque(maxlen=KEPT_LINES)

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record; never waits, and never raises: another library's may not even have a text."""
        try:
            fields = fields_of(record)
        except Exception:  # noqa: BLE001 - as logging itself does
            self.handleError(record)
            return
        try:
            self._socket.sendto(datagram(fields), self._address)
        except OSError:  # away, or full
            message = _shortened(printable(fields["MESSAGE"])).decode(errors="ignore")
            self._waiting.append(f"<{fields['PRIORITY']}>{message}\n")
        self.flush()

    def handleError(self, _record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Go on: a log that cannot be written must not stop a fence."""

    def flush(self) -> None:
        """Write what stderr takes now. A socket that is ready has room for more than a line.

        Source: Linux, net/unix/af_unix.c, unix_writable: at most a quarter of its buffer is in use.
        """
        with suppress(OSError, ValueError):  # a log that cannot be written must not stop a fence
            while self._waiting and select.select((), (self._stream,), (), 0)[1]:
                self._stream.write(self._waiting[0])
                self._stream.flush()
                self._waiting.popleft()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
        super().close()


def fields_of(record: logging.LogRecord) -> dict[str, str]:
    """Return a record as fields; the journal itself adds the time, the unit and the process."""
    node, text = node_of(record), record.getMessage()
    lines = [f"{node}: {text}" if node else text, *traceback_of(record)]
    return {
        "MESSAGE": "\n".join(map(printable, lines)),
        "PRIORITY": str(PRIORITY.get(record.levelname, 6)),
        "SYSLOG_IDENTIFIER": "fencer",
        **{f"FENCER_{name.upper()}": in_text(value) for name, value in facts_of(record).items()},
    }


def datagram(fields: Mapping[str, str]) -> bytes:
    """Return fields as the journal reads them; what is too long is shortened."""
    return b"".join(_field(name.encode(), _shortened(value)) for name, value in fields.items())


def _field(name: bytes, value: bytes) -> bytes:
    """A value with a newline goes by its length: no name can forge another field."""
    if b"\n" in value:
        return name + b"\n" + len(value).to_bytes(8, "little") + value + b"\n"
    return name + b"=" + value + b"\n"


def _shortened(value: str) -> bytes:
    data = value.encode(errors="backslashreplace")
    return data if len(data) <= LONGEST_BYTES else data[: LONGEST_BYTES - 4] + b" ..."
