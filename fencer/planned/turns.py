"""A planned change of one node, a step at a time: drain, shut down, start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from fencer.core.fence import left_to_clear
from fencer.core.model import Intent, Judged, NodeView, PodView, Reason, Verdict, Word
from fencer.core.policy import Policy
from fencer.core.rung import Objection
from fencer.core.shutdown import over_brake
from fencer.core.text import age, of_limit
from fencer.errors import ClusterError
from fencer.planned.drain import DrainOptions, NodeDrain, Tell
from fencer.runtime.reconcile import Agent
from fencer.runtime.world import World
from fencer.wording.reasons import TEXTS, says


class Turn(Protocol):
    """A change of one node, a step at a time."""

    @property
    def node(self) -> NodeView:
        """The node, as it was at the beginning."""
        ...

    @property
    def over(self) -> bool:
        """Nothing is left to do."""
        ...

    @property
    def failed(self) -> str:
        """Why it failed; empty: it did not, or goes on."""
        ...

    @property
    def returned(self) -> Sequence[PodView]:
        """Pods that its drain left, because they would only come back."""
        ...

    def prepare(self) -> None:
        """Prepare before the turns of others begin: keep their pods away."""
        ...

    def withdraw(self) -> None:
        """Undo that, unless the turn has begun: it will not go on."""
        ...

    def advance(self) -> float:
        """Do what is due; return in how many seconds to come again."""
        ...

    def waits(self) -> str:
        """Say what is waited for now, how far it is, and for how long it goes on; empty: nothing yet."""
        ...


@dataclass(frozen=True, slots=True)
class ShutdownOptions:
    """How to shut a node down.

    Attributes:
        drain: How to drain it first; None: not from here.
        timeout_s: How long its guest may take to shut down, and what is left to be cleared.
        stop_after_s: When the guest's power is cut; None: never.
    """

    drain: DrainOptions | None
    timeout_s: float
    stop_after_s: float | None = None


class DrainTurn:
    """A drain alone.

    Args:
        node: The node.
        drain: Its drain.
        keep_cordon: Leave it cordoned if that fails.
    """

    def __init__(self, node: NodeView, drain: NodeDrain, *, keep_cordon: bool) -> None:
        self.node = node
        self.drain = drain
        self.given_back = False
        self._keep_cordon = keep_cordon

    @property
    def over(self) -> bool:
        """See `Turn.over`."""
        return self.drain.over

    @property
    def failed(self) -> str:
        """See `Turn.failed`."""
        return self.drain.failed

    @property
    def returned(self) -> Sequence[PodView]:
        """See `Turn.returned`."""
        return self.drain.pods.returned

    def prepare(self) -> None:
        """Cordon, so that no pod from another node's drain comes here and is evicted again."""
        self.drain.begin()

    def withdraw(self) -> None:
        """See `Turn.withdraw`."""
        over = self.drain.failed or not self.drain.begun
        if self.drain.own is not None and over and not self._keep_cordon:
            self.given_back = self.drain.give_back()

    def advance(self) -> float:
        """See `Turn.advance`."""
        wait_s = self.drain.advance()
        if self.drain.failed:
            self.withdraw()
        return wait_s

    def waits(self) -> str:
        """See `Turn.waits`."""
        return self.drain.waits()


class ShutdownTurn:
    """A drain (or none), the shutdown of the guest, and the fence of what is left.

    Args:
        world: The ports.
        agent: Judges and acts.
        policy: How often to look.
        node: The node.
        options: How.
        tell: Shows the steps.
    """

    def __init__(
        self, world: World, agent: Agent, policy: Policy, node: NodeView, options: ShutdownOptions, tell: Tell
    ) -> None:
        self.node = node
        self.failed = ""
        self.over = False
        self.judged: Judged | None = None
        self.began_s: float | None = None
        """When its guest was first looked at for the shutdown; None: it was not."""
        self.draining: DrainTurn | None = None
        if options.drain is not None:
            drain = NodeDrain(world, agent, node.name, replace(options.drain, shutdown=True), tell)
            self.draining = DrainTurn(node, drain, keep_cordon=options.drain.keep_cordon)
        self._world = world
        self._agent = agent
        self._policy = policy
        self._options = options
        self._tell = tell
        self._intent = Intent.SHUTDOWN

    @property
    def returned(self) -> Sequence[PodView]:
        """See `Turn.returned`."""
        return () if self.draining is None else self.draining.returned

    def prepare(self) -> None:
        """See `Turn.prepare`."""
        if self.draining is not None:
            self.draining.prepare()
            if self.draining.failed:
                self._end(self.draining.failed)

    def withdraw(self) -> None:
        """See `Turn.withdraw`."""
        if self.draining is not None:
            self.draining.withdraw()

    def advance(self) -> float:
        """See `Turn.advance`."""
        if self.draining is not None and not self.draining.over:
            return self._drain(self.draining)
        now_s = self._world.clock.now_s()
        self.began_s = now_s if self.began_s is None else self.began_s
        seen = self.judged.observation.evidence if self.judged else None
        word = Word(stop_after_s=self._options.stop_after_s, over_brake_why=over_brake(self._intent, seen))
        try:
            self.judged = judged = self._agent.step(self.node.name, self._intent, word)
        except ClusterError as error:
            self._tell(self.node.name, "trouble", str(error))
        else:
            self._judge(judged)
        if not self.over and now_s - self.began_s >= self._options.timeout_s:
            self._end(self._late())
        recheck_s = self.judged.decision.recheck_s if self.judged else None
        return self._policy.poll_s if recheck_s is None else min(self._policy.poll_s, max(0.05, recheck_s))

    def waits(self) -> str:
        """See `Turn.waits`."""
        if self.draining is not None and not self.draining.over:
            return self.draining.waits()
        if self.judged is None or self.began_s is None:
            return ""
        spent_s = self._world.clock.now_s() - self.began_s
        return f"{TEXTS[self.judged.decision.reason].says}; {of_limit(spent_s, self._options.timeout_s)}"

    def _drain(self, draining: DrainTurn) -> float:
        wait_s = draining.advance()
        if draining.failed:
            self._end(draining.failed)
        return 0.0 if draining.over else wait_s

    def _judge(self, judged: Judged) -> None:
        decision = judged.decision
        if decision.reason is Reason.PODS_CLEARED or decision.reason is Reason.NOTHING_TO_CLEAR:
            self._end()
        elif decision.verdict is Verdict.OFF:
            left = left_to_clear(judged.observation)
            if isinstance(left, Objection):
                self._end()
            else:
                self._tell(self.node.name, "left over", f"{left.seen}: cleared as after a crash")
                self._intent = Intent.FENCE
        elif decision.verdict is Verdict.REFUSE:
            self._end(says(decision))

    def _late(self) -> str:
        why = says(self.judged.decision) if self.judged else "nothing could be read"
        return f"not finished within {age(self._options.timeout_s)}: {why}"

    def _end(self, why: str = "") -> None:
        self.over, self.failed = True, why


class StartTurn:
    """Power on, wait for Ready, unfence and uncordon what is ours.

    Args:
        world: The ports.
        agent: Judges and acts.
        policy: How often to look.
        node: The node.
        timeout_s: For all of it.
    """

    def __init__(self, world: World, agent: Agent, policy: Policy, node: NodeView, timeout_s: float) -> None:
        self.node = node
        self.failed = ""
        self.over = False
        self.judged: Judged | None = None
        self._world = world
        self._agent = agent
        self._policy = policy
        self._began_s = world.clock.now_s()
        self._timeout_s = timeout_s

    @property
    def returned(self) -> Sequence[PodView]:
        """See `Turn.returned`."""
        return ()

    def prepare(self) -> None:
        """Do nothing: a start needs no preparation."""

    def withdraw(self) -> None:
        """Do nothing."""

    def advance(self) -> float:
        """See `Turn.advance`."""
        self.judged = judged = self._agent.step(self.node.name, Intent.START, Word())
        decision = judged.decision
        if decision.reason is Reason.STARTED:
            self.over = True
        elif decision.verdict is Verdict.REFUSE:
            self.over, self.failed = True, says(decision)
        elif self._world.clock.now_s() >= self._began_s + self._timeout_s:
            self.over, self.failed = True, f"not back in time: {says(decision)}"
        recheck_s = self._policy.poll_s if decision.recheck_s is None else decision.recheck_s
        return min(self._policy.poll_s, max(0.05, recheck_s))

    def waits(self) -> str:
        """See `Turn.waits`."""
        if self.judged is None:
            return ""
        spent_s = self._world.clock.now_s() - self._began_s
        return f"{TEXTS[self.judged.decision.reason].says}; {of_limit(spent_s, self._timeout_s)}"
