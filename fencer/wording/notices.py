"""What people are told of a node without asking: a title that fits on a locked phone, and the text below it.

All of it is printable: names and readings come from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from fencer.core.crash_loop import is_loop_alarm
from fencer.core.model import Alarm, FenceMark, Judged, Reason, Verdict
from fencer.core.text import age, count, listing, printable, sentence, unticked
from fencer.wording.distrust import MEANS as MEANS_DISTRUST
from fencer.wording.distrust import TRUST
from fencer.wording.nodes import alarms_of, guest_of
from fencer.wording.occasions import Occasion
from fencer.wording.outages import MEANS, without_answer
from fencer.wording.reasons import TEXTS, says
from fencer.wording.reports import ENDS
from fencer.wording.verdicts import VERDICT_WORDS
from fencer.wording.ways_out import ways_out

SO_FAR: dict[Reason, str] = {
    Reason.CLEARING_PODS: ", its pods are being cleared",
    Reason.RELEASING_VOLUMES: ", its volumes are being released",
    Reason.PODS_CLEARED: ", its pods are cleared",
    Reason.AWAITING_RENEWALS: ", and recovering",
}
"""How far a fence has come, where its reason tells."""

BACK: dict[Occasion, str] = {
    Occasion.FENCED: "{about} is back, its fence is lifted",
    Occasion.REFUSED: "{about} is back",
    Occasion.ALARM: "{about}: the alarm is over",
    Occasion.BLIND: "{about} answers again",
}
"""The title of what is over."""

TRUSTED = "{about} is trusted again"
"""The same of an endpoint that was distrusted."""

GONE: dict[bool, str] = {False: "{about} is deleted", True: "{about} is not asked any more"}
"""The title, if there is no such node any more, or no such endpoint (True)."""
MOST_NAMED = 3
"""So many nodes that cannot be read are told with why."""
EXCLUDED = "{about} is excluded from fencing"
"""The title, if a person has seen to that meanwhile."""


def fenced(judged: Judged) -> tuple[str, str]:
    """Return title and text of a node that carries our fence."""
    node, decision = judged.observation.node, judged.decision
    title = f"{node.name} is fenced{SO_FAR.get(decision.reason, '')}"
    mark = node.mark
    assert isinstance(mark, FenceMark)  # noqa: S101 - the caller has looked
    reading = judged.observation.evidence
    read = ENDS.get(reading.power_state) if reading is not None else None
    ended = ENDS.get(mark.proof) or read or "guest proven off"
    pods = "" if mark.pods is None else f"; {count(mark.pods, 'pod')}"
    so_far = TEXTS[decision.reason].says if decision.reason in SO_FAR else says(decision)
    lines = [f"{mark.guest}: {ended}{pods}.", f"{sentence(so_far)}."]
    if decision.reason is Reason.PODS_CLEARED:
        lines.append(
            f"Once it boots again its fence is lifted: start its guest, or `fencer start {node.name}`."
        )
    return _printable(title, lines)


def refused(judged: Judged, path: str) -> tuple[str, str]:
    """Return title and text of a node that is down, and that fencer refuses to fence.

    Args:
        judged: The node.
        path: Where the configuration is.
    """
    node, why = judged.observation.node.name, TEXTS[judged.decision.reason].says
    title = f"{node} is down; fencer {VERDICT_WORDS[Verdict.REFUSE].verb} to fence it: {why}"
    return _printable(title, (f"{sentence(says(judged.decision))}.", *ways_out(judged, path)))


def failed(judged: Judged) -> tuple[str, str]:
    """Return title and text of a node that is due to be fenced, which fails again and again."""
    title = f"{judged.observation.node.name} is down, and fencing it fails"
    return _printable(title, (f"{sentence(says(judged.decision))}.", f"{judged.failed}; it is tried again."))


def alarm(judged: Judged, path: str) -> tuple[str, str]:
    """Return title and text of a node that a person has to look at now."""
    node, decision = judged.observation.node, judged.decision
    what = next(iter(alarms_of(judged)), TEXTS[decision.reason].says)
    alarms = [action for action in decision.actions if isinstance(action, Alarm)]
    texts = (sentence(one.text) if is_loop_alarm(one) else one.text for one in alarms)
    lines = (*(f"{text.rstrip('.')}." for text in texts), *ways_out(judged, path))
    return _printable(f"ALARM: {node.name}: {what}", lines)


def silent(name: str, why: str, nodes: Sequence[str], *, api: bool) -> tuple[str, str]:
    """Return title and text of somebody who does not answer.

    Args:
        name: Who.
        why: What came of asking.
        nodes: Names of the nodes whose guests are there, as far as that is known.
        api: It is the API server.
    """
    who = "the API server" if api else name
    hit = (f"Its nodes: {listing(nodes)}.",) if nodes else ()
    lines = (sentence(f"{without_answer(why)}; {MEANS[api]}."), *hit, "Try: `fencer check`.")
    return _printable(f"fencer is blind: {who} does not answer", lines)


def unseen(endpoint: str, nodes: Iterable[str], why: str) -> tuple[str, str]:
    """Return title and text of guests whose end nobody would notice, although their hypervisor answers.

    Args:
        endpoint: The hypervisor.
        nodes: The names of their nodes.
        why: What is told of the first of them.
    """
    names = list(nodes)
    title = f"fencer is blind: {count(len(names), 'guest')} of {endpoint} cannot be read"
    return _printable(title, (f"{', '.join(names)}: {why}.", "Nobody would notice their end."))


def distrusted(endpoint: str, why: str, nodes: Sequence[str]) -> tuple[str, str]:
    """Return title and text of a hypervisor that is distrusted for all its VMs.

    Args:
        endpoint: The hypervisor.
        why: Which VMs it was wrong about.
        nodes: Names of the nodes whose VMs are there.
    """
    way = sentence(TRUST.format(endpoint=unticked(endpoint)))
    lines = (f"{why}; {MEANS_DISTRUST}.", f"Its nodes: {listing(nodes)}.", f"{way}.")
    return _printable(f"{endpoint} is distrusted: its nodes aren't fenced", lines)


def unreadable(nodes: Sequence[str]) -> tuple[str, str]:
    """Return title and text of nodes that cannot be read.

    Args:
        nodes: Each with why.
    """
    title = f"fencer is blind: {count(len(nodes), 'node')} cannot be read"
    return _printable(title, (*(f"{text}." for text in nodes[:MOST_NAMED]), "Nobody guards them."))


def still(title: str, for_s: float) -> str:
    """Return the title of what people are reminded of."""
    return f"{title} (for {age(for_s)} now)"


def back(occasion: Occasion, reason: str) -> str:
    """Return the title of what is over, see `BACK`."""
    return TRUSTED if reason == Reason.WITNESS_CONTRADICTED and occasion is Occasion.BLIND else BACK[occasion]


def over(title: str, about: str, told: str, began: datetime, ended: datetime) -> tuple[str, str]:
    """Return title and text of what is over.

    Args:
        title: One of `BACK`, `GONE` or `EXCLUDED`.
        about: The node, or who did not answer.
        told: What was told of it in a line; empty: nothing that is worth repeating.
        began: When it began, as far as is known.
        ended: When it was over, in the zone of people.
    """
    began = began.astimezone(ended.tzinfo)
    day = "" if began.date() == ended.date() else f"{began:%Y-%m-%d} "
    took = age((ended - began).total_seconds())
    lasted = f"It lasted {took} at least: {day}{began:%H:%M:%S} to {ended:%H:%M:%S %Z}."
    return title.format(about=printable(about)), "\n".join((*((told,) if told else ()), lasted))


def guest_name(judged: Judged) -> str:
    """Return a node's guest as it is named to people; empty: it is not known."""
    guest = judged.decision.guest or guest_of(judged)
    return printable(str(guest)) if guest is not None else ""


def _printable(title: str, lines: Iterable[str]) -> tuple[str, str]:
    return printable(title), "\n".join(printable(line) for line in lines)
