"""One sentence about a node: how `fencer explain` begins, and what the status page says of an incident."""

from __future__ import annotations

from fencer.core.model import Judged, Reason, Verdict
from fencer.core.text import printable
from fencer.wording.nodes import blind, fenced_age, unfit, why
from fencer.wording.reasons import TEXTS

STILL_FENCED = "{node} is still fenced: {says}."
"""Where something else than the fence itself is decided, as in the log."""

HEADLINES: dict[Verdict, str] = {
    Verdict.HEALTHY: "{node} is not fenced, and need not be: it is healthy.",
    Verdict.WAIT: "{node} is not fenced yet: {says}.",
    Verdict.REFUSE: "{node} is not fenced: {says}.",
    Verdict.STOP_FIRST: "{node} is not fenced yet: {says}, so its power has to be cut first.",
    Verdict.DISCARD_FIRST: "{node} is not fenced yet: {says}, so that has to be thrown away first.",
    Verdict.FENCE: "{node} is not fenced yet, and is about to be: {says}.",
    Verdict.FENCED: "{node} is fenced: {says}.",
    Verdict.RECOVERING: "{node} is coming back: {says}.",
    Verdict.OFF: "{node} is not fenced, and need not be: {says}.",
    Verdict.UNFENCE: "{node} is fenced, and the fence is about to come off: {says}.",
}


def headline(judged: Judged) -> str:
    """Return the sentence about a node; its name, and all that was seen, are printable."""
    decision, node = judged.decision, printable(judged.observation.node.name)
    in_the_way, unread = unfit(judged), blind(judged)
    if unread is not None:
        return f"{node} is heard, but nobody would notice the end of its guest: {unread}."
    if in_the_way is not None:
        return f"{node} is healthy, but could not be fenced if it died now: {in_the_way}."
    whole = judged.untold or decision.reason is Reason.OBSERVE_MODE  # a sentence about what would follow
    says = why(judged) if whole else printable(TEXTS[decision.reason].says)
    kept = fenced_age(judged.observation) is not None and decision.verdict in {Verdict.WAIT, Verdict.REFUSE}
    return (STILL_FENCED if kept else HEADLINES[decision.verdict]).format(node=node, says=says)
