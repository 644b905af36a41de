"""What actions come to, in words."""

from dataclasses import replace

import pytest

from fencer.core.deeds import deed
from fencer.core.model import (
    Alarm,
    ClearPods,
    DeleteAttachments,
    DiscardSaved,
    StartGuest,
    StopGuest,
    TaintNode,
    Uncordon,
    UntaintNode,
)
from tests.core.build import GUEST, MARK, POD, VOLUME, fenced, observation

LEFT = "2 pods to clear, 1 volume attached"
SEEN = observation(pods=(POD, replace(POD, name="db-2", uid="pod-uid-2")))
FENCED = replace(SEEN, node=fenced().node)


@pytest.mark.parametrize(
    ("seen", "action", "words"),
    [
        (SEEN, TaintNode(MARK), f"fence now: {LEFT}"),
        (SEEN, StopGuest(GUEST, "run-1"), f"stop its guest now, then fence: {LEFT}"),
        (
            SEEN,
            DiscardSaved(GUEST, "run-1"),
            f"throw its guest's saved memory away now, then fence: {LEFT}",
        ),
        (FENCED, StopGuest(GUEST, "run-1"), "stop its guest now: it came back with its old memory"),
        (FENCED, ClearPods((POD,)), f"clear its pods now: {LEFT}"),
        (
            FENCED,
            DeleteAttachments((VOLUME,)),
            "release what the deleted node left now: 1 volume attached",
        ),
        (FENCED, StartGuest(GUEST, None), "start its guest again now"),
        (FENCED, UntaintNode(None), "lift the fence now"),
        (SEEN, Alarm("old memory"), ""),
        (SEEN, Uncordon(), ""),
        (replace(SEEN, node=replace(SEEN.node, unschedulable=True)), Uncordon(), "uncordon it now"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_each_deed_has_its_words(seen, action, words):
    assert deed(seen, (action,), " now") == words


def test_an_alarm_beside_a_deed_is_not_the_deed():
    assert deed(FENCED, (Alarm("fenced wrongly"), UntaintNode(None)), " now") == "lift the fence now"


def test_what_it_hangs_on_is_told_behind_the_verb():
    words = deed(SEEN, (TaintNode(MARK),), ", once its guest has been off for 5 s")
    assert words == f"fence, once its guest has been off for 5 s: {LEFT}"
