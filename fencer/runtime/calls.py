"""What other controllers of the cluster ask of fencer: read in every pass, and before anything is done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fencer.core.policy import Policy, Remediation
from fencer.core.requests import NO_CALL, REMEMBERED_S, Asked, Call, Request, call_for, counting
from fencer.errors import FencerError
from fencer.runtime.world import API, World

WORKER = f"{API}/requests"
"""A worker of its own: what other controllers ask keeps no node waiting that nobody asks for."""

FRESH_S = 1.0
"""What was read so short a while ago need not be read again: for nodes that are looked at side by side."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What is asked, and when that was asked for."""

    at_s: float
    asked: Asked | None


TOLD_AFTER_S = REMEMBERED_S
"""A failure that lasts so long is reported: until then what was last read counts, and slow answers come."""


class Calls:
    """Knows what is asked, as it was last read.

    If it cannot be read, what was last read counts for a while: `fencer.core.requests.counting`.

    Args:
        world: For the requests.
        policy: For the most that may be asked for.
    """

    def __init__(self, world: World, policy: Policy) -> None:
        self._world, self._policy = world, policy
        self._asked: Asked | None = None
        self._about: Mapping[str, Sequence[Request]] = {}
        self._is_known = True
        """The cluster knows that kind, as far as it has told."""
        self._read_s = self._answered_s = float("-inf")
        self._trouble, self._trouble_s = "", 0.0
        self._told = ""

    @property
    def requests(self) -> tuple[Request, ...]:
        """Every request."""
        return self._asked.requests if self._asked is not None else ()

    @property
    def named(self) -> frozenset[str]:
        """The nodes that any request is about, whatever has become of it, or that somebody works on."""
        reserved = self._asked.reservations.keys() if self._asked is not None else ()
        return frozenset((*self._about, *reserved))

    def questions(self) -> dict[str, Callable[[], _Answer]]:
        """Return what is to be asked in every pass, beside the hypervisors; nothing where nobody is heard."""
        requests, now_s = self._world.requests, self._world.clock.now_s
        if requests is None or self._policy.remediation is Remediation.IGNORE:
            return {}
        self._read_s = now_s()
        return {WORKER: lambda: _Answer(now_s(), requests.asked())}

    def heard(self, answers: Mapping[str, _Answer | FencerError]) -> None:
        """Take in the answers, also those that come late: each knows when it was asked for."""
        for answer in answers.values():
            if isinstance(answer, FencerError):
                self._trouble = f"what other controllers ask of fencer cannot be read: {answer}"
                continue
            self._asked, self._is_known, self._answered_s = (
                answer.asked,
                answer.asked is not None,
                answer.at_s,
            )
            self._about = _by_node(self.requests)
            self._trouble = "; ".join(answer.asked.malformed) if answer.asked is not None else ""

    def look_again(self, node: str) -> None:
        """Read it once more before something is done, where anybody could ask at all.

        Args:
            node: To which. If another controller asks about it, even a slow answer is waited for. Otherwise
                one that is on its way is used: a new request each time would never be answered in time.
        """
        if not self._is_known or self._world.clock.now_s() - self._read_s < FRESH_S:
            return
        patient = node in self.named
        self.heard(self._world.asker.ask_all(self.questions(), self._policy.call_deadline_s, patient=patient))

    def tell(self) -> None:
        """Tell people what cannot be read, once; where nothing at all can be, that is told already."""
        now_s = self._world.clock.now_s()
        if not self._trouble:
            self._trouble_s = now_s
        if self._trouble != self._told and (not self._trouble or now_s - self._trouble_s >= TOLD_AFTER_S):
            self._told = self._trouble
            text = self._told or "what other controllers ask of fencer can be read again"
            self._world.reporter.said(text, warning=bool(self._told))

    def of(self, node: str) -> Call:
        """Return what is asked about a node, as far as the policy lets anybody ask."""
        if self._asked is None:
            return NO_CALL
        call = call_for(self._about.get(node, ()), self._asked.reservations.get(node, ""))
        return counting(call, self._policy, self._world.clock.now_s() - self._answered_s)


def _by_node(requests: Sequence[Request]) -> dict[str, list[Request]]:
    found = defaultdict[str, list[Request]](list)
    for request in requests:
        if request.node:
            found[request.node].append(request)
    return dict(found)
