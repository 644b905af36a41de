"""The configuration file's schema: every key with its meaning, unit and an example.

Defaults of the policy are those of `fencer.core.policy.Policy`, nowhere else. To add a type of hypervisor,
write its section with `type` and `endpoint()` below and name it in `OwnSection` and
`fencer.config.keys.OWN_TYPES`: messages, `show` and the JSON Schema follow by themselves. Adapters of others
share one section, `AdapterSection`.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Discriminator, Field, Tag

from fencer.cluster.settings import ClusterSettings
from fencer.config.adapter_section import AdapterSection
from fencer.config.document import Place
from fencer.config.host_power_section import HostPowerSection
from fencer.config.keys import OWN_TYPES, Section, choice, key, seconds, sections_in
from fencer.config.maintenance_section import MaintenanceSection
from fencer.config.notify_section import NotifySection
from fencer.config.policy_section import PolicySection
from fencer.config.power_section import PowerSection, ProxmoxPowerSection
from fencer.config.settings import (
    DEFAULT_BOUNDS,
    MB,
    HookSettings,
    LibvirtEndpoint,
    PreStop,
    ProxmoxEndpoint,
    VirtualBoxEndpoint,
)
from fencer.config.texts import (
    AbsolutePath,
    EndpointName,
    Guest,
    LibvirtUri,
    NodeName,
    ProxmoxServer,
    SecretFile,
    Server,
    TokenId,
    Word,
)
from fencer.config.web_section import WebSection
from fencer.core.policy import Mode
from fencer.hosts.settings import FenceAgentSettings
from fencer.hypervisors.adapters import installed

HOST_POWER = {"host": "pve1", "agent": "fence_ipmilan", "options": {"ip": "10.0.0.5"}, "never_sleeps": True}


def _witnesses(sections: list[HostPowerSection] | None) -> tuple[FenceAgentSettings, ...]:
    return tuple(section.witness() for section in sections or ())


NO_DRAIN = HookSettings()


class KubernetesSection(Section):
    """How to reach the cluster."""

    kubeconfig: Annotated[
        SecretFile,
        key(
            "File with the API server's address and fencer's own credentials. For fencer only: mode 0600.",
            example="/etc/fencer/kubeconfig",
        ),
    ]
    context: Annotated[
        str | None, key("Which context of the kubeconfig. Absent: its current one.", example="fencer@lab")
    ] = None
    servers: Annotated[
        list[Server] | None,
        key(
            "Further API servers of the same cluster, under the same CA, tried in turn: so that the death "
            "of the guest behind the kubeconfig's server does not blind fencer.",
            example=["https://10.0.0.11:6443", "https://10.0.0.12:6443"],
        ),
    ] = None

    unauthenticated: Annotated[
        bool,
        key(
            "Accept a kubeconfig with insecure-skip-tls-verify or http://, with which anybody in between "
            "may answer as the API server, and gets the token. `fencer check` fails then. For tests.",
            example=True,
        ),
    ] = False

    def settings(self) -> ClusterSettings:
        """Return the section as settings for the rest of fencer."""
        return ClusterSettings(
            Path(self.kubeconfig),
            self.context,
            tuple(self.servers or ()),
            unauthenticated=self.unauthenticated,
        )


class LibvirtSection(Section):
    """A libvirt host, local or remote."""

    name: Annotated[EndpointName, key("What fencer calls it in all messages; unique.", example="lab")]
    type: Annotated[Literal["libvirt"], key("The kind of hypervisor.", example="libvirt")]
    uri: Annotated[
        LibvirtUri,
        key(
            "libvirt's URI. For remote hosts over ssh, fencer's user must get in with a key and no question.",
            example="qemu+ssh://fencer@lab1/system",
        ),
    ]
    unauthenticated: Annotated[
        bool,
        key(
            "Accept a URI on which anybody in between may answer as the host: +tcp, +ext, no_verify, "
            "known_hosts_verify=ignore or auto, a command that is not ssh. `fencer check` fails then. "
            "For tests.",
            example=True,
        ),
    ] = False
    power: Annotated[
        PowerSection | None,
        key("Which guests fencer may power off or on. Absent: none.", example={"mapped": True}),
    ] = None
    host_power: Annotated[
        list[HostPowerSection] | None,
        key(
            "Who reads the power of this host when libvirt does not answer. Absent: nobody.",
            example=[HOST_POWER],
        ),
    ] = None

    def endpoint(self) -> LibvirtEndpoint:
        """Return the section as settings for the rest of fencer."""
        admission = (self.power or PowerSection()).admission()
        return LibvirtEndpoint(self.name, self.uri, power=admission, host_power=_witnesses(self.host_power))


class VirtualBoxSection(Section):
    """The VirtualBox machines of one user on one host."""

    name: Annotated[EndpointName, key("What fencer calls it in all messages; unique.", example="box")]
    type: Annotated[Literal["virtualbox"], key("The kind of hypervisor.", example="virtualbox")]
    command: Annotated[
        list[Word],
        Field(min_length=1),
        key(
            "How to run VBoxManage as the user who made the machines: the program and its first words, no "
            "shell. Over ssh, fencer's user must get in with a key and no question.",
            example=["ssh", "vagrant@box", "/usr/lib/virtualbox/VBoxManage"],
        ),
    ] = ["VBoxManage"]  # noqa: RUF012 - pydantic copies defaults
    unauthenticated: Annotated[
        bool,
        key(
            "Accept a command on which anybody in between may answer as the host: ssh without strict checks "
            "of host keys. `fencer check` fails then. For tests.",
            example=True,
        ),
    ] = False
    power: Annotated[
        PowerSection | None,
        key("Which guests fencer may power off or on. Absent: none.", example={"mapped": True}),
    ] = None

    def endpoint(self) -> VirtualBoxEndpoint:
        """Return the section as settings for the rest of fencer."""
        admission = (self.power or PowerSection()).admission()
        return VirtualBoxEndpoint(self.name, tuple(self.command), power=admission)


class ProxmoxSection(Section):
    """A Proxmox VE cluster, or a standalone host."""

    name: Annotated[EndpointName, key("What fencer calls it in all messages; unique.", example="home")]
    type: Annotated[Literal["proxmox"], key("The kind of hypervisor.", example="proxmox")]
    servers: Annotated[
        list[ProxmoxServer],
        Field(min_length=1),
        key(
            "API hosts of the cluster, tried in turn: so that the death of one does not blind fencer.",
            example=["https://192.168.1.11:8006", "https://192.168.1.12:8006"],
        ),
    ]
    cluster: Annotated[
        Word,
        key(
            "The cluster's name, as `pvecm status` prints it, or standalone. Each look compares it with the "
            "answer, because a broken cluster file system makes a member look standalone.",
            example="home",
        ),
    ]
    quorum_device: Annotated[
        bool,
        key(
            "The cluster has a quorum device (`pvecm status` shows Qdevice; most versions do not tell it "
            "through the API). Without one, half of the hosts prove nothing about the other half.",
            example=True,
        ),
    ] = False
    token_id: Annotated[TokenId, key("The API token, USER@REALM!ID.", example="fencer@pve!agent")]
    token_file: Annotated[
        SecretFile,
        key(
            "File with the token's secret and nothing else. For fencer only: mode 0600.",
            example="/etc/fencer/proxmox-token",
        ),
    ]
    ca_file: Annotated[
        AbsolutePath | None,
        key(
            "CA that signed the servers' certificates, or several: a copy of a host's "
            "/etc/pve/pve-root-ca.pem. Where hosts show a certificate of their own (pveproxy-ssl.pem: ACME, "
            "or uploaded), the CA of that. Absent: the usual public ones, or fingerprints.",
            example="/etc/fencer/pve-root-ca.pem",
        ),
    ] = None
    fingerprints: Annotated[
        list[Word] | None,
        key(
            "Where there is no CA: the SHA-256 of each server's certificate, in the order of servers. "
            "Proxmox renews them within two years, and each renewal breaks this; a ca_file outlives it.",
            example=[":".join(["87"] * 32), ":".join(["9D"] * 32)],
        ),
    ] = None
    power: Annotated[
        ProxmoxPowerSection | None,
        key("Which guests fencer may power off or on. Absent: none.", example={"tag": "fencer"}),
    ] = None
    host_power: Annotated[
        list[HostPowerSection] | None,
        key(
            "Who reads the power of its hosts when they are silent, one witness per host. Absent: nobody.",
            example=[HOST_POWER],
        ),
    ] = None

    def endpoint(self) -> ProxmoxEndpoint:
        """Return the section as settings for the rest of fencer."""
        return ProxmoxEndpoint(
            name=self.name,
            servers=tuple(self.servers),
            cluster=None if self.cluster == "standalone" else self.cluster,
            token_id=self.token_id,
            token_file=Path(self.token_file),
            ca_file=Path(self.ca_file) if self.ca_file else None,
            fingerprints=tuple(self.fingerprints or ()),
            quorum_device=self.quorum_device,
            power=(self.power or ProxmoxPowerSection()).admission(),
            host_power=_witnesses(self.host_power),
        )


OwnSection: TypeAlias = Annotated[
    LibvirtSection | ProxmoxSection | VirtualBoxSection, Field(discriminator="type")
]
OWN, OTHERS = "(fencer's own)", "(of others)"
"""Tags that nobody can write as a key."""


def whose(written: object) -> str:
    """Say who brings the adapter for a hypervisor in the file; if nobody does, fencer, which objects.

    Args:
        written: The mapping of it.
    """
    kind = written.get("type") if isinstance(written, dict) else getattr(written, "type", None)
    others = isinstance(kind, str) and kind not in OWN_TYPES and kind in installed()
    return OTHERS if others else OWN


HypervisorSection: TypeAlias = Annotated[
    Annotated[OwnSection, Tag(OWN)] | Annotated[AdapterSection, Tag(OTHERS)], Discriminator(whose)
]


class HookSection(Section):
    """What a Proxmox hookscript on this host may ask for."""

    pre_stop: Annotated[
        PreStop,
        choice(
            "What is done before Proxmox stops a guest. nudge: fencer only looks. drain: its node is "
            "drained while the hookscript waits (`drain_s` in /etc/fencer/hook.conf), also before `qm stop`, "
            "stop-mode backups, rollbacks and reboots, and with the guest's configuration locked.",
            example="drain",
        ),
    ] = NO_DRAIN.pre_stop
    budget_s: Annotated[
        float,
        Field(gt=0, le=300),
        seconds("How long such a drain may take; 300 at most.", example=120),
    ] = NO_DRAIN.budget_s


class JournalSection(Section):
    """What fencer keeps of what it saw and did, for `fencer history` and `fencer report`."""

    enabled: Annotated[bool, key("Whether a journal is kept at all.", example=False)] = True
    file: Annotated[
        AbsolutePath | None,
        key(
            "Its file, on a local disk. Absent: below /var/lib/fencer for a configuration in /etc/fencer, "
            "and beside any other.",
            example="/srv/fencer/journal.db",
        ),
    ] = None
    keep_days: Annotated[
        float, Field(gt=0, le=36500), key("How old its rows may become, in days.", example=90, unit="days")
    ] = DEFAULT_BOUNDS.days
    max_mb: Annotated[
        float,
        Field(ge=1, le=1_000_000),
        key(
            "How large the file may become, in MB, by and large: the oldest rows go first.",
            example=500,
            unit="MB",
        ),
    ] = DEFAULT_BOUNDS.bytes / MB


class File(Section):
    """fencer's configuration."""

    mode: Annotated[
        Mode,
        choice(
            "What `fencer watch` may do by itself. observe: rehearse, that is, say what would be done, and "
            "write nothing. armed: fence. Required: there is no default.",
            example="observe",
        ),
    ]
    kubernetes: Annotated[
        KubernetesSection,
        key("How to reach the cluster.", example={"kubeconfig": "/etc/fencer/kubeconfig"}),
    ]
    hypervisors: Annotated[
        list[HypervisorSection],
        Field(min_length=1),
        key(
            "The hypervisors that run the cluster's nodes.",
            example=[{"name": "lab", "type": "libvirt", "uri": "qemu:///system"}],
        ),
    ]
    nodes: Annotated[
        dict[NodeName, Guest] | None,
        key(
            "Node: HYPERVISOR/GUEST, for nodes whose UUID does not tell which guest they are. The guest by "
            "its UUID, or its name if that is no number; on Proxmox by its number, never its name.",
            example={"k8s-1": "lab/k8s-1"},
        ),
    ] = None
    policy: Annotated[
        PolicySection | None,
        key("How careful to be.", example={"lease_silent_s": 20, "require_not_ready": False}),
    ] = None
    maintenance: Annotated[
        list[MaintenanceSection] | None,
        key(
            "Maintenance windows: while one is open, `fencer watch` begins nothing by itself. What a person "
            "types goes on.",
            example=[{"days": ["sun"], "from": "02:00", "to": "04:00", "zone": "Europe/Berlin"}],
        ),
    ] = None
    hook: Annotated[
        HookSection | None,
        key("What hookscripts on this host may ask for.", example={"pre_stop": "drain"}),
    ] = None
    journal: Annotated[
        JournalSection | None,
        key("What is kept of what fencer saw and did.", example={"keep_days": 90}),
    ] = None
    state_file: Annotated[
        AbsolutePath | None,
        key(
            "Where `fencer watch` keeps what it has seen and not yet written on Nodes, over a restart; on a "
            "local disk, for one agent alone. Absent: beside the journal's usual place.",
            example="/srv/fencer/state.jsonl",
        ),
    ] = None
    notify: Annotated[
        NotifySection | None,
        key("Who is told without asking.", example={"receivers": [{"name": "mail", "type": "mail"}]}),
    ] = None
    web: Annotated[
        WebSection | None,
        key("Where metrics, health and a status page are served.", example={"listen": "127.0.0.1:9722"}),
    ] = None


def sections_at(place: Place, type_at: Callable[[Place], object] = lambda _: None) -> list[type[Section]]:
    """Return the sections that may be at a place; empty: none may.

    Args:
        place: Of the document.
        type_at: The `type` that is written at a place on the way, where one is: sections of another type, and
            what may stand in them, are left out.
    """
    sections: list[type[Section]] = [File]
    for depth, part in enumerate(place, 1):
        if isinstance(part, str):
            fields = (section.model_fields[part] for section in sections if part in section.model_fields)
            found = [section for known in fields for section in sections_in(known.annotation)]
            sections = list(dict.fromkeys(found))
        written = type_at(place[:depth])
        known = {type_of(section) for section in sections}
        kind = OTHERS if isinstance(written, str) and written not in known else written
        sections = [section for section in sections if type_of(section) == kind] or sections
    return sections


def type_of(section: type[Section]) -> str:
    """Return the `type` that a section is for, or `OTHERS`; empty: there is only one kind of it."""
    known = section.model_fields.get("type")
    if known is None:
        return ""
    own = get_args(known.annotation)
    return str(own[0]) if own else OTHERS


def json_schema() -> str:
    """Return the JSON Schema of the file, for editors."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **File.model_json_schema()}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
