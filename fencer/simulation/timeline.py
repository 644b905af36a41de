"""What happened, as sentences for people with data for programs, in the order in which it happened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Actor = Literal["world", "person", "kubernetes", "pods", "fencer"]


@dataclass(frozen=True, slots=True)
class StageEvent:
    """One line of the story.

    Attributes:
        t_s: Seconds since the story began.
        actor: Who did it: ``world`` (what breaks, and the truth), ``person`` (who types a command of fencer),
            ``kubernetes``, ``pods`` or ``fencer``.
        node: The node it is about; None: the whole cluster.
        text: One sentence for people, without time and node.
        data: The same for programs; always has ``what``. Flat, JSON values only.
    """

    t_s: float
    actor: Actor
    node: str | None
    text: str
    data: Mapping[str, object] = field(default_factory=dict)


class Timeline:
    """Collects events until somebody takes them.

    Args:
        now_s: Where the time comes from.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.began_s = 0.0
        self._now_s = now_s
        self._events: list[StageEvent] = []

    def tell(self, actor: Actor, node: str | None, what: str, text: str, **data: object) -> None:
        """Add one event.

        Args:
            actor: Who did it.
            node: The node it is about.
            what: A short constant name of what happened, for programs.
            text: A sentence for people.
            data: More for programs.
        """
        self._events.append(StageEvent(round(self.now_s(), 3), actor, node, text, {"what": what, **data}))

    def now_s(self) -> float:
        """Return the seconds since the story began."""
        return self._now_s() - self.began_s

    def take(self) -> list[StageEvent]:
        """Return what was told since the last time."""
        taken, self._events = self._events, []
        return taken
