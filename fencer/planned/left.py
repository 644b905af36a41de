"""How a drill leaves its node, for people: one line, and below it the facts, a line each."""

from __future__ import annotations

from collections.abc import Iterator

from fencer.core.text import age, listing, printable
from fencer.planned.drill import Milestone
from fencer.planned.drillturn import DrillTurn
from fencer.wording.ways_out import CHECK, ways_out

DESTROYS = "two running copies destroy its disk"


def standing(turn: DrillTurn, word: str, path: str, now_s: float) -> str:
    """Return how the node is left, with a newline before each further fact.

    Args:
        turn: Its drill.
        word: What became of it: failed, interrupted.
        path: Where the configuration is.
        now_s: The monotonic clock.
    """
    name = turn.node.name
    why = f": {turn.failed}" if turn.failed else ""
    if turn.owes:
        because = f": {turn.trouble}" if turn.trouble and turn.trouble not in turn.failed else ""
        first = f"{name}: {word}{why}. Its VM was NOT started again{because}."
        return "\n".join((first, *_left_off(turn, path, now_s)))
    if turn.course.unseen:
        return "\n".join((f"{name}: {word}{why}.", *_runs_unseen(turn, path)))
    return f"{name}: {word}{why}. {_runs(turn)}"


def _runs(turn: DrillTurn) -> str:
    """Say who started the VM, and what follows its return."""
    course, follow = turn.course, f"`fencer explain {turn.node.name}` follows its return"
    if Milestone.BACK in course.reached:
        return "The node is back."
    if Milestone.OFF not in course.reached:
        return "Its VM runs."
    if course.by_others:
        return f"Its VM runs: another tool started it on {course.runs_as}; {follow}."
    return f"Its VM was started again; {follow}."


def _left_off(turn: DrillTurn, path: str, now_s: float) -> Iterator[str]:
    """Say what is known of a VM that was not started, what to check, and what to type."""
    name, off_s = turn.node.name, turn.course.reached.get(Milestone.OFF)
    cut = "" if off_s is None else f" Its power was cut {age(round(now_s - off_s))} ago."
    yield f"VM: {_guest(turn)}.{cut}"
    yield from _readings(turn, now_s)
    yield "Risk: two running copies destroy its disk; another tool might have started it."
    yield "Check that it runs on no other host, started by HA or an administrator."
    yield f"If `kubectl get node {name}` shows Ready, it runs: don't start it again."
    yield from (f"Try: {CHECK}.",) if turn.refused is None else ways_out(turn.refused, path)
    yield f"Then `fencer start {name}`."


def _guest(turn: DrillTurn) -> str:
    """Name the VM, as it was last seen."""
    if turn.reading is not None:
        return str(turn.reading.guest)
    candidates = turn.last.candidates if turn.last is not None else ()
    return next((str(one.guest) for one in candidates), "not known")


def _readings(turn: DrillTurn, now_s: float) -> Iterator[str]:
    """Say what its hypervisor last reported, and if it reports nothing now."""
    reading, last = turn.reading, turn.last
    if reading is not None:
        read_s = max(0.0, now_s - reading.observed_at_s)
        yield f"Last reading, {age(round(read_s))} ago: {printable(reading.raw)}."
    if last is not None and last.evidence is None:
        yield f"It can't be read now: {printable(last.evidence_error or 'no answer')}."


def _runs_unseen(turn: DrillTurn, path: str) -> Iterator[str]:
    """Say how it is known that the VM runs, and what to do about a place that fencer cannot see."""
    last = turn.last
    yield f"It runs: the Node is Ready with boot {printable(last.node.boot_id if last is not None else '')}."
    yield f"The drill stopped boot {printable(turn.node.boot_id)}."
    yield f"Don't start it again: {DESTROYS}."
    silent = last.unanswered if last is not None else ()
    if silent or last is None or last.evidence is None:
        yield f"It might run on {listing(silent) or 'its hypervisor'}, which does not answer."
        yield f"Try: {CHECK}."
        return
    yield f"To keep it there, add that hypervisor under `hypervisors:` in {path}."
    yield f"Otherwise stop that copy, then start {_guest(turn)} with its hypervisor's own tool."
