"""Own cordons: what stands in for the API server's record of who cordoned a Node, where it keeps none."""

from __future__ import annotations

from collections.abc import Collection

from fencer.core.cordon import Watched, by_own_watch, still_watched
from fencer.core.model import Cordon, NodeView
from fencer.core.policy import Policy
from fencer.ports import Clock


class OwnCordons:
    """The cordons that this process set and has watched since, by the UID of the Node.

    Args:
        clock: The agent's.
        policy: How far apart two looks may be.
    """

    def __init__(self, clock: Clock, policy: Policy) -> None:
        self._clock = clock
        self._policy = policy
        self._watched: dict[str, Watched] = {}

    def set(self, node: NodeView, note: Cordon) -> None:
        """Remember a cordon before it is set. Without an answer, the next look shows whether it was."""
        self._watched[node.uid] = Watched(note, node, self._clock.now_s())

    def look(self, view: NodeView) -> NodeView:
        """Return a Node that was just read, with who cordoned it where only this process can know."""
        before = self._watched.get(view.uid)
        if before is None:
            return view
        own = still_watched(before, view, self._clock.now_s(), self._policy.apart_s)
        if own is None:
            del self._watched[view.uid]
            return view
        self._watched[view.uid] = own
        return by_own_watch(own, view)

    def keep(self, uids: Collection[str]) -> None:
        """Forget those of all other Nodes."""
        for uid in self._watched.keys() - uids:
            del self._watched[uid]
