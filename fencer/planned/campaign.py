"""Planned stops and starts of nodes: one after the other, or several at a time if all rules allow it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from fencer.core.model import PodView
from fencer.core.text import age, count
from fencer.errors import ClusterDenied, ClusterError
from fencer.evicting.lots import Lot, of_lot
from fencer.planned.drain import DrainOptions, Tell
from fencer.planned.ordering import may_begin
from fencer.planned.turns import Turn
from fencer.runtime.reconcile import Agent
from fencer.runtime.world import World

UNREPLACED = frozenset({"Job", "DaemonSet", "Node"})
"""Kinds whose pods may never come back elsewhere, or only in their own time."""


class Replacements:
    """Knows how many pods of each controller were Ready before evictions, and which controllers lack some.

    Args:
        world: The ports.
        agent: Its observer holds calls to their deadlines.
    """

    def __init__(self, world: World, agent: Agent) -> None:
        self._world = world
        self._agent = agent
        self._before: Counter[tuple[str, str]] = Counter()

    def expect(self, node: str, options: DrainOptions) -> None:
        """Take note of the controllers of the pods that a drain of this node will evict.

        Raises:
            ClusterError: they could not be listed.
        """
        pods = self._agent.shared.api(lambda: self._world.cluster.pods(node))
        going = of_lot(pods, options.filters, {Lot.EVICT})
        keys = {key for pod in going if (key := _controller(pod)) is not None}
        for key, number in self._ready({namespace for namespace, _ in keys}).items():
            if key in keys:
                self._before[key] = max(self._before[key], number)

    def excuse(self, returned: Iterable[PodView]) -> None:
        """Stop expecting controllers whose pods came back to a node that goes down: they wait for it."""
        for key in filter(None, map(_controller, returned)):
            self._before.pop(key, None)

    def short(self) -> list[str]:
        """Return the controllers with fewer Ready pods than before, and how many of how many.

        Raises:
            ClusterError: the pods could not be listed.
        """
        now = self._ready({namespace for namespace, _ in self._before})
        return [
            f"{namespace}/{name.partition('/')[2]} has {now[namespace, name]} of {number} pods Ready"
            for (namespace, name), number in sorted(self._before.items())
            if now[namespace, name] < number
        ]

    @property
    def complete(self) -> str:
        """Say what is Ready when none is short."""
        pods = count(sum(self._before.values()), "pod")
        return f"{pods} of {count(len(self._before), 'controller')} Ready, as before"

    def _ready(self, namespaces: Iterable[str]) -> Counter[tuple[str, str]]:
        evictor = self._world.evictor
        assert evictor is not None  # noqa: S101 - whoever drains has one
        found: Counter[tuple[str, str]] = Counter()
        for namespace in sorted(namespaces):
            for pod in self._agent.shared.api(partial(evictor.pods_in, namespace)):
                key = _controller(pod)
                if key is not None and pod.ready and not pod.terminating:
                    found[key] += 1
        return found


class Campaign:
    """Several turns: as many at a time as allowed, and the next one only when the pods of the last are back.

    Args:
        world: The ports.
        turns: In order.
        parallel: How many at a time.
        tell: Shows the steps.
        replacements: Controllers that must be complete before the next turn begins; None: none.
        drain: How nodes are drained, for `replacements`.
        patience_s: How long to wait for the replacements, or for an API that does not answer.
        ordered: Control-plane nodes go one at a time, and a failure keeps the next turn from beginning.
    """

    def __init__(
        self,
        world: World,
        turns: Sequence[Turn],
        parallel: int,
        tell: Tell,
        replacements: Replacements | None = None,
        drain: DrainOptions | None = None,
        patience_s: float = float("inf"),
        *,
        ordered: bool = True,
    ) -> None:
        self.waiting = list(turns)
        self.under_way: list[Turn] = []
        self.ended: list[Turn] = []
        self.stuck = ""
        """Why the next turn did not begin."""
        self._world = world
        self._parallel = parallel
        self._tell = tell
        self._replacements = replacements
        self._drain = drain
        self._patience_s = patience_s
        self._ordered = ordered
        self._waits_since_s: float | None = None
        self._told = ""

    def prepare(self) -> None:
        """Cordon all nodes before the first is drained, so that no pod is evicted twice.

        If one cannot be cordoned, none is drained.

        Raises:
            ClusterError: one could not be.
        """
        for turn in self.waiting:
            turn.prepare()
            if turn.failed:
                turn.withdraw()
                self.waiting.remove(turn)
                self.ended.append(turn)
                return

    def break_off(self) -> None:
        """Undo what was prepared for turns that did not begin."""
        for turn in (*self.waiting, *self.under_way):
            turn.withdraw()

    def run(
        self,
        ended: Callable[[Turn], object] = lambda _turn: None,
        waiting: Callable[[str], object] = lambda _text: None,
    ) -> bool:
        """Work until all is done, or one has failed; return whether all went well.

        Args:
            ended: Called with each turn that ends well, as it does.
            waiting: Called with what is waited for, about once a second.

        Raises:
            ClusterError: a turn could not begin.
        """
        while self.waiting or self.under_way:
            failed = self._ordered and any(turn.failed for turn in self.ended)
            if (failed or self.stuck) and not self.under_way:
                self.break_off()
                return False
            wait_s = 1.0
            if not failed and not self.stuck:
                self._begin_next()
            for turn in tuple(self.under_way):
                wait_s = min(wait_s, turn.advance())
                if turn.over:
                    self.under_way.remove(turn)
                    self.ended.append(turn)
                    if not turn.failed:
                        ended(turn)
                    if self._replacements is not None:
                        self._replacements.excuse(turn.returned)
                    wait_s = 0.0
            if wait_s > 0:
                waiting(self._waits())
                self._world.clock.wait(wait_s)
        return not any(turn.failed for turn in self.ended)

    def _waits(self) -> str:
        """Say what is waited for: of several nodes each with its name."""
        words = {turn.node.name: turn.waits() for turn in self.under_way}
        if self._waits_since_s is not None:
            words[self.waiting[0].node.name] = self._told
        several = len(words) + len(self.ended) + len(self.waiting) > 1
        return " | ".join(f"{name}: {text}" if several else text for name, text in words.items() if text)

    def _begin_next(self) -> None:
        while self.waiting:
            turn = self.waiting[0]
            under_way = [other.node for other in self.under_way]
            if self._ordered and not may_begin(turn.node, under_way, self._parallel):
                return
            if not self._next_may_begin(turn):
                return
            self.under_way.append(self.waiting.pop(0))

    def _next_may_begin(self, turn: Turn) -> bool:
        """Whether the next turn may begin: replacements are back, and those of the next turn are known.

        An API that was lost with the node before comes back; wait for it as for pods.
        """
        if self._replacements is None:
            return True
        try:
            # While others are under way, do not ask for replacements.
            short = self._replacements.short() if self.ended and not self.under_way else []
            if self._drain is not None and not short and len(self.waiting) > 1:
                self._replacements.expect(turn.node.name, self._drain)
        except ClusterDenied:
            raise
        except ClusterError as error:
            return self._wait(turn, "trouble", str(error))
        if short:
            return self._wait(turn, "waiting", "; ".join(short))
        self._waits_since_s = None
        return True

    def _wait(self, turn: Turn, what: str, text: str) -> bool:
        """Say once what the next turn waits for, and how long at most; return that it may not begin."""
        now_s = self._world.clock.now_s()
        self._waits_since_s = now_s if self._waits_since_s is None else self._waits_since_s
        if text != self._told:
            self._told = text
            self._tell(turn.node.name, what, text)
        if now_s - self._waits_since_s >= self._patience_s:
            self.stuck = f"after {age(self._patience_s)}, {text}"
        return False


def _controller(pod: PodView) -> tuple[str, str] | None:
    kind = pod.controller.partition("/")[0]
    return None if not pod.controller or kind in UNREPLACED else (pod.namespace, pod.controller)
