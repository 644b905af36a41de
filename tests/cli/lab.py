"""A wiring for commands that leads into a simulated world, where an agent may have watched before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from click.testing import CliRunner, Result

from fencer.cli.main import cli
from fencer.cli.wire import Quiet, Wiring
from fencer.cluster.settings import ClusterSettings
from fencer.config.secret_files import Trouble
from fencer.config.settings import Config, HookSettings, JournalSettings, LibvirtEndpoint
from fencer.core.election import Seat, Tenure
from fencer.core.identity import Admission
from fencer.core.policy import Mode, Policy
from fencer.core.times import write_utc
from fencer.errors import ClusterError, ConfigError, HypervisorUnreachable
from fencer.ports import (
    Account,
    Asker,
    Clock,
    Cluster,
    ClusterInfo,
    Credential,
    Election,
    Evictor,
    Hypervisor,
    LeaseStore,
    Pauser,
    Requests,
    Sight,
    Surveyor,
)
from fencer.preflight.home import Home
from fencer.reporting.several import SeveralReporters
from fencer.runtime.beside import Beside
from fencer.runtime.reconcile import Agent
from fencer.runtime.roll import Roll
from fencer.runtime.watch import sight
from fencer.runtime.world import World
from fencer.simulation.assembly import Shape, Simulation
from fencer.simulation.clock import EPOCH
from fencer.simulation.controllers import Timing
from fencer.simulation.faults import Fault, What, apply
from fencer.simulation.objects import ApiBudget
from fencer.simulation.workloads import Deployment, StatefulSet, Workload
from fencer.web.settings import WebSettings
from tests.journal.direct import direct_reporter

PATH = Path("/etc/fencer/config.yaml")
RENEWAL = "fencer setup kubernetes --kubeconfig ADMINS --output /etc/fencer/kubeconfig --replace"


@dataclass
class OwnAccount:
    """What the lab's fencer is in its cluster."""

    missing: Sequence[str] = ()
    ends: datetime | None = None
    """When its token does."""
    held: bool | ClusterError = True
    """Whether the admission policy holds for it, or why that is not told."""
    tried: list[str] = field(default_factory=list)
    """The nodes on which that was tried."""
    watched_count: int = 0
    unwatched: ClusterError | None = None
    """Why its nodes cannot be watched."""
    others: Sequence[Credential] = ()
    unpatched: frozenset[str] = frozenset()
    """Leases that it may read, and not patch."""

    def missing_lease_rights(self, lease: str) -> Sequence[str]:
        return [f"patch leases {lease} in fencer"] if lease in self.unpatched else []

    def missing_attachment_rights(self) -> Sequence[str]:
        return self.missing

    def confined(self, node: str) -> bool:
        self.tried.append(node)
        if isinstance(self.held, ClusterError):
            raise self.held
        return self.held

    def try_watch(self) -> None:
        self.watched_count += 1
        if self.unwatched is not None:
            raise self.unwatched

    def credentials(self) -> Sequence[Credential]:
        token = () if self.ends is None else (Credential("token", self.ends, RENEWAL),)
        return (*token, *self.others)


class Lab(Wiring):
    """Three nodes under one endpoint, eight replicas with a volume each, and time that only tests move on.

    Args:
        policy: How the configuration sets fencer.
        power: The configuration admits power actions.
        person_there: Somebody can be asked.
        nodes: How many.
        strict: Two writers on one volume fail the test. Not where a person is to give a wrong word.
        timing: How slow the control plane is.
        shape: How big the world is, where the number of nodes does not say it.
        workloads: What runs there, where it is something else.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        power: bool = True,
        person_there: bool = False,
        nodes: int = 3,
        strict: bool = True,
        timing: Timing | None = None,
        shape: Shape | None = None,
        workloads: Sequence[Workload] | None = None,
    ) -> None:
        names = tuple(f"k8s-{number + 1}" for number in range(nodes))
        workloads = workloads or (StatefulSet("db", 8), Deployment("web", 3))
        shape = shape or Shape(nodes=names)
        self.simulation = Simulation(shape, workloads, seed=7, strict=strict, timing=timing)
        self.simulation.warm_up()
        self.policy = policy or Policy(mode=Mode.ARMED)
        self.rules = self.simulation.rules() if power else replace(self.simulation.rules(), admitted={})
        self.broken: dict[str, str] = {}
        """Endpoint → why its adapter cannot be built."""
        self.kubeconfigs: list[ClusterSettings] = []
        """With which a pause was written."""
        self.journal: Path | None = None
        self.web: WebSettings | None = None
        self.web_trouble = ""
        self.at = Home("lab1", "5e0e1f5c-0000-4000-8000-000000000001")
        """Where fencer runs."""
        self.uri = "qemu+ssh://fencer@lab1/system"
        """Of every endpoint, by the configuration."""
        self.trusting = False
        """Whether the configuration takes a kubeconfig that does not verify its server."""
        self.exposed: dict[Path, Sequence[Trouble]] = {}
        """File with credentials → what is wrong with it."""
        self.agent: bool | None = True
        """Whether one answers at its socket on this machine; None: it cannot be asked."""
        self.agent_silent = False
        """Whether it writes nothing of its passes."""
        self.tools: dict[str, str] = {}
        """Program of this machine → what it prints."""
        self.own = OwnAccount()
        self.election: Election | None = None
        """Of the agent that watches; None: no other one is thought of."""
        self.hook = HookSettings()
        self.rested_s = 0.0
        self._person_there = person_there

    def run(self, *words: str, says: str | None = None, charset: str = "utf-8") -> Result:
        """Run a command as a person would, and let no exception pass but the exit."""
        result = CliRunner(charset=charset).invoke(cli, words, obj=self, input=says, prog_name="fencer")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def budget(self, owner: str, min_available: int) -> None:
        """Let so many pods of a workload be needed Ready."""
        name = owner.partition("/")[2]
        self.simulation.api.budgets.append(ApiBudget("demo", name, owner, min_available))

    def breaks(self, what: What, target: str = "", *, in_s: float = 0.0) -> None:
        """Let something happen, now or later."""
        fault = Fault(0, what, target)
        if in_s:
            self.simulation.clock.after(in_s, lambda: apply(fault, self.simulation))
        else:
            apply(fault, self.simulation)

    def passes(self, seconds: float, *, watched: bool = False) -> None:
        """Let time pass; `watched`: while an agent watches."""
        clock = self.simulation.clock
        until_s = clock.now_s() + seconds
        if watched:
            world = self._watched_world()
            agent = Agent(world, self.policy, self.rules, by="fencer@pve1")
            roll = Roll(world.leases, "fencer@pve1", "1f0c2d3e", "0.1.0", self.policy)
            due_s = float("-inf")
            while clock.now_s() < until_s:
                done = agent.tick()
                roll.passed(self._as_holder(sight(done, world)))
                if self.policy.mode is Mode.ARMED and clock.now_s() >= due_s:
                    due_s = clock.now_s() + roll.step()
                clock.wait(done.recheck_s)
        clock.advance(max(0.0, until_s - clock.now_s()))

    def calls_roll(
        self, by: str, instance: str, version: str = "0.1.0", policy: Policy | None = None
    ) -> None:
        """Let an armed agent write itself, that has just made a pass."""
        roll = Roll(self.simulation.leases, by, instance, version, policy or self.policy)
        names = tuple(self.simulation.hypervisors)
        roll.passed(self._as_holder(Sight({}, names, utc=self.simulation.clock.utc())))
        roll.step()

    def _as_holder(self, seen: Sight) -> Sight:
        """Return a pass of an agent that gives the orders everywhere, where no other one is thought of."""
        if self.election is not None:
            return seen
        held = Tenure(Seat.HOLDER, until_s=float("inf"), holder="fencer@pve1")
        return replace(seen, tenures=dict.fromkeys(seen.endpoints, held))

    def _world(self) -> World:
        simulation = self.simulation
        return World(
            simulation.cluster,
            simulation.hypervisors,
            simulation.asker,
            simulation.clock,
            Quiet(),
            leases=simulation.leases,
            election=self.election,
            utc=lambda: write_utc(self.wall()),
        )

    def _watched_world(self) -> World:
        world = self._world()
        if self.journal is None:
            return world
        keeps = direct_reporter(self.journal, world.asker, world.clock.now_s, self.wall)
        keeps.began("watch", "0.1.0", self.policy, tuple(world.hypervisors))
        return replace(world, reporter=SeveralReporters(world.reporter, keeps), recorder=keeps)

    # -- Wiring --------------------------------------------------------------------------------------------

    def load(self, path: Path) -> Config:
        if path != PATH:
            raise ConfigError(f"{path}: cannot be read: No such file or directory")
        admitted = self.rules.admitted
        endpoints = tuple(
            LibvirtEndpoint(name, self.uri, power=admitted.get(name, Admission()))
            for name in (*self.simulation.hypervisors, *(self.broken.keys() - {"kubernetes"}))
        )
        kubernetes = ClusterSettings(Path("/etc/fencer/kubeconfig"), unauthenticated=self.trusting)
        return Config(
            self.policy,
            kubernetes,
            endpoints,
            hook=self.hook,
            journal=JournalSettings(self.journal) if self.journal else None,
            web=self.web,
        )

    def inspect_secret(self, path: Path) -> Sequence[Trouble]:
        return self.exposed.get(path, ())

    def secrets(self, config: Config) -> tuple[Path, ...]:
        return config.secrets

    def agent_answers(self, socket: Path) -> bool | None:
        assert socket == Path("/run/fencer/fencer.sock")
        if self.agent and self.policy.mode is Mode.ARMED and not self.agent_silent:
            self.calls_roll("fencer@desk", "0badcafe")
        return self.agent

    def unable_to_listen(self, _host: str, _port: int) -> str:
        return self.web_trouble

    def home(self) -> Home:
        return self.at

    def clock(self) -> Clock:
        return self.simulation.clock

    def asker(self, _clock: Clock, _patience_s: float) -> Asker:
        return self.simulation.asker

    def cluster(self, _config: Config) -> Cluster:
        if "kubernetes" in self.broken:
            raise ConfigError(self.broken["kubernetes"])
        return self.simulation.cluster

    def pauser(self, settings: ClusterSettings) -> Pauser:
        self.kubeconfigs.append(settings)
        return self.simulation.pauser

    def evictor(self, _config: Config) -> Evictor:
        return self.simulation.cluster

    def account(self, _config: Config) -> Account:
        return self.own

    def leases(self, _config: Config) -> LeaseStore:
        return self.simulation.leases

    def requests(self, _config: Config) -> Requests:
        return self.simulation.requests

    def beside(self, steps: Sequence[Callable[[], float]]) -> Beside:
        clock = self.simulation.clock

        class Strands(Beside):
            """The same in virtual time."""

            def __init__(self) -> None:
                self.over = False
                for step in steps:
                    clock.spawn(partial(self.go_on, step))

            def go_on(self, step: Callable[[], float]) -> None:
                while not self.over:
                    clock.advance(step())

            def close(self, patience_s: float) -> None:  # noqa: ARG002 - as the real one has it
                self.over = True

        return Strands()

    def surveyor(self, _config: Config) -> Surveyor:
        return self.simulation.surveyor

    def hypervisor(self, endpoint: LibvirtEndpoint, _clock: Clock) -> Hypervisor:
        if endpoint.name in self.broken:
            raise ConfigError(self.broken[endpoint.name])
        return self.simulation.hypervisors[endpoint.name]

    def wall(self) -> datetime:
        return EPOCH + timedelta(seconds=self.simulation.clock.now_s())

    def tool(self, *words: str, deadline_s: float, most_bytes: int) -> str:
        assert deadline_s < 60
        if words[0] not in self.tools:
            raise HypervisorUnreachable(f"{words[0]}: there is no such program")
        return self.tools[words[0]][:most_bytes]

    def looking_back(self) -> datetime:
        return self.wall()

    def rest(self, seconds: float) -> None:
        self.rested_s += seconds

    def interactive(self) -> bool:
        return self._person_there

    def person(self) -> str:
        return "admin@desk"

    def host(self) -> str:
        return "desk"


def _ctrl_c() -> None:
    raise KeyboardInterrupt


class Impatient:
    """A clock at which somebody presses Ctrl-C after a few waits.

    Args:
        clock: The world's.
        patience_count: How many waits they bear; the last one is cut short.
        press: What they do then.
    """

    def __init__(self, clock: Clock, patience_count: int, press: Callable[[], object] = _ctrl_c) -> None:
        self._clock = clock
        self._left_count = patience_count
        self._press = press

    def now_s(self) -> float:
        return self._clock.now_s()

    def wait(self, timeout_s: float) -> bool:
        self._left_count -= 1
        if not self._left_count:
            self._press()
        return self._clock.wait(timeout_s)

    def wake(self) -> None:
        self._clock.wake()


class Otherwise(Lab):
    """A lab whose cluster gives other answers to some requests.

    Args:
        answers: Method of the port `Cluster` → what is called instead.
    """

    def __init__(self, **answers: Callable[..., Any]) -> None:
        super().__init__()
        self._answers = answers

    def cluster(self, config: Config) -> Cluster:
        port = super().cluster(config)
        methods = {name: getattr(port, name) for name in dir(port) if not name.startswith("_")}
        return cast("Cluster", SimpleNamespace(**{**methods, **self._answers}))


def in_ops() -> ClusterInfo:
    """Answer as an API server where fencer's account is in the namespace ops."""
    return ClusterInfo("uid", "https://10.0.0.1:6443", "v1.36.2", "system:serviceaccount:ops:fencer")
