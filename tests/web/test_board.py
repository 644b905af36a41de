"""What is kept to be shown: the newest pass, what was counted, and no more than there is room for."""

from dataclasses import replace

from fencer.core.done import Happened
from fencer.core.model import Decision, Reason, Uncordon, Verdict
from fencer.core.policy import Policy
from fencer.web.board import RECENT_KEPT, STEPS_KEPT
from fencer.web.snapshot import BUCKETS_S, Durations, Phase, Result
from tests.core.build import node
from tests.web.onstage import OnStage


def test_before_the_first_pass_nothing_is_claimed():
    shown = OnStage().shown()
    assert (shown.sight, shown.pass_age_s, shown.tried) == (None, None, False)
    assert [(one.name, one.asked, one.up) for one in shown.endpoints] == [
        ("kubernetes", False, False),
        ("lab", False, False),
    ]


def test_a_pass_is_shown_as_it_ended():
    stage = OnStage()
    stage.passes(25)
    shown = stage.shown()
    assert set(shown.sight.judged) == {"k8s-1", "k8s-2", "k8s-3"}
    assert shown.passes[Result.OK] > 5
    assert (shown.passes[Result.PARTIAL], shown.passes[Result.FAILED]) == (0, 0)
    assert all(one.up and one.success_age_s < 3 for one in shown.endpoints)


def test_an_endpoint_that_fails_is_down_and_its_last_answer_ages():
    stage = OnStage()
    stage.passes(10)
    stage.happen("denied", "")
    stage.passes(60)
    shown = stage.shown()
    api, lab = shown.endpoints
    assert api.up
    assert not lab.up
    assert lab.error
    assert 55 < lab.success_age_s < 65
    assert shown.passes[Result.PARTIAL] > 10


def test_a_pass_that_fails_leaves_the_last_one_to_be_seen_and_says_why():
    stage = OnStage()
    stage.passes(10)
    stage.happen("api_down", "")
    stage.passes(30)
    shown = stage.shown()
    assert set(shown.sight.judged) == {"k8s-1", "k8s-2", "k8s-3"}
    assert shown.failing
    assert not shown.endpoints[0].up
    assert shown.pass_age_s > 25
    assert shown.alive_age_s < 5
    assert shown.passes[Result.FAILED] > 5


def test_a_fence_is_timed_in_its_phases_which_add_up():
    stage = OnStage()
    stage.passes(25)
    stage.happen("crash")
    stage.passes(200)
    shown = stage.shown()
    took = {phase: (one.count, one.sum_s) for phase, one in shown.durations.items()}
    assert {phase: count for phase, (count, _) in took.items()} == dict.fromkeys(Phase, 1)
    parts = sum(took[phase][1] for phase in (Phase.PROOF, Phase.PODS, Phase.VOLUMES))
    assert abs(took[Phase.TOTAL][1] - parts) < 0.001
    assert 30 < took[Phase.PROOF][1] < 90, "silence takes 40 s by default"
    assert shown.actions["TaintNode", "done"] == 1
    assert shown.actions["TaintNode", "failed"] == 0


def test_the_steps_of_an_incident_are_kept_until_the_node_is_healthy_again():
    stage = OnStage()
    stage.passes(25)
    assert stage.shown().steps == {}
    stage.happen("crash")
    stage.passes(120)
    steps = stage.shown().steps
    assert set(steps) == {"k8s-2"}
    assert any("tainted" in step.text and step.loud for step in steps["k8s-2"])
    stage.happen("start")
    stage.passes(300)
    shown = stage.shown()
    assert shown.steps == {}
    assert shown.recent[-1].text == "healthy again"


def test_a_fence_that_was_begun_by_an_agent_before_is_not_timed():
    stage = OnStage()
    stage.passes(25)
    stage.happen("crash")
    while not stage.stage.node().fenced:
        stage.passes(2)
    stage.begin()
    stage.passes(120)
    assert {one.count for one in stage.shown().durations.values()} == {0}


def test_a_refusal_counts_when_it_is_new_and_not_each_time_that_it_is_told():
    board = OnStage().board
    dead = replace(node(), ready=None)
    for reason in (Reason.GUEST_RUNNING, Reason.GUEST_RUNNING, Reason.HOST_SILENT, Reason.GUEST_RUNNING):
        board.decided(dead, Decision(Verdict.REFUSE, reason))
    board.decided(dead, Decision(Verdict.WAIT, Reason.NOT_HELD))
    board.decided(dead, Decision(Verdict.REFUSE, Reason.GUEST_RUNNING))
    board.decided(dead, Decision(Verdict.REFUSE, Reason.NOTHING_TO_CLEAR))
    assert board.snapshot().refusals == {Reason.GUEST_RUNNING: 3, Reason.HOST_SILENT: 1}


def test_a_pause_is_no_refusal_of_nodes_that_are_well():
    board = OnStage().board
    paused = Decision(Verdict.REFUSE, Reason.FENCING_PAUSED)
    board.decided(replace(node(), ready=True), paused)
    assert board.snapshot().refusals == {}
    board.decided(replace(node(), ready=None), paused)
    assert board.snapshot().refusals == {Reason.FENCING_PAUSED: 1}


def test_actions_are_counted_by_what_came_of_them():
    board = OnStage().board
    board.acted(node(), Uncordon(), Happened("uncordoned"))
    board.acted(node(), Uncordon(), Happened("409", ok=False))
    board.acted(node(), Uncordon(), Happened("409", ok=False))
    actions = board.snapshot().actions
    assert (actions["Uncordon", "done"], actions["Uncordon", "failed"]) == (1, 2)
    assert actions["TaintNode", "done"] == 0, "whoever computes a rate needs the zero before"


def test_what_is_kept_does_not_grow():
    stage = OnStage()
    stage.passes(4)
    for number in range(500):
        told = replace(node(), uid=f"u{number}", name=f"gone-{number}")
        stage.board.decided(told, Decision(Verdict.REFUSE, Reason.GUEST_RUNNING))
        stage.board.decided(replace(node(), ready=None), Decision(Verdict.REFUSE, list(Reason)[number % 60]))
        stage.board.said(f"trouble {number}", warning=True)
    assert len(stage.board.snapshot().recent) == RECENT_KEPT
    assert max(len(case.steps) for case in stage.board._cases.values()) == STEPS_KEPT
    stage.passes(4)
    assert stage.board._cases == {}, "nodes that no pass shows are forgotten"


def test_hostile_words_are_made_plain_before_they_are_kept():
    board = OnStage().board
    board.said("lab: \x1b[2J\nall is well", warning=True)
    assert board.snapshot().recent[-1].text == "lab: \\x1b[2J\\nall is well"


def test_durations_fall_into_the_bucket_that_still_holds_them():
    took = Durations()
    for seconds in (0.0, 1.0, 1.001, 3600.0, 3601.0):
        took = took.and_(seconds)
    assert took.counts[:2] == (2, 1)
    assert took.counts[-2:] == (1, 1)
    assert (took.count, took.sum_s) == (5, 7203.001)
    assert list(BUCKETS_S) == sorted(BUCKETS_S)


def test_a_node_that_is_ready_and_only_unfit_is_under_no_suspicion():
    stage = OnStage()
    healthy = replace(node(), ready=True)
    stage.board.decided(healthy, Decision(Verdict.REFUSE, Reason.NO_GUEST))
    [case] = stage.board._cases.values()
    assert case.suspected_s is None


def test_the_mode_in_force_is_shown():
    assert OnStage().shown().armed
    assert not OnStage(Policy()).shown().armed
