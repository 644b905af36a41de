"""The machine that an agent runs on: its clocks, its links, its disk, and what befalls the process on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from fencer.core.kept import Kept
from fencer.simulation.asker import Killed, Process
from fencer.simulation.clock import VirtualClock
from fencer.simulation.disk import SimulatedState
from fencer.simulation.faults import OF_LINKS, Fault, What
from fencer.simulation.links import Links
from fencer.simulation.own_clock import OwnClock
from fencer.simulation.timeline import Actor, Timeline

NTP_S = 20.0
"""So long after the machine goes on, NTP corrects its wall clock."""


RECONFIGURED_S = 20.0
"""So long after an earlier configuration was put back, its administrator has noticed that."""

Configured: TypeAlias = tuple[bool, tuple[tuple[str, Any], ...]]
"""What a configuration says: `AgentMachine.observes`, and `AgentMachine.sets`."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a snapshot of a machine keeps.

    Attributes:
        agent: A copy of its agent, which never goes on by itself.
        holder: Who it was in that life of its process.
        now_s: What its monotonic clock showed.
        kept: What lay on its disk.
        configured: What its configuration said.
    """

    agent: object
    holder: str
    now_s: float
    kept: Kept
    configured: Configured


class AgentMachine:
    """The machine of one agent.

    Args:
        name: The agent's.
        clock: The world's.
        timeline: Where it is told what happens.
        state: What lies on its disk.
        links: Its ways to the API server and to endpoints.
        own: Its clocks.

    Attributes:
        process: The present life of the agent; None: none has begun.
        holder: Who it is in that life.
        down_s: After the present life has ended, the next one begins so much later.
        observes: Its configuration says `mode: observe`.
        sets: What else its configuration says now, where that differs from the scenario's policy.
        keeps: A snapshot of it is to be taken, once no pass is under way.
        restarts: It is to be stopped then, and started again.
    """

    def __init__(
        self,
        name: str,
        clock: VirtualClock,
        timeline: Timeline,
        state: SimulatedState,
        links: Links,
        own: OwnClock,
    ) -> None:
        self.name, self.state, self.links, self.own = name, state, links, own
        self.process: Process | None = None
        self.holder = ""
        self.down_s = 0.0
        self.observes = False
        self.sets: tuple[tuple[str, Any], ...] = ()
        self._snapshot: Snapshot | None = None
        self._reverted: What | None = None
        self._clock, self._timeline = clock, timeline
        self.keeps = self.restarts = False

    def befall(self, fault: Fault) -> None:
        """Let something happen to it: now, or in the midst of what its agent will be doing by then."""
        if fault.what in OF_LINKS:
            self._tell(fault.what.value, fault.told)
            self.links.befall(fault)
            return
        if fault.what is What.AGENT_RELOADED:
            self._reconfigure(fault)
        if self.process is None:
            return
        match fault.what:
            case What.AGENT_SNAPSHOT:
                self.keeps = True
            case What.AGENT_RESTARTED | What.AGENT_RELOADED:
                self.restarts, self.down_s = True, fault.for_s
            case _:
                if fault.what is What.AGENT_ARMED:
                    self._tell("agent-armed", fault.text or f"{self.name} is armed, and reloaded", "person")
                    self.observes = False
                self.process.meets(self._fate(fault), fault.steps)

    def keep(self, agent: object | None) -> None:
        """Take a snapshot of it.

        Args:
            agent: A copy of its agent; None: something is under way, so that it has to wait.
        """
        if agent is not None:
            self.keeps = False
            configured = self.observes, self.sets
            self._snapshot = Snapshot(agent, self.holder, self.own.now_s(), self.state.load(), configured)
            self._tell("agent-snapshot", f"a snapshot of {self.name}'s VM is taken, with its memory")

    def stop(self) -> None:
        """End its process in good order.

        Raises:
            Killed: always.
        """
        self.restarts = False
        self._tell("agent-ends", f"{self.name} is stopped, to be started again")
        raise Killed

    def _reconfigure(self, fault: Fault) -> None:
        """Change its configuration: the process that starts next reads it."""
        changed = ", ".join(f"{key}: {value}" for key, value in fault.sets) or "as it was first"
        text = fault.text or f"{self.name} is reloaded; its policy: {changed}"
        self._tell("agent-reloaded", text, "person")
        self.sets = fault.sets

    def _put_in_order(self, configured: Configured) -> None:
        """Let its administrator undo what a revert has done to its configuration."""
        self._tell("agent-reloaded", f"{self.name} is reloaded, with its newest configuration", "person")
        self.observes, self.sets = configured
        self.restarts, self.down_s = True, 1.0

    def begin(self) -> Snapshot | None:
        """Put back what a revert puts back, before the next life begins.

        Returns:
            With whose memory it goes on; None: it begins afresh.
        """
        back, how = self._snapshot, self._reverted
        if back is None or how is None:
            return None
        self._reverted = None
        self.state.put_back(back.kept)
        if (newest := (self.observes, self.sets)) != back.configured:
            self.observes, self.sets = back.configured
            self._clock.after(RECONFIGURED_S, partial(self._put_in_order, newest))
        if how is What.AGENT_RESTORED:
            return None
        self.own.set_back(back.now_s)
        self._clock.after(NTP_S, self.own.correct)
        return back

    def _fate(self, fault: Fault) -> Callable[[], None]:
        for_s, name = fault.for_s, self.name

        def freeze() -> None:
            self._tell("agent-freezes", f"{name} stands still: its machine is suspended")
            self._clock.advance(for_s)
            self._tell("agent-goes-on", f"{name} goes on where it stood, {for_s:.0f} s later")

        def pause() -> None:
            self._tell("agent-freezes", f"{name} stands still: its VM is paused, and with it its clocks")
            self.own.stop()
            self._clock.advance(for_s)
            self.own.go_on()
            self._tell("agent-goes-on", f"{name} goes on where it stood; for its clocks no time has passed")
            self._clock.after(NTP_S, self.own.correct)

        def end() -> None:
            how = {What.AGENT_ARMED: "reloaded"}.get(fault.what, "killed")
            self._tell("agent-ends", f"{name} is {how}")
            self.down_s = for_s
            raise Killed

        def revert() -> None:
            if self._snapshot is None:
                return
            memory = fault.what is What.AGENT_REVERTED
            what = "VM is reverted to its snapshot, with its memory" if memory else "disk is put back"
            self._tell("agent-ends", f"{name}'s {what}")
            self.down_s, self._reverted = for_s, fault.what
            raise Killed

        return {
            What.AGENT_FROZEN: freeze,
            What.AGENT_PAUSED: pause,
            What.AGENT_REVERTED: revert,
            What.AGENT_RESTORED: revert,
        }.get(fault.what, end)

    def _tell(self, what: str, text: str, who: Actor = "world") -> None:
        self._timeline.tell(who, None, what, text)
