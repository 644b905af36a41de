"""Warnings, in words, before fencer's way into the cluster ends."""

from __future__ import annotations

from fencer.core.text import count

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0
SOON_S = 14 * DAY_S
"""Time for people: a token is valid for 90 days, and somebody may be on holiday for two weeks."""


def end_warning(left_s: float) -> str:
    """Say that a token or a certificate ends soon; empty: it does not.

    Args:
        left_s: Seconds until it ends; negative: it has ended.
    """
    if left_s > SOON_S:
        return ""
    if left_s <= 0:
        return f"it ended {_long(-left_s)} ago: the API server no longer accepts it"
    return f"it ends in {_long(left_s)}: then this fencer can neither fence nor lift a fence"


def _long(seconds: float) -> str:
    for unit_s, unit, least in ((DAY_S, "day", 2), (HOUR_S, "hour", 1), (MINUTE_S, "minute", 1)):
        if seconds >= least * unit_s:
            return count(round(seconds / unit_s), unit)
    return "less than a minute"
