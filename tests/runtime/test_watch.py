"""The loop: what it says, and that nothing stops it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fencer.core.maintenance import Window
from fencer.core.model import Decision, Fleet, Judged, Reason, Verdict
from fencer.core.pause import PauseNote, write
from fencer.reporting.repeats import Repeats
from fencer.runtime.watch import held_back, unreadable, watch
from fencer.simulation.assembly import Shape
from fencer.simulation.clock import EPOCH
from tests.core.build import observation
from tests.runtime.stagehand import ARMED, Stagehand


def run_passes(stage, count, between=None):
    left = iter(range(count))

    def stopped():
        n = next(left, None)
        if between and n in between:
            between[n]()
        return n is None

    watch(stage.agent, stage.world, stage.policy.poll_s, stopped)


def test_an_endpoint_that_is_lost_is_said_once_and_once_more_when_it_answers_again():
    stage = Stagehand()
    run_passes(stage, 12, {2: lambda: stage.happen("denied", ""), 7: lambda: stage.happen("truthful", "")})
    (lost, warning), back = stage.notes.said_
    assert warning
    assert lost.startswith("lab: no usable answer: ")
    assert lost.endswith("; its nodes are not fenced meanwhile; asked again every 2 s")
    assert back == ("lab: answers again after 6.1 s", False)


def test_a_cluster_that_is_lost_is_said_once_and_watched_for():
    stage = Stagehand()
    run_passes(stage, 12, {2: lambda: stage.happen("api_down", ""), 7: lambda: stage.happen("api_up", "")})
    (lost, warning), back = stage.notes.said_
    assert warning
    assert lost.startswith("kubernetes: no usable answer: ")
    assert lost.endswith("; nothing is fenced until it answers; asked again every 2 s")
    assert back == ("kubernetes: answers again after 6.1 s", False)


def test_an_event_of_a_hypervisor_wakes_the_loop():
    stage = Stagehand()
    run_passes(stage, 2)
    began_s = stage.simulation.clock.now_s()
    stage.simulation.clock.after(0.1, lambda: stage.happen("crash"))
    run_passes(stage, 2)
    assert stage.simulation.clock.now_s() - began_s < stage.policy.poll_s + 0.5


def test_a_pause_is_said_once_with_what_ends_it_and_so_is_its_end():
    stage = Stagehand()
    api = stage.simulation.api
    pauses = {
        3: lambda: setattr(api, "paused_why", "storage work"),
        8: lambda: setattr(api, "paused_why", None),
    }
    run_passes(stage, 20, pauses)
    assert stage.notes.said_ == [
        (
            "fencing is paused: storage work: nothing is fenced, and no fence is lifted; "
            "`fencer resume` ends that",
            True,
        ),
        ("fencing goes on: its pause is over", False),
    ]


def test_a_pause_with_an_end_is_said_with_it_and_is_over_by_itself():
    stage = Stagehand()
    api = stage.simulation.api
    ends = f"{EPOCH + timedelta(seconds=api.clock.now_s() + 20):%Y-%m-%dT%H:%M:%SZ}"
    api.paused_why = write(PauseNote("storage work", ends, "anna@box"))
    run_passes(stage, 60)
    assert stage.notes.said_ == [
        (
            f"fencing is paused: storage work (until {ends}, by anna@box): nothing is fenced, and no fence "
            "is lifted; `fencer resume` ends that",
            True,
        ),
        ("fencing goes on: its pause is over", False),
    ]
    assert api.paused_why is not None


def test_an_open_window_is_said_once_and_so_is_its_end():
    stage = Stagehand()
    now = EPOCH + timedelta(seconds=stage.simulation.clock.now_s())
    window = Window("00:00", f"{now + timedelta(minutes=2):%H:%M}", "UTC", why="new disks")
    stage.new_agent(replace(ARMED, maintenance=(window,)))
    run_passes(stage, 200)
    (open_, warns), over = stage.notes.said_
    assert (open_.startswith(f"{window}: fencer begins nothing by itself on any node until 20"), warns) == (
        True,
        True,
    )
    assert over == ("no maintenance window is open any more", False)


def test_a_node_that_cannot_be_read_is_named_first_and_another_one_is_news():
    one, two = "k8s-1: spec: expected an object, not 7", "k8s-2: spec: expected an object, not 7"
    assert unreadable(()) == ""
    assert unreadable((one,)) == "k8s-1 cannot be read: spec: expected an object, not 7"
    assert unreadable((one, two)) == f"k8s-1, k8s-2 cannot be read: {one}; {two}"
    repeats = Repeats(lambda: 0.0)
    for text in (unreadable((one,)), unreadable((two,)), unreadable((one, two))):
        assert repeats.told(text.partition(": ")[0], text) == text


def test_a_brake_that_holds_many_nodes_back_is_one_line_and_another_when_it_holds_none():
    nodes = tuple(f"k8s-{number}" for number in range(1, 13))
    stage = Stagehand(replace(ARMED, max_fenced=4), shape=Shape(nodes=nodes))

    def happens(what):
        return lambda: [stage.happen(what, name) for name in nodes[:9]]

    run_passes(stage, 400, {10: happens("crash"), 200: happens("start")})
    counts = [text for text, _ in stage.notes.said_ if "more dead node" in text]
    braked = {node for node, _, reason in stage.notes.decided_ if reason is Reason.BRAKE}
    assert (
        f"{len(braked)} more dead nodes refused: the brake holds, with 4 of 12 nodes fenced in "
        "the last hour (max_fenced, max_fenced_hosts); `fencer fence NODE --over-brake WHY` fences one more"
    ) in counts
    assert stage.notes.said_[-1] == ("the brake holds no node back any more", False)
    assert len(stage.notes.said_) < len(braked) + 2


@pytest.mark.parametrize(
    ("reasons", "begins"),
    [
        ([], ""),
        ([Reason.NODE_HEALTHY, Reason.PROVEN_OFF], ""),
        (
            [Reason.BRAKE, Reason.NODE_HEALTHY],
            "1 more dead node refused: the brake holds, with 3 of 7 ",
        ),
        ([Reason.BRAKE] * 2, "2 more dead nodes refused: "),
    ],
)
def test_nodes_that_are_held_back_are_counted(reasons, begins):
    seen = observation(fleet=Fleet(7, young_fences=3))
    told = held_back([Judged(seen, Decision(Verdict.REFUSE, reason)) for reason in reasons])
    assert told.startswith(begins)
    assert bool(told) is bool(begins)


def test_an_endpoint_that_is_distrusted_is_said_once_and_once_more_when_it_is_trusted_again():
    stage = Stagehand(shape=Shape(nodes=tuple(f"k8s-{number}" for number in range(1, 6))))

    def lies():
        for name in ("k8s-2", "k8s-3"):
            stage.happen("lie_stopped", name)

    run_passes(stage, 120, {20: lies, 80: lambda: stage.happen("truthful", "")})
    told = [(text, warning) for text, warning in stage.notes.said_ if "trusted" in text]
    assert told[0] == (
        "lab is distrusted: it reported the VMs of k8s-2, k8s-3 as off while their kubelets were alive; "
        'fencer ignores its "off" for all its VMs, so their nodes aren\'t fenced. If you know that lab '
        "reports the truth now: `fencer trust lab --why WHY`",
        True,
    )
    assert told[-1] == ("lab is trusted again", False)
    assert [warning for _, warning in told].count(False) == 1
