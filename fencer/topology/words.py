"""The words of a topology as types: hosts, where each node is, and all possible findings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fencer.ports.inventory import Inventory


@dataclass(frozen=True, slots=True)
class Host:
    """A machine with guests on it.

    Attributes:
        endpoint: The endpoint that tells of it, by its name in the configuration.
        name: Its name there; empty: the endpoint itself is the host.
        uuid: Its own UUID, where the endpoint tells it: several endpoints may lead to one host.
    """

    endpoint: str
    name: str = ""
    uuid: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What makes two of them the same host."""
        return ("", self.uuid) if self.uuid else (self.endpoint, self.name)

    def __str__(self) -> str:
        """``ENDPOINT/HOST``, as `--host` takes it: two endpoints may have hosts of one name."""
        return f"{self.endpoint}/{self.name}" if self.name else self.endpoint


class Lack(StrEnum):
    """Why it is not known on which host a node is."""

    NO_GUEST = "no-guest"
    """No guest is this node, or it is not certain which."""
    HOST_NOT_TOLD = "host-not-told"
    """Its endpoint tells of the guest, and not where it is."""
    NOT_READ = "not-read"
    """The endpoint, or the guest, could not be read now."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node is.

    Attributes:
        node: The node.
        control_plane: It has a control-plane role.
        host: The host of its guest; None: not known.
        lack: Why not; None: it is known.
        why: The same, in words.
    """

    node: str
    control_plane: bool = False
    host: Host | None = None
    lack: Lack | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Topology:
    """All that findings rest on.

    Attributes:
        places: Every node that could be read.
        seen: The cluster's objects.
        servers: Host names or addresses of all API servers that fencer asks; empty: not known.
    """

    places: tuple[Place, ...]
    seen: Inventory
    servers: tuple[str, ...] = ()


class Level(StrEnum):
    """How bad a finding is."""

    WARN = "warn"
    """The loss of one host, or of one guest, takes more along than fencer can make good."""
    NOTE = "note"
    """Something is not known, so that less can be said."""


class What(StrEnum):
    """What can be found."""

    ONE_HOST = "all-nodes-on-one-host"
    CONTROL_PLANE = "control-plane-on-one-host"
    """All control-plane nodes."""
    QUORUM = "quorum-on-one-host"
    """So many of them that etcd loses its quorum with this host."""
    API_SERVER = "api-server-on-one-host"
    """All API servers that fencer asks: it is blind without this host."""
    REPLICAS = "replicas-on-one-host"
    """All replicas of a workload."""
    VOLUME_ON_ONE_NODE = "volume-on-one-node"
    """Only one node can use the volume: a fence does not help its pod."""
    VOLUME_ON_ONE_HOST = "volume-on-one-host"
    """Only nodes on one host can use the volume."""
    NO_GUEST = "no-guest"
    HOST_NOT_TOLD = "host-not-told"

    @property
    def level(self) -> Level:
        """How bad it is."""
        return Level.NOTE if self is What.HOST_NOT_TOLD else Level.WARN


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found.

    Attributes:
        what: From the closed list.
        about: The host, or the kind of objects, that it is about.
        seen: What was seen: a clause that the names complete.
        why: Why that matters.
        way: What would change it.
        names: The nodes or workloads, in order.
    """

    what: What
    about: str
    seen: str
    why: str
    way: str
    names: tuple[str, ...]
