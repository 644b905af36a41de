"""When an agent is of use as a Lease's holder: it looks, is answered, and can do what is due."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from fencer.core.model import Decision, Reason

UNABLE_S = 30.0
"""An agent that cannot have given a hypervisor any order for so long leaves its Lease to others."""
REST_S = 10.0
"""So long an agent that could not carry an order out leaves the Lease to others, before it tries again."""
FUTILE = frozenset(
    {Reason.NO_POWER_RIGHTS, Reason.POWER_UNAPPROVED, Reason.STOP_FAILED, Reason.DISCARD_FAILED}
)
"""An order is due, and this agent may not give it, or has failed: another one may do better."""


def futile_at(decisions: Iterable[Decision]) -> frozenset[str]:
    """Name the endpoints with a guest of which the order that is due cannot be carried out."""
    return frozenset(
        one.guest.endpoint for one in decisions if one.reason in FUTILE and one.guest is not None
    )


@dataclass(frozen=True, slots=True)
class Fitness:
    """What the passes of one agent have shown of that.

    Attributes:
        began_s: When it began: for its first pass it has as long as for all others.
        able_s: When it could last have given each endpoint an order, in a pass.
        futile: The endpoints where it cannot carry out what is due, in the last pass.
    """

    began_s: float
    able_s: Mapping[str, float] = field(default_factory=dict)
    futile: frozenset[str] = frozenset()

    def after(
        self, endpoints: Collection[str], silent: Collection[str], futile: frozenset[str], now_s: float
    ) -> Fitness:
        """Return what a pass makes of it. In the first one, a silent endpoint counts as one that answers.

        Args:
            endpoints: All of them.
            silent: Those that have not answered.
            futile: See `futile_at`.
            now_s: When it ended.
        """
        unable = {one for one in silent if one in self.able_s} | futile
        able = dict.fromkeys((one for one in endpoints if one not in unable), now_s)
        return replace(self, able_s={**self.able_s, **able}, futile=futile)

    def is_fit(self, endpoints: Collection[str], rests_until_s: float, now_s: float) -> bool:
        """Whether the agent may campaign for a Lease.

        Args:
            endpoints: Those of which it is the Lease: one hypervisor may have several names. One is enough.
            rests_until_s: Until when the Lease is left to others, see `rest`; it may be over.
            now_s: Now. After a rest, it is tried for `UNABLE_S` again.
        """
        if now_s < rests_until_s:
            return False
        able_s = (self.able_s.get(one, self.began_s) for one in endpoints)
        since_s = max(able_s, default=now_s)
        return max(since_s, rests_until_s) > now_s - UNABLE_S

    def rest(self, endpoints: Collection[str], now_s: float) -> float | None:
        """Return until when a Lease is left to others, where it could not do what is due; None: not so."""
        return now_s + REST_S if self.futile.intersection(endpoints) else None
