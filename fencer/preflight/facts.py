"""What `fencer check` knows before it judges: each answer, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from fencer.config.secret_files import Trouble
from fencer.config.settings import Config
from fencer.core.agents import Agents
from fencer.core.identity import subject_of
from fencer.core.model import Evidence, Observation
from fencer.core.requests import Asked
from fencer.core.rung import Subject
from fencer.errors import ClusterError, FencerError
from fencer.ports import ClusterInfo, Credential, EndpointInfo, StopSettings
from fencer.preflight.home import Home
from fencer.runtime.memory import Scene

Answer: TypeAlias = bool | FencerError | None
"""Yes, no, neither; or why nobody answered."""


@dataclass(frozen=True, slots=True)
class JournalFacts:
    """What there is of the journal.

    Attributes:
        size_bytes: Of its files; None: there is none yet.
        since: When its oldest row was written; None: it has none, or cannot be read.
        trouble: Why it cannot be written, or not be read; None: it can.
    """

    size_bytes: int | None = None
    since: datetime | None = None
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class StateFacts:
    """What there is of an agent's state.

    Attributes:
        size_bytes: Of its file; None: there is none yet.
        damage: Why an agent that starts cannot trust it, and fences nothing; empty: it can.
        remedy: The command that moves away what is damaged; empty: nothing is.
        trouble: Why it cannot be written, or not be read; empty: it can.
    """

    size_bytes: int | None = None
    damage: str = ""
    remedy: str = ""
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class ReceiverFacts:
    """What is wrong with a receiver of messages.

    Attributes:
        trouble: Why it cannot be told; empty: it may be.
        fix: What to type.
        in_clear: Why anybody on the way reads along; empty: nobody does, or it is not known.
    """

    trouble: str = ""
    fix: str = ""
    in_clear: str = ""


@dataclass(frozen=True, slots=True)
class LeaseFacts:
    """What there is of one of fencer's Leases.

    Attributes:
        name: Its name.
        endpoints: What the configuration calls its hypervisor; empty: it is the cluster's.
        holder: Who holds it, as it is written there; empty: nobody, or not known.
        agents: Which agents have written themselves there; None: it was not read.
        utc: The API server's clock when it was read.
        missing: There is none.
        lacking: The rights to it that we do not have.
        garbled: What is written there that agents share, and cannot be read; empty: all of it can.
        unknown: Why the rest is not known; None: it is.
    """

    name: str
    endpoints: tuple[str, ...] = ()
    holder: str = ""
    agents: Agents | None = None
    utc: str = ""
    missing: bool = False
    lacking: tuple[str, ...] = ()
    garbled: str = ""
    unknown: FencerError | None = None


@dataclass(frozen=True, slots=True)
class RemediationFacts:
    """What there is of other controllers' requests, in a cluster that knows their kind.

    Attributes:
        missing: The rights to answer them that we do not have.
        asked: What is asked; None: that may not be read.
    """

    missing: Sequence[str]
    asked: Asked | None = None


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What the API server says about itself and about our account.

    Attributes:
        info: Which cluster, and who we are there.
        missing: Rights that we do not have, and that fencing needs.
        missing_lesser: Those that fences go on without.
        missing_for_drains: Those that drains need.
        missing_for_attachments: Those that deleting attachments needs.
        credentials: What lets us in.
        wall: The time of day here when that was told.
        remediation: What there is of requests, or why that is not known; None: their kind is not known, or
            nobody is heard.
    """

    info: ClusterInfo
    missing: Sequence[str]
    missing_lesser: Sequence[str]
    missing_for_drains: Sequence[str] | FencerError
    missing_for_attachments: Sequence[str] | FencerError
    credentials: Sequence[Credential] | FencerError
    wall: datetime
    remediation: RemediationFacts | FencerError | None = None


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """One look at all nodes, and what their guests and hosts then answered.

    Attributes:
        scene: What the look saw from afar.
        wall: The time of day here when the API server told its own for it.
        observations: Of all nodes, by name.
        answering: Endpoints that are in order and listed their guests.
        call_took_s: How long a call to the API server took.
        confined: Whether the admission policy holds for our account; None: it was not tried.
        unwatched: Why nodes cannot be watched; None: they can, or it was not tried.
        readings: Live readings of guests, by node. If an endpoint did not answer, its other guests are not
            read.
        stop_settings: What is set for stops of guests, by node; None: nothing of that kind is kept there.
        hosts_off: What each power witness says of its host, by ``ENDPOINT/HOST``: off, on, or neither (None).
    """

    scene: Scene
    wall: datetime
    observations: Sequence[Observation]
    answering: frozenset[str]
    call_took_s: float = 0.0
    confined: Answer = None
    unwatched: FencerError | None = None
    readings: Mapping[str, Evidence | FencerError] = field(default_factory=dict)
    stop_settings: Mapping[str, StopSettings | FencerError | None] = field(default_factory=dict)
    hosts_off: Mapping[str, Answer] = field(default_factory=dict)

    @property
    def subjects(self) -> list[Subject]:
        """The nodes that are one guest each, by name."""
        return [subject for one in self.observations if (subject := subject_of(one)) is not None]

    @property
    def reachable(self) -> list[Subject]:
        """Those of them whose guest's endpoint is in order."""
        return [subject for subject in self.subjects if subject.guest.endpoint in self.answering]


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that is judged.

    Attributes:
        path: Of the configuration.
        config: The configuration.
        secrets: What is wrong with each file that holds credentials; empty: nothing.
        journal: What there is of the journal; None: none is wanted.
        receivers: What is wrong with receivers of messages, by name.
        agent_answers: An agent of this configuration answers on this machine; None: it cannot be asked.
        agent_older: It began before the configuration was written.
        cluster: What the API server told.
        endpoints: How each endpoint describes itself, by name.
        nodes: What was seen of the nodes; None: there is no way to the cluster.
        leases: What there is of fencer's Leases, the cluster's first; empty: there is no way to the cluster.
        web_trouble: Why nobody can listen now where page and metrics are to be; empty: somebody can.
        home: Where fencer itself runs.
        state: What there is of an agent's state; None: the configuration names no place for it.
    """

    path: Path
    config: Config
    secrets: Mapping[Path, Sequence[Trouble]]
    journal: JournalFacts | None
    receivers: Mapping[str, ReceiverFacts]
    agent_answers: bool | None
    agent_older: bool
    cluster: ClusterFacts | FencerError
    endpoints: Mapping[str, EndpointInfo | FencerError]
    nodes: NodeFacts | ClusterError | None
    leases: Sequence[LeaseFacts] = ()
    web_trouble: str = ""
    home: Home = Home("")  # noqa: RUF009 - frozen
    state: StateFacts | None = None

    @property
    def described(self) -> dict[str, EndpointInfo]:
        """The endpoints that described themselves, in the order of the configuration."""
        infos = {one.name: self.endpoints[one.name] for one in self.config.endpoints}
        return {name: info for name, info in infos.items() if isinstance(info, EndpointInfo)}
