"""What other controllers of the cluster ask of fencer: read in every pass, and before anything is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from fencer.core.policy import Policy, Remediation
from fencer.core.requests import NO_CALL, Asked, Call, Request, Strategy, call_for
from fencer.errors import ClusterError, FencerError
from fencer.runtime.cluster_calls import ClusterCalls
from fencer.runtime.world import API, World

WORKER = f"{API}/requests"
"""A worker of its own, asked at the same time as hypervisors: no pass waits for it longer than for those."""

FRESH_S = 1.0
"""What was read so short a while ago need not be read again: for nodes that are looked at side by side."""


class Calls:
    """Knows what is asked, as it was last read.

    If it cannot be read, what was last read counts: a trigger changes no proof, and that there may be another
    one must keep nobody from being fenced.

    Args:
        world: For the requests.
        policy: For the most that may be asked for.
        api: Calls to the cluster.
    """

    def __init__(self, world: World, policy: Policy, api: ClusterCalls) -> None:
        self._world, self._policy, self._api = world, policy, api
        self._asked: Asked | None = None
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
        names = {one.node for one in self.requests if one.node} | self._asked.reservations.keys()
        calls = {name: self.of(name) for name in names}
        return {name: call for name, call in calls.items() if call != NO_CALL}

    def questions(self) -> dict[str, Callable[[], object]]:
        """Return what to ask in a look, by its worker; nothing where nobody is to be heard."""
        requests = self._world.requests
        if requests is None or self._policy.remediation is Remediation.IGNORE:
            return {}
        self._read_s = self._world.clock.now_s()
        return {WORKER: requests.asked}

    def hear(self, answer: object) -> None:
        """Take note of the answer: an error, `Asked`, or None where the cluster does not know the kind."""
        if isinstance(answer, FencerError):
            trouble = f"what other controllers ask of fencer cannot be read: {answer}"
        else:
            self._asked = answer if isinstance(answer, Asked) else None
            trouble = "; ".join(self._asked.malformed) if self._asked is not None else ""
        if trouble != self._told:
            self._told = trouble
            text = trouble or "what other controllers ask of fencer can be read again"
            self._world.reporter.said(text, warning=bool(trouble))

    def look_again(self) -> None:
        """Read it once more before something is done, where anybody could ask at all."""
        if self._asked is None or self._world.clock.now_s() - self._read_s < FRESH_S:
            return
        for worker, question in self.questions().items():
            try:
                self.hear(self._api(question, worker))
            except ClusterError as error:
                self.hear(error)

    def of(self, node: str) -> Call:
        """Return what is asked about a node, as far as the policy lets anybody ask."""
        if self._asked is None:
            return NO_CALL
        call = call_for(node, self._asked.requests, self._asked.reservations.get(node, ""))
        if call.strategy is Strategy.STOP and self._policy.remediation is not Remediation.STOP:
            return replace(call, strategy=Strategy.PROVE)
        return call
