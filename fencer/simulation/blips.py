"""Incidents by chance that come and go within seconds, again and again, out of step with whoever looks.

None of it adds up: between two of them all is well for longer than any agent goes without a look. Drawn like
those of `incidents`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import TypeAlias

from fencer.simulation.assembly import Shape
from fencer.simulation.datacenter import REBOOT_S
from fencer.simulation.deceptions import CALLS_A_LOOK
from fencer.simulation.faults import Fault, What
from fencer.simulation.incidents import BLIP_S, CUT_OFF, FOR_SURE

Span: TypeAlias = tuple[float, float]
"""Shortest and longest, in seconds."""

TIMES = (4, 14)
WELL_S = (2.5, 9.0)
"""For so long all is well between two of them, and longer where answers are slow: a poll is 2 s."""
SILENT_S = (1.0, 90.0)
HEARD_S = (3.0, 40.0)
"""For so long a node's heartbeats stop, and go on again: it may be Ready or not, renewed lately or not."""

LIVES_S = (20.0, 120.0)
"""From one start to the next, in a crash loop."""
LOOPS = (2, 9)
"""So many starts: some are too few for one."""

GUEST: Mapping[What, What] = {
    What.LIE_STOPPED: What.TRUTHFUL,
    What.PAUSE: What.RESUME,
    What.IO_ERROR: What.RESUME,
    What.CRASH: What.START,
}
"""What comes of a guest, and how it goes."""


def blips(chance: Random, shape: Shape, victim: str, began_s: float, back_s: float) -> Sequence[Fault]:
    """A guest stops for a moment each time, or is said to; so do its heartbeats; at last it may stay down.

    Meanwhile answers may be late, or hearsay where a guest is off; and a watch may tell nothing.
    """
    endpoint, what = shape.endpoint_of(victim), chance.choice((What.LIE_STOPPED, What.PAUSE, *GUEST))
    slow_s = CALLS_A_LOOK * shape.call_s
    well_s = WELL_S[0] + slow_s, WELL_S[1] + slow_s
    goes = (GUEST[what], endpoint if what is What.LIE_STOPPED else victim)
    script = list(_again(chance, began_s, chance.randint(*TIMES), (what, victim), goes, BLIP_S, well_s))
    script[0] = Fault(began_s, what, victim, death=True)
    over_s = script[-1].at_s + chance.uniform(*well_s)
    if chance.random() < 0.5:  # noqa: PLR2004 - half of them
        cut, at_s = chance.choice(sorted(CUT_OFF)), max(20.0, began_s - chance.uniform(0.0, 80.0))
        mended = (CUT_OFF[cut], victim)
        script += _again(chance, at_s, chance.randint(1, 5), (cut, victim), mended, SILENT_S, HEARD_S)
    if chance.random() < 0.3:  # noqa: PLR2004 - so many
        script.append(Fault(chance.uniform(began_s, over_s), What.WATCH_SWALLOWED))
    if chance.random() < 0.3:  # noqa: PLR2004 - so many
        lags = (chance.choice((What.LATE, What.HEARSAY)), endpoint)
        script += _again(
            chance, began_s, chance.randint(1, 3), lags, (What.TRUTHFUL, endpoint), BLIP_S, HEARD_S
        )
    if chance.random() < 0.6:  # noqa: PLR2004 - mostly
        ends = (What.PAUSE, What.PAUSE, *FOR_SURE) if GUEST[what] is What.RESUME else FOR_SURE
        end, until_s = chance.choice(ends), max(back_s, over_s + chance.uniform(20.0, 120.0))
        up = What.RESUME if end is What.PAUSE else What.START
        script += [Fault(over_s, end, victim), Fault(until_s, up, victim)]
    return script


def crash_loop(chance: Random, _shape: Shape, victim: str, began_s: float, _back_s: float) -> Sequence[Fault]:
    """A guest dies again and again soon after it was started; in the end it runs, or stays down."""
    period_s, times = chance.uniform(*LIVES_S), chance.randint(*LOOPS)
    off_s = chance.choice((REBOOT_S, 5.0, 15.0, period_s / 2)) * chance.uniform(0.7, 1.0)
    script, at_s = list[Fault](), began_s
    for _ in range(times):
        script += [Fault(at_s, chance.choice(FOR_SURE), victim), Fault(at_s + off_s, What.START, victim)]
        at_s += period_s * chance.uniform(0.9, 1.1)
    script[0] = replace(script[0], death=True)
    return script[:-1] if chance.random() < 0.3 else script  # noqa: PLR2004 - so many


def _again(
    chance: Random,
    at_s: float,
    times: int,
    comes: tuple[What, str],
    goes: tuple[What, str],
    lasts_s: Span,
    apart_s: Span,
) -> Iterator[Fault]:
    """Yield what comes and goes, each with its target, so many times from a moment on."""
    for _ in range(times):
        yield Fault(at_s, *comes)
        at_s += chance.uniform(*lasts_s)
        yield Fault(at_s, *goes)
        at_s += chance.uniform(*apart_s)
