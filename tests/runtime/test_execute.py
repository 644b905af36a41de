"""What an agent remembers of the power-offs that it makes, and what it is told of many pods at once."""

import threading
from dataclasses import replace

import pytest

from fencer.core.evictions import Answer
from fencer.core.model import Observation, PodView, StopGuest
from fencer.core.policy import Mode, Policy
from fencer.errors import HypervisorUnreachable
from fencer.runtime.clock import SystemClock
from fencer.runtime.execute import KILLED_AFTER_S
from fencer.runtime.observe import API
from fencer.runtime.reconcile import Agent
from fencer.runtime.workers import WORKERS_LOST, ThreadAsker
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


class Echo:
    """Answers each eviction with the pod's name."""

    def evict(self, pod, _grace_s=None) -> Answer:
        return Answer(201, str(pod))


def exhaust(asker: ThreadAsker, endpoint: str, gate: threading.Event) -> None:
    """Let as many calls hang there as may be lost: it is not asked any more until the gate opens."""
    for _ in range(WORKERS_LOST):
        with pytest.raises(HypervisorUnreachable):
            asker.ask(endpoint, gate.wait, 0.01)


@pytest.mark.parametrize("count", [1, 8, 9, 17])
def test_each_pod_gets_its_own_answer_where_one_worker_is_exhausted(count):
    lab = Lab()
    clock, gate = SystemClock(), threading.Event()
    asker = ThreadAsker(clock, patience_s=30)
    world = replace(lab._world(), asker=asker, clock=clock, evictor=Echo())
    executor = Agent(world, lab.policy, lab.rules).executor
    pods = [PodView("demo", f"db-{number}", f"uid-{number}", "1", "Running") for number in range(count)]
    exhaust(asker, f"{API}/3", gate)
    try:
        answers = dict(executor.evict(pods))
    finally:
        gate.set()
    lost = [str(pod) for pod, answer in answers.items() if not isinstance(answer, Answer)]
    assert answers.keys() == set(pods)
    assert lost == [str(pod) for pod in pods[3 :: lab.policy.clear_parallel]]
    assert all(answer.message == str(pod) for pod, answer in answers.items() if str(pod) not in lost)


def test_no_pod_is_no_answer():
    lab = Lab()
    world = replace(lab._world(), evictor=Echo())
    assert Agent(world, lab.policy, lab.rules).executor.evict([]) == []
