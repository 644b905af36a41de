"""Who types commands in a story: honest people, who may press Ctrl-C, lose their session, or be killed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, Protocol

from fencer.core.model import PowerState
from fencer.core.word import WORD_LASTS_S
from fencer.errors import FencerError
from fencer.simulation.asker import Killed
from fencer.simulation.assembly import Simulation
from fencer.simulation.commands import Typed, about
from fencer.simulation.faults import Fault, What
from fencer.simulation.hypervisor import Trouble
from fencer.simulation.scenario import Scenario
from fencer.simulation.summary import CommandSummary
from fencer.simulation.truth import Truth

AGAIN_S = 10.0
"""After so long a person types it again, if there was no answer."""
INSISTED = frozenset({"resume", "trust"})
"""Without these fencer would be held back for ever."""
OFF = frozenset({PowerState.STOPPED, PowerState.ABSENT})
COMES_BACK = frozenset(
    {
        *(What.START, What.RESUME, What.RESTORE, What.REVERT, What.REBOOT, What.RESTORE_BACKUP),
        *(What.HA_RECOVER, What.MOVE_COLD, What.MOVE_OUT, What.MOVE_OUT_LOCKED),
    }
)
"""By these a VM runs again: a person who says that it is off and stays off means that none of them comes."""


class Obeyed(Protocol):
    """How a command has ended; see `fencer.simulation.crew.Obeyed`."""

    @property
    def done(self) -> bool:
        """It did what it was asked for."""
        ...

    @property
    def text(self) -> str:
        """Its last line."""
        ...


@dataclass(frozen=True, slots=True)
class Typist:
    """Types the commands of a story.

    Attributes:
        scenario: What happens in it.
        simulation: The world.
        truth: Sees what a command does, and whether that is what it says.
        run: Carries a command out in a process of its own, which it notes on the command.
        typed: Commands, in the order in which they were typed.
        ended: The same, in the order in which they ended.
    """

    scenario: Scenario
    simulation: Simulation
    truth: Truth
    run: Callable[[Typed], Obeyed]
    typed: list[Typed]
    ended: list[CommandSummary]

    def type(self, fault: Fault) -> None:
        """Let a person type a command; what would not be honest is not typed."""
        timeline = self.simulation.timeline
        lie = self._lie(fault)
        if lie:
            timeline.tell("person", fault.target or None, "not-typed", f"does not type that: {lie}")
            return
        typed = Typed(fault.words, self.simulation.clock.now_s(), f"cmd-{len(self.typed) + 1}")
        self.typed.append(typed)
        self.simulation.clock.spawn(lambda: self._carry_out(typed, fault.target))

    def break_off(self, fault: Fault) -> None:
        """Press Ctrl-C for a command about a node, or kill it; one that has ended is left alone."""
        going = (one for one in reversed(self.typed) if one.ended_s is None and fault.target in one.nodes)
        typed = next(going, None)
        if typed is None or typed.process is None:
            return
        kills = fault.what is What.COMMAND_KILLED

        def meet() -> NoReturn:
            raise Killed if kills else KeyboardInterrupt

        typed.killed, typed.interrupted = typed.killed or kills, True
        typed.process.meets(meet)

    def _carry_out(self, typed: Typed, node: str) -> None:
        done, text = False, ""
        try:
            obeyed = self.run(typed)
            done, text = obeyed.done, obeyed.text
        except FencerError as error:
            text = str(error)
            if typed.verb in INSISTED:
                again = Fault(0.0, What.TYPED, node, words=typed.words)
                self.simulation.clock.after(AGAIN_S, lambda: self.type(again))
        except KeyboardInterrupt:
            text = "interrupted"
        except Killed:
            text = "killed"
        except AssertionError:
            raise  # the judge's own
        except Exception as error:  # noqa: BLE001 - a bug of fencer's is a finding
            typed.crash = text = f"{type(error).__name__}: {error}"
        typed.ended_s, typed.done, typed.text = self.simulation.clock.now_s(), done, text
        ended = CommandSummary(typed.words, done, text)
        self.ended.append(ended)
        if text:
            told = {"words": typed.words, "done": done, "looks": ended.looks, "command": typed.name}
            self.simulation.timeline.tell("fencer", node or None, "answered", text, **told)
        self.truth.commanded.ends(typed)

    # --- what an honest person does not say

    def _lie(self, fault: Fault) -> str:
        """Return what is not so of what a person would say with a command; empty: nothing."""
        words = f"{fault.words} "
        if fault.words.startswith("trust "):
            [endpoint] = about(fault.words)
            truthful = self.simulation.hypervisors[endpoint].trouble == Trouble()
            return "" if truthful else f"{endpoint} does not report the truth yet"
        node = fault.target
        if " --confirm-guest-off " in words and not self._stays_off(node):
            return f"the VM of {node} is not off, or will not stay off"
        if " --same-boot " in words and self._mounts(node):
            return f"volumes are mounted in the VM of {node}"
        if " --adopt " in words and not self.truth.fenced(node):
            return f"it was not fencer that fenced {node}"
        return ""

    def _stays_off(self, node: str) -> bool:
        guests = [guest for guest in self.simulation.world.guests.values() if guest.node == node]
        return all(guest.power in OFF for guest in guests) and not self._comes_back(node)

    def _comes_back(self, node: str) -> bool:
        now_s = self.simulation.timeline.now_s()
        return any(
            fault.what in COMES_BACK and (fault.cue or now_s <= fault.at_s <= now_s + WORD_LASTS_S)
            for fault in self.scenario.script
            if fault.target == node
        )

    def _mounts(self, node: str) -> bool:
        return any(guest.mounts for guest in self.simulation.world.guests.values() if guest.node == node)
