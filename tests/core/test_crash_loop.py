"""The alarm of a crash loop, under every hold and beside every decision; and nothing but an alarm."""

from dataclasses import replace

import pytest

from fencer.core.cordon import DRAIN, FROM_OUTSIDE
from fencer.core.crash_loop import IN_A_LOOP, in_crash_loop, is_loop_alarm
from fencer.core.decide import decide
from fencer.core.model import (
    Alarm,
    Binding,
    Cordon,
    Fleet,
    GuestHistory,
    Intent,
    Outcome,
    PowerState,
    Starts,
    Verdict,
)
from fencer.core.policy import Mode
from fencer.core.starts import LOOP_S
from tests.core.build import ARMED, BOOT, GUEST, NOW_S, evidence, node, observation, run

LOOP = Starts((NOW_S - 90.0, NOW_S - 60.0, NOW_S - 30.0, NOW_S - 5.0))
UP = node(ready=True, lease_age_s=3.0, not_ready_s=None)
RUNS = GuestHistory(run(PowerState.RUNNING), boot_id=BOOT, starts=LOOP)


def loops(**facts):
    return observation(**{"node": UP, "evidence": evidence(PowerState.RUNNING), "history": RUNS} | facts)


@pytest.mark.parametrize(("by", "drained"), [(DRAIN, True), ("hook", False)])
def test_a_cordon_without_a_record_is_a_drain_by_its_note(by, drained):
    note = Cordon(by, "boot-0", "2026-11-20T08:00:00Z")
    seen = loops(node=replace(UP, unschedulable=True, recorded=False, cordon=note, cordoner=""))
    [text] = [one.text for one in decide(seen, ARMED).actions if isinstance(one, Alarm)]
    assert ("`fencer drain` cordoned it" in text) is drained


def test_a_healthy_node_between_two_crashes_is_in_alarm():
    decision = decide(loops(), ARMED)
    assert decision.verdict is Verdict.HEALTHY
    [alarm] = decision.actions
    assert alarm.text.startswith(IN_A_LOOP)
    assert "`fencer drain k8s-2`" in alarm.text
    assert decision.checks[-1].name == "crash loop"
    assert decision.checks[-1].seen == "started 4 times in 1m25s"
    assert (decision.checks[-1].outcome, decision.checks[-1].needs) == (
        Outcome.ALARM,
        "10m00s without another start",
    )
    assert in_crash_loop(decision)


def test_the_alarm_has_one_text_however_often_it_starts():
    more = replace(LOOP, runs=(*LOOP.runs, NOW_S - 1.0))
    texts = {decide(loops(history=replace(RUNS, starts=starts)), ARMED).actions for starts in (LOOP, more)}
    assert len(texts) == 1


@pytest.mark.parametrize("starts", [Starts(), Starts(LOOP.runs[:3])], ids=["none", "three"])
def test_fewer_starts_are_none(starts):
    decision = decide(loops(history=replace(RUNS, starts=starts)), ARMED)
    assert not in_crash_loop(decision)
    assert decision.actions == ()


def test_it_is_over_after_ten_minutes_in_one_boot():
    later = tuple(time - LOOP_S for time in LOOP.runs)
    assert not in_crash_loop(decide(loops(history=replace(RUNS, starts=Starts(later))), ARMED))


@pytest.mark.parametrize(
    "facts",
    [
        {"fleet": Fleet(nodes=7, silent=1, paused_why="maintenance")},
        {"node": replace(UP, excluded_by="fencer.dev/exclude")},
        {"evidence": None, "candidates": ()},
        {"unread": "the state file is damaged"},
    ],
    ids=["paused", "excluded", "no VM known", "state file unread"],
)
def test_nothing_holds_the_alarm_back(facts):
    assert in_crash_loop(decide(loops(**facts), ARMED))


def test_an_agent_that_observes_raises_it_too():
    assert in_crash_loop(decide(loops(), replace(ARMED, mode=Mode.OBSERVE)))


@pytest.mark.parametrize("intent", [intent for intent in Intent if intent is not Intent.WATCH])
def test_a_command_has_seen_no_start_and_raises_none(intent):
    assert not in_crash_loop(decide(loops(intent=intent), ARMED))


def test_it_adds_to_a_fence_and_takes_nothing_from_it():
    dead = observation()
    decision = decide(replace(dead, history=replace(dead.history, starts=LOOP)), ARMED)
    alone = decide(dead, ARMED)
    assert (decision.verdict, decision.reason) == (alone.verdict, alone.reason)
    assert decision.actions[1:] == alone.actions
    assert is_loop_alarm(decision.actions[0])


def test_an_alarm_that_says_worse_stands_alone():
    """Old memory runs: that is told, and not that it was started often."""
    back = replace(UP, binding=Binding(GUEST, (BOOT, "boot-2")))
    decision = decide(loops(node=back), ARMED)
    assert [isinstance(action, Alarm) for action in decision.actions].count(True) == 1
    assert not in_crash_loop(decision)


def test_once_a_drain_cordoned_the_node_the_alarm_recommends_none():
    drained = replace(UP, unschedulable=True, cordon=Cordon(DRAIN, BOOT, ""), cordoner=FROM_OUTSIDE)
    unrecorded = replace(drained, recorded=False, cordoner="")
    done = "`fencer drain` cordoned it"
    for view, helps in ((UP, "`fencer drain k8s-2`"), (drained, done), (unrecorded, done)):
        [alarm] = decide(loops(node=view), ARMED).actions
        assert helps in alarm.text, view
        assert is_loop_alarm(alarm)
