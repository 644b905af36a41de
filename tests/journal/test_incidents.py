"""Rows, folded into incidents; and the one sentence that each of them comes to."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from fencer.core.model import OUT_OF_SERVICE, Taint
from fencer.journal.codec import pack
from fencer.journal.folding import incidents
from fencer.journal.headline import headline
from fencer.journal.rows import Kind
from tests.core import build
from tests.journal.build import Told


def clock(when: datetime) -> str:
    return f"{when.astimezone(UTC):%H:%M}"


def lines(told):
    return [
        f"{clock(one.began)} {one.node} {headline(one, clock)} ({one.id})" for one in incidents(told.entries)
    ]


def fenced(told, *, node="k8s-2", at_s=0.0, cause="counting_silence"):
    told.seen(at_s, "wait", cause, node=node)
    told.seen(at_s + 60, "fence", "proven_off", node=node)
    told.meant(at_s + 60, "TaintNode", node=node)
    done = {"type": "Tainted", "power_state": "stopped", "proof": "power", "pods": 2, "volumes": 3}
    told.did(at_s + 60, "TaintNode", node=node, done=done)
    told.meant(at_s + 61, "ClearPods", node=node)
    told.did(at_s + 62, "ClearPods", node=node, done={"type": "PodsCleared", "gone": ["db/db-1", "db/db-2"]})
    return told.seen(at_s + 65, "fenced", "pods_cleared", node=node)


def back(told, *, node="k8s-2", at_s=1020.0):
    told.seen(at_s - 30, "recovering", "awaiting_boot", node=node)
    told.did(at_s, "UntaintNode", node=node)
    told.did(at_s + 30, "Uncordon", node=node)
    return told.seen(at_s + 30, "healthy", "node_healthy", node=node)


def test_a_fence_from_its_cause_to_its_end():
    assert lines(back(fenced(Told(), cause="guest_paused"))) == [
        "02:14 k8s-2 paused → fenced in 1m05s, 2 pods cleared, 3 volumes, lifted 02:31 (5a5ca47e)"
    ]


def test_a_fence_that_stands():
    [one] = incidents(fenced(Told()).entries)
    assert not one.over
    assert headline(one, clock) == "stopped → fenced in 1m05s, 2 pods cleared, 3 volumes, still fenced"


def test_a_pod_that_a_finalizer_held_for_a_while_is_counted_once_all_are_cleared():
    on = {"pods": ["db/db-1", "db/batch-1"]}
    done = {"type": "PodsCleared", "gone": ["db/db-1"], "held": {"db/batch-1": "finalizers"}}
    told = Told().seen(0, "fence", "proven_off").did(1, "TaintNode").did(2, "ClearPods", on=on, done=done)
    assert [one.pods for one in incidents(told.entries)] == [("db/db-1",)]
    told.seen(3, "fenced", "pods_cleared")
    assert [one.pods for one in incidents(told.entries)] == [("db/db-1", "db/batch-1")]


def test_a_fence_of_which_pods_are_left():
    told = Told().seen(0, "wait", "counting_silence").did(60, "TaintNode", done={"power_state": "absent"})
    assert lines(told) == [
        "02:14 k8s-2 absent → tainted, not cleared yet in 1m00s, 0 pods cleared, still fenced (5a5ca47e)"
    ]


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        ({"proof": "ha_recovery", "power_state": "unknown"}, "host fenced by HA"),
        ({"proof": "host_power", "power_state": "unknown"}, "host without power"),
        ({"proof": "operator", "power_state": "unknown"}, "off"),
        ({"proof": "power", "power_state": "absent"}, "absent"),
        ({}, "silent"),
        (None, "silent"),
    ],
)
def test_how_it_began_is_told_by_its_proof(facts, cause):
    [one] = incidents(Told().did(0, "TaintNode", done=facts).entries)
    assert one.cause == cause


def test_a_refusal_is_told_with_its_reason_but_not_with_what_would_change_it():
    told = Told().seen(0, "wait", "silence_too_short")
    told.seen(
        40, "refuse", "guest_running", text="its guest runs (running (booted)); what would change this: x"
    )
    told.seen(300, "healthy", "node_healthy")
    assert lines(told) == ["02:14 k8s-2 silent → refused: its guest runs, healthy again 02:19 (5a5ca47e)"]


def test_what_passes_by_itself_is_told_only_if_asked_for():
    told = Told().seen(0, "wait", "counting_silence").seen(8, "healthy", "node_healthy")
    [one] = incidents(told.entries)
    assert not one.worth_telling
    assert headline(one, clock) == "silent → nothing had to be done, healthy again 02:14"


def test_what_goes_on_says_so():
    [one] = incidents(Told().seen(0, "wait", "counting_silence").entries)
    assert headline(one, clock) == "silent → waiting: counting silence, goes on"


def test_notes_on_a_sound_node_are_no_incident():
    told = Told().meant(0, "BindNode").did(0, "BindNode").seen(2, "healthy", "node_healthy")
    assert incidents(told.entries) == []


CHECKS = [
    {"name": "bound", "outcome": "passed", "seen": "lab/k8s-2", "needs": ""},
    {"name": "earlier boot", "outcome": "failed", "seen": "boot-1 runs again", "needs": "a boot never seen"},
]


def alarmed(at_s=0.0, *, verdict="healthy", reason="node_healthy", told=None, **more):
    """A node that an alarm is raised about."""
    told = (told or Told()).seen(at_s, verdict, reason, actions=["Alarm"], checks=CHECKS, **more)
    return told.did(at_s + 0.1, "Alarm", text="it runs an earlier boot again (boot-1). Restart it cold.")


def test_an_alarm_on_a_healthy_node_is_an_incident_until_a_decision_without_it():
    told = alarmed()
    [one] = incidents(told.entries)
    assert (one.over, one.worth_telling, len(one.entries)) == (False, True, 2)
    assert lines(told) == ["02:14 k8s-2 alarm: it runs an earlier boot again (boot-1), goes on (5a5ca47e)"]
    told.seen(300, "healthy", "node_healthy", actions=[])
    [one] = incidents(told.entries)
    assert one.over
    assert headline(one, clock).endswith("(boot-1), healthy again 02:19")


def test_it_goes_on_while_decisions_raise_it_and_is_over_in_a_pause_without_it():
    told = alarmed().seen(60, "refuse", "node_paused", ready=True, actions=["Alarm"])
    assert [one.over for one in incidents(told.entries)] == [False]
    told.seen(90, "refuse", "node_paused", ready=True, actions=[])
    assert [one.over for one in incidents(told.entries)] == [True]


def test_an_alarm_in_the_decision_that_follows_a_fence_belongs_to_that_incident():
    told = fenced(Told())
    told.did(900, "UntaintNode")
    alarmed(930, told=told).seen(990, "healthy", "node_healthy", actions=[])
    [one] = incidents(told.entries)
    assert (one.over, len(one.alarms)) == (True, 1)


def test_an_alarm_has_the_grounds_of_its_own_decision():
    [one] = incidents(alarmed().entries)
    [alarm] = one.alarms
    assert alarm.decision is one.decisions[0]
    assert [check["name"] for check in alarm.grounds] == ["earlier boot"]


def test_a_check_that_is_there_for_the_alarm_comes_before_those_that_failed():
    own = {"name": "old memory", "outcome": "alarm", "seen": "boot-1 runs again", "needs": "a cold restart"}
    told = Told().seen(0, "wait", "counting_silence", actions=["Alarm"], checks=[*CHECKS, own])
    [one] = incidents(told.did(1, "Alarm").entries)
    assert one.alarms[0].grounds == (own,)


def test_an_alarm_of_another_session_or_decision_has_none():
    told = alarmed(verdict="recovering", reason="old_memory")
    told.seen(5, "recovering", "awaiting_boot", actions=[], checks=CHECKS).did(6, "Alarm")
    told.did(7, "Alarm", session="c0ffee00")
    [one] = incidents(told.entries)
    assert [len(alarm.grounds) for alarm in one.alarms] == [1, 0, 0]


def test_an_alarm_that_an_older_fencer_recorded_without_a_decision_is_an_incident_and_over():
    told = Told().did(0, "Alarm").seen(86400, "wait", "counting_silence")
    first, then = incidents(told.entries)
    assert (first.over, first.worth_telling, len(first.entries)) == (True, True, 1)
    assert (then.over, first.alarms[0].grounds) == (False, ())


@pytest.mark.parametrize(("ready", "number"), [(True, 0), (None, 1)])
def test_a_pause_is_an_incident_only_of_nodes_that_are_down(ready, number):
    told = Told().seen(0, "refuse", "fencing_paused").seen(90, "healthy", "node_healthy")
    paused = replace(told.entries[0], packed=pack(build.observation(node=build.node(ready=ready))))
    assert len(incidents([paused, told.entries[1]])) == number


def test_a_node_that_falls_while_fencing_is_paused_is_an_incident_until_it_is_ready_again():
    told = Told().seen(0, "refuse", "node_paused", ready=True).seen(60, "refuse", "node_paused", ready=None)
    assert lines(told) == ["02:15 k8s-2 silent → refused: node paused, goes on (5a5ca47e)"]
    told.seen(300, "refuse", "node_paused", ready=True).seen(900, "healthy", "node_healthy")
    [one] = incidents(told.entries)
    assert one.over
    assert headline(one, clock) == "silent → refused: node paused, Ready again 02:19"


def test_one_that_falls_just_before_a_pause_is_one_incident():
    """It is Ready for some seconds more: that does not mean that it is back."""
    told = Told().seen(0, "wait", "counting_silence").seen(9, "refuse", "fencing_paused", ready=True)
    told.seen(40, "refuse", "fencing_paused", ready=False)
    [one] = incidents(told.entries)
    assert not one.over


def test_a_fenced_node_that_is_ready_while_fencing_is_paused_is_still_fenced():
    told = fenced(Told()).seen(70, "refuse", "fencing_paused", ready=None)
    told.entries[-1] = knowing(told.entries[-1], fencer="fencer@pve1")
    told.seen(200, "refuse", "fencing_paused", ready=True)
    told.entries[-1] = knowing(told.entries[-1], fencer="fencer@pve1", ready=True)
    [one] = incidents(told.entries)
    assert not one.over
    assert headline(one, clock).endswith("still fenced")


def knowing(entry, *, fencer=None, ready=None, **mark):
    """A row with what was known at it: a node that an agent has fenced, or none has."""
    if fencer is None:
        return replace(entry, packed=pack(build.observation(node=build.node(ready=ready))))
    mark = replace(build.MARK, by=fencer, **mark)
    taint = Taint(OUT_OF_SERVICE, "nodeshutdown", "NoExecute", mark.fenced_at_utc)
    node = build.node(ready=ready, mark=mark, taints=(taint,))
    return replace(entry, packed=pack(build.observation(node=node)))


def fenced_by_another(fencer="fencer@pve2", **mark):
    """A node that another agent fences: in this one's rows there is no deed."""
    told = Told().seen(0, "wait", "pause_too_short").seen(65, "fenced", "clearing_pods")
    told.entries[-1] = knowing(told.entries[-1], fencer=fencer, **mark)
    return told.seen(70, "fenced", "pods_cleared")


def test_a_fence_that_another_agent_set_and_this_one_lifted():
    told = fenced_by_another()
    assert lines(told) == ["02:14 k8s-2 paused → fenced by fencer@pve2, still fenced (5a5ca47e)"]
    assert lines(back(told)) == ["02:14 k8s-2 paused → fenced by fencer@pve2, lifted 02:31 (5a5ca47e)"]


def test_a_fence_that_others_set_and_lifted_is_worth_telling_and_over_once_the_node_is_healthy():
    told = fenced_by_another().seen(900, "recovering", "settling")
    [one] = incidents(told.entries)
    assert headline(one, clock) == "paused → fenced by fencer@pve2, lifted by somebody else"
    told.seen(930, "healthy", "node_healthy")
    [one] = incidents(told.entries)
    assert (one.over, one.worth_telling) == (True, True)
    assert headline(one, clock) == "paused → fenced by fencer@pve2, healthy again 02:29"


def test_a_fence_that_this_agent_set_and_another_one_lifted():
    told = fenced(Told()).seen(900, "recovering", "awaiting_boot")
    assert next(headline(one, clock) for one in incidents(told.entries)).endswith("still fenced")
    told.seen(930, "refuse", "guest_running")
    told.entries[-1] = knowing(told.entries[-1])
    assert next(headline(one, clock) for one in incidents(told.entries)).endswith("lifted by somebody else")
    told.seen(960, "healthy", "node_healthy")
    [one] = incidents(told.entries)
    assert one.over
    assert headline(one, clock).endswith("3 volumes, healthy again 02:30")


@pytest.mark.parametrize(
    ("facts", "by"),
    [
        ({"fencer": None}, "another agent"),
        ({"schema": 1}, "another agent"),  # a kubelet could have written it
        ({"fencer": "root@desk (by hand)"}, "root@desk"),
    ],
)
def test_who_set_a_fence_is_named_as_far_as_that_is_known(facts, by):
    [one] = incidents(fenced_by_another(**facts).entries)
    assert headline(one, clock) == f"paused → fenced by {by}, still fenced"


def test_what_this_agent_cleared_of_a_fence_of_another_one_is_told():
    done = {"type": "PodsCleared", "gone": ["db/db-1", "db/db-2"]}
    [one] = incidents(fenced_by_another().did(66, "ClearPods", done=done).entries)
    assert headline(one, clock) == "paused → fenced by fencer@pve2, 2 pods cleared here, still fenced"


def test_a_second_incident_in_the_same_boot_has_a_name_of_its_own():
    told = Told().seen(0, "wait", "counting_silence").seen(9, "healthy", "node_healthy")
    told.seen(100, "refuse", "guest_running").seen(130, "healthy", "node_healthy")
    assert [one.id for one in incidents(told.entries)] == ["5a5ca47e", "5a5ca47e.2"]


def test_two_nodes_at_the_same_time_are_two_incidents():
    told = Told()
    for second, node in ((0.0, "k8s-2"), (1.0, "k8s-3")):
        fenced(told, node=node, at_s=second)
    told.entries.sort(key=lambda entry: entry.at)
    first, second = incidents(told.entries)
    assert ({one.node for one in first.entries}, {one.node for one in second.entries}) == (
        {"k8s-2"},
        {"k8s-3"},
    )


def test_the_id_that_comes_with_the_next_boot_does_not_begin_another_one():
    told = fenced(Told())
    told.did(900, "UntaintNode").seen(901, "recovering", "settling", incident="d85b8036")
    told.did(930, "Uncordon", incident="d85b8036").seen(931, "healthy", "node_healthy", incident="d85b8036")
    [one] = incidents(told.entries)
    assert (one.id, one.over) == ("5a5ca47e", True)


def test_a_planned_stop_and_its_start_are_told_by_what_was_typed():
    told = Told().asked(0, "shutdown k8s-2")
    own = {"session": "c0ffee00", "by": "root@pve1 (by hand)"}
    told.meant(0.1, "CordonNode", incident="", **own).did(0.2, "CordonNode", incident="", **own)
    told.did(0.3, "EvictPods", incident="", on={"pods": ["demo/web-1"]}, **own)
    told.seen(20, "ask", "shutdown_due", incident="5a5ca47e-shutdown", **own)
    told.seen(31, "off", "shut_down", incident="5a5ca47e-shutdown", **own).ended(31)
    told.asked(100, "start k8s-2", session="beef0000")
    told.seen(100, "start", "start_due", session="beef0000")
    told.seen(126, "healthy", "started", session="beef0000").ended(126, session="beef0000")
    assert lines(told) == [
        "02:14 k8s-2 root@pve1: shutdown k8s-2 → done in 31 s, 1 pod evicted (5a5ca47e)",
        "02:15 k8s-2 root@pve1: start k8s-2 → done in 26 s (5a5ca47e.2)",
    ]


def test_a_fence_by_hand_goes_on_after_its_command_and_ends_when_the_agent_lifts_it():
    told = Told().asked(0, "fence k8s-2 --over-brake 'rack is gone'")
    for one in fenced(Told(session="c0ffee00", by="root@pve1 (by hand)")).entries:
        told.entries.append(one)
    told.ended(65)
    back(told)
    [one] = incidents(told.entries)
    assert one.over
    assert headline(one, clock) == (
        "stopped → fenced by root@pve1 in 1m05s, 2 pods cleared, 3 volumes, lifted 02:31"
    )


def test_the_agent_has_fenced_what_a_command_only_starts_again():
    told = fenced(Told()).asked(70, "start k8s-2")
    told.seen(200, "unfence", "booted_anew", session="c0ffee00", by="root@pve1 (by hand)").did(
        201, "UntaintNode", by="root@pve1 (by hand)"
    ).ended(230)
    told.seen(231, "healthy", "node_healthy")
    [one] = incidents(told.entries)
    assert headline(one, clock) == "stopped → fenced in 1m05s, 2 pods cleared, 3 volumes, lifted 02:17"


def test_a_command_about_an_incident_that_goes_on_belongs_to_it():
    told = Told().seen(0, "refuse", "brake").asked(60, "fence k8s-2 --over-brake 'two racks'").ended(90)
    told.seen(100, "fenced", "pods_cleared")
    [one] = incidents(told.entries)
    assert [entry.kind for entry in one.commands] == [Kind.COMMAND]
    assert (one.code, one.over) == (0, False)


def test_a_command_that_ends_after_the_agent_called_the_node_healthy_is_told_once():
    own = {"session": "c0ffee00", "by": "root@pve1 (by hand)"}
    told = Told().seen(0, "wait", "silence_too_short").asked(4, "start k8s-2")
    told.seen(4, "wait", "awaiting_ready", **own).seen(9, "healthy", "node_healthy")
    told.seen(10, "recovering", "settled", **own).did(10, "Uncordon", **own)
    told.seen(10, "healthy", "started", **own)
    goes_on = [one.entries[-1].number for one in incidents(told.entries)]
    assert goes_on == [len(told.entries)]
    assert lines(told.ended(10)) == ["02:14 k8s-2 root@pve1: start k8s-2 → done in 6 s (5a5ca47e)"]


def test_a_start_that_outlives_the_fence_that_it_lifted_is_told_with_it():
    told = fenced(Told()).asked(70, "start k8s-2")
    told.did(201, "UntaintNode", session="c0ffee00", by="root@pve1 (by hand)")
    told.seen(231, "healthy", "node_healthy").ended(232)
    [one] = incidents(told.entries)
    assert (one.code, one.entries[-1].kind) == (0, Kind.ENDED)


def test_a_drill_of_which_the_agent_wrote_first_is_one_incident():
    """Two processes write one journal: what a command did may stand after what an agent saw of it."""
    told = Told().asked(0, "drill k8s-2").seen(0, "wait", "counting_silence")
    told.did(1, "StopGuest", session="c0ffee00", incident="drill-5a5ca47e")
    assert lines(back(fenced(told)).ended(1060)) == [
        "02:14 k8s-2 drill by root@pve1: stopped → fenced in 1m05s, 2 pods cleared, 3 volumes, "
        "lifted 02:31 (5a5ca47e)"
    ]


def test_a_command_that_was_killed_does_not_take_the_next_night_into_its_incident():
    told = Told().asked(0, "drain k8s-2")
    told.did(1, "CordonNode", incident="", session="c0ffee00", by="root@pve1 (by hand)")
    assert lines(fenced(told, at_s=7200)) == [
        "02:14 k8s-2 root@pve1: drain k8s-2 → not ended, as far as is known (c0ffee00)",
        "04:14 k8s-2 stopped → fenced in 1m05s, 2 pods cleared, 3 volumes, still fenced (5a5ca47e)",
    ]


def test_a_command_that_did_nothing_to_a_node_is_told_by_itself():
    told = Told().asked(0, "drain k8s-2 k8s-3", nodes=("k8s-2", "k8s-3")).ended(2, 1)
    assert lines(told) == [
        "02:14 k8s-2, k8s-3 root@pve1: drain k8s-2 k8s-3 → ended with code 1 after 2 s (c0ffee00)"
    ]


def test_a_command_whose_end_nobody_wrote_says_so():
    assert lines(Told().asked(0, "drain k8s-2")) == [
        "02:14 k8s-2 root@pve1: drain k8s-2 → not ended, as far as is known (c0ffee00)"
    ]


def test_a_command_for_several_nodes_is_told_for_each():
    told = Told().asked(0, "drain k8s-2 k8s-3", nodes=("k8s-2", "k8s-3"))
    for node in ("k8s-2", "k8s-3"):
        told.did(1, "CordonNode", node=node, incident="", session="c0ffee00")
    told.ended(9)
    assert [(one.node, one.id, one.over, one.code) for one in incidents(told.entries)] == [
        ("k8s-2", "c0ffee00", True, 0),
        ("k8s-3", "c0ffee00.2", True, 0),
    ]


def test_what_concerns_no_node_belongs_to_what_goes_on_unless_it_is_of_another_node():
    told = Told().seen(0, "wait", "counting_silence").seen(0, "wait", "counting_silence", node="k8s-3")
    told.tell(Kind.NOTICE, 5, text="lab: does not answer", warning=True)
    told.tell(Kind.NOTICE, 6, text="k8s-3: no answer within 10 s", warning=True)
    told.tell(Kind.LOST, 7, rows=3)
    first, second = incidents(told.entries)
    assert [entry.body.get("text") for entry in first.entries[1:]] == ["lab: does not answer", None]
    assert len(second.entries) == 4


def test_durations_go_by_the_monotonic_clock_of_one_session_and_by_the_wall_between_two():
    told = Told().seen(0, "wait", "counting_silence").seen(10, "fence", "proven_off")
    told.seen(20, "fenced", "pods_cleared", session="another0")
    object.__setattr__(told.entries[1], "at", told.entries[0].at)  # somebody has set the clock back
    [one] = incidents(told.entries)
    assert [one.seconds(entry) for entry in one.entries] == [0.0, 10.0, 20.0]


@pytest.mark.parametrize("body", [{}, {"done": "x"}, {"done": {"gone": None}}, {"action": None}])
def test_rows_of_another_fencer_break_nothing(body):
    told = Told().seen(0, "wait", "counting_silence")
    told.tell(Kind.ACTION, 1, node="k8s-2", uid="uid-k8s-2", **body)
    told.tell(Kind.DECISION, 2, node="k8s-2", uid="uid-k8s-2")
    told.tell(Kind.COMMAND, 3).tell(Kind.ENDED, 4)
    for one in incidents(told.entries):
        assert headline(one, clock)
        assert one.pods == ()


def killed(told):
    """A drill that somebody killed, and whose guest they started."""
    told.asked(0, "drill k8s-2")
    told.did(1, "StopGuest", session="c0ffee00", incident="drill-aaaa1111")
    told.seen(2, "wait", "counting_silence", incident="aaaa1111")
    told.seen(60, "healthy", "node_healthy", incident="aaaa1111")
    return told.meant(70, "BindNode", incident="bbbb2222")


def test_what_happens_days_after_a_drill_that_was_killed_is_no_drill():
    told = back(fenced(killed(Told()), at_s=432_000.0), at_s=433_000.0)
    assert lines(told) == [
        "02:14 k8s-2 root@pve1: drill k8s-2 → not ended, as far as is known (aaaa1111)",
        "02:14 k8s-2 stopped → fenced in 1m05s, 2 pods cleared, 3 volumes, lifted 02:30 (5a5ca47e)",
    ]


def test_a_command_after_one_that_was_killed_is_one_of_its_own():
    told = killed(Told()).asked(100, "start k8s-2", session="5ec0d000")
    told.did(101, "StartGuest", session="5ec0d000", incident="bbbb2222").ended(102, session="5ec0d000")
    assert lines(told) == [
        "02:14 k8s-2 root@pve1: drill k8s-2 → not ended, as far as is known (aaaa1111)",
        "02:15 k8s-2 root@pve1: start k8s-2 → done in 2 s (bbbb2222)",
    ]


def test_a_fence_under_which_old_memory_is_back_is_in_alarm():
    """It may write to volumes that others own: "still fenced" alone would let people sleep."""
    told = fenced(Told()).seen(300, "recovering", "old_memory")
    [one] = incidents(told.entries)
    assert headline(one, clock).endswith("still fenced, in alarm: its guest came back with its old memory")


def test_an_incident_without_a_decision_does_not_say_that_nothing_had_to_be_done():
    """Its decisions may be lost, and a guest's power was cut."""
    [one] = incidents(Told().meant(0, "StopGuest").did(1, "StopGuest").entries)
    assert "nothing had to be done" not in headline(one, clock)


@pytest.mark.parametrize("reason", ["observe_mode", "guest_running"])
def test_a_node_that_is_only_observed_is_not_called_refused(reason):
    [one] = incidents(Told().seen(0, "refuse", reason, text="would fence now").entries)
    assert ("refused: " in headline(one, clock)) is (reason == "guest_running")
    assert ("only observed: " in headline(one, clock)) is (reason == "observe_mode")
