"""What is hard to bring about in the lab: pods that are held, replacements, rows lost or not to be read."""

from dataclasses import replace

import pytest

from fencer.core.model import GuestHistory, PowerState
from fencer.journal.folding import incidents
from fencer.journal.incidents import Incident
from fencer.journal.rows import Kind
from fencer.report.html import page
from fencer.report.lanes import lanes
from fencer.report.phases import phases
from fencer.report.sights import Sight, Watch, sights
from fencer.report.spans import Tone
from fencer.report.steps import LONGEST, step_of
from fencer.report.story import around, report
from fencer.report.troubles import troubles
from fencer.report.workloads import Replacement, workloads
from tests.core.build import MARK, NOW_S, POD, TAINT, node, observation, run
from tests.journal.build import Told
from tests.report.build import at, crashed, look, newest, told

CLEARED = {"type": "PodsCleared", "gone": [str(POD)], "held": {}, "changed": [], "failed": {}}
FENCE = {"verdict": "fence", "reason": "proven_off"}


def clearing(seconds, **done):
    [entry] = Told().did(seconds, "ClearPods", on={"pods": [str(POD)]}, done=CLEARED | done).entries
    return Sight(entry, None)


def test_a_pod_is_down_from_the_first_reading_that_its_guest_does_not_run():
    [pod] = workloads((look(0, body=FENCE), clearing(10)))
    assert (pod.down, pod.cleared, pod.downtime_s) == (at(-90), at(10), 100.0)


def test_a_pod_that_is_held_is_told_with_what_holds_it_and_its_downtime_is_not_known():
    [pod] = workloads(
        (look(0, body=FENCE), clearing(10, gone=[], held={str(POD): "finalizer example.com/x"}))
    )
    assert (pod.cleared, pod.held, pod.downtime_s) == (None, "finalizer example.com/x", None)


def test_a_pod_that_somebody_else_cleared_is_gone_from_the_look_on_that_does_not_find_it():
    [pod] = workloads((look(0, body=FENCE), look(5), look(70, pods=())))
    assert (pod.there, pod.cleared) == (at(5), at(70))
    assert pod.downtime_s == 95.0  # it may have been gone right after the look that still found it


@pytest.mark.parametrize(
    ("controller", "down_s"),
    [("StatefulSet/db", 160.0), ("ReplicaSet/web", 90.0), ("Job/batch", 90.0)],
)
def test_a_pod_that_may_be_replaced_while_it_is_deleted_is_down_only_until_then(controller, down_s):
    pod = replace(POD, controller=controller)
    ending = look(5, pods=(replace(pod, terminating=True, phase="Failed"),))
    rows = (look(0, body=FENCE, pods=(pod,)), ending, clearing(70))
    assert [one.downtime_s for one in workloads(rows)] == [down_s]


def test_how_long_a_pod_was_down_is_not_known_if_it_was_replaced_before_its_guest_ended():
    pod = replace(POD, controller="ReplicaSet/web", terminating=True)
    [one] = workloads((look(0, body=FENCE, pods=(pod,)), clearing(70)))
    assert (one.cleared, one.downtime_s) == (at(70), None)


def test_a_guest_that_was_never_read_off_says_nothing_about_a_pods_downtime():
    runs = GuestHistory(run(PowerState.RUNNING))
    [tainted] = Told().did(5, "TaintNode", done={"proof": "operator"}).entries
    off = look(6, history=GuestHistory(run(PowerState.STOPPED)))
    [pod] = workloads((look(0, body=FENCE, history=runs), Sight(tainted, None), off, clearing(10)))
    assert (pod.down, pod.downtime_s) == (None, None)


OWNER = "StatefulSet/db"


def stands_in(name, *, made="2026-11-26T02:14:30Z", controller=OWNER):
    return Replacement(f"demo/{name}", controller, "k8s-3", made, ready=True)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        pytest.param([stands_in("db-9"), stands_in("db-1")], "demo/db-1", id="of the same name first"),
        pytest.param([stands_in("db-9")], "demo/db-9", id="of the same owner"),
        pytest.param([stands_in("db-1", made="2026-11-25T00:00:00Z")], None, id="older than the incident"),
        pytest.param([stands_in("db-1", controller="Job/x")], None, id="of another owner"),
        pytest.param([], None, id="nobody has asked"),
    ],
)
def test_who_took_a_pods_place_is_told_where_the_cluster_was_asked(now, expected):
    pod = replace(POD, namespace="demo", name="db-1", controller=OWNER)
    [one] = workloads((look(0, body=FENCE, pods=(pod,)),), now)
    assert (one.replacement and one.replacement.pod) == expected


def test_two_pods_of_one_owner_have_two_replacements():
    pods = tuple(replace(POD, namespace="demo", name=name, controller=OWNER) for name in ("a", "b"))
    now = [stands_in("c"), stands_in("d")]
    assert {one.replacement.pod for one in workloads((look(0, body=FENCE, pods=pods),), now)} == {
        "demo/c",
        "demo/d",
    }


@pytest.mark.parametrize(
    ("cut_by", "sentence"),
    [
        ("fencer@pve1", "fencer@pve1 cut the guest's power at 02:14:03, and fenced the node at 02:14:09"),
        (
            "root@pve1 (by hand)",
            "root@pve1 (by hand) cut the guest's power at 02:14:03. fencer@pve1 fenced",
        ),
    ],
)
def test_who_cut_the_power_is_told_apart_from_who_fenced(cut_by, sentence):
    told_of = Told().seen(0, "stop_first", "guest_paused").did(3, "StopGuest", by=cut_by).did(9, "TaintNode")
    one = incident(told_of)
    assert sentence in report(one, at(60)).sentences[1]


@pytest.mark.parametrize(
    ("body", "seen", "tone"),
    [
        ({"verdict": "wait"}, {}, Tone.WAITS),
        ({"verdict": "healthy"}, {}, Tone.GOOD),
        ({"verdict": "recovering"}, {}, Tone.GOOD),
        ({"verdict": "recovering"}, {"node": node(taints=(TAINT,), mark=MARK)}, Tone.WAITS),
        ({"verdict": "wait"}, {"pods": ()}, Tone.GOOD),
    ],
)
def test_pods_are_a_trouble_only_on_a_node_that_is_in_trouble(body, seen, tone):
    assert lanes((look(0, body=body, **seen),), [], at(0)).lanes[3].spans[0].tone is tone


def incident(told_of):
    [one] = incidents(told_of.entries)
    return one


@pytest.mark.parametrize(
    ("told_of", "expected"),
    [
        pytest.param(
            Told().seen(0, "fence", "proven_off").meant(1, "TaintNode").seen(9, "wait", "node_ready"),
            ["TaintNode was about to be done, and how that ended is not kept"],
            id="ended in the middle",
        ),
        pytest.param(
            Told().seen(0, "fence", "proven_off").meant(1, "TaintNode").did(2, "TaintNode"),
            [],
            id="all is well",
        ),
        pytest.param(
            Told().seen(0, "fence", "proven_off").did(1, "TaintNode", ok=False),
            ["TaintNode failed: TaintNode"],
            id="failed",
        ),
        pytest.param(
            Told().seen(0, "wait", "node_ready").tell(Kind.LOST, 1, rows=3),
            ["3 rows could not be written: what they told is not in this report"],
            id="rows lost",
        ),
        pytest.param(
            Told().seen(0, "wait", "node_ready").tell(Kind.NOTICE, 1, text="lab: no answer", warning=True),
            ["lab: no answer"],
            id="a warning",
        ),
        pytest.param(
            Told().seen(0, "fence", "proven_off").did(1, "ClearPods", done={"held": {"a/b": "a finalizer"}}),
            ["a/b: a finalizer"],
            id="a pod is held",
        ),
    ],
)
def test_what_went_wrong_is_told(told_of, expected):
    one = incident(told_of)
    assert [trouble.text for trouble in troubles(one, sights(one.entries))] == expected


def test_a_row_that_cannot_be_read_is_told_and_hides_no_other():
    journal = [replace(one, packed=b"damaged") if one.packed else one for one in crashed()]
    unread = told(journal)
    assert any("cannot be read" in trouble.text for trouble in unread.troubles)
    assert unread.phases[0].name == "silence counted"
    assert len(unread.steps) == len(told(crashed()).steps)


def test_where_no_agent_looked_lanes_have_a_gap():
    rows = (look(0), look(600))
    [kubelet, *_] = lanes(rows, [Watch(at(0), at(30)), Watch(at(600), at(600))], at(600)).lanes
    guest = lanes(rows, [Watch(at(0), at(30)), Watch(at(600), at(600))], at(600)).lanes[3]
    assert [(bar.begin, bar.end) for bar in guest.spans] == [(at(0), at(30)), (at(600), at(600))]
    assert kubelet.spans  # the lease's age tells of what nobody saw


STATES = ("running", "paused", "saved to disk", "changing", "stopped", "not found", "unknown")


@pytest.mark.parametrize(("state", "says"), list(zip(PowerState, STATES, strict=True)))
def test_every_state_of_a_guest_has_its_bar(state, says):
    row = look(0, history=GuestHistory(run(state)))
    assert lanes((row,), [], at(0)).lanes[1].spans[0].says == says


def test_verdicts_and_reasons_of_a_newer_fencer_are_told_as_they_are():
    one = incident(Told().seen(0, "ponder", "stars_align").seen(5, "wait", "node_ready"))
    rows = sights(one.entries)
    assert lanes(rows, [], at(5)).lanes[2].spans[0].says == "ponder"
    assert phases(rows)[0].name == "stars align"


def test_whoever_asks_for_an_unfence_too_early_finds_no_guest_that_runs():
    off, on = (GuestHistory(run(state)) for state in (PowerState.STOPPED, PowerState.RUNNING))
    waits = {"verdict": "recovering", "reason": "awaiting_boot"}
    rows = (
        look(0, body={"verdict": "fenced", "reason": "pods_cleared"}, history=off),
        look(14, body={**waits, "verdict": "fenced"}, history=off),
        look(200, body=waits, history=on),
    )
    told_of = [one for one in phases(rows) if one.begin >= at(0)]
    assert [(one.begin, one.name) for one in told_of] == [
        (at(0), "until its guest ran again"),
        (at(200), "until its kubelet was heard again"),
    ]


@pytest.mark.parametrize(("then", "goes_on"), [("nothing_to_clear", False), ("node_ready", True)])
def test_of_a_node_with_nothing_to_clear_no_phase_goes_on(then, goes_on):
    counted = look(0, body={"verdict": "wait", "reason": "counting_silence"})
    rows = (counted, look(50, body={"verdict": "refuse", "reason": then}))
    assert phases(rows, over=False)[-1].goes_on is goes_on


def test_all_that_was_known_is_cut_where_it_is_too_much_and_says_so():
    pods = tuple(replace(POD, name=f"web-{number}") for number in range(500))
    [step] = step_of(look(0, body=FENCE, pods=pods))
    assert len(step.raw) < LONGEST + 100
    assert step.raw.endswith("more characters are in the journal")


def test_of_other_nodes_only_the_rows_are_kept_and_not_what_was_known():
    journal = crashed()
    rows = around(newest(journal), journal)
    assert {one.node for one in rows if one.packed is not None} == {"k8s-2"}
    assert [one.number for one in rows] == list(range(1, rows[-1].number + 1))


def test_an_incident_of_a_single_row_is_told():
    one = Incident("c0ffee00", "k8s-2", tuple(Told().asked(0, "start k8s-2").entries), over=False)
    told_of = report(one, at(60))
    assert told_of.sentences[0] == "At 02:14:00 root@pve1 typed `fencer start k8s-2`."
    assert (told_of.phases, told_of.workloads) == ((), ())
    assert "Nothing was decided in it." in page(told_of)


def test_an_observation_is_told_by_the_clock_of_who_made_it():
    row = look(3)
    assert (row.ago(0), row.when(NOW_S - 90)) == (at(3), at(-87))
    assert observation().now_s == NOW_S
