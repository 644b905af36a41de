"""Outages: who gives no answer that can be used, why, what that means, and that it is over. Never a stream.

Every line of one outage begins with the same name. Another cause is told as well, but after pauses that
grow; what was not told by then is told with it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from fencer.core.text import age, alike
from fencer.runtime.world import API, World
from fencer.wording.outages import MEANS, without_answer

FIRST_REST_S, LONGEST_REST_S = 60.0, 3600.0
"""Between two lines about the causes of one outage: doubled each time."""
MOST_CAUSES = 4
"""So many are told in a line."""
HANGS = ("no answer within", "calls hang there")
"""Words of texts that say that it hangs, however long, and however often it was asked: one cause."""


@dataclass(slots=True)
class _Outage:
    """One that goes on.

    Attributes:
        since_s: Since when.
        kind: Of the cause that was told last.
        untold: Causes since then, by their kind.
        rest_s: How long no more is told.
        next_s: Until when.
        told: People know of it.
    """

    since_s: float
    kind: str = ""
    untold: dict[str, str] = field(default_factory=dict)
    rest_s: float = FIRST_REST_S
    next_s: float = 0.0
    told: bool = False

    @property
    def news(self) -> str:
        """Causes that people were not told, and what it came to; empty: it is as they were told."""
        news = () if self.untold.keys() <= {self.kind} else tuple(self.untold.values())
        return ", then ".join(news[-MOST_CAUSES:])


class Outages:
    """Tells of the API server and of endpoints.

    Args:
        world: For its reporter and clock.
        poll_s: How often they are asked.
    """

    def __init__(self, world: World, poll_s: float) -> None:
        self._reporter, self._now_s, self._poll_s = world.reporter, world.clock.now_s, poll_s
        self._going_on: dict[str, _Outage] = {}

    def look(self, errors: Mapping[str, str], asked: Collection[str]) -> None:
        """Tell what is new.

        Args:
            errors: By name, why whoever was asked gave no answer that can be used.
            asked: Who was asked.
        """
        for name, text in errors.items():
            self._is_out(name, text.removeprefix(f"{name}: "))
        for name in asked:
            if name not in errors and name in self._going_on:
                self._is_back(name, self._going_on.pop(name))

    def _is_out(self, name: str, why: str) -> None:
        now_s, out = self._now_s(), self._going_on.get(name)
        if out is None:
            out = self._going_on[name] = _Outage(now_s)
            if name != API:
                return  # one answer that is late is no outage: the next look has it
        if not out.told:
            out.kind, out.told, out.next_s = _kind(why), True, now_s + out.rest_s
            text = f"{without_answer(why)}; {MEANS[name == API]}; asked again every {self._poll_s:g} s"
            self._reporter.said(f"{name}: {text}", warning=True)
            return
        out.untold.pop(_kind(why), None)
        out.untold[_kind(why)] = why
        if now_s >= out.next_s and out.news:
            text = f"still no usable answer, for {age(now_s - out.since_s)} now: {out.news}"
            self._reporter.said(f"{name}: {text}", warning=True)
            out.rest_s = min(2 * out.rest_s, LONGEST_REST_S)
            out.kind, out.untold, out.next_s = _kind(why), {}, now_s + out.rest_s

    def _is_back(self, name: str, out: _Outage) -> None:
        if out.told:
            meanwhile = f"; meanwhile: {out.news}" if out.news else ""
            text = f"{name}: answers again after {age(self._now_s() - out.since_s)}{meanwhile}"
            self._reporter.said(text, warning=False)


def _kind(why: str) -> str:
    return HANGS[0] if any(word in why for word in HANGS) else alike(why)
