"""What a report tells of real runs in the lab: sentences, lanes, phases, workloads, troubles."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fencer.report.story import Figure
from tests.journal.build import Told
from tests.report.build import by_hand, crashed, cut_off, told


def of_lane(report, name):
    [lane] = [lane for lane in report.lanes.lanes if lane.name == name]
    clock = "{:%M:%S}".format
    return [f"{clock(one.begin)}-{clock(one.end)} {one.says}" for one in lane.spans]


def test_three_sentences_tell_how_it_began_what_was_done_and_how_it_ended():
    assert told(crashed()).sentences == (
        "k8s-2 was last heard at 01:01:11, and its guest lab/k8s-2 on lab1 did not run from 01:01:13 on; "
        "its hypervisor read stopped (crashed).",
        "fencer@pve1 fenced the node at 01:02:06, 55 s after its last sign of life: its hypervisor read it "
        "stopped for 53 s. 2.1 s later 4 pods and 3 volumes were free for other nodes.",
        "The fence was lifted at 01:03:59, after 1m53s, and the node was healthy at 01:04:29.",
    )


def test_a_refusal_tells_why_and_what_would_have_changed_it():
    began, why, end = told(cut_off()).sentences
    assert began.endswith("its guest lab/k8s-2 on lab1 was read running.")
    assert why.startswith(
        "Fencing was refused: its guest runs (running (booted): the node may only be cut off)."
    )
    assert "What would have changed that: its guest stopped" in why
    assert end == "The node was healthy again at 01:05:22."


@pytest.mark.parametrize(
    ("intent", "what"),
    [
        ("fence", "Fencing"),
        ("unfence", "Lifting the fence"),
        ("shutdown", "The shutdown"),
        ("start", "The start"),
    ],
)
def test_the_sentence_names_what_was_refused(intent, what):
    rows = Told().asked(0, f"{intent} k8s-2").seen(1, "refuse", "guest_running", intent=intent).ended(2, 1)
    assert f"{what} was refused: guest running." in told(tuple(rows.entries)).sentences


def test_what_a_person_did_is_told_as_theirs_and_what_goes_on_as_going_on():
    report = told(by_hand())
    asked, done, end = report.sentences
    assert asked == "At 01:02:28 admin@desk typed `fencer fence k8s-2 --over-brake 'the rack is gone'`."
    assert done.startswith(
        "admin@desk (by hand) fenced the node at 01:02:43, 1m34s after its last sign of life"
    )
    assert end == "The node was still fenced at 01:02:45, when the last row was written."
    assert [phase.goes_on for phase in report.phases][-2:] == [False, True]


@pytest.mark.parametrize(
    ("lane", "bars"),
    [
        (
            "Kubelet",
            ["00:56-01:11 heard", "01:11-02:06 silent", "02:06-03:39 silent, not Ready", "03:39-04:44 heard"],
        ),
        ("Guest", ["00:56-01:13 running", "01:13-03:13 stopped", "03:13-04:44 running"]),
        (
            "fencer",
            [
                *("00:56-01:13 healthy", "01:13-02:06 waiting", "02:06-02:06 to be fenced"),
                *("02:06-03:13 fenced", "03:13-03:59 recovering", "03:59-03:59 to be unfenced"),
                *("03:59-04:29 recovering", "04:29-04:44 healthy"),
            ],
        ),
        ("Pods", ["01:13-02:06 4 pods", "02:06-04:44 none left"]),
        ("Volumes", ["01:13-02:08 3 attached", "02:08-04:44 none attached"]),
    ],
)
def test_lanes_tell_what_was_so_and_are_empty_before_anybody_looked(lane, bars):
    assert of_lane(told(crashed()), lane) == bars


def test_what_was_done_is_marked_on_fencers_lane_and_notes_are_not():
    [lane] = [lane for lane in told(crashed()).lanes.lanes if lane.name == "fencer"]
    assert [mark.says for mark in lane.marks] == ["tainted", "pods cleared", "untainted", "uncordoned"]


def test_a_command_that_has_just_begun_calls_no_node_heard_that_it_never_heard():
    kubelet = of_lane(told(by_hand()), "Kubelet")
    assert [bar.partition(" ")[2] for bar in kubelet] == ["silent", "silent, not Ready"]
    assert kubelet[0].startswith("01:10-")  # what the lease says, and not when the command began


def test_phases_follow_one_another_and_come_to_the_whole():
    report = told(crashed())
    assert [phase.name for phase in report.phases] == [
        *("until it was noticed", "silence counted", "until Kubernetes called it not Ready", "taint set"),
        *(
            "pods cleared",
            "volumes released",
            "until its guest ran again",
            "until its kubelet was heard again",
        ),
        *("until it was heard often enough", "fence lifted", "kept cordoned", "uncordoned"),
    ]
    assert all(one.end == next_.begin for one, next_ in zip(report.phases, report.phases[1:], strict=False))
    assert round(sum(phase.seconds for phase in report.phases)) == 198
    assert all(phase.waited_for for phase in report.phases)


def test_each_pod_is_told_with_its_owner_and_how_long_it_was_down_at_least():
    told_of = [(one.pod, one.controller, round(one.downtime_s)) for one in told(crashed()).workloads]
    assert told_of == [
        ("demo/db-1", "StatefulSet/db", 53),
        ("demo/db-4", "StatefulSet/db", 53),
        ("demo/db-7", "StatefulSet/db", 53),
        ("demo/web-3", "Deployment/web", 53),
    ]


def test_a_node_that_was_left_alone_lost_no_pod():
    assert told(cut_off()).workloads == ()


def test_the_numbers_that_people_look_for_stand_at_the_top():
    assert told(crashed()).figures == (
        Figure("55 s", "from its last sign of life to the fence"),
        Figure("2.1 s", "until 4 pods and 3 volumes were free"),
        Figure("53 s", "its pods were down at least"),
        Figure("1m53s", "from the fence until it was lifted"),
    )


def test_a_persons_words_are_kept_with_their_command():
    [asked] = told(by_hand()).asked
    assert (asked.by, asked.code) == ("admin@desk (by hand)", 0)
    assert asked.why == (("over-brake", "the rack is gone"),)


def test_each_decision_has_its_checks_as_seen_and_its_evidence():
    [fences] = [step for step in told(crashed()).steps if step.what == "to be fenced"]
    checks = {check.name: (check.outcome, check.seen) for check in fences.checks}
    assert checks["held"] == ("passed", "read off 38 times over 53 s")
    evidence = dict(fences.evidence)
    assert evidence["guest"].startswith("stopped (crashed) (read, ")
    assert evidence["readings"] == "stopped 38 times over 53 s, run 1"
    assert evidence["volumes"] == "data-db-1, data-db-4, data-db-7"
    assert '"power_state": "stopped"' in fences.raw


def test_a_refusal_is_a_trouble_and_a_plain_run_has_none():
    assert told(crashed()).troubles == ()
    [trouble] = told(cut_off()).troubles
    assert trouble.text.startswith("refused: its guest runs")


def test_an_incident_that_lasts_until_another_day_is_told_with_the_day():
    journal = [replace(one, at=one.at + timedelta(hours=22, minutes=57), packed=None) for one in crashed()]
    assert told(journal).sentences[-1] == (
        "The fence was lifted at 2026-01-02 00:00:59, after 1m53s, and the node was healthy at "
        "2026-01-02 00:01:29."
    )
