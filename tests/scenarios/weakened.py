"""Agents out of the real parts, with rungs of the guard ladder taken out: what those rungs are there for.

Nothing of fencer is patched. The rungs are values, so that another ladder can be built of them; observing and
carrying out is done by the real `Observer` and `Executor`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fencer.core import fence
from fencer.core.ladders import CLEAR_TRUSTING, FENCE_TRUSTING, SOUND, Ladder, begin, climb
from fencer.core.learn import learn
from fencer.core.model import BindNode, Decision, Observation, PowerState
from fencer.core.policy import Policy
from fencer.core.rung import Answer, Passed, Subject
from fencer.runtime.execute import Executor
from fencer.runtime.observe import Observer
from fencer.runtime.shared import Shared
from fencer.runtime.world import World
from fencer.simulation.stage import AgentFactory, StagePorts

STEPS = 8


@dataclass(frozen=True)
class Ladders:
    """What a weakened agent climbs before the taint and after it, and whether it believes every "off"."""

    before: Ladder = FENCE_TRUSTING
    after: Ladder = CLEAR_TRUSTING
    gullible: bool = False


class Weakened:
    """An agent that fences and clears by the real ladders, without some rungs. It never lifts a fence."""

    def __init__(self, ports: StagePorts, ladders: Ladders) -> None:
        world = World(
            ports.cluster,
            ports.hypervisors,
            ports.asker,
            ports.clock,
            ports.reporter,
            witnesses=ports.witnesses,
        )
        self._policy = ports.policy
        self._ladders, self._hypervisors = ladders, ports.hypervisors
        shared = Shared.of(world, ports.policy)
        self._observer = Observer(world, ports.rules, ports.policy, shared)
        self._executor = Executor(world, ports.policy, shared)

    def tick(self) -> None:
        scene = self._observer.look()
        for node in tuple(scene.nodes.values()):
            observation = self._observer.closer(scene, self._observer.observation(scene, node))
            for _ in range(STEPS):
                decision = self._decide(observation)
                if not decision.actions:
                    break
                if not self._executor.carry_out(self._as_read(observation), decision.actions[0]).ok:
                    break
                observation = self._observer.closer(scene, observation)

    def _as_read(self, observation: Observation) -> Observation:
        """Return what was seen with the very words of its hypervisor: who believes each finds no change."""
        if not self._ladders.gullible or observation.evidence is None:
            return observation
        guest = observation.evidence.guest
        return replace(observation, evidence=self._hypervisors[guest.endpoint].read(guest))

    def _decide(self, observation: Observation) -> Decision:
        begun = begin(
            _taken_at_its_word(observation) if self._ladders.gullible else observation, self._policy
        )
        if isinstance(begun, Decision):
            return begun
        subject = begun.subject
        decision = climb(self._ladder_for(subject), subject, begun.opening, self._policy)
        gullible, noted = self._ladders.gullible, learn(observation, self._policy).notes
        notes = tuple(note for note in noted if isinstance(note, BindNode) or not gullible)
        return replace(decision, actions=(*notes, *decision.actions))

    def _ladder_for(self, subject: Subject) -> Ladder:
        if subject.node.out_of_service is not None:
            return self._ladders.after
        runs = subject.power_state is PowerState.RUNNING
        return SOUND if runs and fence.heard(subject, self._policy) else self._ladders.before


def without(*names: str, gullible: bool = False) -> AgentFactory:
    """Return an agent without the rungs of these names, before the taint and after it; and without doubts."""
    known = {name for ladder in (FENCE_TRUSTING, CLEAR_TRUSTING) for name, _ in ladder.rungs}
    assert set(names) <= known, f"no rungs of that name: {set(names) - known}"
    ladders = Ladders(_deaf(FENCE_TRUSTING, names), _deaf(CLEAR_TRUSTING, names), gullible)
    return lambda ports: Weakened(ports, ladders)


def without_a_second_look(ports: StagePorts) -> Weakened:
    """Return an agent that clears whatever is tainted, and never asks again whether the guest is off."""
    return Weakened(ports, Ladders(after=Ladder((), CLEAR_TRUSTING.ending)))


def _taken_at_its_word(observation: Observation) -> Observation:
    """Return what an agent sees that takes any "off" for an end, whatever was said or heard before."""
    evidence = observation.evidence
    if evidence is None or not (evidence.doubt or evidence.away):
        return observation
    off = replace(evidence, power_state=PowerState.STOPPED, settled=True, away=False, doubt=None)
    return replace(observation, evidence=off)


def _deaf(ladder: Ladder, names: tuple[str, ...]) -> Ladder:
    """Return a ladder whose rungs of these names never object."""

    def passes(_subject: Subject, _policy: Policy) -> Answer:
        return Passed("not asked any more")

    rungs = tuple((name, passes if name in names else rung) for name, rung in ladder.rungs)
    return Ladder(rungs, ladder.ending)
