"""Asks for everything that the configuration names, and goes on if something does not answer.

The only module here that does I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from fencer.config.secret_files import Trouble
from fencer.config.settings import Config, Endpoint
from fencer.core.agents import read_agents
from fencer.core.ledger import read_ledger
from fencer.core.model import Evidence, GuestRef, Unreadable
from fencer.core.policy import Remediation
from fencer.core.rung import Subject
from fencer.core.times import apart_s, earlier, write_utc
from fencer.errors import ClusterDenied, ClusterError, ClusterNotFound, FencerError, HypervisorUnreachable
from fencer.hosts.settings import FenceAgentSettings
from fencer.ports import (
    Account,
    Asker,
    Clock,
    Cluster,
    ClusterInfo,
    EndpointInfo,
    Evictor,
    HostPower,
    Hypervisor,
    LeaseStore,
    Reporter,
    Requests,
    StopSettings,
)
from fencer.preflight.agent import outdated, socket_of, unit_of
from fencer.preflight.cluster import WATCH
from fencer.preflight.facts import (
    Answer,
    ClusterFacts,
    Facts,
    JournalFacts,
    LeaseFacts,
    NodeFacts,
    ReceiverFacts,
    RemediationFacts,
    StateFacts,
)
from fencer.preflight.home import Home
from fencer.preflight.leases import by_lease
from fencer.preflight.rights import knows_policies
from fencer.runtime.election import name_of
from fencer.runtime.onlooker import Onlooker
from fencer.runtime.world import API, World

T = TypeVar("T")


class Builder(Protocol):
    """Builds the parts to ask. `fencer.cli.wire.Wiring` is one.

    Each method that builds raises `ConfigError` if that cannot be built.
    """

    def secrets(self, config: Config) -> tuple[Path, ...]:
        """Return the files that hold credentials and have to be there."""
        ...

    def inspect_secret(self, path: Path) -> Sequence[Trouble]:
        """Return what is wrong with a file that holds credentials."""
        ...

    def inspect_journal(self, file: Path) -> JournalFacts:
        """Return what there is of the journal."""
        ...

    def inspect_state(self, file: Path) -> StateFacts:
        """Return what there is of an agent's state."""
        ...

    def inspect_receivers(self, config: Config) -> Mapping[str, ReceiverFacts]:
        """Return what would keep receivers of messages from being told, by name."""
        ...

    def agent_answers(self, socket: Path) -> bool | None:
        """Return whether an agent listens at this socket; None: we may not ask."""
        ...

    def unable_to_listen(self, host: str, port: int) -> str:
        """Return why nobody can listen there now; empty: somebody can."""
        ...

    def home(self) -> Home:
        """Return where this process runs."""
        ...

    def clock(self) -> Clock:
        """Build the clock."""
        ...

    def wall(self) -> datetime:
        """Return the time of day."""
        ...

    def asker(self, clock: Clock, patience_s: float) -> Asker:
        """Build the part that holds calls to deadlines; one look waits this long for slow endpoints."""
        ...

    def cluster(self, config: Config) -> Cluster:
        """Build the way to the cluster."""
        ...

    def evictor(self, config: Config) -> Evictor:
        """Build the part that evicts pods."""
        ...

    def account(self, config: Config) -> Account:
        """Build the part that knows our own account."""
        ...

    def leases(self, config: Config) -> LeaseStore:
        """Build the way to fencer's Leases."""
        ...

    def requests(self, config: Config) -> Requests:
        """Build the way to what other controllers ask of fencer."""
        ...

    def hypervisor(self, endpoint: Endpoint, clock: Clock) -> Hypervisor:
        """Build the way to one endpoint."""
        ...

    def witness(self, written: FenceAgentSettings) -> HostPower:
        """Build the part that reads a host's power."""
        ...


def collect(path: Path, config: Config, builder: Builder, reporter: Reporter) -> Facts:
    """Ask for everything that the configuration names.

    Args:
        path: Of the configuration.
        config: It.
        builder: Builds the parts to ask.
        reporter: Is told what goes wrong while the nodes are looked at.
    """
    clock = builder.clock()
    asker = builder.asker(clock, config.policy.call_deadline_s)
    collector = _Collector(config, builder, clock, asker, reporter)
    try:
        return collector.collect(path)
    finally:
        for hypervisor in collector.hypervisors.values():
            hypervisor.close()


def look_at_secrets(builder: Builder, config: Config) -> dict[Path, Sequence[Trouble]]:
    """Look at every file with credentials, except missing ones that need not exist.

    Returns:
        What is wrong with each; empty: nothing.
    """
    needed = {path: builder.inspect_secret(path) for path in builder.secrets(config)}
    others = {path: builder.inspect_secret(path) for path in config.optional_secrets if path not in needed}
    there = {path: found for path, found in others.items() if not any(one.missing for one in found)}
    return {**needed, **there}


@dataclass(slots=True)
class _Collector:
    config: Config
    builder: Builder
    clock: Clock
    asker: Asker
    reporter: Reporter
    hypervisors: dict[str, Hypervisor] = field(default_factory=dict)

    def collect(self, path: Path) -> Facts:
        config, builder = self.config, self.builder
        secrets = look_at_secrets(builder, config)
        journal = None if config.journal is None else builder.inspect_journal(config.journal.file)
        port = _or_why(partial(builder.cluster, config))
        cluster = port if isinstance(port, FencerError) else _or_why(partial(self._cluster, port))
        endpoints, nodes = self._describe(), None
        leases: Sequence[LeaseFacts] = ()
        agent = self._agent_answers(path), self._agent_older(path)
        if not isinstance(port, FencerError) and not isinstance(cluster, FencerError):
            nodes = self._nodes(port, cluster, endpoints)
            leases = self._leases(endpoints)
        receivers = builder.inspect_receivers(config)
        web = config.web
        unheard = "" if web is None else builder.unable_to_listen(web.host, web.port)
        known = Facts(
            path, config, secrets, journal, receivers, *agent, cluster, endpoints, nodes, leases, unheard
        )
        state = None if config.state_file is None else builder.inspect_state(config.state_file)
        return replace(known, home=builder.home(), state=state)

    def _ask(self, whom: str, call: Callable[[], T]) -> T:
        return self.asker.ask(whom, call, self.config.policy.call_deadline_s)

    def _agent_answers(self, path: Path) -> bool | None:
        unit = unit_of(path)
        return None if unit is None else self.builder.agent_answers(socket_of(unit))

    def _agent_older(self, path: Path) -> bool:
        unit = unit_of(path)
        return unit is not None and outdated(path, socket_of(unit))

    def _cluster(self, port: Cluster) -> ClusterFacts:
        """Ask the API server who it is, and what we may do there.

        Raises:
            FencerError: it does not tell.
        """
        config, builder = self.config, self.builder
        return ClusterFacts(
            info=self._ask(API, port.identity),
            # More than one question.
            missing=self.asker.ask(API, port.missing_rights, 3 * config.policy.call_deadline_s),
            missing_lesser=self._ask(API, port.missing_lesser_rights),
            missing_for_drains=_or_why(lambda: self._ask(API, builder.evictor(config).missing_drain_rights)),
            missing_for_attachments=_or_why(
                lambda: self._ask(API, builder.account(config).missing_attachment_rights)
            ),
            credentials=_or_why(lambda: builder.account(config).credentials()),
            wall=builder.wall(),
            remediation=_or_why(self._remediation),
        )

    def _remediation(self) -> RemediationFacts | None:
        """Say what other controllers ask, and whether we may answer; None: they cannot ask.

        Raises:
            FencerError: that is not known.
        """
        config = self.config
        if config.policy.remediation is Remediation.IGNORE:
            return None
        requests = self.builder.requests(config)
        missing = self._ask(API, requests.missing_rights)
        if missing:
            return RemediationFacts(missing)
        asked = self._ask(API, requests.asked)
        return None if asked is None else RemediationFacts((), asked)

    def _describe(self) -> dict[str, EndpointInfo | FencerError]:
        """Ask all endpoints at once who they are."""
        unbuilt: dict[str, FencerError] = {}
        for endpoint in self.config.endpoints:
            try:
                self.hypervisors[endpoint.name] = self.builder.hypervisor(endpoint, self.clock)
            except FencerError as error:
                unbuilt[endpoint.name] = error
        calls = {name: port.describe for name, port in self.hypervisors.items()}
        return {**self.asker.ask_all(calls, self.config.policy.call_deadline_s), **unbuilt}

    def _leases(self, endpoints: Mapping[str, EndpointInfo | FencerError]) -> list[LeaseFacts]:
        """Look at the Lease of the cluster, and at those of all hypervisors that said who they are."""
        infos = {name: info for name, info in endpoints.items() if isinstance(info, EndpointInfo)}
        names = {name: name_of(name, info) for name, info in infos.items() if info.identity is not None}
        return [self._lease(LeaseFacts(name, whose)) for name, whose in by_lease(names).items()]

    def _lease(self, lease: LeaseFacts) -> LeaseFacts:
        """Say what there is of a Lease, and what we may do with it."""
        try:
            may_not = self._ask(
                API, partial(self.builder.account(self.config).missing_lease_rights, lease.name)
            )
            lease = replace(lease, lacking=tuple(may_not))
            read = partial(self.builder.leases(self.config).read_lease, lease.name)
            record = self._ask(API, read)
            shared = None if lease.endpoints else read_ledger(record)
            return replace(
                lease,
                holder=record.holder,
                agents=read_agents(record.notes),
                utc=earlier(record.utc, apart_s(record.utc, write_utc(self.builder.wall()))),
                garbled=shared.text if isinstance(shared, Unreadable) else "",
            )
        except ClusterNotFound:
            return replace(lease, missing=True)
        except ClusterDenied as error:
            return lease if lease.lacking else replace(lease, unknown=error)
        except FencerError as error:
            return replace(lease, unknown=error)

    def _nodes(
        self, port: Cluster, told: ClusterFacts, endpoints: Mapping[str, EndpointInfo | FencerError]
    ) -> NodeFacts | ClusterError:
        """Look at all nodes once, and ask what only they can answer."""
        ports = (port, self.hypervisors, self.asker, self.clock, self.reporter)
        world = World(*ports, utc=lambda: write_utc(self.builder.wall()))
        try:
            onlooker = Onlooker(world, self.config.policy, self.config.rules)
            seen, took_s = onlooker.look(), onlooker.call_took_s
        except ClusterError as error:
            return error
        sound = {name for name, it in endpoints.items() if isinstance(it, EndpointInfo) and not it.problems}
        answering = frozenset(sound - seen.scene.errors.keys())  # others count as silent
        observations = [seen.judged[name].observation for name in sorted(seen.judged)]
        since = timedelta(seconds=self.clock.now_s() - seen.scene.now_s)
        facts = NodeFacts(seen.scene, self.builder.wall() - since, observations, answering, took_s)
        return replace(
            facts,
            confined=self._confined(told.info, min(seen.scene.nodes, default=None)),
            unwatched=self._unwatched() if seen.scene.nodes and WATCH not in told.missing_lesser else None,
            readings=self._read(facts.reachable),
            stop_settings={one.node.name: self._stop_settings(one.guest) for one in facts.reachable},
            hosts_off=self._ask_witnesses() if facts.subjects else {},
        )

    def _confined(self, info: ClusterInfo, node: str | None) -> Answer:
        """Try on a node, as a dry run that writes nothing, what the admission policy refuses."""
        if node is None or not knows_policies(info.version):
            return None
        return _or_why(lambda: self._ask(API, partial(self.builder.account(self.config).confined, node)))

    def _unwatched(self) -> FencerError | None:
        return _or_why(lambda: self._ask(API, self.builder.account(self.config).try_watch))

    def _read(self, subjects: Sequence[Subject]) -> dict[str, Evidence | FencerError]:
        """Read guests live; stop at an endpoint that does not answer: each other guest would take as long."""
        readings: dict[str, Evidence | FencerError] = {}
        silent: set[str] = set()
        for subject in subjects:
            whom = subject.guest.endpoint
            if whom in silent:
                continue
            read = partial(self.hypervisors[whom].read, subject.guest)
            readings[subject.node.name] = answer = _or_why(partial(self._ask, whom, read))
            if isinstance(answer, HypervisorUnreachable):
                silent.add(whom)
        return readings

    def _stop_settings(self, guest: GuestRef) -> StopSettings | FencerError | None:
        read = partial(self.hypervisors[guest.endpoint].stop_settings, guest)
        return _or_why(partial(self._ask, guest.endpoint, read))

    def _ask_witnesses(self) -> dict[str, Answer]:
        """Ask every power witness, by endpoint and host, each on a worker of its own."""
        calls = {host: partial(self._is_off, it) for host, it in self.config.power_witnesses.items()}
        return self.asker.ask_all(calls, self.config.policy.call_deadline_s, patient=True)

    def _is_off(self, witness: FenceAgentSettings) -> bool | None:
        return self.builder.witness(witness).is_off()


def _or_why(ask: Callable[[], T]) -> T | FencerError:
    """Return the answer, or why there is none."""
    try:
        return ask()
    except FencerError as error:
        return error
