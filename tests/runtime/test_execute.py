"""What an agent remembers of the power-offs that it makes."""

from dataclasses import replace

import pytest

from fencer.core.model import Observation, StopGuest
from fencer.core.policy import Mode, Policy
from fencer.runtime.execute import KILLED_AFTER_S
from fencer.runtime.reconcile import Agent
from fencer.simulation.faults import What
from fencer.simulation.hypervisor import SimulatedHypervisor
from tests.cli.lab import Lab

NAME = "k8s-2"


class Obstinate:
    """A hypervisor whose power-offs take so long, one after the other, and end nothing.

    Args:
        real: Answers everything else.
        took_s: How long each one takes.
        clock: Goes on meanwhile.
    """

    def __init__(self, real: SimulatedHypervisor, took_s: list[float], clock) -> None:
        self._real = real
        self._took_s = took_s
        self._clock = clock

    def stop(self, _guest, _incarnation, _not_after) -> None:
        self._clock.wait(self._took_s.pop(0))

    def __getattr__(self, name):
        return getattr(self._real, name)


def look(agent: Agent) -> Observation:
    scene = agent.observer.look()
    return agent.observer.closer(scene, agent.observer.observation(scene, agent.named(scene, NAME)))


@pytest.mark.parametrize(
    ("took_s", "killed"),
    [([1.0], False), ([KILLED_AFTER_S], True), ([KILLED_AFTER_S, 0.0], True), ([0.0, KILLED_AFTER_S], True)],
    ids=["quick", "slow", "a quick one after a slow one", "a slow one after a quick one"],
)
def test_a_power_off_that_may_have_needed_sigkill_is_remembered(took_s, killed):
    lab = Lab()
    lab.passes(30, watched=True)
    world = lab._world()
    port = Obstinate(world.hypervisors["lab"], list(took_s), world.clock)
    agent = Agent(replace(world, hypervisors={"lab": port}), Policy(mode=Mode.ARMED), lab.rules)
    lab.breaks(What.PAUSE, NAME)  # one that reads running was not killed
    seen = look(agent)
    guest = seen.candidates[0].guest
    for _ in took_s:
        agent.executor.carry_out(look(agent), StopGuest(guest, seen.evidence.incarnation))
    assert agent.observer.memory.killed[guest.key] is killed
