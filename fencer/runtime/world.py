"""Everything outside an agent: the ports that it works through."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fencer.core.model import Decision, Deed, Observation
from fencer.core.times import apart_s
from fencer.ports import (
    Asker,
    Clock,
    Cluster,
    Election,
    Evictor,
    HostPower,
    Hypervisor,
    LeaseStore,
    Recorder,
    Reporter,
    Requests,
    StateStore,
)

API = "kubernetes"
"""Name of the cluster's worker."""


class NoRecord:
    """`Recorder` that keeps nothing."""

    def judged(self, seen: Observation, decision: Decision) -> None:
        """See `fencer.ports.Recorder.judged`."""

    def intends(self, seen: Observation, action: Deed) -> None:
        """See `fencer.ports.Recorder.intends`."""


@dataclass(frozen=True, slots=True)
class World:
    """Everything outside: the ports that one agent works through.

    Attributes:
        cluster: The Kubernetes API.
        hypervisors: Endpoint's name → port.
        asker: Runs calls under deadlines.
        clock: Time.
        reporter: Tells people.
        recorder: Keeps what was known and meant.
        evictor: What a drain needs beyond the cluster; None: nothing is drained here.
        witnesses: Which power witness watches which host of which endpoint.
        one_host: Endpoints that are one host each: where they do not answer, their host is silent.
        leases: What agents share in the cluster; None: this one shares nothing.
        election: What this agent is to each hypervisor; None: no other agent is thought of.
        requests: What other controllers of the cluster ask of fencer; None: nobody is heard here.
        state: Keeps what was seen over restarts; None: it is lost with the process.
        utc: Reads this machine's clock, RFC 3339; None: the API server's alone counts.
    """

    cluster: Cluster
    hypervisors: Mapping[str, Hypervisor]
    asker: Asker
    clock: Clock
    reporter: Reporter
    recorder: Recorder = field(default_factory=NoRecord)
    evictor: Evictor | None = None
    witnesses: Mapping[tuple[str, str], HostPower] = field(default_factory=dict)
    one_host: frozenset[str] = frozenset()
    leases: LeaseStore | None = None
    election: Election | None = None
    requests: Requests | None = None
    state: StateStore | None = None
    utc: Callable[[], str] | None = None

    def apart_s(self, utc: str) -> float:
        """Return how far this machine's clock is ahead of the API server's (E26).

        Args:
            utc: The API server's clock, in an answer that has just come.
        """
        return apart_s(utc, "" if self.utc is None else self.utc())
