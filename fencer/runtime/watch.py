"""Watch: pass after pass, until told to stop. A pass that fails is reported once, and tried again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from fencer.core.model import Judged, Reason
from fencer.core.text import count, listing
from fencer.errors import ClusterError
from fencer.ports import Sight, Viewer
from fencer.runtime.outages import Outages
from fencer.runtime.reconcile import Agent, Pass
from fencer.runtime.shown import Shown
from fencer.runtime.systemd import notify
from fencer.runtime.world import API, World
from fencer.wording.approvals import unapproved
from fencer.wording.distrust import distrust_notice, distrusted_endpoints

BETWEEN_S = 10.0
"""Between two lines about the same: nodes that are held back, for example, come one by one."""


def watch(
    agent: Agent,
    world: World,
    poll_s: float,
    stopped: Callable[[], bool],
    beside: Callable[[], None] = lambda: None,
    outages: Outages | None = None,
    viewer: Viewer | None = None,
    alive: Callable[[], None] = lambda: None,
) -> None:
    """Run passes until `stopped` says so.

    Args:
        agent: Whose passes.
        world: For clock, reporter and wake-ups.
        poll_s: Seconds between passes, unless something asks for one sooner.
        stopped: Asked after every pass.
        beside: Called before every pass: for work that does not concern nodes.
        outages: What was told of those who do not answer, before the first pass.
        viewer: Is shown every pass.
        alive: Called at every step of a pass: one over many nodes may take longer than anybody's patience.
    """

    def progress() -> None:
        notify("WATCHDOG=1")
        alive()

    for port in world.hypervisors.values():
        port.subscribe(world.clock.wake)
    world.cluster.subscribe(world.clock.wake)
    news = News(world, outages or Outages(world, poll_s))
    while not stopped():
        progress()
        beside()
        wait_s = _one_pass(agent, world, news, poll_s, viewer or Shown(), progress)
        if not stopped():
            world.clock.wait(max(0.05, wait_s))


def _one_pass(
    agent: Agent,
    world: World,
    news: News,
    poll_s: float,
    viewer: Viewer,
    progress: Callable[[], None],
) -> float:
    """Run one pass, say what is new and show it; return when to come again. What it saw is then forgotten."""
    try:
        done = agent.tick(progress)
    except ClusterError as error:
        news.of_failure(error)
        viewer.failed(str(error))
        return poll_s
    news.of_pass(done)
    viewer.passed(sight(done, world))
    return done.recheck_s


def sight(done: Pass, world: World) -> Sight:
    """Return what viewers are shown of a pass.

    Args:
        done: The pass.
        world: For the endpoints, and the time.
    """
    scene, election = done.scene, world.election
    names = tuple(world.hypervisors)
    return Sight(
        dict(done.judged),
        names,
        dict(scene.errors),
        scene.malformed,
        scene.paused_why,
        scene.windows,
        scene.utc,
        world.clock.now_s(),
        scene.requests,
        done.pursued,
        {} if election is None else {name: election.tenure(name) for name in names},
    )


class News:
    """What passes tell that concerns no single node; nothing twice.

    Args:
        world: For its reporter and clock.
        outages: Tells of those who do not answer.
    """

    def __init__(self, world: World, outages: Outages) -> None:
        self._world = world
        self._outages = outages
        self._told: dict[str, str] = {}
        self._next_s: dict[str, float] = {}

    def of_failure(self, error: ClusterError) -> None:
        """Tell that there was no pass."""
        self._outages.look({API: str(error)}, {API})

    def of_pass(self, done: Pass) -> None:
        """Tell what is new with a pass."""
        self._outages.look(done.scene.errors, {API, *self._world.hypervisors})
        self._tell(unreadable(done.scene.malformed), "all nodes can be read again")
        self._tell(paused(done.scene.paused_why), "fencing goes on: its pause is over")
        self._tell("; ".join(done.scene.windows), "no maintenance window is open any more")
        self._tell(held_back(done.judged.values()), "the brake holds no node back any more")
        self._tell(unapproved(done.judged.values()), "no VM waits for an approval any more")
        whys = distrusted_endpoints(one.observation for one in done.judged.values())
        for name in self._world.hypervisors:
            text = distrust_notice(name, whys[name]) if name in whys else ""
            self._tell(text, f"{name} is trusted again")

    def _tell(self, text: str, over: str) -> None:
        """Tell it if it is new; `over`, if there is nothing of the kind any more."""
        now_s = self._world.clock.now_s()
        if text != self._told.get(over, "") and now_s >= self._next_s.get(over, now_s):
            self._told[over], self._next_s[over] = text, now_s + BETWEEN_S
            self._world.reporter.said(text or over, warning=bool(text))


def unreadable(nodes: Sequence[str]) -> str:
    """Say which nodes cannot be read, and why; empty: all can."""
    names = listing([node.partition(": ")[0] for node in nodes])
    whys = [nodes[0].partition(": ")[2]] if len(nodes) == 1 else nodes
    return f"{names} cannot be read: {'; '.join(whys)}" if nodes else ""


def paused(why: str | None) -> str:
    """Say that a person has paused all fencing, and what ends that; empty: nobody has."""
    if why is None:
        return ""
    return f"fencing is paused: {why}: nothing is fenced, and no fence is lifted; `fencer resume` ends that"


def held_back(judged: Collection[Judged]) -> str:
    """Say how many nodes the brake keeps from being fenced, and what to do; empty: none."""
    fleets = [item.observation.fleet for item in judged if item.decision.reason is Reason.BRAKE]
    if not fleets:
        return ""
    fleet = max(fleets, key=lambda fleet: fleet.young_fences)
    return (
        f"{count(len(fleets), 'more dead node')} refused: the brake holds, with {fleet.young_fences} of "
        f"{fleet.nodes} nodes fenced in the last hour (max_fenced, max_fenced_hosts); "
        "`fencer fence NODE --over-brake WHY` fences one more"
    )
