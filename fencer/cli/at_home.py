"""Warns, while the agent runs, that it runs in the cluster that it fences, or on one of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection

from fencer.ports import Sight
from fencer.preflight.home import Home, why_at_home


class HomeWatch:
    """`Viewer` that says once for each place what is wrong with it.

    The agent goes on, where `fencer check` fails. What shows it is written by the nodes themselves: one that
    lies about its boot id must not be able to disarm the agent. And an agent at a bad place still fences all
    other nodes.

    Args:
        home: Where this process runs.
        servers: URLs of the fenced cluster's API servers, as far as they are known.
        say: Tells people.
    """

    def __init__(self, home: Home, servers: Collection[str], say: Callable[[str], None]) -> None:
        self._home, self._servers, self._say = home, servers, say
        self._said = ""

    def passed(self, seen: Sight) -> None:
        """See `fencer.ports.Viewer.passed`."""
        nodes = [one.observation.node for one in seen.judged.values()]
        why = why_at_home(self._home, self._servers, nodes)
        if why and why != self._said:
            self._say(f"{why}; if that node dies, nobody fences it. `fencer check` says what to do")
        self._said = why

    def failed(self, why: str) -> None:
        """See `fencer.ports.Viewer.failed`."""
