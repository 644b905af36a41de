"""An agent that only observes knows what an armed one knows, says what it would do, and writes nothing."""

from dataclasses import replace

from fencer.core.model import Binding, FenceMark, Reason
from fencer.core.policy import Policy
from tests.runtime.stagehand import Stagehand


def observing():
    """A sound cluster that such an agent has watched for a while."""
    stage = Stagehand(policy=Policy())
    stage.run(25)
    return stage


def last(stage, name="k8s-2"):
    return stage.run(0).judged[name]


def told(stage, name="k8s-2"):
    return [text for node, _, _, text in stage.notes.acted_ if node == name]


def test_it_binds_in_its_own_mind_and_says_so():
    stage = observing()
    assert isinstance(last(stage).observation.node.binding, Binding)
    assert stage.node().binding is None
    [text] = told(stage)
    assert text.endswith("seen running while the lease advanced, only on this agent's disk")


def test_it_says_what_it_would_do_and_does_nothing():
    stage = observing()
    stage.happen("crash")
    stage.run(70)
    decision = last(stage).decision
    assert decision.reason is Reason.OBSERVE_MODE
    assert decision.objection.seen.startswith("would fence now: ")
    assert stage.written() == []
    assert stage.node().out_of_service is None


def test_a_saved_guest_is_doubted_in_mind_once_it_reads_stopped():
    """The note outlives the reading, as it does on a Node: else it would fence what an armed one refuses."""
    stage = observing()
    stage.happen("save")
    stage.run(10)
    assert any(text.startswith("noted, only on this agent's disk: ") for text in told(stage))
    assert last(stage).observation.node.doubts
    assert stage.node().doubts == ()
    assert stage.written() == []


def test_what_an_armed_agent_has_written_since_counts():
    stage = observing()
    kept = last(stage).observation.node.binding
    written = replace(kept, boot_ids=("an-older-boot", *kept.boot_ids))
    stage.simulation.cluster.bind(stage.node(), written)
    assert last(stage).observation.node.binding == written


def test_a_deed_that_it_would_do_costs_no_close_look_in_every_pass():
    """A hundred nodes that it does nothing about would keep it from the one that has just died."""
    stage = observing()
    stage.happen("crash")
    stage.run(70)
    assert last(stage).decision.reason is Reason.OBSERVE_MODE
    stage.calls.clear()
    stage.run(20)
    assert stage.calls.count("sweep") >= 10
    assert stage.calls.count("pods") <= 1
    assert last(stage).decision.reason is Reason.OBSERVE_MODE


def test_it_is_looked_at_again_after_a_while_and_forgotten_once_its_guest_runs():
    stage = observing()
    stage.happen("crash")
    stage.run(70)
    stage.calls.clear()
    stage.run(40)
    assert "pods" in stage.calls
    stage.happen("start")
    stage.run(60)
    assert last(stage).decision.reason is Reason.NODE_HEALTHY


def test_what_somebody_else_did_meanwhile_changes_what_it_would_do_at_once():
    """A node is fenced by hand: to fence it is not what would be done any more. That is news, and told."""
    stage = observing()
    stage.happen("crash")
    stage.run(70)
    seen = last(stage).observation
    mark = FenceMark("inc-1", seen.utc, seen.node.boot_id, seen.candidates[0].guest, "a person")
    stage.simulation.cluster.taint(stage.node(), mark)
    told_before = len(stage.notes.decided_)
    assert last(stage).decision.objection.seen.startswith("would clear its pods now: ")
    assert len(stage.notes.decided_) == told_before + 1
