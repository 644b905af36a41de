"""Long lists, page by page, projected to small records at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from fencer.cluster.answers import Answer, Expired, TooMuch
from fencer.cluster.client import Connection
from fencer.cluster.fields import items, text, version
from fencer.cluster.requests import Request
from fencer.errors import ClusterProtocol

T = TypeVar("T")

PAGE = 500
"""Objects a page of a list, as kubectl asks for: 5 MB of nodes at a time."""
SHORTER = 8
"""A page that is too large is asked for again with this many times fewer objects: no real list is too
large."""
MOST_PAGES = 1_000
"""For one list. 300 hold the 150,000 pods of the largest clusters that Kubernetes supports. Without a limit a
server could go on for ever.

Source: https://kubernetes.io/docs/setup/best-practices/cluster-large/
"""


@dataclass(slots=True)
class Listed(Generic[T]):
    """A list that was read whole.

    Attributes:
        taken: What was taken of each item.
        version: Its resourceVersion: it has what was written up to there, and a watch goes on from there.
            0: not known.
    """

    taken: list[T]
    version: int = 0


class Lists:
    """Reads lists of one API.

    Args:
        api: The way there.
        page: How many objects are asked for at a time.
    """

    def __init__(self, api: Connection, page: int = PAGE) -> None:
        self._api = api
        self._page = page
        self._shorter: dict[str, int] = {}
        """By request: with how many objects to begin where a whole page was too large the last time."""

    def read(self, what: str, kind: str, request: Request, take: Callable[[Any, str], T]) -> list[T]:
        """Return what was taken of a list. Arguments and errors as in `listed`."""
        return self.listed(what, kind, request, take).taken

    def listed(self, what: str, kind: str, request: Request, take: Callable[[Any, str], T]) -> Listed[T]:
        """Read all pages of a list; begin again once if the next page has expired meanwhile.

        Args:
            what: The request in words, for errors.
            kind: Of the list, like ``PodList``.
            request: The request for a list.
            take: Turns an item, and the API server's clock, into what is kept of it.

        Raises:
            ClusterUnreachable, ClusterDenied, ClusterProtocol.
        """
        try:
            return self._pages(what, kind, request, take)
        except Expired:
            return self._pages(what, kind, request, take)

    def _pages(self, what: str, kind: str, request: Request, take: Callable[[Any, str], T]) -> Listed[T]:
        found: Listed[T] = Listed([])
        asked: dict[str, Any] = {"limit": self._shorter.get(what, self._page)}

        def take_page() -> str:
            """A function of its own, so that a page is gone from memory before the next one comes."""
            answer = self._page_of(what, request, asked)
            utc = answer.utc
            found.taken.extend(take(item, utc) for item in answer.read(lambda body: items(body, kind)))
            found.version = found.version or answer.read(version)
            return answer.read(lambda body: text(body, "metadata", "continue"))

        for _ in range(MOST_PAGES):
            following = take_page()
            if not following:
                self._allow_longer(what)
                return found
            if following == asked.get("continue"):
                raise ClusterProtocol(f"{self._api.server}: {what}: the same page came again")
            asked["continue"] = following
        raise ClusterProtocol(f"{self._api.server}: {what}: no end after {MOST_PAGES} pages")

    def _page_of(self, what: str, request: Request, asked: dict[str, Any]) -> Answer:
        """Ask for a page, and for ever shorter ones while it is too large; `asked` keeps what did."""
        while True:
            try:
                return self._api.read(what, request.asking(**asked))
            except TooMuch:
                if asked["limit"] == 1:
                    raise
                # Kept at once: this list may come too late for its caller, and be asked for again.
                asked["limit"] = self._shorter[what] = max(1, asked["limit"] // SHORTER)

    def _allow_longer(self, what: str) -> None:
        """Try longer pages the next time, step by step, until they are whole again."""
        limit = self._shorter.pop(what, self._page)  # once: a list that comes too late ends beside the next
        if 2 * limit < self._page:
            self._shorter[what] = 2 * limit
