"""One sentence about a node: how `fencer explain` begins, and what the status page says of an incident."""

from __future__ import annotations

from fencer.core.model import Judged, Reason, Verdict
from fencer.core.text import printable
from fencer.wording.nodes import blind, fenced_age, unfit, why
from fencer.wording.reasons import TEXTS
from fencer.wording.verdicts import VERDICT_WORDS, shown_verdict

ONLY_OBSERVED = "{node} is only observed: {says}."
"""What an agent in observe mode would do."""
STILL_FENCED = "{node} is still fenced: {says}."
"""Where something else than the fence itself is decided, as in the log."""

HEADLINES: dict[Verdict, str] = {
    Verdict.HEALTHY: "{node} is {adjective}.",
    Verdict.WAIT: "fencer {verb} before it fences {node}: {says}.",
    Verdict.REFUSE: "fencer {verb} to fence {node}: {says}.",
    Verdict.STOP_FIRST: "{node} is to be fenced, and fencer {verb}: {says}.",
    Verdict.DISCARD_FIRST: "{node} is to be fenced, and fencer {verb}: {says}.",
    Verdict.FENCE: "{node} is {adjective}: {says}.",
    Verdict.FENCED: "{node} is {adjective}: {says}.",
    Verdict.RECOVERING: "{node} is {adjective}: {says}.",
    Verdict.OFF: "{node} is {adjective} and needs no fence: {says}.",
    Verdict.UNFENCE: "{node} is {adjective}: {says}.",
}


def headline(judged: Judged) -> str:
    """Return the sentence about a node; its name, and all that was seen, are printable."""
    decision, node = judged.decision, printable(judged.observation.node.name)
    in_the_way, unread = unfit(judged), blind(judged)
    if unread is not None:
        return f"{node} is heard, but nobody would notice the end of its guest: {unread}."
    if in_the_way is not None:
        return f"{node} is healthy, but unprotected: {in_the_way}."
    whole = judged.untold or decision.reason is Reason.OBSERVE_MODE  # a sentence about what would follow
    says = why(judged) if whole else printable(TEXTS[decision.reason].says)
    verdict = shown_verdict(judged)
    words, sentence = VERDICT_WORDS[verdict], HEADLINES[verdict]
    if decision.reason is Reason.OBSERVE_MODE:
        sentence = ONLY_OBSERVED
    elif fenced_age(judged.observation) is not None and verdict in {Verdict.WAIT, Verdict.REFUSE}:
        sentence = STILL_FENCED
    return sentence.format(node=node, says=says, adjective=words.adjective, verb=words.verb)
