"""Keeps what is known of all nodes up to date: lists them, and watches them from there on. No proof.

Whatever ends a watch but its own time, they are listed again, after pauses that grow.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

from fencer.cluster import parse
from fencer.cluster.client import Connection
from fencer.cluster.fields import mapping, named, text
from fencer.cluster.known_nodes import KnownNodes, Told
from fencer.cluster.lists import Lists
from fencer.cluster.requests import NODES, get
from fencer.cluster.watch_events import read_event
from fencer.errors import ClusterDenied, ClusterError, ClusterProtocol, ClusterUnreachable
from fencer.ports import Nodes

log = logging.getLogger(__name__)

SILENT_S = 75.0
"""A watch that tells nothing for so long is left. An API server sends a bookmark once a minute, but none
before anything was written since the watch began (1.36: the first one after two minutes): a small
cluster where nothing happens is listed every 75 s.

Source: k8s.io/apiserver pkg/storage/cacher/cacher.go, defaultBookmarkFrequency (one minute); measured.
"""
WATCHED_S = 300
"""For so long a watch is asked for: the server ends it then, and the next one goes on from there."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 15.0
"""Between two tries: doubled each time, and a random part of it is left out, so that many agents do not ask
at once."""
DENIED_PAUSE_S = 2.0
"""Where they may not be watched: as often as a pass looks at them, they are listed."""
LONGEST_DENIED_S = 60.0
"""And after such a time at most it is tried again to watch them; at first much sooner."""
TELLING_FAILURES = 3
"""So many watches that fail at once, one after the other, are worth a word: one alone is no news."""
STALE_S = SILENT_S + LONGEST_PAUSE_S
"""What was told so long ago says nothing of now. A watch that fell silent can be followed by a list before
that."""


class Reflector:
    """Lists nodes and watches them.

    Args:
        api: The way there.
        lists: Reads lists by it.
        changed: Called when a node comes, goes, or changes in what matters.
        now_s: A monotonic clock.
        silent_s: How long a watch may tell nothing, in seconds.
    """

    def __init__(
        self,
        api: Connection,
        lists: Lists,
        changed: Callable[[], object],
        *,
        now_s: Callable[[], float] = time.monotonic,
        silent_s: float = SILENT_S,
    ) -> None:
        self._api = api
        self._lists = lists
        self._changed = changed
        self._now_s = now_s
        self._silent_s = silent_s
        self._known = KnownNodes()
        self._goes_on = False
        """The next watch goes on from where the last one ended."""
        self._pause_s = FIRST_PAUSE_S
        self._why = ""
        self._denied_s = 0.0
        """Where they may not be watched: how long nobody tries. 0: they may, as far as is known."""
        self._watch_at_s = now_s()
        self._failed = 0
        """So many watches in a row failed before anybody could call them silent."""

    def begin(self) -> None:
        """Keep on, on a thread that ends with the process."""
        threading.Thread(target=self._run, name="fencer-watch-nodes", daemon=True).start()

    def nodes(self, key: bytes) -> Nodes | None:
        """Return all nodes as they were last known; None: they were never listed yet.

        Args:
            key: The cluster's, to tell what fencer has signed.

        Raises:
            ClusterUnreachable: for longer than `STALE_S` nothing was told of them.
        """
        if not self._known.version:
            return None
        if (silent_s := self._known.silent_s(self._now_s())) > STALE_S:
            raise ClusterUnreachable(
                f"{self._api.server}: nothing was told of the nodes for {silent_s:.0f} s: "
                f"{self._why or 'their watch is silent'}"
            )
        return self._known.read(key)

    def turn(self) -> float:
        """List the nodes, unless a watch has ended in order, and watch them until that ends.

        Returns:
            How long to pause before the next turn, in seconds.
        """
        began_s = self._now_s()
        try:
            if not self._goes_on:
                self._list()
            if self._now_s() < self._watch_at_s:
                return DENIED_PAUSE_S
            self._watch()
            # The last bookmark comes 2 s before a watch ends in time.
            self._goes_on = self._known.silent_s(self._now_s()) < LONGEST_PAUSE_S
        except ClusterError as error:
            self._goes_on, self._why = False, str(error)
            if isinstance(error, ClusterDenied):
                self._pause_s = min(self._pause_s, DENIED_PAUSE_S)
        if self._now_s() - began_s > LONGEST_PAUSE_S:
            self._pause_s = FIRST_PAUSE_S
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, LONGEST_PAUSE_S)
        return random.uniform(pause_s / 2, pause_s)  # noqa: S311 - no secret, a pause

    def _run(self) -> None:
        while True:
            try:
                pause_s = self.turn()
            except Exception as error:
                log.exception("the watch of the nodes failed in a way that nothing translated")
                pause_s, self._goes_on, self._why = LONGEST_PAUSE_S, False, f"a bug in fencer: {error}"
            time.sleep(pause_s)

    def _list(self) -> None:
        asked_s = self._now_s()
        listed = self._lists.listed("list nodes", "NodeList", get(NODES), lambda item, _utc: _told(item))
        if not listed.version:
            raise ClusterProtocol(f"{self._api.server}: list nodes: without a resourceVersion")
        self._api.kube_system()
        self._why = ""
        if self._known.take_list(listed, asked_s):
            self._changed()

    def _watch(self) -> None:
        """Watch until the server ends it."""
        began_s = self._now_s()
        request = get(
            NODES,
            watch="true",
            allowWatchBookmarks="true",
            resourceVersion=self._known.version,
            timeoutSeconds=WATCHED_S,
        )
        try:
            with closing(self._api.watch("watch nodes", request, self._silent_s)) as events:
                for data in events:
                    event = read_event(data, f"{self._api.server}: watch nodes")
                    self._told_again()
                    if self._known.take_event(event, self._now_s()):
                        self._changed()
        except ClusterDenied as error:
            if not self._goes_on:  # they could be listed just now
                self._rest(str(error))
            raise
        except ClusterError as error:
            if self._now_s() - began_s < self._silent_s:
                self._failed += 1
                if self._failed == TELLING_FAILURES:
                    log.warning("the nodes cannot be watched, and are listed instead: %s", error)
            raise

    def _rest(self, why: str) -> None:
        """Do not try again for a while, and for longer each time, until somebody has granted the right."""
        if not self._denied_s:
            log.warning(
                "the nodes may not be watched, and are listed every few seconds instead: %s. "
                "`fencer check` shows the command that grants the right",
                why,
            )
        self._denied_s = min(2 * self._denied_s or DENIED_PAUSE_S, LONGEST_DENIED_S)
        self._watch_at_s = self._now_s() + self._denied_s

    def _told_again(self) -> None:
        if self._denied_s or self._failed >= TELLING_FAILURES:
            log.info("the nodes are watched again")
        self._denied_s, self._failed = 0.0, 0


def _told(item: Any) -> tuple[str, Told]:
    """Return the name of a node of a list, however malformed, and what can be read of it."""
    try:
        name = text(mapping(item), "metadata", "name")
    except ClusterProtocol:
        name = ""
    return name or named(item), parse.set_aside(parse.node, item)
