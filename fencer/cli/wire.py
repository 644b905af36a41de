"""From the configuration to working parts. Everything heavy is imported only when it is built.

A command gets a `Wiring` as click's ``obj``; tests give one that builds a simulated world.
"""

from __future__ import annotations

import getpass
import logging
import os
import secrets
import shlex
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from fencer.cli import living
from fencer.cli.asking import asking
from fencer.cli.local import Local
from fencer.cli.options import DEFAULT_CONFIG
from fencer.cli.render import complain
from fencer.cluster.settings import ClusterSettings
from fencer.config import secret_files
from fencer.config.settings import (
    AdapterEndpoint,
    Config,
    Endpoint,
    JournalSettings,
    LibvirtEndpoint,
    ProxmoxEndpoint,
    VirtualBoxEndpoint,
)
from fencer.core.done import Done
from fencer.core.identity import Rules
from fencer.core.model import Decision, Deed, NodeView
from fencer.core.policy import Mode, Policy, Remediation
from fencer.core.text import printable
from fencer.core.times import write_utc
from fencer.errors import ClusterNotFound, ClusterUnreachable, ConfigError, HypervisorProtocol
from fencer.hosts.settings import FenceAgentSettings
from fencer.notify.receiver import Receiver
from fencer.notify.settings import ReceiverSettings
from fencer.ports import (
    Account,
    Asker,
    Clock,
    Cluster,
    Election,
    Evictor,
    HostPower,
    Hypervisor,
    LeaseStore,
    Pauser,
    Recorder,
    Reporter,
    Requests,
    StateStore,
    Surveyor,
)
from fencer.preflight.facts import JournalFacts, ReceiverFacts, StateFacts
from fencer.preflight.home import Home, read_home
from fencer.reporting.log import PlainFormatter
from fencer.runtime import hookserver
from fencer.runtime.beside import Beside
from fencer.runtime.clock import SystemClock
from fencer.runtime.leases import LOOKS
from fencer.runtime.workers import ThreadAsker
from fencer.runtime.world import API, NoRecord, World

if TYPE_CHECKING:
    from fencer.journal.writer import JournalWriter

API_CALLS = 8
"""So many calls of the cluster at a time, for nodes that are pursued side by side: below API priority and
fairness' limits."""
LANE_CALLS = 8
"""So many of each lane in which pods are cleared: one that hangs keeps no other node's pods waiting."""


def is_missing(path: Path) -> bool:
    """Whether there is no such file. Of one that cannot be looked at, whoever reads it says why."""
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        pass
    return False


def require_file(path: Path) -> None:
    """Make sure that the configuration is there at all.

    Raises:
        ConfigError: it is not; the text says what a newcomer can do.
    """
    if is_missing(path):
        raise ConfigError(
            f"{path}: no such file. `fencer init` makes one; --config or FENCER_CONFIG names another; "
            "`fencer demo` needs none"
        )


class Wiring:
    """Builds the parts that commands work with."""

    def load(self, path: Path) -> Config:
        """Read the configuration.

        Raises:
            ConfigError: it is not there, or not right.
        """
        require_file(path)
        from fencer.config.load import load  # noqa: PLC0415 - pydantic and YAML

        return load(path)

    def inspect_secret(self, path: Path) -> Sequence[secret_files.Trouble]:
        """Return what is wrong with a file that holds credentials."""
        return secret_files.inspect_secret(path)

    def secrets(self, config: Config) -> tuple[Path, ...]:
        """Return the files that hold credentials: what the configuration names, and its kubeconfig."""
        from fencer.cluster.credentials import files_with_secrets  # noqa: PLC0415 - the client is heavy

        beside = files_with_secrets(config.kubernetes)
        return tuple(dict.fromkeys((*config.secrets, *beside)))

    def agent_answers(self, socket: Path) -> bool | None:
        """Return whether an agent listens at this socket; None: we may not ask."""
        return hookserver.answers(socket)

    def unable_to_listen(self, host: str, port: int) -> str:
        """Return why nobody can listen there now; empty: somebody can."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            socket.create_server((host, port), family=family).close()
        except OSError as error:
            return os.strerror(error.errno) if error.errno else str(error)
        return ""

    def home(self) -> Home:
        """Return where this process runs."""
        try:
            boot_id = Path("/proc/sys/kernel/random/boot_id").read_text()
        except OSError:
            boot_id = ""
        return read_home(self.host(), boot_id, os.environ)

    def has_terminal(self) -> bool:
        """Return whether this process belongs to a terminal, and would be told by SIGHUP that it is gone."""
        try:
            os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
        except OSError:
            return False
        return True

    def begin_again(self) -> None:
        """Become the same command once more: for systemd it is the same process."""
        from fencer.cluster import temporary  # noqa: PLC0415 - of the client, which is heavy

        temporary.remove_all()
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - this very program

    def clock(self) -> Clock:
        """Build the clock."""
        return SystemClock()

    def asker(self, clock: Clock, patience_s: float) -> Asker:
        """Build the part that holds calls to their deadlines.

        Args:
            clock: For deadlines.
            patience_s: How long a look at all endpoints waits for the slow ones.
        """
        return ThreadAsker(clock, patience_s, {API: API_CALLS, LOOKS: 1, f"{API}/*": LANE_CALLS})

    def cluster(self, config: Config) -> Cluster:
        """Build the way to the cluster.

        Raises:
            ConfigError: the kubeconfig cannot be used.
        """
        from fencer.cluster.kubernetes import KubernetesCluster  # noqa: PLC0415 - the client is heavy

        return KubernetesCluster(_there(config.kubernetes))

    def admin_cluster(self, settings: ClusterSettings) -> Cluster:
        """Build the way to the cluster with an administrator's kubeconfig.

        Raises:
            ConfigError: the kubeconfig cannot be used.
        """
        from fencer.cluster.kubernetes import KubernetesCluster  # noqa: PLC0415 - the client is heavy

        return KubernetesCluster(_there(settings))

    def pauser(self, settings: ClusterSettings) -> Pauser:
        """Build what writes a pause, with a person's own kubeconfig.

        Raises:
            ConfigError: the kubeconfig cannot be used.
        """
        from fencer.cluster.pausing import KubernetesPauser  # noqa: PLC0415 - the client is heavy

        return KubernetesPauser(_there(settings), time.sleep)

    def evictor(self, config: Config) -> Evictor:
        """Build the part that evicts pods.

        Raises:
            ConfigError: the kubeconfig cannot be used.
        """
        from fencer.cluster.eviction import KubernetesEvictor  # noqa: PLC0415 - the client is heavy

        return KubernetesEvictor(_there(config.kubernetes))

    def account(self, config: Config) -> Account:
        """Build the part that knows our own account.

        Raises:
            ConfigError: the kubeconfig cannot be used.
        """
        from fencer.cluster.own import KubernetesAccount  # noqa: PLC0415 - the client is heavy

        return KubernetesAccount(_there(config.kubernetes), time.sleep)

    def leases(self, config: Config) -> LeaseStore:
        """Build the way to fencer's Leases.

        Raises:
            ConfigError: the kubeconfig cannot be used.
        """
        from fencer.cluster.leases import KubernetesLeases  # noqa: PLC0415 - the client is heavy

        return KubernetesLeases(_there(config.kubernetes))

    def requests(self, config: Config) -> Requests:
        """Build the way to what other controllers of the cluster ask of fencer.

        Raises:
            ConfigError: the kubeconfig cannot be used.
        """
        from fencer.cluster.remediations import KubernetesRequests  # noqa: PLC0415 - the client is heavy

        return KubernetesRequests(_there(config.kubernetes))

    def beside(self, steps: Sequence[Callable[[], float]]) -> Beside:
        """Let these go on beside the passes, until it is closed."""
        return Beside(steps)

    def surveyor(self, config: Config) -> Surveyor:
        """Build the part that looks at the cluster for a plan.

        Raises:
            ConfigError: the kubeconfig cannot be used.
        """
        from fencer.cluster.survey import KubernetesSurveyor  # noqa: PLC0415 - the client is heavy

        return KubernetesSurveyor(_there(config.kubernetes))

    def hypervisor(self, endpoint: Endpoint, clock: Clock) -> Hypervisor:
        """Build the way to one endpoint; only its own type's library is imported.

        Raises:
            ConfigError: that library, or somebody else's adapter, is not installed or cannot be used.
        """
        match endpoint:
            case LibvirtEndpoint():
                from fencer.hypervisors.libvirt.client import LibvirtHypervisor  # noqa: PLC0415 - libvirt's own

                return LibvirtHypervisor(endpoint, clock.now_s)
            case VirtualBoxEndpoint():
                from fencer.hypervisors.virtualbox.client import VirtualBoxHypervisor  # noqa: PLC0415 - heavy

                return VirtualBoxHypervisor(endpoint, clock.now_s)
            case ProxmoxEndpoint():
                from fencer.hypervisors.proxmox.client import ProxmoxHypervisor  # noqa: PLC0415 - its library

                return ProxmoxHypervisor(endpoint, clock.now_s)
            case AdapterEndpoint():
                from fencer.hypervisors.adapters import AdapterSettings, connect  # noqa: PLC0415 - only its own type's

                told = AdapterSettings(
                    endpoint.name, endpoint.settings, endpoint.secret_files, now_s=clock.now_s
                )
                return connect(endpoint.type, told, one_host=endpoint.one_host)
            case _:
                assert_never(endpoint)

    def witness(self, written: FenceAgentSettings) -> HostPower:
        """Build the part that reads a host's power.

        Raises:
            ConfigError: what is written could be read wrongly.
        """
        from fencer.hosts.fence_agents import FenceAgentWitness  # noqa: PLC0415 - not everybody has one

        return FenceAgentWitness(written)

    def inspect_journal(self, file: Path) -> JournalFacts:
        """Return what there is of the journal."""
        from fencer.cli.journal_facts import inspect_journal  # noqa: PLC0415 - SQLite and pydantic

        return inspect_journal(file)

    def state_store(self, config: Config, cluster: Cluster) -> StateStore | None:
        """Build what keeps an agent's state; None: the configuration names no place for it.

        An agent that only observes signs it with the key that there is, and creates none in the cluster.

        Args:
            config: The configuration.
            cluster: As `cluster` builds it: it reads the key.
        """
        if config.state_file is None:
            return None
        from fencer.cluster.kubernetes import KubernetesCluster  # noqa: PLC0415 - the client is heavy
        from fencer.state.store import StateFile  # noqa: PLC0415 - pydantic

        assert isinstance(cluster, KubernetesCluster)  # noqa: S101 - see `cluster`
        key = partial(cluster.signing_key, create=config.policy.mode is Mode.ARMED)
        return StateFile(config.state_file, key, self.wall)

    def state_reader(self, config: Config, cluster: Cluster) -> StateStore | None:
        """Build what reads the state of the agent on this machine for a command beside it. Writes nothing.

        Args:
            config: The configuration; None is returned if it names no place for a state.
            cluster: As `cluster` builds it: it reads the key.
        """
        if config.state_file is None:
            return None
        from fencer.cluster.kubernetes import KubernetesCluster  # noqa: PLC0415 - the client is heavy
        from fencer.state.reading import StateReader  # noqa: PLC0415 - pydantic

        assert isinstance(cluster, KubernetesCluster)  # noqa: S101 - see `cluster`
        return StateReader(config.state_file, partial(cluster.signing_key, create=False))

    def inspect_state(self, file: Path) -> StateFacts:
        """Return what there is of an agent's state."""
        from fencer.cli.state_facts import inspect_state  # noqa: PLC0415 - pydantic

        return inspect_state(file)

    def receiver(self, written: ReceiverSettings, source: str, page_url: str) -> Receiver:
        """Build what sends messages to one receiver; nobody is asked yet.

        Args:
            written: Its settings.
            source: How fencer calls itself to people.
            page_url: Where the status page is, for a link; empty: there is none.
        """
        from fencer.notify.receivers.build import receiver  # noqa: PLC0415 - not everybody has one

        return receiver(written, source, page_url)

    def inspect_receivers(self, config: Config) -> Mapping[str, ReceiverFacts]:
        """Return what would keep receivers from being told, by name, as far as this machine knows."""
        from fencer.cli.receiver_facts import inspect_receivers  # noqa: PLC0415 - not everybody has one

        return inspect_receivers(config)

    def tool(self, *words: str, deadline_s: float, most_bytes: int) -> str:
        """Run a program of this machine that only tells something; return what it printed, or its beginning.

        Raises:
            HypervisorError: it is not there, does not end, or fails.
        """
        from fencer.hypervisors.virtualbox.run import ANY, Runner  # noqa: PLC0415 - seldom wanted

        done = Runner(words[0], words[:1], ANY).run(
            *words[1:], deadline_s=deadline_s, enough_bytes=most_bytes
        )
        if done.code and not done.is_cut:
            why = (done.stderr or done.stdout).strip() or f"exit code {done.code}"
            raise HypervisorProtocol(f"{shlex.join(words)}: {why}")
        return done.stdout[:most_bytes]

    def journal_writer(self, settings: JournalSettings, by: str) -> JournalWriter:
        """Build what writes the journal; the file is opened with the first row.

        Args:
            settings: Where it is.
            by: Who writes.
        """
        from fencer.journal.store import Store  # noqa: PLC0415 - SQLite and pydantic
        from fencer.journal.writer import JournalWriter  # noqa: PLC0415 - as above

        opens, bounds = partial(Store, settings.file, secrets.token_hex(4), by), settings.bounds
        return JournalWriter(settings.file, opens, bounds.days, bounds.bytes, self.wall, time.monotonic)

    def wall(self) -> datetime:
        """Return the local time, for people."""
        return datetime.now().astimezone()

    def looking_back(self) -> datetime:
        """Return the local time in a zone that tells times of last summer as they were."""
        return self.wall().astimezone(Local())

    def rest(self, seconds: float) -> None:
        """Wait, so that people can read along."""
        time.sleep(seconds)

    def interactive(self) -> bool:
        """Whether somebody can be asked."""
        return sys.stdin.isatty()

    def person(self) -> str:
        """Return who types, for marks and events: ``root@pve1``."""
        try:
            user = getpass.getuser()
        except (KeyError, OSError):  # no entry for this user id
            user = "somebody"
        return f"{user}@{self.host()}"

    def host(self) -> str:
        """Return the name of this machine."""
        return socket.gethostname()


def _there(written: ClusterSettings) -> ClusterSettings:
    """Make sure that the kubeconfig is there.

    Raises:
        ConfigError: it is not, with what makes it.
    """
    shown = printable(str(written.kubeconfig))
    if is_missing(written.kubeconfig):
        makes = f"fencer setup kubernetes --kubeconfig ADMINS --output {shlex.quote(shown)}"
        made = "" if written.borrowed else f". To make it: {makes}"
        raise ConfigError(f"{shown}: no such file{made}")
    return written


@dataclass(frozen=True, slots=True)
class Parts:
    """The working parts of a configuration.

    Attributes:
        path: Where the configuration is.
        state: Reads what the agent on this machine has noted and could not write on Nodes yet.
        utc: Reads this machine's clock, RFC 3339.
    """

    path: Path
    config: Config
    cluster: Cluster
    hypervisors: Mapping[str, Hypervisor]
    asker: Asker
    clock: Clock
    witnesses: Mapping[tuple[str, str], HostPower]
    leases: LeaseStore
    requests: Requests | None = None
    state: StateStore | None = None
    utc: Callable[[], str] | None = None

    @property
    def policy(self) -> Policy:
        """How careful to be."""
        return self.config.policy

    @property
    def rules(self) -> Rules:
        """What the configuration says of identity."""
        return self.config.rules

    def asking(self) -> AbstractContextManager[None]:
        """Tell people who is asked, while this is entered and takes long."""
        return asking((API, *self.hypervisors), self.clock.now_s)

    def world(
        self, reporter: Reporter, recorder: Recorder | None = None, election: Election | None = None
    ) -> World:
        """Return the ports as the runtime takes them.

        What the agent on this machine has noted counts for every command, also for one that only looks:
        `explain` has to say what `fence` would do.

        Args:
            reporter: Tells people.
            recorder: Keeps what was known and meant; None: nobody does.
            election: What this agent is to each hypervisor; None: it is none, but a person's command.
        """
        one_host = frozenset(endpoint.name for endpoint in self.config.endpoints if endpoint.one_host)
        return World(
            self.cluster,
            self.hypervisors,
            self.asker,
            self.clock,
            reporter,
            recorder or NoRecord(),
            witnesses=self.witnesses,
            one_host=one_host,
            leases=self.leases,
            election=election,
            requests=self.requests,
            state=self.state,
            utc=self.utc,
        )


def log_plainly() -> None:
    """Log as commands speak, unless a log was set up."""
    handler = living.LogHandler()
    handler.setFormatter(PlainFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


@contextmanager
def connected(wiring: Wiring, path: Path, *, patience_s: float | None = None) -> Iterator[Parts]:
    """Load the configuration and build its parts; close them in the end.

    Args:
        wiring: Builds them.
        path: The configuration.
        patience_s: How long a look at all endpoints waits for the slow ones; None: as long as any call may
            take, for a command that looks once.

    Raises:
        ConfigError: the configuration, or something it names, is not right.
        ClusterUnreachable: as the command raised it, with what to try.
    """
    log_plainly()
    config = wiring.load(path)
    clock = wiring.clock()
    asker = wiring.asker(clock, config.policy.call_deadline_s if patience_s is None else patience_s)
    cluster, leases = wiring.cluster(config), wiring.leases(config)
    state = wiring.state_reader(config, cluster)
    heard = config.policy.remediation is not Remediation.IGNORE
    requests = wiring.requests(config) if heard else None
    witnesses = {
        (endpoint.name, written.host): wiring.witness(written)
        for endpoint in config.endpoints
        for written in endpoint.host_power
    }
    hypervisors: dict[str, Hypervisor] = {}
    try:
        for endpoint in config.endpoints:
            hypervisors[endpoint.name] = wiring.hypervisor(endpoint, clock)
        with a_way_on(path):
            ports = (cluster, hypervisors, asker, clock, witnesses, leases, requests, state)
            yield Parts(path, config, *ports, lambda: write_utc(wiring.wall()))
    finally:
        for hypervisor in hypervisors.values():
            hypervisor.close()


@contextmanager
def a_way_on(path: Path) -> Iterator[None]:
    """Have the error of a cluster that does not answer say what to try.

    Args:
        path: The configuration that leads there.

    Raises:
        ClusterUnreachable: as it was raised, and with that.
    """
    try:
        yield
    except ClusterUnreachable as error:
        which = "" if path == DEFAULT_CONFIG else f" -c {shlex.quote(str(path))}"
        raise ClusterUnreachable(f"{error}; try: fencer check{which}") from error


class Quiet:
    """A `Reporter` for commands that only look: decisions are shown otherwise, troubles go to stderr."""

    def decided(self, node: NodeView, decision: Decision) -> None:
        """Say nothing."""

    def acted(self, node: NodeView, action: Deed, done: Done) -> None:
        """Say nothing."""

    def said(self, text: str, *, warning: bool) -> None:
        """Say what went wrong."""
        if warning:
            complain(text)


@contextmanager
def no_such_node() -> Iterator[None]:
    """Turn an unknown node name into a wrong argument."""
    try:
        yield
    except ClusterNotFound as error:
        raise ConfigError(str(error)) from error
