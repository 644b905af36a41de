"""A simulated story as the page of an incident: its agents keep a journal, and the page is made of that."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TypeVar, cast

from fencer.cli.render import say
from fencer.cli.report import STDOUT, as_page, require_writable, write
from fencer.cli.stage_agent import StageAgent
from fencer.cli.stage_typed import BY
from fencer.cli.story import prose
from fencer.core.election import holder_name
from fencer.core.text import count
from fencer.errors import JournalError
from fencer.journal.folding import incidents
from fencer.journal.incidents import Incident
from fencer.journal.reading import entries
from fencer.journal.rows import Entry, Journal, Row
from fencer.journal.store import Store
from fencer.ports import Asker
from fencer.report.story import around
from fencer.report.story import report as told_of
from fencer.reporting.journal import JournalReporter
from fencer.simulation.clock import EPOCH
from fencer.simulation.scenario import Scenario
from fencer.simulation.stage import Stage, StagePorts

T = TypeVar("T")


class StoryPage:
    """The page of one playing of a story. It builds the agents, as `fencer.simulation.stage.AgentFactory`.

    Args:
        story: What is played.
        file: Where the page goes; ``-``: to stdout.

    Raises:
        ConfigError: it could not be written there.
    """

    def __init__(self, story: Scenario, file: str) -> None:
        self._several, self._file = len(story.watchers) > 1, file
        self._lives = itertools.count(1)
        self._rows: list[tuple[str, str, Row]] = []
        if file != STDOUT:
            require_writable(Path(file))

    def __call__(self, ports: StagePorts) -> StageAgent:
        """Build an agent that keeps what it does, in one more session."""
        session, by = f"{next(self._lives):08x}", self._name(ports)
        asker = ports.asker if ports.journal is not None else cast("Asker", _AtOnce(ports.asker))
        kept = _Kept(lambda row: self._rows.append((session, by, row)), ports.journal)
        return StageAgent(replace(ports, journal=kept, asker=asker))

    def write(self, stage: Stage, *, quietly: bool = False) -> None:
        """Write the page, once the story is over.

        Args:
            stage: Where it was played.
            quietly: Say on stderr that it is written.

        Raises:
            ConfigError: it cannot be written.
            JournalError: nothing happened in this story that a page could tell.
        """
        written = EPOCH + timedelta(seconds=stage.simulation.clock.now_s())
        rows = self._as_kept()
        found = [one for one in incidents(rows) if one.worth_telling]
        if not found:
            raise JournalError(
                f"{stage.scenario.name}: no page: in this story fencer did nothing that is an incident"
            )
        shown = max(found, key=_weight)
        write(self._file, lambda: as_page(told_of(shown, written, around(shown, rows))), quietly=quietly)
        if self._file != STDOUT and not quietly:
            began = EPOCH + timedelta(seconds=stage.simulation.timeline.began_s)
            others = f" The story has {count(len(found) - 1, 'other incident')}." if len(found) > 1 else ""
            about = f"It tells of {shown.node}; there the story begins at {began:%H:%M:%S}.{others}"
            for text in prose(about):
                say(text)

    def _as_kept(self) -> tuple[Entry, ...]:
        """Return the rows as a journal has them.

        Raises:
            JournalError: there is no room for one.
        """
        try:
            with tempfile.TemporaryDirectory() as folder:
                journal = Path(folder) / "journal.db"
                self._keep(journal)
                return tuple(entries(journal)) if self._rows else ()
        except OSError as error:
            raise JournalError(f"no page: no temporary journal: {error.strerror or error}") from error

    def _keep(self, file: Path) -> None:
        """Write the rows to a journal, in the order in which they were put."""
        for (session, by), rows in itertools.groupby(self._rows, key=lambda kept: kept[:2]):
            store = Store(file, session, by)
            store.append([row for *_, row in rows])
            store.close()

    def _name(self, ports: StagePorts) -> str:
        """Return who an agent is in its journal."""
        if ports.by_hand is not None:
            return BY
        return f"{holder_name(ports.holder) if self._several else 'fencer'}@demo"


def _weight(incident: Incident) -> tuple[bool, int]:
    """Return how much there is to tell of an incident: fences first."""
    return incident.tainted is not None, len(incident.deeds)


class _Kept:
    """`Journal` that takes every row, and is as slow as another one, if there is another one."""

    def __init__(self, take: Callable[[Row], object], disk: Journal | None) -> None:
        self._take, self._disk = take, disk

    def put(self, row: Row) -> int:
        """See `fencer.journal.rows.Journal.put`."""
        self._take(row)
        return 0 if self._disk is None else self._disk.put(row)

    def written(self, ticket: int, patience_s: float) -> bool:
        """See `fencer.journal.rows.Journal.written`."""
        return self._disk is None or self._disk.written(ticket, patience_s)


class _AtOnce:
    """`Asker` that takes no time to write a journal, so that a story goes as it does without one."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    def __getattr__(self, name: str) -> object:
        return getattr(self._asker, name)

    def ask(self, endpoint: str, call: Callable[[], T], deadline_s: float) -> T:
        """See `Asker.ask`."""
        return call() if endpoint == JournalReporter.WORKER else self._asker.ask(endpoint, call, deadline_s)
