"""What the rest of fencer gets from the configuration: plain frozen values, checked and complete.

No YAML and no schema here, so that code that needs only the settings imports neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from fencer.cluster.settings import ClusterSettings
from fencer.config import transport, way_keys
from fencer.core.identity import Admission, Rules
from fencer.core.policy import Policy
from fencer.hosts.settings import FenceAgentSettings
from fencer.hypervisors.libvirt.settings import LibvirtSettings
from fencer.hypervisors.proxmox.settings import ProxmoxSettings
from fencer.hypervisors.virtualbox.settings import VirtualBoxSettings
from fencer.notify.settings import NotifySettings
from fencer.state.settings import key_file_of
from fencer.web.settings import WebSettings


@dataclass(frozen=True, slots=True)
class LibvirtEndpoint(LibvirtSettings):
    """A libvirt connection.

    Attributes:
        power: Which of its guests power actions may touch.
        host_power: Who reads the power of its host.
    """

    power: Admission = field(default_factory=Admission)
    host_power: tuple[FenceAgentSettings, ...] = ()

    @property
    def one_host(self) -> bool:
        """Whether the endpoint is one host: if it is silent, the host is."""
        return True

    @property
    def where(self) -> str:
        """The way there, for people."""
        return self.uri

    @property
    def unauthenticated(self) -> str | None:
        """Why it cannot be known who answers; None: it is known."""
        return transport.of_uri(self.uri)

    @property
    def keys(self) -> tuple[Path, ...]:
        """Files with credentials that the way there names, if they are there."""
        return way_keys.of_uri(self.uri)


@dataclass(frozen=True, slots=True)
class VirtualBoxEndpoint(VirtualBoxSettings):
    """The VirtualBox machines of one user on one host.

    Attributes:
        power: Which of its guests power actions may touch.
    """

    power: Admission = field(default_factory=Admission)
    host_power: tuple[FenceAgentSettings, ...] = ()
    """None: VirtualBox does not name hosts."""

    @property
    def one_host(self) -> bool:
        """Whether the endpoint is one host: if it is silent, the host is."""
        return True

    @property
    def where(self) -> str:
        """The way there, for people."""
        return " ".join(self.command)

    @property
    def unauthenticated(self) -> str | None:
        """Why it cannot be known who answers; None: it is known."""
        return transport.of_command(self.command)

    @property
    def keys(self) -> tuple[Path, ...]:
        """Files with credentials that the way there names, if they are there."""
        return way_keys.of_command(self.command)

    @property
    def unseen(self) -> str | None:
        """What may change that without being examined; None: only ssh's usual configuration."""
        return transport.unseen(self.command)


@dataclass(frozen=True, slots=True)
class ProxmoxEndpoint(ProxmoxSettings):
    """A Proxmox VE cluster, or a standalone host.

    Attributes:
        host_power: Who reads the power of its hosts.
    """

    host_power: tuple[FenceAgentSettings, ...] = ()

    @property
    def one_host(self) -> bool:
        """Whether the endpoint is one host: if it is silent, the host is."""
        return self.cluster is None

    @property
    def where(self) -> str:
        """The way there, for people."""
        return ", ".join(self.servers)

    @property
    def unauthenticated(self) -> None:
        """TLS is always verified; see `ProxmoxSettings`."""

    @property
    def keys(self) -> tuple[Path, ...]:
        """None but `token_file`."""
        return ()


@dataclass(frozen=True, slots=True)
class AdapterEndpoint:
    """A hypervisor whose adapter another package brings.

    Attributes:
        name: What fencer calls the endpoint; unique.
        type: What that package calls its adapter.
        settings: What the adapter is told; it checks them itself. Nothing secret is among them.
        secret_files: Files with credentials, by the adapter's names for them.
        power: Which of its guests power actions may touch.
        host_power: Who reads the power of its hosts.
        one_host: The endpoint is one host: silent together with it.
    """

    name: str
    type: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    secret_files: Mapping[str, Path] = field(default_factory=dict)
    power: Admission = field(default_factory=Admission)
    host_power: tuple[FenceAgentSettings, ...] = ()
    one_host: bool = False

    @property
    def where(self) -> str:
        """The way there, for people."""
        return f"{self.type}: " + ", ".join(f"{name}={value}" for name, value in self.settings.items())

    @property
    def unauthenticated(self) -> None:
        """Not known here: only the adapter knows its way."""

    @property
    def keys(self) -> tuple[Path, ...]:
        """None but `secret_files`."""
        return ()


Endpoint: TypeAlias = LibvirtEndpoint | ProxmoxEndpoint | VirtualBoxEndpoint | AdapterEndpoint
"""Any endpoint."""


class PreStop(StrEnum):
    """What follows from a hookscript's pre-stop, before a guest is stopped."""

    NUDGE = "nudge"
    DRAIN = "drain"


@dataclass(frozen=True, slots=True)
class HookSettings:
    """What hookscripts of this host may ask for.

    Attributes:
        pre_stop: Whether a node is drained before its guest is stopped.
        budget_s: How long at most.
    """

    pre_stop: PreStop = PreStop.NUDGE
    budget_s: float = 60.0


MB = 10**6


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of the journal is kept.

    Attributes:
        days: So old a row may become.
        bytes: So large the file may become, by and large.
    """

    days: float = 400.0
    bytes: int = 100 * MB


DEFAULT_BOUNDS = Bounds()


@dataclass(frozen=True, slots=True)
class JournalSettings:
    """Where the journal is.

    Attributes:
        file: Its file.
        bounds: How much of it is kept.
    """

    file: Path
    bounds: Bounds = DEFAULT_BOUNDS


OURS = (Path("/etc/fencer"), Path("/var/lib/fencer"))


def usual_journal(configuration: Path) -> Path:
    """Return where the journal is kept, if the configuration does not say: as the units have it.

    Args:
        configuration: Where that is.
    """
    return _usual(configuration, "journal.db")


def usual_told(configuration: Path) -> Path:
    """Return where it is kept what people were told, if the configuration does not say: beside the journal.

    Args:
        configuration: Where that is.
    """
    return _usual(configuration, "notified.json")


def usual_state(configuration: Path) -> Path:
    """Return where an agent keeps its state, if the configuration does not say: beside the journal.

    Args:
        configuration: Where that is.
    """
    return _usual(configuration, "state.jsonl")


def _usual(configuration: Path, name: str) -> Path:
    ours, state = OURS
    if configuration.absolute().parent != ours:
        return configuration.absolute().with_suffix(f".{name}")
    own = state if configuration.stem == "config" else state / configuration.stem
    return own / name


def usual_source(configuration: Path, host: str) -> str:
    """Return how fencer calls itself to people, if the configuration does not say: by its host.

    Of several instances on one host, which the units name by their file, each is ``NAME@HOST``.

    Args:
        configuration: Where that is.
        host: This machine's name.
    """
    file = configuration.absolute()
    return host if file.parent != OURS[0] or file.stem == "config" else f"{file.stem}@{host}"


_ANYBODY = "the server need not be verified by the kubeconfig"


@dataclass(frozen=True, slots=True)
class Config:
    """The whole configuration.

    Attributes:
        policy: How careful to be, with the mode.
        kubernetes: How to reach the cluster.
        endpoints: The hypervisors, one at least, in the order written.
        nodes: For nodes whose guest the file names: (endpoint, the guest's UUID, or its name or id there).
            The endpoint exists; a UUID is in lower case; at a Proxmox endpoint there are no names.
        hook: What hookscripts may ask for.
        journal: Where the journal is; None: none is kept.
        state_file: Where an agent keeps its state; None: nowhere, as no configuration says.
        notify: Who is told without asking.
        web: Where metrics, health and the status page are; None: nowhere.
    """

    policy: Policy
    kubernetes: ClusterSettings
    endpoints: tuple[Endpoint, ...]
    nodes: Mapping[str, tuple[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    hook: HookSettings = field(default_factory=HookSettings)
    journal: JournalSettings | None = None
    state_file: Path | None = None
    notify: NotifySettings = field(default_factory=NotifySettings)
    web: WebSettings | None = None

    @property
    def secrets(self) -> tuple[Path, ...]:
        """Files with credentials, only for fencer; a kubeconfig may name more of them."""
        tokens = [one.token_file for one in self.endpoints if isinstance(one, ProxmoxEndpoint)]
        others = [one.secret_files.values() for one in self.endpoints if isinstance(one, AdapterEndpoint)]
        witnesses = self.power_witnesses.values()
        passwords = [one.password_file for one in witnesses if one.password_file is not None]
        named = (*tokens, *(path for paths in others for path in paths), *passwords)
        return (self.kubernetes.kubeconfig, *dict.fromkeys((*named, *self.notify.secrets)))

    @property
    def keys(self) -> tuple[Path, ...]:
        """Further files with credentials that ways to hypervisors name; none of them has to exist."""
        return tuple(dict.fromkeys(path for one in self.endpoints for path in one.keys))

    @property
    def optional_secrets(self) -> tuple[Path, ...]:
        """All files with credentials that do not have to exist: `keys`, and the one that signs the state."""
        return self.keys if self.state_file is None else (*self.keys, key_file_of(self.state_file))

    @property
    def unauthenticated(self) -> dict[str, str]:
        """Ways whose other side cannot be known, with why: ``kubernetes``, or an endpoint's name."""
        found = {"kubernetes": _ANYBODY} if self.kubernetes.unauthenticated else {}
        return {
            **found,
            **{one.name: why for one in self.endpoints if (why := one.unauthenticated) is not None},
        }

    @property
    def in_clear(self) -> dict[str, str]:
        """Receivers of messages on whose way anybody in between reads along, with why, by name.

        No fence rests on what they answer, so these ways are not among `unauthenticated`.
        """
        found = ((one.name, transport.of_url(url)) for one in self.notify.receivers for url in one.urls)
        return {name: why for name, why in found if why is not None}

    @property
    def power_witnesses(self) -> dict[str, FenceAgentSettings]:
        """Who reads the power of a host, by ``ENDPOINT/HOST``."""
        return {f"{one.name}/{witness.host}": witness for one in self.endpoints for witness in one.host_power}

    @property
    def rules(self) -> Rules:
        """What the configuration says about identity, for core."""
        by_name = frozenset(one.name for one in self.endpoints if not isinstance(one, ProxmoxEndpoint))  # W1
        return Rules(self.nodes, {one.name: one.power for one in self.endpoints}, by_name)
