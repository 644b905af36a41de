"""What other controllers of the cluster ask of fencer: read in every pass, and before anything is done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from fencer.core.policy import Policy, Remediation
from fencer.core.requests import NO_CALL, Asked, Call, Request, Strategy, call_for
from fencer.errors import FencerError
from fencer.runtime.world import API, World

WORKER = f"{API}/requests"
"""A worker of its own: what other controllers ask keeps no node waiting that nobody asks for."""

FRESH_S = 1.0
"""What was read so short a while ago need not be read again: for nodes that are looked at side by side."""


class Calls:
    """Knows what is asked, as it was last read.

    If it cannot be read, what was last read counts: a trigger changes no proof, and that there may be another
    one must keep nobody from being fenced.

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
        self._read_s = float("-inf")
        self._told = ""

    @property
    def requests(self) -> tuple[Request, ...]:
        """Every request."""
        return self._asked.requests if self._asked is not None else ()

    @property
    def of_nodes(self) -> Mapping[str, Call]:
        """What is asked about each node about which anything is, by its name."""
        if self._asked is None:
            return {}
        calls = {name: self.of(name) for name in self._about.keys() | self._asked.reservations.keys()}
        return {name: call for name, call in calls.items() if call != NO_CALL}

    def questions(self) -> dict[str, Callable[[], Asked | None]]:
        """Return what is to be asked in every pass, beside the hypervisors; nothing where nobody is heard."""
        requests = self._world.requests
        if requests is None or self._policy.remediation is Remediation.IGNORE:
            return {}
        self._read_s = self._world.clock.now_s()
        return {WORKER: requests.asked}

    def heard(self, answers: Mapping[str, Asked | FencerError | None]) -> None:
        """Take in the answers."""
        for answer in answers.values():
            if not isinstance(answer, FencerError):
                self._asked, self._is_known = answer, answer is not None
                self._about = _by_node(self.requests)
            self._tell(answer)

    def look_again(self) -> None:
        """Read it once more before something is done, where anybody could ask at all."""
        if not self._is_known or self._world.clock.now_s() - self._read_s < FRESH_S:
            return
        answers: dict[str, Asked | FencerError | None] = {}
        for worker, question in self.questions().items():
            try:
                answers[worker] = self._world.asker.ask(worker, question, self._policy.poll_s)
            except FencerError as error:
                answers[worker] = error
        self.heard(answers)

    def _tell(self, answer: Asked | FencerError | None) -> None:
        """Tell people what cannot be read, once."""
        trouble = ""
        if isinstance(answer, FencerError):
            trouble = f"what other controllers ask of fencer cannot be read: {answer}"
        elif answer is not None:
            trouble = "; ".join(answer.malformed)
        if trouble != self._told:
            self._told = trouble
            text = trouble or "what other controllers ask of fencer can be read again"
            self._world.reporter.said(text, warning=bool(trouble))

    def of(self, node: str) -> Call:
        """Return what is asked about a node, as far as the policy lets anybody ask."""
        if self._asked is None:
            return NO_CALL
        call = call_for(self._about.get(node, ()), self._asked.reservations.get(node, ""))
        if call.strategy is Strategy.STOP and self._policy.remediation is not Remediation.STOP:
            return replace(call, strategy=Strategy.PROVE)
        return call


def _by_node(requests: Sequence[Request]) -> dict[str, list[Request]]:
    found = defaultdict[str, list[Request]](list)
    for request in requests:
        if request.node:
            found[request.node].append(request)
    return dict(found)
