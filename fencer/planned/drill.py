"""A fire drill of one node: what comes next, what was reached when, and whether it passed. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from fencer.core.model import FenceMark, Observation, PowerState
from fencer.core.pods import clearable, to_release
from fencer.core.text import age, count, of_limit

REPLACED_S = 60.0
"""So long the pods may take to be Ready elsewhere before the guest is started again.

Source: fencer/planned/plan/duration.py: a replacement is Ready in 5 to 60 s.
"""


class Milestone(StrEnum):
    """What is reached on the way, in this order."""

    OFF = "power cut"
    NOT_READY = "not Ready"
    FENCED = "fenced"
    CLEARED = "pods cleared"
    RELEASED = "volumes free"
    REPLACED = "replaced"
    STARTED = "powered on"
    READY = "Ready"
    UNFENCED = "unfenced"
    BACK = "back"


class Next(StrEnum):
    """What a drill does next."""

    STOP = "stop the guest"
    WATCH = "watch the agent"
    START = "start the guest"
    AWAIT = "await its return"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Look:
    """What one look saw.

    Attributes:
        now_s: When, on the monotonic clock.
        power_state: What the guest reads.
        runs_as: Where its hypervisor reports it as running; empty: nowhere.
        boot_id: The boot that the node reports.
        ready: Its condition Ready.
        mark: The fence on it; None: it is not fenced.
        cordoned: It takes no pods.
        pods: How many of those that a fence has to clear are left.
        volumes: How many volumes are still attached that a fence releases.
        short: Controllers with fewer Ready pods than before; None: not counted.
    """

    now_s: float
    power_state: PowerState
    boot_id: str
    ready: bool | None
    mark: FenceMark | None
    cordoned: bool
    pods: int
    volumes: int
    short: tuple[str, ...] | None = None
    runs_as: str = ""

    def shows_start(self, boot_id: str) -> bool:
        """Whether the VM runs again: by its hypervisor, or because its node is Ready with another boot.

        Args:
            boot_id: The boot that was stopped.
        """
        booted = self.ready is True and self.boot_id not in {"", boot_id}
        return self.power_state is PowerState.RUNNING or booted


def look_at(seen: Observation, before: Collection[str], short: tuple[str, ...] | None) -> Look:
    """Sum up a close look.

    Args:
        seen: It.
        before: UIDs of the pods that were there when the power was cut.
        short: As in `Look`.
    """
    node, mark = seen.node, seen.node.mark
    return Look(
        now_s=seen.now_s,
        power_state=seen.evidence.power_state if seen.evidence else PowerState.UNKNOWN,
        boot_id=node.boot_id,
        ready=node.ready,
        mark=mark if isinstance(mark, FenceMark) and node.fenced else None,
        cordoned=node.unschedulable,
        pods=sum(pod.uid in before for pod in clearable(seen.pods or ())),
        volumes=len(to_release(seen)),
        short=short,
        runs_as=_runs_as(seen),
    )


def _runs_as(seen: Observation) -> str:
    """Return the candidate that is reported as running; empty: none is."""
    if seen.evidence is not None and seen.evidence.power_state is PowerState.RUNNING:
        return str(seen.evidence.guest)
    others = zip(seen.candidates[1:], seen.others, strict=False)
    return next((str(one.guest) for one, state in others if state is PowerState.RUNNING), "")


@dataclass(frozen=True, slots=True)
class Course:
    """How far a drill is.

    Attributes:
        boot_id: The boot that it ends.
        limit_s: How long the agent may take, and again the return.
        reached: Milestone → when it was first seen, on the monotonic clock.
        by_others: Another tool started the guest.
        runs_as: Where it did; empty: where fencer cannot see it.
        mark: The fence that the agent set; None: none was seen.
        unreplaced: Controllers that lacked Ready pods when the guest was started again.
        last: The newest look.
    """

    boot_id: str
    limit_s: float
    reached: Mapping[Milestone, float] = field(default_factory=dict)
    by_others: bool = False
    runs_as: str = ""
    mark: FenceMark | None = None
    unreplaced: tuple[str, ...] = ()
    last: Look | None = None

    def at(self, milestone: Milestone, now_s: float) -> Course:
        """Return the course with a milestone reached."""
        course = replace(self, reached={**self.reached, milestone: now_s})
        if milestone is not Milestone.STARTED or self.last is None:
            return course
        return replace(course, unreplaced=self.last.short or ())

    def saw(self, look: Look) -> Course:
        """Return the course after a look: with everything that it shows reached."""
        course = replace(self, last=look, mark=look.mark or self.mark)
        if course.off and look.shows_start(course.boot_id):
            course = course.started_by_others(look)
        for milestone, shown in SHOWN.items():
            if milestone not in course.reached and shown(course, look):
                course = course.at(milestone, look.now_s)
        return course

    def started_by_others(self, look: Look) -> Course:
        """Return the course once another tool has started the guest, as a look shows."""
        course = self.at(Milestone.STARTED, look.now_s)
        return replace(course, by_others=True, runs_as=look.runs_as)

    @property
    def unseen(self) -> bool:
        """Whether its guest runs where fencer cannot see it."""
        return self.by_others and not self.runs_as

    @property
    def off(self) -> bool:
        """Whether its guest is off, for all that the drill knows."""
        return Milestone.OFF in self.reached and Milestone.STARTED not in self.reached

    def took_s(self, milestone: Milestone) -> float | None:
        """Return how long after the power cut a milestone was reached; None: it was not."""
        if milestone not in self.reached or Milestone.OFF not in self.reached:
            return None
        return self.reached[milestone] - self.reached[Milestone.OFF]


SHOWN: dict[Milestone, Callable[[Course, Look], bool]] = {
    Milestone.NOT_READY: lambda course, look: course.off and look.ready is not True,
    Milestone.FENCED: lambda course, look: course.off and look.mark is not None,
    Milestone.CLEARED: lambda course, look: (
        course.off and Milestone.FENCED in course.reached and look.pods == 0
    ),
    Milestone.RELEASED: lambda course, look: (
        course.off and Milestone.CLEARED in course.reached and look.volumes == 0
    ),
    Milestone.REPLACED: lambda course, look: (
        course.off and Milestone.RELEASED in course.reached and look.short == ()
    ),
    Milestone.READY: lambda course, look: (
        Milestone.STARTED in course.reached and look.ready is True and look.boot_id != course.boot_id
    ),
    Milestone.UNFENCED: lambda course, look: (
        Milestone.READY in course.reached and course.mark is not None and look.mark is None
    ),
    Milestone.BACK: lambda course, look: (
        Milestone.READY in course.reached and look.mark is None and not look.cordoned and look.short == ()
    ),
}
"""What a look has to show, in the order in which it is asked."""


def next_step(course: Course, now_s: float) -> Next:
    """Return what a drill does next: the agent has so long for its part, and the node for its return."""
    reached = course.reached
    if Milestone.OFF not in reached:
        return Next.STOP
    if Milestone.STARTED not in reached:
        released_s = reached.get(Milestone.RELEASED, float("inf"))
        enough = Milestone.REPLACED in reached or now_s - released_s >= REPLACED_S
        late = now_s - reached[Milestone.OFF] >= course.limit_s
        return Next.START if enough or late else Next.WATCH
    over = course.unseen or Milestone.BACK in reached or now_s - reached[Milestone.STARTED] >= course.limit_s
    return Next.DONE if over else Next.AWAIT


def failure(course: Course) -> str:
    """Say why a drill that is over has failed; empty: it passed."""
    limit, last = age(course.limit_s), course.last
    if course.unseen:
        return "another tool started its VM where fencer can't see it"
    if course.by_others and Milestone.RELEASED not in course.reached:
        return "another tool started its VM before the agent was done"
    if Milestone.FENCED not in course.reached:
        return f"it was not fenced within {limit}"
    if Milestone.RELEASED not in course.reached:
        left = f": {count(last.pods, 'pod')} and {count(last.volumes, 'volume')} were left" if last else ""
        return f"it was fenced, but not cleared within {limit}{left}"
    if Milestone.BACK not in course.reached:
        return f"it is not back after {limit}: {missing(course)}"
    return ""


def told(course: Course, milestone: Milestone, pods: int, complete: str) -> tuple[str, str] | None:
    """Return a milestone as a step for people; None: the action that reached it is one.

    Args:
        course: That has reached it.
        milestone: It.
        pods: How many pods a fence had to clear.
        complete: What of their controllers is Ready, once all is.
    """
    took, mark = age(round(course.took_s(milestone) or 0.0)), course.mark
    words = {
        Milestone.NOT_READY: f"Kubernetes says so {took} after the power cut",
        Milestone.FENCED: f"by {mark.by}; incident {mark.incident}" if mark else "",
        Milestone.CLEARED: f"{count(pods, 'pod')}, {took} after the power cut",
        Milestone.RELEASED: "no volume is left attached that has to go",
        Milestone.REPLACED: f"{complete}, {took} after the power cut",
        Milestone.READY: f"its kubelet reports boot {course.last.boot_id if course.last else ''}",
        Milestone.UNFENCED: "its fence was lifted",
        Milestone.BACK: f"not fenced, not cordoned; {complete}",
    }
    return (milestone.value, words[milestone]) if milestone in words else None


def waits(course: Course, now_s: float) -> str:
    """Say what is waited for now, for how long already, and for how long at most; empty: nothing yet."""
    reached, look = course.reached, course.last
    if Milestone.STARTED in reached:
        spent = of_limit(now_s - reached[Milestone.STARTED], course.limit_s)
        return f"not back yet: {missing(course)}; {spent}"
    if Milestone.OFF not in reached:
        return ""
    spent = of_limit(now_s - reached[Milestone.OFF], course.limit_s)
    if Milestone.RELEASED in reached:
        return f"cleared; waits for its pods elsewhere; {spent}"
    if Milestone.FENCED in reached and look is not None:
        return f"fenced; {count(look.pods, 'pod')} and {count(look.volumes, 'volume')} left; {spent}"
    silent = "not Ready" if Milestone.NOT_READY in reached else "still Ready"
    return f"VM off, node {silent}; waits for the agent; {spent}"


def missing(course: Course) -> str:
    """Say what is missing until the node is back."""
    look = course.last
    started_s = course.reached.get(Milestone.STARTED, float("inf"))
    if look is not None and look.power_state is PowerState.STOPPED and look.now_s > started_s:
        return "its VM is off again"
    if look is None or Milestone.READY not in course.reached:
        return "it is not Ready"
    if look.mark is not None:
        return "its fence is not lifted"
    if look.cordoned:
        return "it is cordoned"
    return "; ".join(look.short or ()) or "its pods were not counted"
