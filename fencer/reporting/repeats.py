"""What is said again and again is told at once, and then more and more seldom, with how often it was said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fencer.core.text import alike, count

FIRST_REST_S, LONGEST_REST_S = 60.0, 3600.0
"""Between two lines that say the same: doubled each time."""
KEPT = 1000
"""So many sentences are remembered; with more, all are news again."""


@dataclass(slots=True)
class _Said:
    """One sentence.

    Attributes:
        rest_s: How long it is not told again.
        next_s: Until when.
        last_s: When it was said last.
        untold: How often it was said since it was told.
    """

    rest_s: float
    next_s: float
    last_s: float
    untold: int = 0


class Repeats:
    """Counts sentences that are said again. Numbers and ids make no other sentence, but names do.

    Args:
        now_s: A monotonic clock.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._said: dict[tuple[str, str], _Said] = {}

    def told(self, who: str, text: str) -> str | None:
        """Return how to tell it: with how often it was said meanwhile. None: not now.

        Args:
            who: Whom it is about.
            text: What is said of them.
        """
        now_s, key = self._now_s(), (who, alike(text))
        said = self._said.get(key)
        if said is None or now_s - said.last_s > 2 * said.rest_s:  # it was over in between
            if len(self._said) >= KEPT:
                self._said.clear()
            self._said[key] = _Said(FIRST_REST_S, now_s + FIRST_REST_S, now_s)
            return text
        said.last_s = now_s
        if now_s < said.next_s:
            said.untold += 1
            return None
        more, said.untold = said.untold, 0
        said.rest_s = min(2 * said.rest_s, LONGEST_REST_S)
        said.next_s = now_s + said.rest_s
        return f"{text} (said {count(more, 'time')} more since it was told)" if more else text

    def over(self, who: str) -> None:
        """Forget what was said of somebody: it is over, and what is said of them next is news."""
        self._said = {key: said for key, said in self._said.items() if key[0] != who}
