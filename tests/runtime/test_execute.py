"""What an agent remembers of the power-offs that it makes, and what it is told of many pods at once."""

import threading
from dataclasses import replace

import pytest

from fencer.core.done import GuestStopped
from fencer.core.model import ClearPods, EvictPods, Observation, PodView, StopGuest
from fencer.core.policy import SEEMS_KILLED_S, Mode, Policy
from fencer.errors import (
    ClusterConflict,
    ClusterDenied,
    GuestChanged,
    HypervisorDenied,
    HypervisorProtocol,
    HypervisorUnreachable,
)
from fencer.evicting.answers import Answer
from fencer.runtime.clock import SystemClock
from fencer.runtime.reconcile import Agent
from fencer.runtime.workers import WORKERS_LOST, ThreadAsker
from fencer.runtime.world import API
from fencer.simulation.faults import What
from fencer.simulation.hypervisor import SimulatedHypervisor
from fencer.simulation.objects import ApiPod
from tests.cli.lab import Lab
from tests.runtime.stagehand import Stagehand

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
    [([1.0], None), ([SEEMS_KILLED_S], True), ([SEEMS_KILLED_S, 0.0], True), ([0.0, SEEMS_KILLED_S], True)],
    ids=["quick, and in vain", "slow", "a quick one after a slow one", "a slow one after a quick one"],
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
    assert agent.shared.memory.killed.get(guest.key) is killed


class Scripted:
    """A hypervisor whose power-offs go as written, one after the other.

    Args:
        real: Answers everything else.
        script: What each one does: an error is raised, None does nothing, and with OBEY it is done.
    """

    def __init__(self, real: SimulatedHypervisor, script: list[str | Exception | None]) -> None:
        self._real = real
        self._script = script

    def stop(self, guest, incarnation, not_after) -> None:
        match self._script.pop(0):
            case Exception() as error:
                raise error
            case "obey":
                self._real.stop(guest, incarnation, not_after)

    def __getattr__(self, name):
        return getattr(self._real, name)


OBEY = "obey"
DENIED = HypervisorDenied("lab: we may not stop it")
BROKEN = HypervisorProtocol("lab: the connection broke")
CHANGED = GuestChanged("lab: run 1 was meant, it is in run 2 now")


def stop_as_written(script: list[str | Exception | None]) -> tuple[GuestStopped, Observation]:
    """Order the power-off of a paused guest so often; return what came of the last, and what is seen then."""
    lab = Lab()
    lab.passes(30, watched=True)
    world = lab._world()
    port = Scripted(world.hypervisors["lab"], script)
    agent = Agent(replace(world, hypervisors={"lab": port}), Policy(mode=Mode.ARMED), lab.rules)
    lab.breaks(What.PAUSE, NAME)
    lab.passes(60)  # what could not be stopped counts until its node is Ready again
    while script:
        seen = look(agent)
        order = StopGuest(seen.candidates[0].guest, seen.evidence.incarnation)
        done = agent.executor.carry_out(seen, order)
        world.clock.wait(10.0)
    return done, look(agent)


class TestPowerOffsThatFail:
    """What is remembered of one decides when the next may be tried, of this guest and of any other."""

    def test_one_that_was_obeyed_is_told_so_and_takes_its_turn(self):
        done, seen = stop_as_written([OBEY])
        assert (done.ok, done.sent, done.error) == (True, True, "")
        assert seen.stop_failed is None
        assert seen.fleet.last_stop_age_s == pytest.approx(10.0, abs=0.5)

    @pytest.mark.parametrize(
        ("answer", "sent", "why", "takes_its_turn"),
        [
            (None, True, "it reads as before", True),
            (BROKEN, True, str(BROKEN), True),
            (DENIED, True, str(DENIED), False),
            (CHANGED, False, None, False),
        ],
        ids=["did nothing", "broke", "denied", "another run"],
    )
    def test_one_that_ended_nothing(self, answer, sent, why, takes_its_turn):
        done, seen = stop_as_written([answer])
        assert (done.ok, done.sent, done.error) == (False, sent, str(answer or ""))
        failed = seen.stop_failed
        assert (failed and failed.why) == why
        assert failed is None or (failed.times, round(failed.ago_s)) == (1, 10)
        assert (seen.fleet.last_stop_age_s is not None) is takes_its_turn

    @pytest.mark.parametrize(
        ("answer", "killed"), [(OBEY, False), (None, None), (BROKEN, None), (DENIED, None), (CHANGED, None)]
    )
    def test_only_one_that_ended_it_says_that_it_was_quick(self, answer, killed):
        """After any other, another agent may end it, and nobody here knows how."""
        assert stop_as_written([answer])[1].killed is killed

    def test_one_that_is_denied_gives_back_the_turn_of_the_one_before(self):
        _, seen = stop_as_written([BROKEN, DENIED])
        assert seen.fleet.last_stop_age_s == pytest.approx(20.0, abs=0.5)

    def test_they_are_counted_until_one_is_obeyed(self):
        assert stop_as_written([BROKEN, None, DENIED])[1].stop_failed.times == 3
        assert stop_as_written([BROKEN, None, OBEY])[1].stop_failed is None


class Echo:
    """Answers each eviction with the pod's name."""

    def evict(self, pod, _grace_s=None) -> Answer:
        return Answer(201, str(pod))


def exhaust(asker: ThreadAsker, endpoint: str, gate: threading.Event) -> None:
    """Let as many calls hang there as may be lost: it is not asked any more until the gate opens."""
    told = ""
    while f"{WORKERS_LOST} calls hang there" not in told:  # one whose thread had not begun was taken back
        with pytest.raises(HypervisorUnreachable) as refused:
            asker.ask(endpoint, gate.wait, 0.01)
        told = str(refused.value)


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
        answers = dict(executor.evict(EvictPods(tuple(pods))))
    finally:
        gate.set()
    lost = [str(pod) for pod, answer in answers.items() if not isinstance(answer, Answer)]
    assert answers.keys() == set(pods)
    assert lost == [str(pod) for pod in pods[3 :: lab.policy.clear_parallel]]
    assert all(answer.message == str(pod) for pod, answer in answers.items() if str(pod) not in lost)


def test_no_pod_is_no_answer():
    lab = Lab()
    world = replace(lab._world(), evictor=Echo())
    assert Agent(world, lab.policy, lab.rules).executor.evict(EvictPods(())) == []


def test_of_each_pod_is_told_what_became_of_it():
    """Gone, held by a finalizer, changed since it was seen, or failed: only the first is over."""
    stage = Stagehand()
    api = stage.simulation.api
    for name, finalizers in (("a", ()), ("b", ()), ("c", ()), ("d", ("demo/keep",))):
        pod = ApiPod("demo", name, api.new_uid(), "Job/mine", api.clock.now_s(), finalizers=finalizers)
        api.create_pod(pod)
        api.bind_pod(pod, NAME)
    seen = look(stage.agent)

    def refuse():
        raise ClusterDenied("we may not delete pods")

    def change():
        stage.before["clear"] = refuse
        raise ClusterConflict("it is another pod now")

    stage.before["clear"] = change
    pods = tuple(sorted((pod for pod in seen.pods if pod.name in {"a", "b", "c", "d"}), key=str))
    done = stage.agent.executor.carry_out(seen, ClearPods(pods))
    assert (done.changed, done.gone) == (("demo/a",), ("demo/c",))
    assert done.failed == {"demo/b": "we may not delete pods"}
    assert list(done.held) == ["demo/d"]
