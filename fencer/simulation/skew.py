"""Several API servers behind one address, whose clocks differ: each answer has the time of one of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

from fencer.core.times import parse_utc, write_utc
from fencer.simulation.around import Around, Call
from fencer.simulation.scenario import ServerClock
from fencer.simulation.timeline import Timeline


class Balancer:
    """Picks, for each answer to one agent, the API server that gives it.

    Args:
        clocks: Of all API servers.
        timeline: What time it really is in the story.
        chance: Picks.
    """

    def __init__(self, clocks: tuple[ServerClock, ...], timeline: Timeline, chance: Random) -> None:
        self._clocks, self._timeline, self._chance = clocks, timeline, chance

    def shown(self, utc: str) -> str:
        """Return what the clock of the next server shows at a time; empty, where an answer has none."""
        ahead_s = self._chance.choice(self._clocks).ahead_at(self._timeline.now_s())
        return write_utc(parse_utc(utc) + timedelta(seconds=ahead_s)) if utc else ""


def skewed(port: object, balancer: Balancer) -> Around:
    """Return a port of the cluster: each answer that has a time has that of one server."""

    def through(_name: str, call: Call) -> Call:
        def asked(*args: object, **options: object) -> Any:
            answer = call(*args, **options)
            utc = getattr(answer, "utc", None)
            return answer if utc is None else replace(answer, utc=balancer.shown(utc))

        return asked

    return Around(port, through)
