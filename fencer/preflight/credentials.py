"""Judges when our credentials for the cluster end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from fencer.errors import FencerError
from fencer.ports import Credential
from fencer.preflight.finding import Finding, Level
from fencer.wording.credentials import end_warning, ends_in


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
            left_s = (one.ends - wall).total_seconds()
            text = end_warning(left_s, one.life_s)
            tries = (one.renewal,) if text and one.renewal else ()
            yield Finding(one.what, ends_in(left_s), Level.WARN if text else Level.OK, text, tries)
