"""The condition of a node in a word: what `fencer status` counts, and sorts by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

from fencer.core.cordon import cordoned_by
from fencer.core.model import Alarm, Judged, Reason, Verdict
from fencer.core.text import count, natural
from fencer.wording.nodes import NOBODY, blind, fenced_age, is_unprotected
from fencer.wording.verdicts import adjective_of, shown_verdict


class Condition(StrEnum):
    """The closed list, what needs a person first. A node is in exactly one.

    The word for a verdict is that of `fencer.wording.verdicts`.
    """

    ALARM = "in_alarm"
    REFUSED = "refused"
    UNPROTECTED = "unprotected"
    """It is healthy, and fencer could not fence it if it died."""
    BLIND = "blind"
    ONLY_OBSERVED = "only_observed"
    TO_BE_FENCED = "to_be_fenced"
    WAITING = "waiting"
    FENCED = "fenced"
    RECOVERING = "recovering"
    NOTHING_TO_CLEAR = "nothing_to_clear"
    SHUT_DOWN = "shut_down"
    EXCLUDED = "excluded"
    CORDONED = "cordoned"
    PAUSED = "paused"
    HEALTHY = "healthy"

    @property
    def word(self) -> str:
        """Completes "3 nodes: 1 …"."""
        return self.value.replace("_", " ")


WHEN: dict[Condition, str] = {
    Condition.ALARM: "Look now: old memory is back under a fence, for example, or a VM is in a crash loop.",
    Condition.REFUSED: "The verdict.",
    Condition.UNPROTECTED: "The node is healthy, but fencer could not fence it if it died.",
    Condition.BLIND: "The node is healthy, but fencer can't see its VM.",
    Condition.ONLY_OBSERVED: "fencer would act now, but `mode: observe` forbids it.",
    Condition.TO_BE_FENCED: "The verdict, or *to be stopped*, or *memory to be discarded*.",
    Condition.WAITING: "The verdict; or a command looked once, and only a running agent can tell.",
    Condition.FENCED: "The node carries fencer's fence and is not in alarm, whatever the verdict is.",
    Condition.RECOVERING: "The verdict; or *to be unfenced*; or unfenced, and still cordoned by fencer.",
    Condition.NOTHING_TO_CLEAR: "The VM is off, and the node has no pod and no volume to clear.",
    Condition.SHUT_DOWN: "The verdict: a planned stop.",
    Condition.EXCLUDED: "The node is Ready, and is excluded from fencing or paused itself.",
    Condition.CORDONED: "The node is healthy and cordoned.",
    Condition.PAUSED: "The node is Ready, and fencing is paused or a maintenance window is open.",
    Condition.HEALTHY: "The verdict.",
}
"""What each means, for the documentation."""

PLAIN = frozenset({Condition.HEALTHY, Condition.PAUSED})
"""Nothing to say about one node: it is healthy; that fencing is paused, or a window open, is said of all."""

OF_REASON: dict[Reason, Condition] = {
    Reason.OBSERVE_MODE: Condition.ONLY_OBSERVED,
    Reason.NOTHING_TO_CLEAR: Condition.NOTHING_TO_CLEAR,
    Reason.SETTLING: Condition.RECOVERING,
    Reason.SETTLED: Condition.RECOVERING,
}
"""Reasons that say more than their verdict does."""

OF_VERDICT: dict[Verdict, Condition] = {
    Verdict.HEALTHY: Condition.HEALTHY,
    Verdict.WAIT: Condition.WAITING,
    Verdict.REFUSE: Condition.REFUSED,
    Verdict.STOP_FIRST: Condition.TO_BE_FENCED,
    Verdict.DISCARD_FIRST: Condition.TO_BE_FENCED,
    Verdict.ASK: Condition.HEALTHY,
    Verdict.START: Condition.SHUT_DOWN,
    Verdict.FENCE: Condition.TO_BE_FENCED,
    Verdict.FENCED: Condition.FENCED,
    Verdict.RECOVERING: Condition.RECOVERING,
    Verdict.UNFENCE: Condition.RECOVERING,
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
    if is_unprotected(judged):
        refused = decision.verdict is Verdict.REFUSE and not node.ready
        return Condition.REFUSED if refused else Condition.UNPROTECTED
    if blind(judged) is not None:
        return Condition.BLIND
    found = OF_REASON.get(decision.reason, OF_VERDICT[shown_verdict(judged)])
    return Condition.CORDONED if found is Condition.HEALTHY and cordoned_by(node) else found


def fence_word(judged: Judged) -> str:
    """Return whether the node is fenced, or would be, in a word or two; a dash: there is no need."""
    fenced, found, verdict = fenced_age(judged.observation), condition(judged), shown_verdict(judged)
    if fenced is not None and found is not Condition.ALARM:
        return f"{Condition.FENCED.word} {fenced} ago"
    if found in {Condition.HEALTHY, Condition.CORDONED}:
        return NOBODY
    return adjective_of(verdict) if OF_VERDICT[verdict] is found else found.word


def table() -> str:
    """Return all conditions as a Markdown table, for the documentation."""
    rows = (f"| {one.word} | `{one.value}` | {WHEN[one]} |" for one in Condition)
    return "\n".join(("| word | in JSON | when |", "| --- | --- | --- |", *rows, ""))


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
    """Return the count as a sentence: ``200 nodes: 196 healthy, 3 unprotected, 1 fenced``."""
    found = ", ".join(f"{number} {one.word}" for one, number in tally(judged).items() if number)
    return f"{count(len(judged), 'node')}: {found}"
