"""One sentence about a node: how `fencer explain` begins, and what the status page says of an incident."""

from __future__ import annotations

from fencer.core.model import Judged, Reason, Verdict
from fencer.core.text import printable
from fencer.wording.conditions import Condition, condition
from fencer.wording.nodes import alarms_of, blind, unfit, why
from fencer.wording.reasons import TEXTS
from fencer.wording.verdicts import VERDICT_WORDS, shown_verdict

STILL_FENCED = "{node} is still fenced: {says}."
"""Where something else than the fence itself is decided, as in the log."""

STILL_CORDONED = "{node} is {says}."
"""Where a healthy node keeps fencer's cordon."""

OF_CONDITION: dict[Condition, str] = {
    Condition.ALARM: "{node} is {word}: {says}.",
    Condition.UNPROTECTED: "{node} is {word}: {says}.",
    Condition.BLIND: "{node} is healthy, but fencer can't see its VM: {says}.",
    Condition.ONLY_OBSERVED: "{node} is {word}: {says}.",
    Condition.NOTHING_TO_CLEAR: "{node} needs no fence: {says}.",
    Condition.EXCLUDED: "{node} is {word}: {says}.",
    Condition.PAUSED: "{node} is {word}: {says}.",
}
"""Where its condition says more than the verdict."""

OF_VERDICT: dict[Verdict, str] = {
    Verdict.HEALTHY: "{node} is {adjective}.",
    Verdict.WAIT: "fencer {verb} before it decides about {node}: {says}.",
    Verdict.REFUSE: "fencer {verb} to fence {node}: {says}.",
    Verdict.STOP_FIRST: "fencer {verb} of {node}: {says}.",
    Verdict.DISCARD_FIRST: "fencer {verb} of {node}: {says}.",
    Verdict.FENCE: "{node} is {adjective}: {says}.",
    Verdict.FENCED: "{node} is {adjective}: {says}.",
    Verdict.RECOVERING: "{node} is {adjective}: {says}.",
    Verdict.OFF: "{node} is {adjective} and needs no fence: {says}.",
    Verdict.UNFENCE: "{node} is {adjective}: {says}.",
}


def headline(judged: Judged) -> str:
    """Return the sentence about a node; its name, and all that was seen, are printable."""
    decision, verdict, found = judged.decision, shown_verdict(judged), condition(judged)
    whole = judged.untold or decision.reason is Reason.OBSERVE_MODE  # a sentence about what would follow
    reason = why(judged) if whole else printable(TEXTS[decision.reason].says)
    if found in OF_CONDITION:
        sentence = OF_CONDITION[found]
    elif found is Condition.FENCED and verdict in {Verdict.WAIT, Verdict.REFUSE}:
        sentence = STILL_FENCED
    elif decision.reason is Reason.CORDON_UNRECORDED:
        sentence = STILL_CORDONED
    else:
        sentence = OF_VERDICT[verdict]
    words = VERDICT_WORDS[verdict]
    return sentence.format(
        node=printable(judged.observation.node.name),
        says=next(iter(alarms_of(judged)), None) or unfit(judged) or blind(judged) or reason,
        word=found.word,
        adjective=words.adjective,
        verb=words.verb,
    )
