"""Keeps what was told in a small file, so that an agent that is started again tells nothing twice.

The file is read and written on a thread of its own: a disk that is full, read-only or hangs keeps no message
back. It is replaced as a whole, so that a crash leaves the old one or the new one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from fencer.core.text import printable
from fencer.errors import ToldError
from fencer.notify.past import Past, pack
from fencer.notify.told_file import DamagedError, ForeignError, read, write
from fencer.own_file import set_aside

log = logging.getLogger(__name__)

READ_S = 2.0
"""So long the start of an agent waits for the file."""
RETRY_S = 10.0
"""Between two tries to write to a disk that refuses."""


class Told:
    """Keeps what was told.

    Args:
        path: The file; it and its folder are made where they are missing.
        utc: Tells the time of day, for the name of a damaged file.
        reads: Reads the file.
        writes: Writes it.
        patience_s: So long the caller waits for what is in it.
        retry_s: Between two tries to write to a disk that refuses.
    """

    def __init__(
        self,
        path: Path,
        utc: Callable[[], datetime],
        reads: Callable[[Path], Past] | None = None,
        writes: Callable[[Path, str], None] | None = None,
        patience_s: float = READ_S,
        retry_s: float = RETRY_S,
    ) -> None:
        self._path, self._utc, self._retry_s = path, utc, retry_s
        self._reads, self._writes = reads or read, writes or write
        self._changed = threading.Condition()
        self._snapshot: Callable[[], Past] | None = None
        self._stale, self._closed, self._writing = False, False, False
        self._past: Past | None = None
        self._trouble = ""
        self._thread = threading.Thread(target=self._serve, name="fencer-notified", daemon=True)
        self._thread.start()
        with self._changed:
            if not self._changed.wait_for(lambda: self._past is not None, patience_s):
                self._past = Past()
                log.warning(
                    "%s has not been read for %g s; nobody waits for it. What an agent before this one has "
                    "told is not known, and may be told again",
                    printable(str(path)),
                    patience_s,
                )
            self.past = self._past or Past()
            """What was told by an agent before this one."""

    def keeps(self, snapshot: Callable[[], Past]) -> None:
        """Have somebody asked for what is to be kept, on the thread that writes.

        Args:
            snapshot: Returns it; waits for nobody.
        """
        self._snapshot = snapshot

    def changed(self) -> None:
        """Have what was told written soon. Comes back at once."""
        with self._changed:
            self._stale = True
            self._changed.notify_all()

    def close(self, patience_s: float) -> bool:
        """Write what was told, for so long at most; return whether it is kept."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(patience_s)
        with self._changed:
            return not (self._stale or self._writing or self._trouble)

    def _serve(self) -> None:
        if not self._begin():
            return
        while self._wait():
            assert self._snapshot is not None  # noqa: S101 - see _wait
            trouble = ""
            try:
                self._writes(self._path, pack(self._snapshot()))
            except ToldError as error:
                trouble = str(error)
            except Exception as error:
                log.exception("what was told could not be kept: a bug in fencer")
                trouble = f"a bug in fencer: {type(error).__name__}"
            self._conclude(trouble)

    def _begin(self) -> bool:
        """Read the file, and set a damaged one aside; return whether it may be written."""
        past, ours = Past(), True
        try:
            past = self._reads(self._path)
        except DamagedError as error:
            ours = self._set_aside(error)
        except ForeignError as error:
            ours = False
            log.warning("%s. What is told is not kept over a restart", error)
        except ToldError as error:
            log.warning("%s. What an agent before this one has told may be told again", error)
        except Exception:
            log.exception("what was told could not be read: a bug in fencer")
        with self._changed:
            self._trouble = "" if ours else "not ours"
            if self._past is None:
                self._past = past
            self._changed.notify_all()
        return ours

    def _set_aside(self, why: ToldError) -> bool:
        try:
            aside = set_aside(self._path, self._utc())
        except OSError as error:
            log.warning("%s, and cannot be set aside: %s", why, error.strerror)
            return False
        log.error(
            "%s. It is set aside as %s, and a new one begun; what was told before may be told again",
            why,
            printable(str(aside)),
        )
        return True

    def _wait(self) -> bool:
        """Wait until there is something to write; False: it is closed."""
        with self._changed:
            if self._trouble:
                self._changed.wait_for(lambda: self._closed, self._retry_s)
            self._changed.wait_for(lambda: self._closed or (self._stale and self._snapshot is not None))
            if not self._stale or self._snapshot is None or (self._closed and self._trouble):
                return False
            self._stale, self._writing = False, True
            return True

    def _conclude(self, trouble: str) -> None:
        with self._changed:
            before, self._trouble = self._trouble, trouble
            self._writing = False
            self._stale = self._stale or bool(trouble)
        if trouble and not before:
            log.error("%s. Messages go out all the same; after a restart some may be told again", trouble)
        elif before and not trouble:
            log.info("%s is written again", printable(str(self._path)))
