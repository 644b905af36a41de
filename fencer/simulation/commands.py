"""The commands of a story: what was typed, about which nodes, what it may do, and what became of it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from functools import cache

from fencer.ports import Clock
from fencer.simulation.asker import Process

ENDS_S = 150.0
"""So much longer than its --timeout a command takes to end: a drill tries to start its VM for 120 s."""
LOOKS = frozenset({"plan"})
"""They change nothing."""
CUTS = frozenset({"drill", "--stop-guest", "--stop-after"})
"""Words by which a person wants the power of a node's VM cut, although it runs."""


@cache
def _split(words: str) -> tuple[str, ...]:
    """Return the words of a command line."""
    return tuple(shlex.split(words))


@dataclass(slots=True, eq=False)
class Typed:
    """A command that a person has typed.

    Attributes:
        words: What was typed after ``fencer``.
        began_s: When, by the world's clock.
        name: Which of all commands of the story it is, like ``cmd-1``.
        ended_s: When it ended; None: it is under way.
        done: It did what it was asked for, as it says.
        interrupted: Ctrl-C was pressed, or its session was lost.
        killed: Its process was killed.
        crash: An exception that it does not turn into an exit code; empty: none came out.
        text: The last line that it printed.
        moved: How many pods it has asked to be evicted.
        volumes: Those of these pods.
        asked_s: VMs that it has asked to shut down, and when first.
        boots: Node → the boot of its VM that it has first asked to shut down, or cut off.
        stopped: The VMs whose power it has cut.
        process: It runs in.
    """

    words: str
    began_s: float
    name: str = ""
    ended_s: float | None = None
    done: bool = False
    interrupted: bool = False
    killed: bool = False
    crash: str = ""
    text: str = ""
    moved: int = 0
    volumes: set[str] = field(default_factory=set)
    asked_s: dict[str, float] = field(default_factory=dict)
    boots: dict[str, str] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)
    process: Process | None = None

    @property
    def verb(self) -> str:
        """The command's name."""
        return self.words.split(maxsplit=1)[0]

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that it is about: they are typed before the first option."""
        return about(self.words)

    def says(self, option: str) -> bool:
        """Whether an option was typed."""
        return option in _split(self.words)

    @property
    def stop_after_s(self) -> float:
        """How long a VM has to shut down by itself before its power is cut; 0: nothing is said of that."""
        words = _split(self.words)
        return float(words[words.index("--stop-after") + 1]) if "--stop-after" in words else 0.0

    @property
    def may_cut(self) -> bool:
        """Whether a person wants the power of its nodes' VMs cut, although they run."""
        return bool(CUTS & {*_split(self.words)})

    @property
    def over_brake(self) -> bool:
        """Whether the brake does not count for it: a person says so, or it is a planned stop."""
        return self.verb == "shutdown" or self.says("--over-brake")


def about(words: str) -> tuple[str, ...]:
    """Return what a command is about: what is typed between its name and its first option."""
    typed = _split(words)[1:]
    first = next((at for at, word in enumerate(typed) if word.startswith("-")), len(typed))
    return tuple(typed[:first])


def paused_for_s(words: str) -> float:
    """Return how long fencing is paused by a command, in seconds; 0: it pauses nothing, or without an end."""
    typed = _split(words)
    if "--for" not in typed:
        return 0.0
    return 60.0 * int(typed[typed.index("--for") + 1].removesuffix("m"))


def bound_s(words: str) -> float:
    """Return how long a command takes at most where all answer at once, in seconds: by its own --timeout.

    A shutdown has it twice, for the drain and for the VM; so has a drill, for the agent and for the return,
    and it waits for replacements, and for a start that is refused.
    """
    typed = _split(words)
    timeout_s = float(typed[typed.index("--timeout") + 1]) if "--timeout" in typed else 0.0
    times = {"shutdown": 2, "drill": 2}.get(typed[0], 1) * max(1, len(about(words)))
    return times * (timeout_s + ENDS_S)


class Hands:
    """The clock of a command: whatever befalls its process befalls it while it waits, too.

    Args:
        clock: Whose time passes.
        process: Its own.
    """

    def __init__(self, clock: Clock, process: Process) -> None:
        self._clock, self._process = clock, process

    def now_s(self) -> float:
        """See `Clock.now_s`."""
        return self._clock.now_s()

    def wait(self, timeout_s: float) -> bool:
        """See `Clock.wait`."""
        woken = self._clock.wait(timeout_s)
        self._process.step()
        return woken

    def wake(self) -> None:
        """See `Clock.wake`."""
        self._clock.wake()
