"""The ladder that leads to a fence, as a picture out of the rules: its rungs, and what a no leads to.

Questions are written here; rungs, their order and parts, what the default policy makes of a guest that is not
off, and the words of verdicts and reasons are those of the code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fencer.core import fence, ladders, stop
from fencer.core.ladders import FENCE, LADDERS, Choice, Ladder, Stage
from fencer.core.model import Intent, PowerState, Reason, Verdict
from fencer.core.policy import Policy
from fencer.core.proof import NOT_GONE, SEEN, SHOWN
from fencer.wording.reasons import TEXTS
from fencer.wording.verdicts import VERDICT_WORDS
from tests.pictures.paper import shown, svg, words

No = tuple[Verdict, Reason]
"""What an objection leads to, and why."""

BEGIN = ("wanted", "bound")
"""What every ladder begins with: `fencer.core.ladders.begin`."""

WAITS, REFUSES = Verdict.WAIT, Verdict.REFUSE
QUESTIONS: Mapping[str, tuple[str, Sequence[No]]] = {
    "wanted": ("May fencer look after this node?", [(REFUSES, Reason.FENCING_PAUSED)]),
    "bound": (
        "Is exactly one guest this node?",
        [(REFUSES, Reason.NO_GUEST), (REFUSES, Reason.GUEST_AMBIGUOUS)],
    ),
    "silent": ("Is its kubelet silent?", [(WAITS, Reason.SILENCE_TOO_SHORT)]),
    "unmarked": ("Is it free of somebody else’s taint?", [(REFUSES, Reason.FOREIGN_TAINT)]),
    "proven": ("Was this guest seen alive with the node?", [(REFUSES, Reason.BINDING_UNPROVEN)]),
    "fresh": ("Does the hypervisor answer, just now?", [(REFUSES, Reason.EVIDENCE_MISSING)]),
    "off": ("Is the guest off?", []),  # as the default policy has it: see `not_off`
    "no renewal": ("Has the node been silent since then?", [(REFUSES, Reason.LEASE_RENEWED)]),
    "in place": ("Is it off where it last ran?", [(REFUSES, Reason.HOST_CHANGED)]),
    "settled": ("Is the guest free of locks and tasks?", [(WAITS, Reason.GUEST_UNSETTLED)]),
    "fall seen": ("Was its end seen, or its silence waited for?", [(WAITS, Reason.FALL_UNSEEN)]),
    "needed": ("Is there anything to clear?", [(REFUSES, Reason.NOTHING_TO_CLEAR)]),
    "unreserved": ("Is fencer alone at work on the node?", [(REFUSES, Reason.NODE_RESERVED)]),
    "brake": ("Does the brake allow one more?", [(REFUSES, Reason.BRAKE)]),
    "notes first": ("Is all that agents saw written down?", [(WAITS, Reason.NOTES_FIRST)]),
    "looked closely": ("Were guest and node read live, just now?", [(WAITS, Reason.CLOSER_LOOK)]),
    "held": ("Has it read off for long enough?", [(WAITS, Reason.NOT_HELD)]),
    "armed": ("Is the agent armed?", [(REFUSES, Reason.OBSERVE_MODE)]),
}
"""The question of each rung, and what a no leads to; of several reasons those that people meet."""

STATES = (PowerState.RUNNING, PowerState.PAUSED, PowerState.SAVED, PowerState.UNKNOWN)
"""What a guest that is not off may read, as far as people meet it."""

WIDTH = 640
MARGIN, RAIL, INDENT, PITCH, LINE, HEAD = 16, 46, 72, 33, 21, 34
"""Around everything; the places of numbers and of words; a question with its gap; a line; a heading."""
TITLE = "When fencer fences"
TONES = {
    Verdict.WAIT: "yellow",
    Verdict.REFUSE: "red",
    Verdict.STOP_FIRST: "blue",
    Verdict.DISCARD_FIRST: "blue",
}
ALL_YES = (
    "The node is tainted. Then the proof is asked for again: right after",
    "the taint, before each batch of pods, and before volumes are freed.",
)


@dataclass(frozen=True, slots=True)
class Part:
    """Some rungs in a row, and what they are about."""

    heading: str
    rungs: tuple[str, ...]


def parts(ladder: Ladder) -> list[Part]:
    """Return the rungs of a whole ladder in their order; one that is in no part goes with those before it."""
    of = {
        **dict.fromkeys(BEGIN, "First of all"),
        **_named(ladders.APPROACH, "The node"),
        **_named(SEEN, "The proof, seen from afar"),
        **_named(ladders.WORTH_IT, "Worth it, and not too much"),
        **_named(SHOWN, "The proof, seen closely"),
        "fall seen": "Worth it, and not too much",
        "armed": "Last of all",
    }
    found: list[Part] = []
    for rung in (*BEGIN, *(name for name, _ in ladder.rungs)):
        heading = of.get(rung, found[-1].heading if found else "")
        if found and found[-1].heading == heading:
            found[-1] = Part(heading, (*found[-1].rungs, rung))
        else:
            found.append(Part(heading, (rung,)))
    return found


def _named(rungs: Sequence[tuple[str, object]], heading: str) -> dict[str, str]:
    return {name: heading for name, _ in rungs}


def not_off(policy: Policy) -> Iterator[No]:
    """Say what follows from each state of a guest that is not off."""
    for state in STATES:
        found = LADDERS[Intent.WATCH, Stage.SILENT][state]
        climbed = found if isinstance(found, Ladder) else found[_chosen(found, policy)]
        verdict, reason, *_ = NOT_GONE[state]
        yield ENDINGS.get(climbed.ending, verdict), reason


def _chosen(found: Mapping[Choice, Ladder], policy: Policy) -> Choice:
    """Return what the policy has chosen. By the type: "stop" of one choice equals "stop" of another."""
    chosen: Sequence[Choice] = (policy.paused_guest, policy.saved_guest, policy.unresponsive_guest)
    return next(one for one in chosen if any(type(one) is type(key) for key in found))


ENDINGS = {stop.stop: Verdict.STOP_FIRST, stop.discard: Verdict.DISCARD_FIRST}
"""What those ladders end in that lead to a fence only later."""


def noes(rung: str) -> Sequence[No]:
    """Return what a no leads to."""
    return [*not_off(Policy())] if rung == "off" else QUESTIONS[rung][1]


def draw(ladder: Ladder = FENCE) -> str:
    """Return the picture.

    Raises:
        ValueError: The ladder has a rung without a question, or another end.
    """
    unknown = [rung for part in parts(ladder) for rung in part.rungs if rung not in QUESTIONS]
    if unknown:
        raise ValueError(f"rungs that have no question in the picture yet: {', '.join(unknown)}")
    if ladder.ending is not fence.taint:
        raise ValueError("this ladder does not end in the taint: its end is drawn otherwise")
    drawn: list[str] = []
    number, y = 0, float(MARGIN)
    for part in parts(ladder):
        high = HEAD + sum(_height(rung) for rung in part.rungs) + 4
        size = f'width="{WIDTH - 2 * MARGIN}" height="{high}"'
        drawn.append(f'<rect class="panel line-line" x="{MARGIN}" y="{y:g}" {size} rx="10"/>')
        drawn.append(words(part.heading, INDENT, y + 24, "muted", font_size=16))
        y += HEAD
        for rung in part.rungs:
            number += 1
            drawn += _rung(number, rung, y)
            y += _height(rung)
        y += 4 + 12
    drawn += _end(y)
    high = y + 104 + MARGIN
    rail = f'<path class="line-hatch" stroke-width="3" d="M{RAIL} {MARGIN + HEAD + 12} V{y:g}"/>'
    panels = [one for one in drawn if 'class="panel' in one or 'class="good' in one]
    rest = [one for one in drawn if one not in panels]
    return svg((TITLE, about(ladder)), (WIDTH, high), [*panels, rail, *rest], font_px=15)


def about(ladder: Ladder) -> str:
    """Return the ladder in words, for those who do not see it."""
    told = [
        f"{number}. {QUESTIONS[rung][0]} If not: {' or '.join(map(_told, noes(rung)))}."
        for number, rung in enumerate((one for part in parts(ladder) for one in part.rungs), 1)
    ]
    return " ".join(
        ["Questions asked in order; the first no decides.", *told, "If all are answered with yes:", *ALL_YES]
    )


def _told(no: No) -> str:
    verdict, reason = no
    return f"{VERDICT_WORDS[verdict].verb}, because {TEXTS[reason].says}"


def _height(rung: str) -> int:
    return PITCH + LINE * len(noes(rung))


def _rung(number: int, rung: str, y: float) -> Iterator[str]:
    yield f'<circle class="page line-hatch" stroke-width="2" cx="{RAIL}" cy="{y + 12:g}" r="14"/>'
    yield words(str(number), RAIL, y + 17, text_anchor="middle", font_size=15, font_weight=600)
    yield words(QUESTIONS[rung][0], INDENT, y + 18, font_size=17, font_weight=600)
    for line, (verdict, reason) in enumerate(noes(rung)):
        verb = f'<tspan class="{TONES[verdict]}" font-weight="600">{VERDICT_WORDS[verdict].verb}</tspan>'
        at = f'x="{INDENT}" y="{y + 18 + LINE * (line + 1):g}"'
        yield f'<text class="muted" {at}>no: {verb}: {shown(TEXTS[reason].says)}</text>'


def _end(y: float) -> Iterator[str]:
    yield f'<rect class="good" x="{MARGIN}" y="{y:g}" width="{WIDTH - 2 * MARGIN}" height="104" rx="10"/>'
    yield words("Yes to all: fencer fences", MARGIN + 14, y + 31, "on-good", font_size=18, font_weight=700)
    for number, text in enumerate(ALL_YES):
        yield words(text, MARGIN + 14, y + 58 + 23 * number, "on-good", font_size=16)
