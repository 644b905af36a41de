"""When fencer's way into the cluster ends, in words, and what follows."""

from __future__ import annotations

from fencer.core.text import count

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0
SOON_S = 30 * DAY_S
"""Time for people: somebody may be on holiday, and an administrator has to make another token."""
SOON_SHARE = 1 / 3
"""Of a shorter life: a token for a day is not to be warned of from its first minute on."""


def ends_in(left_s: float) -> str:
    """Say when a token or a certificate ends, or has ended.

    Args:
        left_s: Seconds until then; not above 0: it has ended.
    """
    return f"ends in {_long(left_s)}" if left_s > 0 else f"ended {_long(-left_s)} ago"


def end_warning(left_s: float, life_s: float | None = None) -> str:
    """Say what follows, if a token or a certificate ends soon or has ended; empty: it is good for longer.

    Args:
        left_s: As for `ends_in`.
        life_s: For how long it is valid in all, in seconds; None: not known.
    """
    if left_s > (SOON_S if life_s is None else min(SOON_S, SOON_SHARE * life_s)):
        return ""
    if left_s <= 0:
        return "the API server no longer accepts it"
    return "then this fencer can neither fence nor lift a fence"


def _long(seconds: float) -> str:
    for unit_s, unit, least in ((DAY_S, "day", 2), (HOUR_S, "hour", 1), (MINUTE_S, "minute", 1)):
        if seconds >= least * unit_s:
            return count(round(seconds / unit_s), unit)
    return "less than a minute"
