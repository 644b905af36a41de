"""Judges when what lets us into the cluster ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from fencer.core.text import count
from fencer.errors import FencerError
from fencer.ports import Credential
from fencer.preflight.finding import Finding, Level

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0
SOON_S = 14 * DAY_S
"""Time for people: a token is good for 90 days, and somebody may be on holiday for two weeks."""


def judge(credentials: Sequence[Credential] | FencerError, wall: datetime) -> Iterator[Finding]:
    """Tell when tokens and certificates end.

    Args:
        credentials: What lets us in.
        wall: The time of day here.
    """
    if isinstance(credentials, FencerError):
        yield Finding("credentials", "", Level.WARN, f"when they end is not known: {credentials}")
        return
    for one in credentials:
        if one.ends is not None:
            text = end_warning(one.ends, wall)
            tries = (one.renewal,) if text and one.renewal else ()
            about = f"until {one.ends:%Y-%m-%d %H:%M} UTC"
            yield Finding(one.what, about, Level.WARN if text else Level.OK, text, tries)


def end_warning(ends: datetime, wall: datetime) -> str:
    """Say that a token or a certificate ends soon; empty: it does not.

    Args:
        ends: When it ends.
        wall: The time of day here.
    """
    left_s = (ends - wall).total_seconds()
    if left_s > SOON_S:
        return ""
    if left_s <= 0:
        return f"it ended {_long(-left_s)} ago: the API server lets nobody in with it"
    return f"it ends in {_long(left_s)}: then this fencer can neither fence nor lift a fence"


def _long(seconds: float) -> str:
    for unit_s, unit, least in ((DAY_S, "day", 2), (HOUR_S, "hour", 1), (MINUTE_S, "minute", 1)):
        if seconds >= least * unit_s:
            return count(round(seconds / unit_s), unit)
    return "less than a minute"
