"""The keeper: what was seen lies on this agent's own disk until it is on the Nodes.

It also keeps which nodes there are, so that an agent that is started while the API server is away goes on
learning. A disk that refuses holds nothing up: what is seen goes to the Node all the same. What can be
written nowhere counts while this process lives, and its node is not fenced (C10).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from fencer.core.kept import Kept, reduced
from fencer.core.model import NodeView
from fencer.errors import FencerError, HypervisorUnreachable
from fencer.ports import StateStore
from fencer.runtime.notebook import Notebook
from fencer.runtime.world import World

T = TypeVar("T")

STATE = "state file"
"""Name of the worker that reads and writes."""
WRITING_S = 2.0
"""For writing: a disk takes milliseconds, and fencing goes on without it."""
READING_S = 10.0
"""For what has to be read before anything is fenced, from a disk or an API server that is slow."""
MEANS = {
    "read": "this agent fences no node until it is read",
    "confirmed": "this agent fences no node until the cluster's key confirms it",
    "written": "fencing goes on; a restart would forget what is not written on Nodes yet",
}
"""What it means that this cannot be done with the file."""
NODES_EVERY_S = 10.0
"""That another node is there is written so often at most."""


class Keeper:
    """Keeps the notes of one agent, and which nodes there are.

    Args:
        world: For the disk, and to say what goes wrong with it.
        notes: What is noted.

    Attributes:
        nodes: As the API last had them.
        utc: The API server's clock when it last answered; empty: it never did.
    """

    def __init__(self, world: World, notes: Notebook) -> None:
        self._store, self._world, self._notes = world.state, world, notes
        self.nodes: tuple[NodeView, ...] = ()
        self.utc = ""
        self._last = Kept()
        self._loaded = self._confirmed = self._store is None
        self._next_s = float("-inf")
        self._trouble: dict[str, str] = {}
        """What is not done with the file, and why."""

    @property
    def unread(self) -> str:
        """Why it is not known what this agent has noted before; empty: it is, and it was this agent's."""
        return next((self._trouble.get(done, f"{STATE}: not {done} yet") for done in self._due), "")

    @property
    def _due(self) -> tuple[str, ...]:
        return (*(("read",) * (not self._loaded)), *(("confirmed",) * (not self._confirmed)))

    def begin(self) -> None:
        """Go on with what the process before this one has kept.

        Until that can be read it is tried again and again, and nothing is written over it. What is damaged
        counts as unread until a person moves it away.
        """
        if self._loaded or self._store is None:
            return
        kept = self._ask("read", self._store.load, READING_S)
        if kept is None:
            return
        self._loaded, self._last = True, kept
        self._notes.take_over(kept.notes)
        if not self.utc:  # the API server has told nothing newer
            self.nodes, self.utc = kept.nodes, kept.utc

    def answered(self, views: Iterable[NodeView], utc: str, unread: Collection[str] = ()) -> None:
        """Take note of all nodes, as the API has them; what was kept must be of this cluster.

        Args:
            views: The nodes.
            utc: The API server's clock.
            unread: Names of nodes that cannot be read now: they stay as they last were.
        """
        self.nodes, self.utc = (*views, *(node for node in self.nodes if node.name in unread)), utc
        if self._store is None or not self._loaded:
            return
        if not self._confirmed:
            self._confirm(self._store)
        now_s = self._world.clock.now_s()
        if now_s >= self._next_s:
            self._next_s = now_s + NODES_EVERY_S
            kept = self._kept()
            if (kept.nodes, kept.notes) != (self._last.nodes, self._last.notes):
                self._save(self._store, kept)

    def _confirm(self, store: StateStore) -> None:
        confirmed = self._ask("confirmed", store.confirm, READING_S)
        self._confirmed = confirmed is not None
        if confirmed is False:
            self._last = Kept()
            self._notes.tear_out()
            text = "what is on this disk was not kept by an agent of this cluster: it is set aside"
            self._world.reporter.said(f"{STATE}: {text}", warning=True)

    def save_notes(self) -> None:
        """Write what is noted, if that is not on the disk yet. Whether that works or not, it counts."""
        if self._store is not None and self._loaded and self._notes.notes != self._last.notes:
            self._save(self._store, self._kept())

    def _kept(self) -> Kept:
        return Kept(tuple(map(reduced, self.nodes)), self._notes.notes, self.utc)

    def _save(self, store: StateStore, kept: Kept) -> None:
        def save() -> bool:
            store.save(kept)
            return True

        if self._ask("written", save, WRITING_S):
            self._last = kept

    def _ask(self, done: str, call: Callable[[], T], patience_s: float) -> T | None:
        """Ask the disk; say once what is wrong with it.

        Args:
            done: What the call does with the state file.
            call: Asks.
            patience_s: How long to wait for the answer.

        Returns:
            None: it hangs, or refuses.
        """
        try:
            found = self._world.asker.ask(STATE, call, patience_s)
        except FencerError as error:
            hangs = isinstance(error, HypervisorUnreachable)
            text = f"{STATE}: " + (f"not {done} within {patience_s:g} s" if hangs else str(error))
            if done not in self._trouble:
                self._world.reporter.said(f"{text}; {MEANS[done]}", warning=True)
            self._trouble[done] = text
            return None
        if self._trouble.pop(done, None):
            self._world.reporter.said(f"{STATE}: it is {done} now", warning=False)
        return found
