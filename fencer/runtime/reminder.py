"""Reminds people, while the agent runs, that its credentials for the cluster end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from fencer.errors import ConfigError, FencerError
from fencer.ports import Credential
from fencer.wording.credentials import DAY_S, end_warning, ends_in


class CredentialReminder:
    """Says once a day that the token or the certificate ends soon, or cannot be read any more.

    Args:
        credentials: Returns our credentials, within a deadline: a plugin that hangs keeps nobody from
            fencing.
        now_s: A monotonic clock, in seconds.
        wall: The time of day.
        say: Tells people.
        holds: Is told what we have, whenever that was read.
    """

    def __init__(
        self,
        credentials: Callable[[], Sequence[Credential]],
        now_s: Callable[[], float],
        wall: Callable[[], datetime],
        say: Callable[[str], None],
        holds: Callable[[Sequence[Credential]], None] = lambda _: None,
    ) -> None:
        self._credentials, self._now_s, self._wall, self._say = credentials, now_s, wall, say
        self._holds = holds
        self._next_s = now_s()

    def look(self) -> None:
        """Look, if a day has passed; callers of the cluster report that nobody answers."""
        if self._now_s() < self._next_s:
            return
        self._next_s = self._now_s() + DAY_S
        try:
            held = self._credentials()
        except ConfigError as error:  # the old ones still work; a restart would fail with this
            self._say(f"the credentials for Kubernetes cannot be read again: {error}")
            return
        except FencerError:
            return
        self._holds(held)
        for one in held:
            if one.ends is None:
                continue
            left_s = (one.ends - self._wall()).total_seconds()
            if text := end_warning(left_s, one.life_s):
                another = f". Another token: `{one.renewal}`" if one.renewal else ""
                self._say(f"the {one.what} for Kubernetes {ends_in(left_s)}: {text}{another}")
