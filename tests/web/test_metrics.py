"""What Prometheus reads, read by its own parser."""

from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fencer.core.model import Decision, Judged, Reason, Verdict
from fencer.core.policy import Policy
from fencer.ports import Sight
from fencer.web.board import Board
from fencer.web.metrics import Metrics
from fencer.web.snapshot import BUCKETS_S, Snapshot
from tests.core.build import healthy, node, observation
from tests.support.metrics import NAMES
from tests.web.onstage import VERSION, OnStage


def read(text):
    """Return the samples: name → labels → value."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            assert labels not in found.setdefault(sample.name, {}), f"twice: {sample}"
            found[sample.name][labels] = sample.value
    return found


def labelled(**labels):
    return tuple(sorted(labels.items()))


@pytest.fixture
def stage():
    scene = OnStage()
    scene.passes(25)
    return scene


def test_all_is_told_of_a_sound_cluster(stage):
    stage.board.ends(datetime(2027, 3, 1, tzinfo=UTC))
    stage.happen("crash")
    stage.passes(120)
    text = stage.text()
    assert {family.name for family in text_string_to_metric_families(text)} == {
        name.removesuffix("_total") for name in NAMES
    }
    found = read(text)
    assert found["fencer_build_info"] == {labelled(version=VERSION): 1}
    assert found["fencer_armed"] == {(): 1}
    assert found["fencer_leader"] == {labelled(endpoint="lab"): 1}
    assert found["fencer_endpoint_up"] == {labelled(endpoint="kubernetes"): 1, labelled(endpoint="lab"): 1}
    assert found["fencer_token_expiry_timestamp_seconds"] == {(): 1803859200}
    assert found["fencer_unproven_bindings"] == {(): 0}
    assert found["fencer_brake_active"] == {(): 0}
    assert found["fencer_node_fenced"] == {
        labelled(node="k8s-1"): 0,
        labelled(node="k8s-2"): 1,
        labelled(node="k8s-3"): 0,
    }
    assert found["fencer_node_verdict"] == {
        labelled(node="k8s-1", verdict="healthy", reason="node_healthy"): 1,
        labelled(node="k8s-2", verdict="fenced", reason="pods_cleared"): 1,
        labelled(node="k8s-3", verdict="healthy", reason="node_healthy"): 1,
    }
    assert found["fencer_actions_total"][labelled(action="TaintNode", outcome="done")] == 1


def test_before_the_first_pass_nothing_is_told_of_nodes_and_nothing_of_a_token_that_does_not_end():
    found = read(OnStage().text())
    assert {"fencer_node_verdict", "fencer_node_fenced", "fencer_brake_active"}.isdisjoint(found)
    assert "fencer_token_expiry_timestamp_seconds" not in found
    assert "fencer_endpoint_up" not in found, "0 would say that it does not answer"
    assert found["fencer_passes_total"] == {
        labelled(result=result): 0 for result in ("ok", "partial", "failed")
    }


def test_a_node_that_is_gone_is_told_of_no_more(stage):
    stage.happen("delete_node", "k8s-3")
    stage.passes(10)
    assert "k8s-3" not in stage.text()


def test_last_success_stands_still_while_an_endpoint_fails(stage):
    def last(endpoint):
        return read(stage.text())["fencer_last_success_timestamp_seconds"][labelled(endpoint=endpoint)]

    stage.happen("denied", "")
    stage.passes(2)
    before = last("lab")
    stage.passes(60)
    assert last("lab") == before
    assert last("kubernetes") == pytest.approx(stage.wall().timestamp(), abs=3)
    assert read(stage.text())["fencer_endpoint_up"][labelled(endpoint="lab")] == 0


def test_a_fence_is_in_the_histogram_of_each_phase_once(stage):
    stage.happen("crash")
    stage.passes(200)
    found = read(stage.text())
    for phase in ("proof", "pods", "volumes", "total"):
        assert found["fencer_fence_duration_seconds_count"][labelled(phase=phase)] == 1
        assert found["fencer_fence_duration_seconds_bucket"][labelled(phase=phase, le="+Inf")] == 1
    counts = [
        found["fencer_fence_duration_seconds_bucket"][labelled(phase="total", le=str(bound))]
        for bound in BUCKETS_S
    ]
    assert counts == sorted(counts)
    assert {counts[0], counts[-1]} == {0, 1}


def test_a_refusal_is_counted_by_its_reason(stage):
    stage.happen("nic_off")
    stage.passes(120)
    found = read(stage.text())
    assert found["fencer_refusals_total"] == {labelled(reason="guest_running"): 1}
    assert labelled(node="k8s-2", verdict="refused", reason="guest_running") in found["fencer_node_verdict"]


def shown(judged, policy=None):
    """Return what is shown after a pass that left this."""
    scene = OnStage()
    scene.passes(4)
    snapshot = scene.shown()
    return replace(
        snapshot,
        policy=policy or snapshot.policy,
        sight=replace(
            snapshot.sight, judged=MappingProxyType({one.observation.node.name: one for one in judged})
        ),
    )


def text_of(snapshot: Snapshot):
    return Metrics(lambda: snapshot, process=False).text().decode()


def judged(name, verdict, reason, **facts):
    return Judged(observation(node=replace(node(), name=name, **facts)), Decision(verdict, reason))


def test_the_brake_is_active_while_it_holds_a_node_back():
    for reason, active in ((Reason.BRAKE, 1), (Reason.ALL_NODES_SILENT, 1), (Reason.GUEST_RUNNING, 0)):
        found = read(text_of(shown([judged("a", Verdict.REFUSE, reason)])))
        assert found["fencer_brake_active"] == {(): active}, reason


def test_nodes_that_could_not_be_fenced_are_counted():
    nodes = [
        judged("a", Verdict.REFUSE, Reason.NO_GUEST),
        judged("b", Verdict.REFUSE, Reason.BINDING_UNPROVEN),
        judged("c", Verdict.REFUSE, Reason.GUEST_RUNNING),
        Judged(healthy(), Decision(Verdict.HEALTHY, Reason.NODE_HEALTHY)),
    ]
    assert read(text_of(shown(nodes)))["fencer_unproven_bindings"] == {(): 2}


def test_an_agent_that_only_observes_is_not_armed():
    assert read(text_of(shown([], Policy())))["fencer_armed"] == {(): 0}


HOSTILE = [
    'a"} 1\nfencer_armed 0\n#',
    "a\\",
    "a\\n",
    'back\\\\slash"quote',
    "\x00\x1b[2J",
    "\u202egnp.exe",
    "{}=,",
    "名前",
    "\ud800",
    "",
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_name_stays_in_its_label(name):
    found = read(text_of(shown([judged(name, Verdict.REFUSE, Reason.GUEST_RUNNING)])))
    assert found["fencer_armed"] == {(): 1}
    [(labels, value)] = found["fencer_node_fenced"].items()
    assert (dict(labels)["node"], value) == (name.encode("utf-8", "backslashreplace").decode(), 0)


def test_ten_thousand_nodes_have_a_line_for_their_verdict_and_one_for_their_fence():
    text = text_of(shown([judged(f"node-{n}", Verdict.HEALTHY, Reason.NODE_HEALTHY) for n in range(10_000)]))
    assert text.count("node-") == 20_000


def test_this_process_is_told_of_too():
    stage = OnStage()
    assert "process_resident_memory_bytes" in Metrics(stage.board.snapshot).text().decode()


def test_an_endpoint_that_is_called_as_the_api_server_makes_no_line_twice():
    board = Board(
        "1", "fencer@pve1", Policy(), "kubernetes", ("kubernetes", "lab"), lambda: 0.0, OnStage().wall
    )
    board.passed(Sight({}, ("kubernetes", "lab")))
    assert len(read(text_of(board.snapshot()))["fencer_endpoint_up"]) == 2
