"""The ways of one agent to the API server and to each endpoint: each may be cut while all others work."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from fencer.core.model import Evidence
from fencer.errors import ClusterDenied, ClusterUnreachable, HypervisorDenied, HypervisorUnreachable
from fencer.simulation.around import Around, Call
from fencer.simulation.assembly import DISK, Simulation
from fencer.simulation.faults import LATE_S, OF_LINKS, Fault, What
from fencer.simulation.own_clock import OwnClock

API = ""
"""Where a way leads that leads to no endpoint."""
WRITES = frozenset(
    {
        *(
            "approve",
            "bind",
            "record_doubts",
            "claim",
            "taint",
            "untaint",
            "forget_mark",
            "cordon",
            "uncordon",
        ),
        *("clear", "evict", "delete_attachment"),
    }
)
"""Calls of the `Cluster` that change something."""
ORDERS = frozenset({"shutdown", "stop", "discard", "start"})
"""The same of a `Hypervisor`."""
CALLS = ORDERS | {"describe", "sweep", "read", "stop_settings"}
"""Calls of a `Hypervisor` that go over the way."""
EFFECTIVE = WRITES | ORDERS | {"write_lease", "adopt", "answer", "release"}
"""Calls that change something, whether or not the answer arrives."""
LOCAL = frozenset({"subscribe"})
"""What goes over no way: the watch has one of its own."""
LEASE_CALL_S = 10.0
"""How long a call about a Lease hangs before it is given up."""


def cut_for_ever(script: Iterable[Fault]) -> frozenset[str]:
    """Name the agents of which a way is cut, and never mended."""
    cut: dict[tuple[str, str], bool] = {}
    for fault in sorted(script, key=lambda one: one.at_s):
        if fault.what in OF_LINKS:
            cut[fault.target, fault.endpoint] = fault.what is not What.LINK_BACK
    return frozenset(agent for (agent, _), stays in cut.items() if stays)


class Links:
    """What is wrong with the ways of one agent; nothing at first.

    Args:
        simulation: The world.
        calls: What its configuration calls an endpoint, where that is not the name that all others know.
        clock: The agent's own.
    """

    def __init__(self, simulation: Simulation, calls: Mapping[str, str], clock: OwnClock) -> None:
        self._simulation, self._clock = simulation, clock
        self._real = {name: endpoint for endpoint, name in calls.items()}
        self._wrong: dict[str, What] = {}
        self._swept: dict[str, tuple[Evidence, ...]] = {}

    def befall(self, fault: Fault) -> None:
        """Let something happen to one way."""
        where = fault.endpoint
        if fault.what is What.LINK_BACK:
            self._wrong.pop(where, None)
            return
        self._wrong[where] = fault.what
        if fault.what is What.LINK_STALE:
            self._swept[where] = self._simulation.hypervisors[where].cached()

    def delay_s(self, worker: str) -> float:
        """Return how long an answer to one of the agent's workers takes now; infinity: none comes.

        Args:
            worker: By its name: an endpoint's, by the agent's configuration, the disk's, or one of the API's.
        """
        name, slash, host = worker.partition("/")
        real = self._real.get(name, name)
        usual_s = self._simulation.delay_s(f"{real}{slash}{host}")
        if worker == DISK or slash:
            return usual_s
        where = real if real in self._simulation.hypervisors else API
        return {What.LINK_HANGS: math.inf, What.LINK_SLOW: max(usual_s, LATE_S)}.get(
            self._wrong.get(where, What.LINK_BACK), usual_s
        )

    def to_api(self, port: object) -> Around:
        """Return a port of the cluster at the end of the way there."""
        return Around(
            port, lambda name, call: call if name in LOCAL else self._over(API, name, call, _no_api)
        )

    def to_leases(self, port: object) -> Around:
        """Return the port of the Leases, which waits by itself for an answer that does not come."""

        def patient(name: str, call: Call) -> Call:
            def asked(*args: object, **options: object) -> Any:
                if self._wrong.get(API) is What.LINK_HANGS:
                    self._simulation.clock.advance(LEASE_CALL_S)
                return self._over(API, name, call, _no_api)(*args, **options)

            return asked

        return Around(port, patient)

    def to_endpoint(self, port: object, endpoint: str) -> Around:
        """Return an endpoint's port at the end of the way there; readings are dated by the agent's clock."""

        def over(name: str, call: Call) -> Call:
            if name not in CALLS:
                return call
            if name == "sweep":
                call = self._swept_or(endpoint, call)
            return self._dated(self._over(endpoint, name, call, _no_endpoint))

        return Around(port, over)

    def _over(self, where: str, name: str, call: Call, refuse: Callable[[str, What], NoReturn]) -> Call:
        def sent(*args: object, **options: object) -> Any:
            wrong = self._wrong.get(where, What.LINK_BACK)
            if wrong is What.LINK_DEAF and name in EFFECTIVE:
                call(*args, **options)
            if wrong in BROKEN:
                refuse(where, wrong)
            return call(*args, **options)

        return sent

    def _swept_or(self, endpoint: str, sweep: Call) -> Call:
        return lambda: self._swept[endpoint] if self._wrong.get(endpoint) is What.LINK_STALE else sweep()

    def _dated(self, call: Call) -> Call:
        def dated(*args: object, **options: object) -> Any:
            answer, behind_s = call(*args, **options), self._clock.behind_s
            if not behind_s:
                return answer
            if isinstance(answer, Evidence):
                return replace(answer, observed_at_s=answer.observed_at_s - behind_s)
            if isinstance(answer, (list, tuple)):
                return [replace(one, observed_at_s=one.observed_at_s - behind_s) for one in answer]
            return answer

        return dated


def _no_api(_where: str, wrong: What) -> NoReturn:
    if wrong is What.LINK_DENIED:
        raise ClusterDenied("the API server refuses this agent's account: Unauthorized")
    raise ClusterUnreachable(f"the API server: {WORDS[wrong]}")


def _no_endpoint(where: str, wrong: What) -> NoReturn:
    if wrong is What.LINK_DENIED:
        raise HypervisorDenied(f"{where}: this agent's token was refused")
    raise HypervisorUnreachable(f"{where}: {WORDS[wrong]}")


BROKEN = frozenset({What.LINK_CUT, What.LINK_HANGS, What.LINK_DENIED, What.LINK_DEAF})
"""No answer arrives."""
WORDS = {
    What.LINK_CUT: "connection refused",
    What.LINK_HANGS: "no answer",
    What.LINK_DEAF: "the connection broke before the answer had come",
}
"""What an agent makes of it."""
