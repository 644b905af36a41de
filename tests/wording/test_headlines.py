"""The first sentence about a node: it follows the node's condition, and names what fencer does."""

from dataclasses import replace

import pytest

from fencer.core.model import (
    OUT_OF_SERVICE,
    Alarm,
    Decision,
    Judged,
    Reason,
    StopGuest,
    Taint,
    Verdict,
)
from fencer.wording.conditions import fence_word
from fencer.wording.headlines import headline
from fencer.wording.verdicts import key_of, shown_verdict
from tests.core.build import GUEST, NOW_UTC, fenced, healthy, node, observation

FOREIGN = (Taint(OUT_OF_SERVICE, "nodeshutdown", "NoExecute", NOW_UTC),)


def judged(verdict, reason, seen=None, actions=(), **more):
    return Judged(seen or observation(), Decision(verdict, reason, actions=actions), **more)


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        (judged(Verdict.HEALTHY, Reason.NODE_HEALTHY, healthy()), "k8s-2 is healthy."),
        (judged(Verdict.REFUSE, Reason.GUEST_RUNNING), "fencer refuses to fence k8s-2: its guest runs."),
        (
            judged(Verdict.WAIT, Reason.COUNTING_SILENCE),
            "fencer waits before it decides about k8s-2: its guest does not run.",
        ),
        (
            judged(Verdict.STOP_FIRST, Reason.GUEST_PAUSED),
            "fencer stops the VM of k8s-2: its guest is paused.",
        ),
        (
            judged(Verdict.REFUSE, Reason.FENCING_PAUSED, fenced()),
            "k8s-2 is still fenced: fencing is paused.",
        ),
        (
            judged(Verdict.REFUSE, Reason.NOTHING_TO_CLEAR),
            "k8s-2 needs no fence: there is nothing to clear on it.",
        ),
        (judged(Verdict.REFUSE, Reason.FENCING_PAUSED, healthy()), "k8s-2 is paused: fencing is paused."),
        (
            judged(Verdict.REFUSE, Reason.NO_GUEST, healthy()),
            "k8s-2 is unprotected: no guest matches this node.",
        ),
        (
            judged(Verdict.HEALTHY, Reason.NODE_HEALTHY, healthy(node=node(ready=True, taints=FOREIGN))),
            "k8s-2 is unprotected: somebody else set the out-of-service taint.",
        ),
    ],
)
def test_the_sentence_says_what_fencer_does_about_the_node(item, sentence):
    assert headline(item) == sentence


OLD_MEMORY = "its guest came back with its old memory"


@pytest.mark.parametrize(
    "item",
    [
        judged(Verdict.RECOVERING, Reason.OLD_MEMORY, fenced()),
        judged(Verdict.STOP_FIRST, Reason.OLD_MEMORY, fenced(), actions=(StopGuest(GUEST, None),)),
    ],
    ids=["alarm only", "resumed_guest: stop"],
)
def test_old_memory_is_an_alarm_whatever_fencer_does_about_it(item):
    """Neither *recovering* nor *to be fenced*: it may write to volumes that others own."""
    assert headline(item) == f"k8s-2 is in alarm: {OLD_MEMORY}."
    assert fence_word(item) == "in alarm"


def test_an_alarm_is_told_by_its_own_words():
    alarm = judged(
        Verdict.HEALTHY, Reason.NODE_HEALTHY, healthy(), actions=(Alarm("an older boot is heard."),)
    )
    assert headline(alarm) == "k8s-2 is in alarm: an older boot is heard."


@pytest.mark.parametrize(("more", "word"), [({}, "waiting"), ({"stands": True}, "refused")])
def test_a_refusal_that_stands_whatever_an_agent_knows_is_no_waiting(more, word):
    unsure = judged(Verdict.REFUSE, Reason.BINDING_UNPROVEN, untold="its guest runs", **more)
    assert key_of(shown_verdict(unsure)) == fence_word(unsure) == word
    assert headline(unsure).startswith("fencer refuses to fence k8s-2" if more else "fencer waits before")


def test_a_guest_that_is_stopped_by_a_planned_stop_is_not_called_one_to_fence():
    hangs = judged(Verdict.STOP_FIRST, Reason.SHUTDOWN_HANGS)
    assert headline(hangs) == "fencer stops the VM of k8s-2: its guest did not shut down in time."
    assert fence_word(replace(hangs, untold="")) == "to be stopped"
