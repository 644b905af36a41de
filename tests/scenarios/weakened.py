"""Agents out of the real parts, with rungs of the guard ladder taken out: what those rungs are there for.

Nothing of fencer is patched. The rungs are values, so that another ladder can be built of them; observing and
carrying out is done by the real `Observer` and `Executor`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fencer.core.decide import APPROACH, FENCE
from fencer.core.ladder import Ending, Objection, Passed, Rung, climb
from fencer.core.model import (
    ClearPods,
    Decision,
    FenceMark,
    Observation,
    PowerState,
    Reason,
    TaintNode,
    Verdict,
)
from fencer.core.pods import clearable
from fencer.core.policy import Policy
from fencer.core.recover import STILL_OFF
from fencer.runtime.execute import Executor
from fencer.runtime.observe import Observer, World
from fencer.simulation.stage import AgentFactory, StagePorts

Ladder = Sequence[tuple[str, Rung]]
STEPS = 8


class Weakened:
    """An agent that fences and clears by the real ladders, without some rungs. It never lifts a fence."""

    def __init__(self, ports: StagePorts, fence: Ladder, still_off: Ladder) -> None:
        world = World(
            ports.cluster,
            ports.hypervisors,
            ports.asker,
            ports.clock,
            ports.reporter,
            witnesses=ports.witnesses,
        )
        self._policy = ports.policy
        self._fence = fence
        self._still_off = still_off
        self._observer = Observer(world, ports.rules, ports.policy)
        self._executor = Executor(world, self._observer, ports.policy)

    def tick(self) -> None:
        scene = self._observer.look()
        for node in tuple(scene.nodes.values()):
            observation = self._observer.closer(scene, self._observer.observation(scene, node))
            for _ in range(STEPS):
                decision = self._decide(observation)
                if not decision.actions or not self._executor.carry_out(observation, decision.actions[0]).ok:
                    break
                observation = self._observer.closer(scene, observation)

    def _decide(self, observation: Observation) -> Decision:
        if observation.node.out_of_service is not None:
            return climb(self._still_off, _clear, observation, self._policy)
        return climb(self._fence, _taint, observation, self._policy)


def without(*names: str) -> AgentFactory:
    """Return an agent without the rungs of these names, before the taint and after it."""
    ladders = (*APPROACH, *FENCE), STILL_OFF
    missing = set(names) - {name for ladder in ladders for name, _ in ladder}
    assert not missing, f"no rungs of that name: {missing}"
    fence, still_off = (
        [(name, _deaf(rung) if name in names else rung) for name, rung in ladder] for ladder in ladders
    )
    return lambda ports: Weakened(ports, fence, still_off)


def without_a_second_look(ports: StagePorts) -> Weakened:
    """Return an agent that clears whatever is tainted, and never asks again whether the guest is off."""
    return Weakened(ports, (*APPROACH, *FENCE), ())


def _deaf(rung: Rung) -> Callable[[Observation, Policy], Passed | Objection]:
    """Return a rung that never objects, but to a guest that runs and is heard: else nothing is bound."""

    def passes(observation: Observation, policy: Policy) -> Passed | Objection:
        answer = rung(observation, policy)
        heard = isinstance(answer, Objection) and answer.verdict is Verdict.HEALTHY
        state = observation.evidence.power_state if observation.evidence else PowerState.UNKNOWN
        return answer if heard and state is PowerState.RUNNING else Passed("not asked any more")

    return passes


def _taint(observation: Observation, _policy: Policy) -> Ending:
    node, guest = observation.node, observation.candidates[0].guest
    mark = FenceMark("weakened", observation.utc, node.boot_id, guest, "weakened")
    return Ending(Verdict.FENCE, Reason.PROVEN_OFF, (TaintNode(mark),))


def _clear(observation: Observation, _policy: Policy) -> Ending:
    pods = clearable(observation.pods or ())
    return Ending(Verdict.FENCED, Reason.CLEARING_PODS, (ClearPods(pods),) if pods else ())
