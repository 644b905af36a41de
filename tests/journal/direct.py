"""A journal that writes at once, in whatever thread it is asked: for worlds in which time is virtual."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from fencer.journal.reading import entries
from fencer.journal.rows import Kind, Row
from fencer.journal.store import Store
from fencer.ports import Asker
from fencer.reporting.journal import JournalReporter


class Direct:
    """`Journal` without a thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._put = 0

    def put(self, row: Row) -> int:
        self._store.append((row,))
        self._put += 1
        return self._put

    def written(self, _ticket: int, _patience_s: float) -> bool:
        return True


def direct_reporter(
    path: Path, asker: Asker, now_s: Callable[[], float], utc: Callable[[], datetime], by: str = "fencer@pve1"
) -> JournalReporter:
    """Return what keeps everything in a file, at once."""
    return JournalReporter(Direct(Store(path, "5e55105a", by)), asker, now_s, utc)


def deeds(path: Path) -> list[str]:
    """Return what a journal says was done, or failed."""
    return [one.body["action"] for one in entries(path) if one.kind is Kind.ACTION]
