"""Writes the journal on a thread of its own: a disk that is full, read-only or hangs delays nobody.

Rows wait in memory until they are written. Whoever needs a row on the disk waits for it, but not long; and
not at all while the disk hangs or refuses. What cannot be kept waiting any more is counted, and the count
written once the disk takes rows again.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Protocol

from fencer.core.text import age, count
from fencer.errors import JournalError
from fencer.journal.database import CorruptJournalError
from fencer.journal.rows import Kind, Row, text_of
from fencer.journal.store import set_aside

log = logging.getLogger(__name__)

RETRY_S = 10.0
"""Between two tries to write to a disk that refuses."""
KEPT_ROWS = 2000
"""So many wait in memory for such a disk; of more, the oldest are lost."""
AT_ONCE = 256
"""Rows written in one transaction."""
HANGS_S = 3.0
"""A write that takes longer is told."""
PRUNE_S = 3600.0
"""Between two looks for rows that are too old; and for a file too large, after `PRUNE_ROWS`."""
PRUNE_ROWS = 1024


class Opened(Protocol):
    """An open file; see `fencer.journal.store.Store`."""

    def append(self, rows: Sequence[Row]) -> None:
        """Write rows, all or none."""
        ...

    def prune(self, largest_bytes: int, oldest_utc: str) -> int:
        """Drop the oldest rows where there are too many."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


class JournalWriter:
    """`Journal` that writes to a file, on a thread of its own.

    A damaged file is set aside, and a new one begun. What goes wrong is logged once, and so is its end.

    Args:
        path: The file.
        opens: Opens it; called again after a failure.
        days: So old a row may become.
        largest_bytes: So large the file may become, by and large.
        utc: Tells the time of day.
        now_s: A monotonic clock, of the real time that a disk takes.
    """

    def __init__(
        self,
        path: Path,
        opens: Callable[[], Opened],
        days: float,
        largest_bytes: int,
        utc: Callable[[], datetime],
        now_s: Callable[[], float],
    ) -> None:
        self._path, self._opens, self._utc, self._now_s = path, opens, utc, now_s
        self._days, self._largest_bytes = days, largest_bytes
        self._store: Opened | None = None
        self._changed = threading.Condition()
        self._waiting: deque[tuple[int, Row]] = deque()
        self._writing: list[tuple[int, Row]] = []
        """Rows with their tickets: in memory only; in the write that goes on."""
        self._put, self._lost, self._lost_told = 0, 0, 0
        """How many rows were put; how many of them are lost; how many of these are being written."""
        self._newest_lost = 0
        """Ticket of the newest row that was lost."""
        self._last_try = False
        """Whether the write that goes on, or the last one, began after `close` was called."""
        self._began_s, self._slow, self._told_slow = 0.0, False, False
        """When the write that goes on began; whether somebody waited for it in vain; and was told."""
        self._trouble, self._closed = "", False
        self._pruned_s, self._unpruned = float("-inf"), 0
        self._thread = threading.Thread(target=self._serve, name="fencer-journal", daemon=True)
        self._thread.start()

    def put(self, row: Row) -> int:
        """See `fencer.journal.rows.Journal.put`."""
        with self._changed:
            self._put += 1
            self._waiting.append((self._put, row))
            self._lose_what_is_too_much()
            hangs_s = self._now_s() - self._began_s if self._writing else 0.0
            if hangs_s >= HANGS_S and not self._told_slow:  # the thread that writes cannot say so
                self._told_slow = True
                log.warning(
                    "the journal %s has not been written for %s; nobody waits for it",
                    self._path,
                    age(hangs_s),
                )
            self._changed.notify_all()
            return self._put

    def written(self, ticket: int, patience_s: float) -> bool:
        """See `fencer.journal.rows.Journal.written`."""
        with self._changed:
            if self._slow or self._trouble:
                return False
            came = self._changed.wait_for(lambda: self._oldest > ticket or bool(self._trouble), patience_s)
            self._slow = not came
            return came and ticket > self._newest_lost and not self._trouble

    @property
    def _oldest(self) -> int:
        """The ticket of the oldest row that still has to be written."""
        for ticket, _ in (*self._writing[:1], *islice(self._waiting, 1)):
            return ticket
        return self._put + 1

    def close(self, patience_s: float) -> bool:
        """Write what waits, for so long at most, and close the file; return whether all was written.

        After a failure there is one more try, which begins after this call: the disk may have recovered.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(patience_s)
        with self._changed:
            return not (self._trouble or self._lost or self._writing or self._waiting)

    def _lose_what_is_too_much(self) -> None:
        while len(self._waiting) > KEPT_ROWS:
            ticket, _ = self._waiting.popleft()
            self._lost += 1
            self._newest_lost = max(self._newest_lost, ticket)

    def _serve(self) -> None:
        while self._take():
            trouble = self._write()
            with self._changed:
                self._conclude(trouble)
                if trouble and self._last_try:
                    break
        if self._store is not None:
            self._store.close()

    def _take(self) -> bool:
        """Wait for rows, and take them; False: it is closed, and none is left."""
        with self._changed:
            if self._trouble:
                self._changed.wait_for(lambda: self._closed, RETRY_S)
            self._changed.wait_for(lambda: self._closed or self._waiting)
            if not self._waiting:
                return False
            self._writing = [self._waiting.popleft() for _ in range(min(AT_ONCE, len(self._waiting)))]
            self._began_s, self._lost_told, self._last_try = self._now_s(), self._lost, self._closed
            return True

    def _write(self) -> str:
        """Write what was taken; return why that failed. Empty: it did not."""
        rows = [row for _, row in self._writing]
        if self._lost_told:
            rows.insert(0, self._of_lost(self._lost_told, rows[0].at_s))
        try:
            try:
                self._append(rows)
            except CorruptJournalError as error:
                self._begin_anew(error)
                self._append(rows)
        except JournalError as error:
            return str(error)
        except Exception as error:
            log.exception("the journal could not be written: a bug in fencer")
            return f"a bug in fencer: {type(error).__name__}: {error}"
        return ""

    def _append(self, rows: Sequence[Row]) -> None:
        """Write rows, and drop old ones where there are too many."""
        if self._store is None:
            self._store = self._opens()
        self._store.append(rows)
        self._unpruned += len(rows)
        if self._now_s() - self._pruned_s >= PRUNE_S or self._unpruned >= PRUNE_ROWS:
            self._pruned_s, self._unpruned = self._now_s(), 0
            try:
                self._store.prune(self._largest_bytes, text_of(self._utc() - timedelta(days=self._days)))
            except CorruptJournalError:
                raise  # nobody could read these rows: they go into a new file
            except JournalError as error:  # the rows are on the disk: a second try would write them again
                log.warning("the journal cannot drop its old rows: %s. New rows are written", error)

    def _begin_anew(self, why: JournalError) -> None:
        """Set the damaged file aside.

        Raises:
            JournalError: that cannot be done.
        """
        if self._store is not None:
            self._store.close()
            self._store = None
        aside = set_aside(self._path, f"damaged-{self._utc().astimezone(UTC):%Y%m%dT%H%M%SZ}")
        log.error("%s. It is set aside as %s, and a new journal begun", why, aside)

    def _of_lost(self, number: int, at_s: float) -> Row:
        return Row(text_of(self._utc()), at_s, Kind.LOST, lambda: {"rows": number})

    def _conclude(self, trouble: str) -> None:
        """Take note of what became of the rows that were taken, and say it where it is news."""
        if trouble:
            self._waiting.extendleft(reversed(self._writing))
            self._lose_what_is_too_much()
            if self._store is not None:
                self._store.close()
                self._store = None
            if trouble != self._trouble:
                log.error("the journal cannot be written: %s. Fencing goes on", trouble)
        elif self._trouble or self._told_slow:
            log.info("the journal is written again; %s lost", rows_were(self._lost_told))
        if not trouble:
            self._lost -= self._lost_told
        self._writing, self._trouble = [], trouble
        self._slow = self._told_slow = False
        self._changed.notify_all()


def rows_were(number: int) -> str:
    """Return ``1 row was``, ``2 rows were``."""
    return f"{count(number, 'row')} {'was' if number == 1 else 'were'}"
