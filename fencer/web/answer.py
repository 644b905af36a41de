"""The first line of the status page: is all well, and if not, what is wrong, the worst first. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fencer.core.model import Judged, Reason
from fencer.core.policy import Policy
from fencer.core.text import age, count, listing, unticked
from fencer.ports.runtime import Sight
from fencer.web.snapshot import Snapshot
from fencer.wording.agents import LEASES_MEND
from fencer.wording.conditions import Condition, condition, problems_first
from fencer.wording.headlines import headline
from fencer.wording.nodes import silent_endpoints
from fencer.wording.outages import MEANS
from fencer.wording.ways_out import WAYS

STALE_S = 30.0
"""Passes follow each other every 2 s; one over thousands of nodes that wait for slow endpoints takes a few.
From here on nobody should believe that what was seen last is so now; see `stale_after_s`."""
NAMED = 2
"""So many incidents are told in the first line; on a phone that fills half of the screen."""

RUNNING = frozenset(
    {
        *(Condition.ALARM, Condition.REFUSED, Condition.ONLY_OBSERVED, Condition.TO_BE_FENCED),
        *(Condition.WAITING, Condition.FENCED, Condition.RECOVERING),
    }
)
"""A node in such a condition is an incident that goes on."""
IF_NOT_READY = frozenset({Condition.UNPROTECTED, Condition.BLIND})
"""The same, if the node is not Ready; otherwise only its next incident would be one."""


class Tone(StrEnum):
    """What a colour repeats, the worst first."""

    BAD = "bad"
    DOUBTFUL = "doubtful"
    AT_WORK = "at_work"
    GOOD = "good"


TONES: dict[Condition, Tone] = {
    Condition.ALARM: Tone.BAD,
    Condition.REFUSED: Tone.BAD,
    Condition.UNPROTECTED: Tone.BAD,
    Condition.BLIND: Tone.BAD,
    Condition.ONLY_OBSERVED: Tone.BAD,
    Condition.TO_BE_FENCED: Tone.AT_WORK,
    Condition.WAITING: Tone.DOUBTFUL,
    Condition.FENCED: Tone.AT_WORK,
    Condition.RECOVERING: Tone.AT_WORK,
    Condition.NOTHING_TO_CLEAR: Tone.DOUBTFUL,
    Condition.SHUT_DOWN: Tone.DOUBTFUL,
    Condition.EXCLUDED: Tone.DOUBTFUL,
    Condition.CORDONED: Tone.DOUBTFUL,
    Condition.PAUSED: Tone.DOUBTFUL,
    Condition.HEALTHY: Tone.GOOD,
}


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that somebody has to know.

    Attributes:
        tone: How bad it is.
        word: The same in a word or two.
        text: What it is; printable.
    """

    tone: Tone
    word: str
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether all is well.

    Attributes:
        lines: What there is to say, the worst first; never empty.
        running: Incidents that go on, what needs a person first.
    """

    lines: tuple[Line, ...]
    running: tuple[Judged, ...]

    @property
    def tone(self) -> Tone:
        """The worst of all."""
        return self.lines[0].tone


def stale_after_s(policy: Policy) -> float:
    """Return from which age on what was seen last is told as old: three passes have not come, at least."""
    return max(STALE_S, 3 * policy.poll_s + policy.call_deadline_s)


def answer(seen: Snapshot) -> Answer:
    """Return whether all is well, as far as the agent knows.

    Args:
        seen: What the agent has shown last.
    """
    sight = seen.sight
    judged = problems_first(sight.judged.values()) if sight is not None else []
    running = tuple(item for item in judged if is_running(item))
    order = list(Tone)
    lines = [*_of_agent(seen), *(_of_sight(seen, sight, judged, running) if sight is not None else ())]
    if not lines:
        lines = [_well(judged)]
    return Answer(tuple(sorted(lines, key=lambda line: order.index(line.tone))), running)


def is_running(item: Judged) -> bool:
    """Whether a node is an incident that goes on."""
    found = condition(item)
    return found in RUNNING or (found in IF_NOT_READY and item.observation.node.ready is not True)


def tone_of(item: Judged, *, old: bool = False) -> Tone:
    """Return how bad it is about a node.

    Args:
        item: The node.
        old: It was seen so a while ago, and nobody has been able to look since: nothing is sure to be well.
    """
    found = TONES[condition(item)]
    return Tone.DOUBTFUL if old and found is Tone.GOOD else found


def _of_agent(seen: Snapshot) -> Iterator[Line]:
    """Say what is wrong with the agent, or between it and the API server: then all below it is old."""
    stale_s = stale_after_s(seen.policy)
    if seen.alive_age_s > stale_s:
        yield Line(
            Tone.BAD,
            "NO NEWS",
            f"fencer has shown no sign of life for {age(seen.alive_age_s)}: nothing is fenced, and what is "
            "below is old. `systemctl status fencer` says more",
        )
    if seen.failing:
        api = next((one for one in seen.endpoints if one.name == seen.api), None)
        since = _since(api.success_age_s if api is not None else None)
        yield Line(
            Tone.BAD,
            "BLIND",
            f"the API server has not answered{since}: {MEANS[True]}, and what is below is old "
            f"({unticked(seen.failing)})",
        )
    elif seen.sight is None:
        yield Line(Tone.DOUBTFUL, "NO PASS YET", "fencer was started, and has not looked at any node so far")
    elif seen.pass_age_s is not None and seen.alive_age_s <= stale_s < seen.pass_age_s:
        yield Line(
            Tone.DOUBTFUL,
            "OLD",
            f"the newest pass ended {age(seen.pass_age_s)} ago: the one under way takes long, and what is "
            "below is of the one before",
        )
    if not seen.armed:
        yield Line(Tone.DOUBTFUL, "NOT ARMED", "fencer only observes, and fences nobody")


def _since(seconds: float | None) -> str:
    return " since fencer began" if seconds is None else f" for {age(seconds)}"


def _of_sight(
    seen: Snapshot, sight: Sight, judged: Sequence[Judged], running: Sequence[Judged]
) -> Iterator[Line]:
    for one in seen.endpoints:
        if one.name in sight.errors:
            yield Line(
                Tone.BAD,
                "BLIND",
                f"{unticked(one.name)} has not answered{_since(one.success_age_s)}: {MEANS[False]}",
            )
    for name, why in seen.unfilled.items():
        yield Line(
            Tone.DOUBTFUL,
            "NO ORDERS",
            f"{unticked(name)}: {unticked(why)}: fencer fences guests that ended, and stops and starts none "
            f"there. {LEASES_MEND}",
        )
    if sight.malformed:
        names = [one.partition(": ")[0] for one in sight.malformed]
        yield Line(Tone.BAD, count(len(names), "unreadable node"), f"{unticked(listing(names))}: unprotected")
    if running:
        alarm = condition(running[0]) is Condition.ALARM  # what needs a person most comes first
        yield Line(_worst(running), "ALARM" if alarm else count(len(running), "incident"), _told(running))
    unfit = [item for item in judged if condition(item) in IF_NOT_READY and not is_running(item)]
    unfit = [item for item in unfit if not silent_endpoints(item.observation)]  # that is told of the endpoint
    if unfit:
        names = [item.observation.node.name for item in unfit]
        told = f"{unticked(listing(names, 4))}: see why below"
        yield Line(Tone.DOUBTFUL, f"{count(len(names), 'node')} unprotected", told)
    if sight.paused_why is not None:
        why = unticked(sight.paused_why)
        yield Line(
            Tone.DOUBTFUL,
            "PAUSED",
            f"fencing is paused: {why}: nothing is fenced, and no fence is lifted; "
            f"{WAYS[Reason.FENCING_PAUSED]} ends that",
        )
    for window in sight.windows:
        yield Line(Tone.DOUBTFUL, "MAINTENANCE", unticked(window))


def _worst(running: Sequence[Judged]) -> Tone:
    return min(map(tone_of, running), key=list(Tone).index)


def _told(running: Sequence[Judged]) -> str:
    told = unticked("; ".join(headline(item).removesuffix(".") for item in running[:NAMED]))
    more = len(running) - NAMED
    return f"{told}; and {more} more" if more > 0 else told


def _well(judged: Sequence[Judged]) -> Line:
    if not judged:
        return Line(Tone.DOUBTFUL, "No nodes", "the cluster has none")
    excluded = sum(condition(item) is Condition.EXCLUDED for item in judged)
    but = f", {excluded} excluded" if excluded else ""
    return Line(Tone.GOOD, "All well", f"{count(len(judged) - excluded, 'node')} protected{but}")
