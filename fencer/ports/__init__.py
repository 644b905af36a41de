"""The seams between the rules and the world: what fencer needs from hypervisors, a cluster, time and people.

Adapters implement these against real things, `fencer.simulation` implements them against a world in memory,
and one suite in ``tests/contract`` runs against both. Every method is synchronous; callers use an `Asker`,
which holds each call to a deadline. A method raises only what it names.
"""

from fencer.ports.account import Account, Credential
from fencer.ports.cluster import (
    Attachments,
    Cleared,
    Cluster,
    ClusterInfo,
    Fact,
    Heartbeats,
    Lease,
    Nodes,
    Pause,
)
from fencer.ports.election import Election, LeaseStore
from fencer.ports.hypervisor import Deadline, EndpointInfo, HostPower, Hypervisor, StopSettings
from fencer.ports.pausing import Paused, Pauser
from fencer.ports.planned import Evictor, Surveyor
from fencer.ports.requests import Requests
from fencer.ports.runtime import Asker, Clock, Recorder, Reporter, Sight, StateStore, Viewer

__all__ = (
    "Account",
    "Asker",
    "Attachments",
    "Cleared",
    "Clock",
    "Cluster",
    "ClusterInfo",
    "Credential",
    "Deadline",
    "Election",
    "EndpointInfo",
    "Evictor",
    "Fact",
    "Heartbeats",
    "HostPower",
    "Hypervisor",
    "Lease",
    "LeaseStore",
    "Nodes",
    "Pause",
    "Paused",
    "Pauser",
    "Recorder",
    "Reporter",
    "Requests",
    "Sight",
    "StateStore",
    "StopSettings",
    "Surveyor",
    "Viewer",
)
