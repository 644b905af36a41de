"""Judges when our credentials for the cluster end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from fencer.errors import FencerError
from fencer.ports import Credential
from fencer.preflight.finding import Finding, Level
from fencer.wording.credentials import end_warning


def judge(credentials: Sequence[Credential] | FencerError, wall: datetime) -> Iterator[Finding]:
    """Say when tokens and certificates end.

    Args:
        credentials: What lets us in.
        wall: The time of day here.
    """
    if isinstance(credentials, FencerError):
        yield Finding("credentials", "", Level.WARN, f"when they end is not known: {credentials}")
        return
    for one in credentials:
        if one.ends is not None:
            text = end_warning((one.ends - wall).total_seconds())
            tries = (one.renewal,) if text and one.renewal else ()
            about = f"until {one.ends:%Y-%m-%d %H:%M} UTC"
            yield Finding(one.what, about, Level.WARN if text else Level.OK, text, tries)
