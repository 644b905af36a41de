"""The status page: what a phone shows at three in the morning. No script, nothing from elsewhere.

What others have named is text: escaped by the template, and made visible as on a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from functools import cache, partial

from fencer.core.model import Judged, Outcome
from fencer.core.text import age, count
from fencer.core.times import in_zone, zone_of
from fencer.markup import rendering
from fencer.web.answer import Answer, Tone, answer, tone_of
from fencer.web.lately import Lately
from fencer.web.seats import seat_of
from fencer.web.snapshot import Snapshot, Step
from fencer.web.style import OLD_S, STYLE
from fencer.web.tree import SMALL, tree
from fencer.wording.conditions import fence_word, tally_text
from fencer.wording.headlines import headline
from fencer.wording.nodes import NOBODY, guest_of, ready, state_of, whole_why
from fencer.wording.ways_out import what_helps

QUICK_S, SLOW_S = 5, 15
"""The page loads itself again after so long: while something goes on, and otherwise."""
MOST_INCIDENTS = 5
"""So many incidents that go on are told in full; the others are in the tree."""
BEFORE = "before that: "
"""What was seen of a node before the API server fell silent."""
LAST_STEPS = 6
"""So many steps of each."""


@dataclass(frozen=True, slots=True)
class Running:
    """An incident that goes on, as the page tells it. All texts are printable.

    Attributes:
        node: The node's name.
        headline: What it is, in a sentence.
        tone: How bad.
        facts: Ready, guest, state and fence, each in a few words.
        seen: What was seen, in words of the case; empty: the headline says it all.
        failed: Why the last action could not be done; empty: there is none.
        steps: What was decided and done, oldest first.
        passed: Names of the checks that have passed.
        objection: Name of the check that has not; empty: all have.
        helps: What would change it, and what to type, a sentence each.
    """

    node: str
    headline: str
    tone: Tone
    facts: tuple[tuple[str, str], ...]
    seen: str
    failed: str
    steps: tuple[Step, ...]
    passed: tuple[str, ...]
    objection: str
    helps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A node in the tree. All texts are printable.

    Attributes:
        node: Its name.
        guest: Its guest, without the host.
        state: The guest's power state.
        ready: Whether the node is Ready, and since when it is not.
        fence: Whether it is fenced, or would be.
        why: Why, or why not.
        tone: How bad it is.
    """

    node: str
    guest: str
    state: str
    ready: str
    fence: str
    why: str
    tone: Tone


def page(
    seen: Snapshot, lately: Lately, now: datetime, *, every: bool = False, path: str = "the configuration"
) -> str:
    """Return the page.

    Args:
        seen: What the agent has shown last.
        lately: The last incidents.
        now: The time, in the zone of people.
        every: Also nodes about which there is nothing to say, of many.
        path: What the configuration's file is called.
    """
    told = answer(seen)
    judged = tuple(seen.sight.judged.values()) if seen.sight is not None else ()
    return _render()(
        seen=seen,
        answer=told,
        lines=[replace(line, text=in_zone(line.text, now.tzinfo)) for line in told.lines],
        title=f"{told.lines[0].word} \N{EN DASH} fencer",
        tally=tally_text(judged),
        running=list(_running(told, seen, path, now.tzinfo)),
        hidden=max(0, len(told.running) - MOST_INCIDENTS),
        seat_of=partial(seat_of, seen),
        branches=tree(seen.sight, every=every) if seen.sight is not None else (),
        row=partial(_row, zone=now.tzinfo, old=bool(seen.failing)),
        lately=lately,
        now=now,
        zone=zone_of(now),
        again_s=SLOW_S if told.tone is Tone.GOOD else QUICK_S,
        every=every,
        folds=len(judged) > SMALL,
        bad=Tone.BAD,
        doubtful=Tone.DOUBTFUL,
        at_work=Tone.AT_WORK,
    )


def _running(told: Answer, seen: Snapshot, path: str, zone: tzinfo | None) -> Iterator[Running]:
    for item in told.running[:MOST_INCIDENTS]:
        decision, node = item.decision, item.observation.node
        objection, sentence = decision.objection, in_zone(headline(item), zone)
        words = objection.seen if objection is not None else ""
        yield Running(
            node=node.name,
            headline=sentence,
            tone=tone_of(item),
            facts=tuple(_facts(item)),
            seen="" if words in sentence else in_zone(f"{words[:1].upper()}{words[1:]}.", zone),
            failed=item.failed,
            steps=tuple(_short(step, zone) for step in seen.steps.get(node.name, ())[-LAST_STEPS:]),
            passed=tuple(check.name for check in decision.checks if check.outcome is Outcome.PASSED),
            objection=objection.name if objection is not None else "",
            helps=tuple(in_zone(text, zone) for text in what_helps(item, path)),
        )


def _short(step: Step, zone: tzinfo | None) -> Step:
    """Leave out what would change it: that is told once."""
    return replace(step, text=in_zone(step.text.partition("; what would change this: ")[0], zone))


def _facts(item: Judged) -> Iterator[tuple[str, str]]:
    guest = guest_of(item)
    yield "Ready", ready(item.observation.node)
    yield "Guest", "none known" if guest is None else f"{guest}: {state_of(item.observation)}"
    word = fence_word(item)
    if word != NOBODY:
        yield "Fence", word


def _row(item: Judged, zone: tzinfo | None, *, old: bool) -> Row:
    guest = guest_of(item)
    return Row(
        node=item.observation.node.name,
        guest="none known" if guest is None else str(replace(guest, host=None)),
        state=state_of(item.observation),
        ready=ready(item.observation.node),
        fence=fence_word(item),
        why=f"{BEFORE if old else ''}{in_zone(whole_why(item), zone)}",
        tone=tone_of(item, old=old),
    )


@cache
def _render() -> Callable[..., str]:
    named = {"age": age, "count": count, "style": STYLE, "icon": ICON, "signs": SIGNS, "old_s": OLD_S}
    return rendering("fencer.web", "page.html.jinja", **named)


SIGNS: dict[Tone, str] = {
    Tone.BAD: "!",
    Tone.DOUBTFUL: "?",
    Tone.AT_WORK: "\N{BLACK RIGHT-POINTING TRIANGLE}",
    Tone.GOOD: "\N{CHECK MARK}",
}
"""What each colour repeats, where there is no room for a word."""
_DOTS: dict[Tone, str] = {
    Tone.BAD: "b3261e",
    Tone.DOUBTFUL: "b26a00",
    Tone.AT_WORK: "1c5dbb",
    Tone.GOOD: "2e7d4f",
}
ICON: dict[Tone, str] = {
    tone: "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    f"%3Ccircle cx='8' cy='8' r='7' fill='%23{colour}'/%3E%3C/svg%3E"
    for tone, colour in _DOTS.items()
}
"""For the browser's tab."""
