"""Watch: pass after pass, until told to stop. A pass that fails is reported once, and tried again."""

from __future__ import annotations

from collections.abc import Callable

from fencer.errors import ClusterError
from fencer.runtime.reconcile import Agent, Pass
from fencer.runtime.systemd import notify
from fencer.runtime.world import World


def watch(
    agent: Agent,
    world: World,
    poll_s: float,
    stopped: Callable[[], bool],
    beside: Callable[[], None] = lambda: None,
) -> None:
    """Run passes until `stopped` says so.

    Args:
        agent: Whose passes.
        world: For clock, reporter and wake-ups.
        poll_s: Seconds between passes, unless something asks for one sooner.
        stopped: Asked after every pass.
        beside: Called before every pass: for work that does not concern nodes.
    """
    for port in world.hypervisors.values():
        port.subscribe(world.clock.wake)
    world.cluster.subscribe(world.clock.wake)
    troubles: dict[str, str] = {}
    while not stopped():
        _still_alive()
        beside()
        wait_s = _one_pass(agent, world, poll_s, troubles)
        if not stopped():
            world.clock.wait(max(0.05, wait_s))


def _one_pass(agent: Agent, world: World, poll_s: float, troubles: dict[str, str]) -> float:
    """Run one pass and say what is new; return when to come again. What it saw is then forgotten."""
    try:
        done = agent.tick(_still_alive)
    except ClusterError as error:
        _tell(world, troubles, {"kubernetes": str(error)}, {"kubernetes"})
        return poll_s
    _tell(world, troubles, _troubles(done), {"kubernetes", "nodes", *world.hypervisors})
    return done.recheck_s


def _still_alive() -> None:
    """Tell systemd at every step: a pass over many nodes may take longer than its patience."""
    notify("WATCHDOG=1")


def _troubles(done: Pass) -> dict[str, str]:
    found = dict(done.scene.errors)
    if done.scene.malformed:
        found["nodes"] = "nodes that cannot be read: " + "; ".join(done.scene.malformed)
    return found


def _tell(world: World, troubles: dict[str, str], now: dict[str, str], asked: set[str]) -> None:
    """Say what is new about endpoints, and what is over; nothing twice."""
    for name, text in now.items():
        if name not in troubles:
            world.reporter.said(text, warning=True)
    for name in asked - now.keys():
        if troubles.pop(name, None) is not None:
            world.reporter.said(f"{name}: answers again", warning=False)
    troubles.update(now)
