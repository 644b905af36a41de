"""Spans of time as systemd and Go write them, in seconds."""

from __future__ import annotations

import re

_UNITS_S = {
    **dict.fromkeys(("ns", "nsec"), 1e-9),
    **dict.fromkeys(("us", "µs", "μs", "usec"), 1e-6),
    **dict.fromkeys(("ms", "msec"), 1e-3),
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
    **dict.fromkeys(("w", "week", "weeks"), 604800.0),
}
_PART = re.compile(r"\s*([0-9]{1,12}(?:\.[0-9]{1,9})?)\s*([a-zµμ]*)")


def seconds(text: str) -> float | None:
    """Read "30", "1min 30s", "1m30s", "infinity"; None: it is no span of time.

    Source: systemd.time(7); Go time.ParseDuration.
    """
    text = text.strip()
    if text == "infinity":
        return float("inf")
    total, at = 0.0, 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or part.group(2) not in _UNITS_S:
            return None
        total += float(part.group(1)) * _UNITS_S[part.group(2)]
        at = part.end()
    return total if text else None


def told(span_s: float | None) -> str:
    """Write a span for people: "45 s", "2 min 30 s"."""
    if span_s is None:
        return "unknown"
    if span_s == float("inf"):
        return "without end"
    minutes, rest = divmod(span_s, 60)
    return f"{span_s:g} s" if not minutes else f"{minutes:.0f} min" + (f" {rest:g} s" if rest else "")
