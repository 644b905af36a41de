"""The log as a story: what is told by default, what only on demand, and one line when a fence is complete."""

import logging
from dataclasses import replace

import pytest

from fencer.core.done import GuestStopped, Happened, PodsCleared, Tainted
from fencer.core.model import (
    OUT_OF_SERVICE,
    Binding,
    BindNode,
    Check,
    Decision,
    Doubt,
    Doubted,
    ForgetMark,
    Outcome,
    PowerState,
    Proof,
    Reason,
    RecordDoubts,
    StopGuest,
    Taint,
    UntaintNode,
    Verdict,
)
from fencer.reporting.story import LogReporter
from tests.reporting.stand_ins import (
    ALARM,
    CLEAR,
    FENCE,
    GUEST,
    HEALTHY,
    NODE,
    REFUSED,
    TAINT,
)

BEGUN = Tainted(PowerState.STOPPED, Proof.POWER, 29.0, pods=8, volumes=3)
CLEARED = Decision(Verdict.FENCED, Reason.PODS_CLEARED)
COUNTING = Decision(Verdict.WAIT, Reason.COUNTING_SILENCE)
UNTAINT = UntaintNode(None)

WELL = replace(NODE, ready=True)
PAUSED = Decision(Verdict.REFUSE, Reason.FENCING_PAUSED)


class Told:
    """A log, its reporter, and time that only the test moves on."""

    def __init__(self):
        self.now_s = 100.0
        self.lines = []
        logger = logging.getLogger("test.story")
        logger.setLevel(logging.DEBUG)
        logger.handlers = [self]
        self.log = LogReporter(logger, lambda: self.now_s)

    level = logging.DEBUG

    def handle(self, record):
        self.lines.append((record.levelname.lower(), record.getMessage()))

    @property
    def last(self):
        return self.lines[-1]


@pytest.fixture
def told():
    return Told()


@pytest.mark.parametrize(
    ("tell", "level"),
    [
        (lambda log: log.decided(NODE, COUNTING), "info"),
        (lambda log: log.decided(NODE, REFUSED), "warning"),
        (lambda log: log.decided(NODE, Decision(Verdict.REFUSE, Reason.NOTHING_TO_CLEAR)), "info"),
        (lambda log: log.decided(WELL, PAUSED), "debug"),
        (lambda log: log.decided(NODE, PAUSED), "warning"),
        (lambda log: log.decided(NODE, Decision(Verdict.REFUSE, Reason.MAINTENANCE)), "info"),
        (lambda log: log.decided(NODE, Decision(Verdict.STOP_FIRST, Reason.GUEST_PAUSED)), "warning"),
        (lambda log: log.decided(NODE, Decision(Verdict.DISCARD_FIRST, Reason.GUEST_SAVED)), "warning"),
        (lambda log: log.decided(NODE, Decision(Verdict.WAIT, Reason.NOT_HELD)), "debug"),
        (lambda log: log.decided(NODE, FENCE), "debug"),
        (lambda log: log.decided(NODE, Decision(Verdict.FENCED, Reason.CLEARING_PODS)), "debug"),
        (lambda log: log.decided(NODE, CLEARED), "info"),
        (lambda log: log.decided(NODE, Decision(Verdict.UNFENCE, Reason.BOOTED_ANEW)), "info"),
        (lambda log: log.decided(NODE, Decision(Verdict.RECOVERING, Reason.SETTLING)), "debug"),
        (lambda log: log.decided(NODE, Decision(Verdict.ASK, Reason.SHUTDOWN_DUE)), "info"),
        (lambda log: log.acted(NODE, BindNode(Binding(GUEST, ())), Happened("bound")), "debug"),
        (lambda log: log.acted(NODE, ForgetMark(), Happened("403", ok=False)), "warning"),
        (lambda log: log.acted(NODE, TAINT, BEGUN), "warning"),
        (lambda log: log.acted(NODE, TAINT, Happened("no answer", ok=False)), "warning"),
        (lambda log: log.acted(NODE, CLEAR, PodsCleared(gone=("db/db-1",))), "info"),
        (lambda log: log.acted(NODE, CLEAR, PodsCleared(changed=("db/db-1",))), "debug"),
        (lambda log: log.acted(NODE, CLEAR, PodsCleared(failed={"db/db-1": "403"})), "warning"),
        (lambda log: log.acted(NODE, ALARM, Happened("old memory")), "warning"),
        (lambda log: log.said("lost", warning=True), "warning"),
        (lambda log: log.said("found", warning=False), "info"),
    ],
)
def test_how_loudly_each_is_told(told, tell, level):
    tell(told.log)
    assert told.last[0] == level


@pytest.mark.parametrize(
    ("tell", "text"),
    [
        (
            lambda log: log.decided(NODE, COUNTING),
            "waiting: its guest does not run",
        ),
        (
            lambda log: log.decided(replace(NODE, mark=TAINT.mark, taints=OURS), REFUSED),
            "still fenced: its guest runs (running (state 1)); what would change this: stopped",
        ),
        (
            lambda log: log.decided(NODE, WOULD),
            "would fence now: 8 pods; what would change this: mode: armed",
        ),
        (lambda log: log.acted(NODE, ALARM, Happened("old memory is back")), "ALARM: old memory is back"),
        (lambda log: log.acted(NODE, TAINT, Happened("403", ok=False)), "could not fence it: 403"),
        (lambda log: log.acted(NODE, UNTAINT, Happened("taint taken off")), "fence lifted: taint taken off"),
        (lambda log: log.acted(NODE, UNTAINT, Happened("403", ok=False)), "could not lift its fence: 403"),
        (
            lambda log: log.acted(
                NODE, StopGuest(GUEST, "1"), GuestStopped(GUEST, PowerState.RUNNING, "running", ok=False)
            ),
            "could not stop its guest: tried to stop lab/k8s-4; it reads running now: running",
        ),
        (
            lambda log: log.acted(NODE, TAINT, BEGUN),
            "tainted node.kubernetes.io/out-of-service=nodeshutdown:NoExecute: guest stopped 29 s ago; "
            "8 pods to clear, 3 volumes to release",
        ),
    ],
)
def test_each_line_is_a_sentence_about_its_node(told, tell, text):
    tell(told.log)
    assert told.last[1] == text


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({}, "fenced: guest stopped 46 s ago; 8 pods, 3 volumes, 17 s"),
        ({"off_s": None, "pods": 1, "volumes": 0}, "fenced: guest stopped; 1 pod, 0 volumes, 17 s"),
        (
            {"power_state": PowerState.ABSENT, "proof": Proof.ABSENCE},
            "fenced: guest deleted 46 s ago; 8 pods,",
        ),
        ({"power_state": PowerState.PAUSED}, "fenced: guest paused 46 s ago; 8 pods,"),
        ({"proof": Proof.HA_RECOVERY}, "fenced: host fenced by HA 46 s ago; 8 pods,"),
        ({"proof": Proof.HOST_POWER}, "fenced: host without power 46 s ago; 8 pods,"),
        ({"proof": Proof.OPERATOR, "off_s": None}, "fenced: guest off, by a person's word; 8 pods,"),
    ],
)
def test_a_complete_fence_is_one_line(told, facts, text):
    told.log.acted(NODE, TAINT, replace(BEGUN, **facts))
    told.now_s += 17.0
    told.log.decided(NODE, CLEARED)
    level, said = told.last
    assert level == "warning"
    assert said.startswith(text)


def test_whoever_was_restarted_in_between_says_less_and_nothing_wrong(told):
    told.log.decided(NODE, CLEARED)
    assert told.last == ("info", "fenced: its pods are cleared and its volumes released")


def test_what_fails_in_every_pass_is_a_warning_now_and_then(told):
    for _ in range(60):
        told.log.acted(NODE, TAINT, Happened("403: webhook 7 denied it", ok=False))
        told.log.said("k8s-4: list pods: 403", warning=True)
        told.now_s += 2.0
    warnings = [text for level, text in told.lines if level == "warning"]
    assert warnings == [
        "could not fence it: 403: webhook 7 denied it",
        "k8s-4: list pods: 403",
        "could not fence it: 403: webhook 7 denied it (said 29 times more since it was told)",
        "k8s-4: list pods: 403 (said 29 times more since it was told)",
    ]
    assert len(told.lines) == 120  # the others are there for whoever asks


def test_a_brake_that_holds_more_nodes_back_is_told_each_time(told):
    for number in range(5):
        told.log.said(f"{number} more dead nodes refused: the brake holds", warning=True)
    assert [level for level, _ in told.lines] == ["warning"] * 5


def test_what_begins_again_after_it_was_over_is_a_warning_again(told):
    """Otherwise the last line says that all is well, for as long as it goes on."""
    for _ in range(3):
        told.log.said("lab: no answer within 2 s", warning=True)
        told.now_s += 10.0
        told.log.said("lab: answers again after 10 s", warning=False)
    assert [level for level, _ in told.lines] == ["warning", "info"] * 3


def test_that_is_no_reason_to_tell_again_what_still_fails(told):
    for _ in range(5):
        told.log.acted(NODE, TAINT, Happened("403: denied", ok=False))
        told.log.said("lab: answers again after 10 s", warning=False)
    assert [level for level, _ in told.lines].count("warning") == 1


def test_that_a_fence_is_complete_is_told_once_whatever_becomes_of_its_guest(told):
    """Its hypervisor may be away for a while: that is told once, of the hypervisor."""
    for _ in range(3):
        told.log.decided(NODE, CLEARED)
        told.log.decided(NODE, Decision(Verdict.FENCED, Reason.AWAITING_BOOT))
    assert [level for level, _ in told.lines] == ["info", *["debug"] * 5]


def test_a_fence_is_told_once_and_the_next_one_is_another(told):
    for _ in range(2):
        told.log.acted(NODE, TAINT, BEGUN)
        told.log.decided(NODE, CLEARED)
        told.log.decided(NODE, HEALTHY)
    told.log.acted(NODE, TAINT, BEGUN)
    told.log.decided(NODE, HEALTHY)
    told.log.decided(NODE, CLEARED)
    assert told.last == ("info", "fenced: its pods are cleared and its volumes released")
    assert len([text for _, text in told.lines if text.startswith("fenced: guest stopped")]) == 2


def test_that_a_node_is_healthy_again_is_news_where_it_was_told_that_it_was_not(told):
    told.log.decided(NODE, Decision(Verdict.WAIT, Reason.NOT_HELD))
    told.log.decided(NODE, HEALTHY)
    assert told.last == ("debug", "healthy again")
    told.log.decided(NODE, COUNTING)
    told.log.decided(NODE, HEALTHY)
    assert told.last == ("info", "healthy again")


def test_a_node_that_falls_while_fencing_is_paused_is_told_and_that_it_is_back(told):
    told.log.decided(WELL, PAUSED)
    told.log.decided(NODE, PAUSED)
    assert told.last[1].startswith("not Ready, and refused: fencing is paused; what would change this: ")
    told.log.decided(WELL, PAUSED)
    assert told.last == ("info", "Ready again; fencing is paused")
    told.log.decided(WELL, HEALTHY)
    assert told.last == ("debug", "healthy again")


def test_a_fenced_node_that_is_back_while_fencing_is_paused_is_told_as_still_fenced(told):
    told.log.decided(replace(NODE, mark=TAINT.mark, taints=OURS), PAUSED)
    told.log.decided(replace(WELL, mark=TAINT.mark, taints=OURS), PAUSED)
    assert told.last[1].startswith("Ready again; still fenced: fencing is paused")


def test_that_somebody_forgot_a_taint_is_said_of_a_node_that_is_healthy_again(told):
    told.log.decided(NODE, COUNTING)
    told.log.decided(replace(NODE, taints=(Taint(OUT_OF_SERVICE),)), HEALTHY)
    assert told.last == ("info", "healthy again, but somebody else set the out-of-service taint")


def test_one_that_is_back_while_nobody_can_read_its_guest_is_not_just_healthy(told):
    told.log.decided(NODE, COUNTING)
    told.log.decided(NODE, Decision(Verdict.HEALTHY, Reason.BLIND))
    assert told.last[0] == "info"
    assert told.last[1].startswith("healthy, but nobody would notice its guest's end")


def test_a_silent_node_that_is_still_ready_is_news_only_where_its_guest_has_ended(told):
    """Otherwise every node would be told of after an hour in which nobody could ask the API server."""
    ready = Decision(Verdict.WAIT, Reason.NODE_READY)
    told.log.decided(NODE, ready)
    assert told.last[0] == "debug"
    told.log.decided(NODE, COUNTING)
    told.log.decided(NODE, ready)
    assert told.last[0] == "info"


OURS = (Taint(OUT_OF_SERVICE, "nodeshutdown", "NoExecute", TAINT.mark.fenced_at_utc),)
WOULD = Decision(
    Verdict.REFUSE,
    Reason.OBSERVE_MODE,
    (Check("armed", Outcome.FAILED, "would fence now: 8 pods", "mode: armed"),),
)


def test_an_outage_that_begins_again_is_told_however_soon(told):
    """Otherwise the last word would be that it answers, for as long as it does not."""
    for text, warning in (("lab: no answer", True), ("lab: answers again", False), ("lab: no answer", True)):
        told.log.said(text, warning=warning)
        told.now_s += 5.0
    assert told.lines == [
        ("warning", "lab: no answer"),
        ("info", "lab: answers again"),
        ("warning", "lab: no answer"),
    ]


def test_whose_word_does_not_count_any_more_is_a_warning_and_that_it_counts_again_is_none(told):
    doubt = Doubt(Doubted.CONTRADICTED, GUEST, "test:lab", "fencer", "2026-11-20T10:00:00Z")
    told.log.acted(NODE, RecordDoubts((doubt,)), Happened("lab is not believed when it says off"))
    assert told.last[0] == "warning"
    told.log.acted(NODE, RecordDoubts(()), Happened("its hypervisor is believed again"))
    assert told.last[0] == "info"


def test_that_somebody_else_was_quicker_is_no_failure(told):
    told.log.acted(NODE, TAINT, Happened("changed meanwhile, looking again: 409", ok=False, changed=True))
    assert told.last[0] == "debug"
