"""What `drain`, `shutdown` and `start` share: options, which nodes, and the parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import click

from fencer.cli import completing
from fencer.cli.options import Decorator
from fencer.cli.recording import Recording, recording
from fencer.cli.render import clean, tell
from fencer.cli.steps import Steps
from fencer.cli.wire import Parts, Quiet, Wiring, connected, no_such_node
from fencer.core.identity import subject_of
from fencer.core.model import NodeView, Observation, PowerState
from fencer.core.rung import Subject
from fencer.errors import ConfigError
from fencer.ports import Reporter
from fencer.ports.inventory import Budget, Inventory, Listing
from fencer.reporting.events import EventReporter
from fencer.reporting.planned import PlannedEvents
from fencer.reporting.several import SeveralReporters
from fencer.runtime.memory import Scene
from fencer.runtime.reconcile import Agent
from fencer.runtime.world import API, World
from fencer.wording.events import Milestones

LONGEST_GRACE_S = 2**31 - 1
"""The longest time that the API accepts, and more than anybody waits."""
SURVEY_S = 120.0
"""Deadline of all lists of a plan together: 150,000 pods are 300 pages."""
BUDGETS_S = 60.0
"""Deadline of the list of budgets, of all pages together."""

dry_run_option: Decorator = click.option(
    "--dry-run", is_flag=True, help="Look, say what would be done, and do nothing."
)
force_option: Decorator = click.option(
    "--force",
    is_flag=True,
    help="Also evict pods without a controller; they are not recreated. As in kubectl.",
)
emptydir_option: Decorator = click.option(
    "--delete-emptydir-data",
    is_flag=True,
    help="Also evict pods that use an emptyDir; its data is lost. As in kubectl.",
)
ignore_daemonsets_option: Decorator = click.option(
    "--ignore-daemonsets",
    is_flag=True,
    expose_value=False,
    help="Accepted as in kubectl, but changes nothing: pods of DaemonSets always stay.",
)
NO_GRACE = "0 is refused: such a pod may run on"


def _some_grace(_context: click.Context, _option: click.Parameter, grace_s: int) -> int:
    """Refuse early, before anything is cordoned, what the admission policy would refuse."""
    if grace_s == 0:
        raise click.BadParameter(f"{NO_GRACE} while its eviction looks done. The least is 1.")
    return grace_s


grace_option: Decorator = click.option(
    "--grace-period",
    "grace_s",
    type=click.IntRange(min=-1, max=LONGEST_GRACE_S),
    default=-1,
    metavar="SECONDS",
    callback=_some_grace,
    help=f"How long each pod may take to end; -1: as its own spec says. As in kubectl, but {NO_GRACE}.",
)
parallel_option: Decorator = click.option(
    "--parallel",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="How many nodes at a time. Budgets still hold; control-plane nodes go one at a time.",
)
host_option: Decorator = click.option(
    "--host",
    metavar="HOST",
    shell_complete=completing.hosts,
    help="All nodes whose guests are on this host (or ENDPOINT/HOST), instead of nodes by name.",
)


@dataclass(frozen=True, slots=True)
class Tools:
    """All that a planned verb works with.

    Attributes:
        parts: The working parts of the configuration.
        names: The nodes that are meant.
        scene: All nodes and guests, as first seen.
        looker: Judges without acting, and tells nobody.
        world: The ports, with the evictor, telling everybody.
        agent: Acts.
        steps: Shows the steps.
        events: Tells Events of them.
        kept: Keeps what is done.
        survey: Looks at all that a plan looks at.
        budgets: Lists only the budgets of the cluster.
    """

    parts: Parts
    names: tuple[str, ...]
    scene: Scene
    looker: Agent
    world: World
    agent: Agent
    steps: Steps
    events: PlannedEvents
    kept: Recording
    survey: Callable[[], Inventory]
    budgets: Callable[[], Listing[Budget]]

    def node(self, name: str) -> NodeView:
        """Return a node as first seen."""
        return self.scene.nodes[name]

    def guest(self, name: str) -> str:
        """Return a node's guest and its state, in words."""
        subject = self._subject(name)
        return "no guest" if subject is None else f"{subject.evidence.guest}: {subject.power_state}"

    def bound(self, name: str) -> bool:
        """Whether a guest is the node, so that `fencer start` does not refuse it."""
        return self._subject(name) is not None

    def power(self, name: str) -> PowerState | None:
        """Return how a node's guest was first read; None: it has none."""
        subject = self._subject(name)
        return None if subject is None else subject.power_state

    def observation(self, name: str) -> Observation:
        """Return all of a node as first seen."""
        return self.looker.observer.observation(self.scene, self.node(name))

    def _subject(self, name: str) -> Subject | None:
        return subject_of(self.observation(name))


def meant(nodes: Sequence[str], host: str | None) -> str:
    """Return the nodes that are meant, as the person named them.

    Args:
        nodes: Nodes by name.
        host: Instead: all nodes whose guests are there.

    Raises:
        click.UsageError: neither is given, or both are.
    """
    if bool(nodes) == bool(host):
        raise click.UsageError("Name the nodes, or the host of their guests with --host: one of the two.")
    return host or ", ".join(nodes)


@contextmanager
def planned(
    wiring: Wiring,
    path: Path,
    nodes: Sequence[str],
    host: str | None,
    milestones: Milestones,
    *,
    act: bool = True,
) -> Iterator[Tools]:
    """Connect, look once, and find out which nodes are meant.

    Args:
        wiring: Builds the parts.
        path: The configuration.
        nodes: Nodes by name.
        host: Instead: all nodes whose guests are there.
        milestones: The Events that tell of it.
        act: Something will be done, and is recorded.

    Raises:
        ConfigError: the configuration is not right, or there is no such node.
        ClusterError: the cluster could not be read.
    """
    with (
        connected(wiring, path) as parts,
        recording(wiring, parts, f"{wiring.person()} (by hand)", act=act) as kept,
    ):
        looker = _agent(parts, wiring, parts.world(Quiet()))
        scene = looker.observer.look()
        names = tuple(dict.fromkeys(nodes)) if host is None else _on_host(looker, scene, host)
        with no_such_node():
            for name in names:
                looker.named(scene, name)
        steps = Steps(wiring, several=len(names) > 1)
        events = PlannedEvents(EventReporter(parts.cluster, parts.asker), milestones, wiring.person())
        reporter = SeveralReporters(*_reporters(steps, events, kept, act=act))
        world = replace(parts.world(reporter, kept.journal), evictor=wiring.evictor(parts.config))
        agent = _agent(parts, wiring, world)

        def survey() -> Inventory:
            return parts.asker.ask(API, wiring.surveyor(parts.config).survey, SURVEY_S)

        def budgets() -> Listing[Budget]:
            return parts.asker.ask(API, wiring.surveyor(parts.config).budgets, BUDGETS_S)

        yield Tools(parts, names, scene, looker, world, agent, steps, events, kept, survey, budgets)


def introduce(tools: Tools) -> None:
    """Say who the nodes are."""
    tools.steps.introduce({name: tools.guest(name) for name in tools.names})


def give_up(lines: Sequence[str], code: int = 1) -> NoReturn:
    """End with these lines.

    Raises:
        click.exceptions.Exit: always.
    """
    for line in lines:
        tell(clean(line))
    raise click.exceptions.Exit(code)


def _agent(parts: Parts, wiring: Wiring, world: World) -> Agent:
    return Agent(world, parts.policy, parts.rules, f"{wiring.person()} (by hand)")


def _reporters(steps: Steps, events: PlannedEvents, kept: Recording, *, act: bool) -> Iterator[Reporter]:
    yield steps
    if kept.journal is not None:
        yield kept.journal
    if act:
        yield events


def _on_host(looker: Agent, scene: Scene, host: str) -> tuple[str, ...]:
    """Return the nodes whose guests are on a host; guests that could not be read are reported.

    Args:
        looker: Who looks.
        scene: What there is.
        host: Its name, or ``ENDPOINT/HOST``.

    Raises:
        ConfigError: there is none, or more than one, or an endpoint did not answer.
    """
    if scene.errors:
        name, why = next(iter(scene.errors.items()))
        raise ConfigError(f"{name}: not all guests of {host} can be known: {why}")
    endpoint, _, place = host.rpartition("/")
    found: dict[str, list[str]] = {}
    hosts = set()
    for name, node in scene.nodes.items():
        observation = looker.observer.observation(scene, node)
        guest = observation.evidence.guest if observation.evidence else None
        hosts.add(guest.host if guest is not None and guest.host else "(not told)")
        if guest is not None and guest.host == place and endpoint in {"", guest.endpoint}:
            found.setdefault(guest.endpoint, []).append(name)
    if not found:
        raise ConfigError(f"{host}: no node's guest is there. Hosts: {', '.join(sorted(hosts))}")
    if len(found) > 1:
        ways = " or ".join(f"--host {one}/{place}" for one in sorted(found))
        raise ConfigError(f"{host}: {' and '.join(sorted(found))} each have a host of that name: {ways}")
    [names] = found.values()
    return tuple(sorted(names))
