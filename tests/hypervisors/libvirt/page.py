"""Makes the tables of docs/libvirt.md: of each situation what libvirt answered, and what is read from it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from fencer.core.doubt import believe, due, in_the_way, without_saved
from fencer.core.model import Evidence, GuestHistory, NodeView, PowerState, Proof, Reason
from fencer.core.policy import Policy
from fencer.core.proof import reads_off
from fencer.core.rung import Objection
from fencer.errors import GuestNotFound, HypervisorDenied, HypervisorError, HypervisorUnreachable
from fencer.hypervisors.libvirt.errors import kind_of
from fencer.hypervisors.libvirt.events import Chronicle, Left
from fencer.hypervisors.libvirt.parse import TABLE, Saved, read_power
from tests.core.build import UUID, evidence, node, observation
from tests.hypervisors.libvirt.rows import GROUPS, Situation

RECORDINGS: Final = Path(__file__).parents[1] / "recordings" / "libvirt-9.0.jsonl"
HEADER: Final = ("| situation | what libvirt says | fencer reads | so |", "| --- | --- | --- | --- |")

_BY_FENCER = "discarded by fencer"
_SO: Final[dict[Reason, str]] = {
    Reason.GUEST_RUNNING: "refused: the node may only be cut off",
    Reason.GUEST_PAUSED: "stopped first, or refused: a resume would write on",
    Reason.GUEST_SAVED: "refused: its memory would come back",
    Reason.GUEST_LEFT: "refused: it runs on elsewhere",
    Reason.GUEST_STOPPING: "waits for what is on its way",
    Reason.GUEST_UNKNOWN: "refused",
}
_STALL = "stopped first, unless storage errors pause several guests"
_THROWN = "refused, or discarded first (`saved_guest: discard`)"
_FENCED = "fenced, if the rest of the proof holds"
_NOTED = "refused all the same, by the note on the Node: "
_LEFT = "left alone, by the note on the Node: its end would not be believed"
_SILENT = "nothing is known of its guests, and nothing is done to their nodes"
_MEANS: Final[dict[type[HypervisorError], tuple[str, str]]] = {
    GuestNotFound: ("it is not there", "refused: that alone is never an end"),
    HypervisorUnreachable: ("no answer", _SILENT),
    HypervisorDenied: ("a refusal", "names what is missing"),
    HypervisorError: ("an error", "says what to try"),
}
"""What is made of an error; of any other kind, what is made of the last."""
_ORDERED = "reads again: only that counts"
_LONGEST = 70  # characters of a text of libvirt


@dataclass(frozen=True, slots=True)
class Told:
    """What becomes of a recording.

    Attributes:
        raw: What libvirt said last.
        evidence: What the adapter makes of it; None: an error.
        reads: The same in words.
        so: What follows, with all that stands on the Node by then.
    """

    raw: str
    evidence: Evidence | None
    reads: str
    so: str


class Watcher:
    """An agent that takes in a recording: the adapter's memory, and the Node's notes."""

    def __init__(self) -> None:
        self._chronicle = Chronicle("0")
        self._node: NodeView = node(doubts=())
        self._last: Evidence | None = None

    def told(self, steps: Iterable[dict[str, Any]]) -> Told:
        """Take in all steps, and tell what the last one comes to."""
        for step in steps:
            match step:
                case {"event": [event, detail], "run": run}:
                    self._chronicle.heard(UUID, run, event, detail)
                case {"done": what}:
                    self._had_done(what)
                case {"state": state, "reason": reason, "image": image, "run": run}:
                    told = self._looked(state, reason, run, has_saved_image=image)
                case {"error": [code, origin], **more}:
                    told = self._failed(code, origin, **more)
        return told

    def _had_done(self, what: str) -> None:
        if what == _BY_FENCER:
            assert self._last is not None, "discarded without a look"
            self._node = replace(self._node, doubts=without_saved(self._node, self._last))
        else:
            self._chronicle = Chronicle("1")  # libvirtd or the agent has restarted

    def _looked(self, state: int, reason: int, run: int, *, has_saved_image: bool) -> Told:
        numbers = read_power(state, reason, has_saved_image=has_saved_image)
        reading = self._chronicle.read(UUID, run, numbers, self._chronicle.moment())
        restored = self._chronicle.began_with_old_memory(UUID, run)
        self._last = evidence(
            reading.power_state,
            settled=reading.settled,
            cold_start=False if restored else reading.cold_start,
            raw=reading.raw,
            io_error=reading.io_error,
            away=reading.away,
            filed=reading.saved is Saved.FILE,
            hibernated=reading.saved is Saved.DISK,
        )
        self._node = replace(self._node, doubts=due(observation(node=self._node, evidence=self._last)))
        image = ", with a managed save image" if has_saved_image else ", no managed save image"
        image = image if has_saved_image or numbers.saved else ""
        so = _THROWN if reading.saved is Saved.MANAGED else self._so(self._last)
        return Told(f"`{numbers.numbers}`{image}", self._last, words(self._last), so)

    def _failed(
        self,
        code: int,
        origin: int,
        text: str = "no such domain",
        *,
        opening: bool = False,
        order: bool = False,
    ) -> Told:
        short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
        raw = f"`{short}` (error {code}, from {origin})"
        kind = kind_of(code, origin, 0, text, opening=opening)
        left = self._chronicle.left(UUID) if kind is GuestNotFound else None
        if left is Left.HIBERNATED:
            unknown = evidence(PowerState.UNKNOWN, settled=False, cold_start=None, hibernated=True)
            return Told(raw, unknown, "unknown, it hibernated before", self._so(unknown))
        if left is Left.MOVED:
            absent = evidence(PowerState.ABSENT, away=True)
            return Told(raw, absent, "absent, it went elsewhere before", self._so(absent))
        end = self._chronicle.end_of(UUID)
        if kind is GuestNotFound and end is not None:
            absent = evidence(PowerState.ABSENT, end_recorded=True, proof=Proof.ABSENCE)
            return Told(raw, absent, f"absent, its end on record ({end})", self._so(absent))
        reads, so = _MEANS.get(kind, _MEANS[HypervisorError])
        return Told(raw, None, reads, _ORDERED if order and kind is not HypervisorDenied else so)

    def _so(self, said: Evidence) -> str:
        believed = believe(said, self._node, GuestHistory())
        assert believed is not None, "nothing was read"
        answer = reads_off(believed, Policy())
        if not isinstance(answer, Objection):
            return _FENCED
        if believed.doubt is not None:
            return _NOTED + _SO[answer.reason].removeprefix("refused: ")
        if said.power_state is PowerState.PAUSED and in_the_way(self._node, said, GuestHistory()):
            return _LEFT
        return _STALL if said.io_error else _SO[answer.reason]


def recordings() -> dict[str, list[dict[str, Any]]]:
    """Return the steps of each situation, by its name."""
    _, *lines = map(json.loads, RECORDINGS.read_text(encoding="utf-8").splitlines())
    return {line["situation"]: line["steps"] for line in lines}


def situations() -> str:
    """Make the tables of all situations, group by group."""
    recorded, lines = recordings(), list[str]()
    for group, rows in GROUPS.items():
        lines += [f"### {group}", "", *HEADER, *(_line(row, recorded[row.recording]) for row in rows), ""]
    return "\n".join(lines)


def numbers() -> str:
    """Make the table of all numbers that no situation shows: by the adapter's table alone."""
    steps = [step for steps in recordings().values() for step in steps]
    shown = {(step["state"], step["reason"]) for step in steps if "state" in step}
    rest: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for state, reasons in TABLE.items():
        of_state, _ = _plainly(state, 0)
        for reason, (word, _) in reasons.items():
            if (state, reason) not in shown:
                rest[of_state, _plainly(state, reason)[1]].append(f"{reason} {word}")
        rest[of_state, _plainly(state, len(reasons))[1]].append("any other")
    rest["any other", _plainly(len(TABLE) + 1, 0)[1]].append("any")
    lines = ["| state | reason | fencer reads |", "| --- | --- | --- |"]
    lines += [f"| {state} | {', '.join(reasons)} | {reads} |" for (state, reads), reasons in rest.items()]
    return "\n".join(lines)


def words(said: Evidence) -> str:
    """Say what is read."""
    old = ", with old memory" if said.cold_start is False else ""
    on_its_way = said.power_state is not PowerState.UNKNOWN and not said.settled
    return f"{said.power_state}{old}{', not settled' if on_its_way else ''}"


def _line(row: Situation, steps: list[dict[str, Any]]) -> str:
    told = Watcher().told(steps)
    return f"| {row.words}{'' if row.make else ' °'} | {told.raw} | {told.reads} | {told.so} |"


def _plainly(state: int, reason: int) -> tuple[str, str]:
    """Return a state in words and number, and what is read of it."""
    reading = read_power(state, reason, has_saved_image=False)
    of_state = reading.numbers.partition(" (")[0]
    said = evidence(reading.power_state, settled=reading.settled, cold_start=reading.cold_start)
    return f"{of_state} ({state})", words(said)
