"""Calls to the cluster, each under a deadline; and whether this agent itself stood still between them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar

from fencer.core.policy import SLOW_CALL_S, Policy
from fencer.errors import ClusterUnreachable, HypervisorError
from fencer.runtime.world import API, World

T = TypeVar("T")


class ClusterCalls:
    """Asks the cluster for the observer, the executor and the drains of one agent.

    Args:
        world: The ports.
        policy: Deadlines.

    Attributes:
        awake_since_s: When this agent last went on after it had stood still.
        passes: Passes go on beside every action, and call every few seconds.
        took_s: How long the newest call took.
    """

    def __init__(self, world: World, policy: Policy) -> None:
        self._world = world
        self._policy = policy
        self.awake_since_s = self._alive_s = world.clock.now_s()
        self.passes = False
        self.took_s = 0.0

    @property
    def slowness(self) -> str:
        """A sentence that names a slow API server as the cause of something; empty: it is not slow."""
        slow = self.took_s >= SLOW_CALL_S
        return f". The API server is slow: its last call took {self.took_s:.0f} s" if slow else ""

    def __call__(self, call: Callable[[], T], worker: str = API) -> T:
        """Ask under the deadline of an ordinary call.

        Args:
            call: What to ask.
            worker: Whose; one that nodes which hang cannot keep busy, for what every pass needs.

        Raises:
            ClusterError: what the call raised, or that it came too late.
        """
        self.show_life()
        began_s = self._world.clock.now_s()
        try:
            return self._world.asker.ask(worker, call, self._policy.call_deadline_s)
        except HypervisorError as error:
            raise ClusterUnreachable(str(error)) from error
        finally:
            self.took_s = self._world.clock.now_s() - began_s

    def alone(self, what: str) -> AbstractContextManager[None]:
        """Be the only one at something; see `fencer.ports.Asker`."""
        return self._world.asker.alone(what)

    def show_life(self) -> None:
        """Notice if this agent itself stood still for longer than readings may be apart.

        No pass takes that long between two calls: the machine was suspended, and nobody saw what happened
        meanwhile.
        """
        now_s = self._world.clock.now_s()
        if now_s - self._alive_s > self._policy.apart_s:
            self.awake_since_s = now_s
        self._alive_s = now_s

    def worked(self, longest_s: float) -> None:
        """Take note that an action has just ended, which may take that long without standing still.

        Where passes go on beside it, they show life: if they did not, the whole agent stood still.
        """
        now_s = self._world.clock.now_s()
        if not self.passes and now_s - self._alive_s <= longest_s:
            self._alive_s = now_s
