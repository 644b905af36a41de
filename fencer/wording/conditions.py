"""The condition of a node in a word: what `fencer status` counts, and sorts by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum, auto

from fencer.core.cordon import cordoned_by
from fencer.core.model import Alarm, Judged, Reason, Verdict
from fencer.core.text import count, natural
from fencer.wording.nodes import blind, cannot_be_fenced, fenced_age


class Condition(StrEnum):
    """The closed list, what needs a person first. A node is in exactly one."""

    ALARM = auto()
    REFUSED = auto()
    CANNOT_BE_FENCED = auto()
    BLIND = auto()
    ONLY_OBSERVED = auto()
    DUE = auto()
    MAY_BE_DEAD = auto()
    FENCED = auto()
    COMING_BACK = auto()
    NEEDS_NO_FENCE = auto()
    SHUT_DOWN = auto()
    EXCLUDED = auto()
    CORDONED = auto()
    PAUSED = auto()
    HEALTHY = auto()


WORDS: dict[Condition, str] = {
    Condition.ALARM: "in alarm",
    Condition.REFUSED: "refused",
    Condition.CANNOT_BE_FENCED: "cannot be fenced",
    Condition.BLIND: "blind",
    Condition.ONLY_OBSERVED: "only observed",
    Condition.DUE: "due to be fenced",
    Condition.MAY_BE_DEAD: "may be dead",
    Condition.FENCED: "fenced",
    Condition.COMING_BACK: "coming back",
    Condition.NEEDS_NO_FENCE: "silent, with nothing to clear",
    Condition.SHUT_DOWN: "shut down",
    Condition.EXCLUDED: "excluded",
    Condition.CORDONED: "cordoned",
    Condition.PAUSED: "paused",
    Condition.HEALTHY: "healthy",
}
"""Each completes "3 nodes: 1 …"."""

PLAIN = frozenset({Condition.HEALTHY, Condition.PAUSED})
"""Nothing to say about one node: it is healthy; that fencing is paused, or a window open, is said of all."""

OF_REASON: dict[Reason, Condition] = {
    Reason.OBSERVE_MODE: Condition.ONLY_OBSERVED,
    Reason.NOTHING_TO_CLEAR: Condition.NEEDS_NO_FENCE,
    Reason.SETTLING: Condition.COMING_BACK,
    Reason.SETTLED: Condition.COMING_BACK,
}
"""Reasons that say more than their verdict does."""

OF_VERDICT: dict[Verdict, Condition] = {
    Verdict.HEALTHY: Condition.HEALTHY,
    Verdict.WAIT: Condition.MAY_BE_DEAD,
    Verdict.REFUSE: Condition.REFUSED,
    Verdict.STOP_FIRST: Condition.DUE,
    Verdict.DISCARD_FIRST: Condition.DUE,
    Verdict.ASK: Condition.HEALTHY,
    Verdict.START: Condition.SHUT_DOWN,
    Verdict.FENCE: Condition.DUE,
    Verdict.FENCED: Condition.FENCED,
    Verdict.RECOVERING: Condition.COMING_BACK,
    Verdict.UNFENCE: Condition.COMING_BACK,
    Verdict.OFF: Condition.SHUT_DOWN,
}

AT_EASE: dict[Reason, Condition] = {
    Reason.FENCING_PAUSED: Condition.PAUSED,
    Reason.NODE_EXCLUDED: Condition.EXCLUDED,
    Reason.NODE_PAUSED: Condition.EXCLUDED,
    Reason.MAINTENANCE: Condition.PAUSED,
}
"""Refusals that say nothing about a node, while it is Ready."""


def condition(judged: Judged) -> Condition:
    """Return the condition of a node."""
    node, decision = judged.observation.node, judged.decision
    if decision.reason is Reason.OLD_MEMORY or any(isinstance(deed, Alarm) for deed in decision.actions):
        return Condition.ALARM
    if fenced_age(judged.observation) is not None:
        return Condition.FENCED
    if node.ready and decision.reason in AT_EASE:
        return AT_EASE[decision.reason]
    if cannot_be_fenced(judged):
        return Condition.CANNOT_BE_FENCED
    if blind(judged) is not None:
        return Condition.BLIND
    verdict = Verdict.WAIT if judged.untold else decision.verdict
    found = OF_REASON.get(decision.reason, OF_VERDICT[verdict])
    return Condition.CORDONED if found is Condition.HEALTHY and cordoned_by(node) else found


def problems_first(judged: Iterable[Judged]) -> list[Judged]:
    """Sort nodes by condition, those that are not Ready first, and then by name."""
    order = {one: place for place, one in enumerate(Condition)}

    def key(item: Judged) -> tuple[int, bool, list[tuple[int, str]]]:
        node = item.observation.node
        return order[condition(item)], node.ready is True, natural(node.name)

    return sorted(judged, key=key)


def tally(judged: Iterable[Judged]) -> dict[Condition, int]:
    """Count nodes by condition: the healthy ones first, and none is left out."""
    found = Counter(map(condition, judged))
    return {one: found[one] for one in (Condition.HEALTHY, *list(Condition)[:-1])}


def tally_text(judged: Sequence[Judged]) -> str:
    """Return the count as a sentence: ``200 nodes: 196 healthy, 3 cannot be fenced, 1 fenced``."""
    found = ", ".join(f"{number} {WORDS[one]}" for one, number in tally(judged).items() if number)
    return f"{count(len(judged), 'node')}: {found}"
