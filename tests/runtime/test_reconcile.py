"""The pass over a simulated cluster: order of reads, live re-checks, restarts, and the doors by hand."""

from dataclasses import replace

import pytest

from fencer.core.model import Intent, PowerState, Reason, Verdict, Word
from fencer.core.policy import Policy, SavedGuest
from fencer.errors import ClusterNotFound, HypervisorProtocol
from tests.runtime.stagehand import ARMED, AT_ONCE, Stagehand


def verdicts(stage, name="k8s-2"):
    return [verdict for node, verdict, _ in stage.notes.decided_ if node == name]


def test_bindings_are_written_once_and_healthy_nodes_cost_no_call_of_their_own(stage):
    assert {stage.node(name).binding.guest.name for name in ("k8s-1", "k8s-2", "k8s-3")} == {
        "k8s-1",
        "k8s-2",
        "k8s-3",
    }
    stage.calls.clear()
    stage.run(10)
    assert set(stage.calls) == {"sweep", "nodes", "heartbeats"}


def test_a_dead_guest_is_fenced_cleared_and_unfenced_after_a_new_boot(stage):
    stage.happen("crash")
    stage.run(80)
    assert stage.node().out_of_service is not None
    assert not stage.pods()
    stage.happen("start")
    stage.run(120)
    assert stage.node().out_of_service is None
    assert not stage.node().unschedulable
    assert verdicts(stage)[-1] is Verdict.HEALTHY
    assert stage.simulation.world.double_writers == 0


def test_the_guest_is_read_before_the_node_and_again_after_the_taint(stage):
    stage.happen("crash")
    stage.run(80)
    assert "taint" in stage.calls
    at = stage.calls.index("taint")
    before, after = stage.calls[:at], stage.calls[at + 1 :]
    again = ["list_nodes", "heartbeats", "read"]  # the fleet is counted again, and the VM read again
    assert before[-7:] == ["read", "fact", "pods", "attachments", *again]
    assert after[:3] == ["read", "fact", "pods"]  # attachments of all nodes were listed a moment ago
    assert after[4] == "clear"


def test_a_guest_that_starts_between_the_proof_and_the_taint_loses_no_pod(stage):
    stage.happen("crash")
    stage.before["taint"] = lambda: stage.happen("start")
    held = {pod.uid for pod in stage.pods()}
    stage.run(75)
    assert "clear" not in stage.calls
    stage.run(120)
    assert stage.node().out_of_service is None
    assert stage.simulation.world.double_writers == 0
    assert held


def test_a_node_that_changes_before_the_taint_is_looked_at_again(stage):
    stage.happen("crash")

    def touch():
        node = stage.simulation.api.nodes["k8s-2"]
        stage.simulation.api.changed(node)

    stage.before["taint"] = touch
    stage.run(80)
    assert [ok for _, action, ok, _ in stage.notes.acted_ if action == "TaintNode"] == [False, True]


@pytest.mark.parametrize("write", ["bind", "claim", "taint", "clear", "stop", "untaint", "uncordon"])
def test_an_agent_killed_before_any_write_converges_after_its_restart(stage, write):
    class Killed(BaseException):
        pass

    def die():
        raise Killed

    stage.happen("pause" if write in {"claim", "stop"} else "crash")
    stage.before[write] = die
    started = False
    for _ in range(20):
        try:
            stage.run(20)
        except Killed:
            stage.new_agent()
        if not started and stage.node().out_of_service and not stage.pods():
            stage.happen("start")
            started = True
    assert started
    assert stage.node().out_of_service is None
    assert not stage.node().unschedulable
    assert stage.simulation.world.double_writers == 0


def test_a_restarted_agent_goes_on_clearing_only_after_the_proof_was_held_again(stage):
    stage.happen("crash")
    stage.before["clear"] = lambda: stage.happen("late", "")
    stage.run(70)
    stage.happen("truthful", "")
    stage.new_agent()
    stage.calls.clear()
    first = stage.agent.tick().judged["k8s-2"].decision
    assert first.reason in {Reason.NOT_HELD, Reason.PODS_CLEARED, Reason.RELEASING_VOLUMES}
    assert "taint" not in stage.calls


def test_observing_writes_nothing_and_says_what_it_would_do():
    stage = Stagehand(policy=Policy())
    stage.run(25)
    stage.happen("crash")
    stage.run(70)
    assert stage.written() == []
    assert stage.node().out_of_service is None
    reasons = [reason for node, _, reason in stage.notes.decided_ if node == "k8s-2"]
    assert reasons[-1] is Reason.OBSERVE_MODE


def test_the_seconds_recipe_acts_on_a_fall_within_a_pass():
    stage = Stagehand(policy=AT_ONCE)
    stage.run(25)
    stage.happen("crash")
    died_s = stage.simulation.clock.now_s()
    stage.run(3)
    assert stage.node().out_of_service is not None
    assert stage.simulation.clock.now_s() - died_s < 6


def test_an_endpoint_that_does_not_answer_proves_nothing(stage):
    stage.happen("crash")
    stage.happen("hang", "")
    done = stage.run(90)
    assert done.judged["k8s-2"].decision.reason is Reason.EVIDENCE_MISSING
    assert stage.node().out_of_service is None


def test_a_power_off_that_raises_and_yet_works_is_told_by_what_is_read_then(stage):
    stage.happen("pause")
    stage.happen("stop_raises", "")
    stage.run(90)
    [stop] = [entry for entry in stage.notes.acted_ if entry[1] == "StopGuest"]
    assert "reads stopped now" in stop[3]
    assert stage.node().out_of_service is not None


def test_a_guest_that_changed_before_its_power_off_is_spared(stage):
    stage.happen("pause")
    stage.before["claim"] = lambda: stage.happen("resume")
    stage.run(90)
    assert "stop" not in stage.calls
    assert stage.simulation.guest("k8s-2").power is PowerState.RUNNING


def by_hand(stage, word=Word(), patience_s=60, *, act=True):  # noqa: B008 - frozen
    """Fence k8s-2 by hand, as the command does."""
    return stage.agent.pursue("k8s-2", Intent.FENCE, word, patience_s=patience_s, act=act)


class TestByHand:
    def test_a_fence_by_hand_waits_for_the_next_renewal_to_be_overdue_and_holds_the_proof(self, stage):
        """Whatever Ready says: a guest that an admin has just switched off is fenced at once, so to say."""
        stage.happen("crash")
        began_s = stage.simulation.clock.now_s()
        judged = by_hand(stage)
        assert judged.decision.reason is Reason.PODS_CLEARED
        assert judged.observation.node.lease_age_s >= 1.5 * stage.policy.lease_period_s
        assert stage.simulation.clock.now_s() - began_s <= 22
        assert stage.node().ready is True
        assert stage.node().out_of_service is not None

    def test_a_guest_that_nobody_saw_alive_is_not_fenced_while_its_node_is_ready(self):
        stage = Stagehand(policy=Policy())
        stage.happen("crash")
        assert by_hand(stage).decision.reason is Reason.NODE_READY
        assert stage.written() == []

    def test_nor_later_but_by_name(self):
        stage = Stagehand(policy=Policy())
        stage.happen("crash")
        stage.simulation.clock.wait(60)
        judged = by_hand(stage)
        assert (judged.decision.reason, judged.decision.objection.needs) == (
            Reason.BINDING_UNPROVEN,
            "--guest lab/k8s-2, if you are sure that this guest is the node",
        )
        assert by_hand(stage, Word(guest="lab/k8s-2")).decision.reason is Reason.PODS_CLEARED

    def test_a_dry_run_stops_where_something_would_be_done(self, stage):
        stage.happen("crash")
        stage.calls.clear()
        judged = by_hand(stage, act=False)
        assert judged.decision.verdict is Verdict.FENCE
        assert stage.written() == []

    def test_a_sound_node_is_refused_at_once_however_it_is_asked_for(self, stage):
        stage.calls.clear()
        for word in (Word(), Word(stop_guest=True), Word(guest="lab/k8s-2", guest_off_why="I say so")):
            judged = by_hand(stage, word)
            assert judged.decision.reason is Reason.NODE_READY
            assert "fencer shutdown k8s-2" in judged.decision.objection.needs
        assert stage.written() == []

    def test_a_running_guest_that_is_not_heard_is_refused_at_once(self, stage):
        stage.happen("kubelet_stop")
        stage.simulation.clock.wait(60)
        stage.calls.clear()
        assert by_hand(stage).decision.reason is Reason.GUEST_RUNNING
        assert stage.written() == []

    def test_and_is_stopped_and_fenced_when_told_so(self, stage):
        stage.happen("kubelet_stop")
        stage.simulation.clock.wait(60)
        judged = by_hand(stage, Word(stop_guest=True))
        assert judged.decision.reason is Reason.PODS_CLEARED
        assert stage.simulation.guest("k8s-2").power is PowerState.STOPPED
        assert stage.simulation.world.double_writers == 0

    def test_patience_ends(self, stage):
        stage.happen("crash")
        stage.happen("unsettled")
        assert by_hand(stage, patience_s=20).decision.reason is Reason.GUEST_UNSETTLED

    def test_an_unknown_node_is_told_with_the_known_ones(self):
        with pytest.raises(ClusterNotFound, match=r"k8s-9: no such node.*k8s-1"):
            Stagehand().agent.survey("k8s-9")

    def test_a_survey_looks_closely_and_touches_nothing(self):
        stage = Stagehand()
        stage.happen("crash")
        judged = stage.agent.survey("k8s-2", Intent.FENCE).judged["k8s-2"]
        assert judged.observation.close
        assert stage.written() == []


def test_a_cluster_that_fails_in_the_middle_of_a_node_spares_the_others(stage):
    stage.happen("crash")
    stage.before["fact"] = lambda: stage.happen("api_down", "")
    stage.calls.clear()
    while "fact" not in stage.calls:  # until it is looked at closely
        stage.simulation.clock.wait(2.0)
        done = stage.agent.tick()
    assert set(done.judged) == {"k8s-1", "k8s-2", "k8s-3"}
    assert any("k8s-2" in text for text, warning in stage.notes.said_ if warning)
    stage.happen("api_up", "")
    stage.run(70)
    assert stage.node().out_of_service is not None


def test_a_pod_that_cannot_be_cleared_is_told_and_tried_again(stage):
    stage.happen("crash")

    def fail():
        raise HypervisorProtocol("not an error of a cluster at all")

    stage.before["clear"] = fail
    stage.run(75)
    steps = [(ok, text) for _, action, ok, text in stage.notes.acted_ if action == "ClearPods"]
    assert len(steps) > 1
    assert not stage.pods()


def test_old_memory_after_a_fence_raises_one_alarm_and_keeps_the_taint(stage):
    stage.happen("crash")
    stage.run(80)
    fenced = stage.node().out_of_service
    guest = stage.simulation.guest("k8s-2")
    boot = guest.boot_id
    stage.happen("start")
    guest.boot_id, guest.cold = boot, False
    stage.run(90)
    alarms = [text for _, action, _, text in stage.notes.acted_ if action == "Alarm"]
    assert len(alarms) == 1
    assert "old memory" in alarms[0]
    assert stage.node().out_of_service == fenced


def test_a_node_deleted_in_mid_fence_loses_its_pods_and_its_attachments_all_the_same(stage):
    stage.happen("crash")
    stage.before["clear"] = lambda: stage.simulation.api.nodes.pop("k8s-2")
    stage.run(90)
    assert not stage.pods()
    assert not stage.simulation.cluster.attachments().of("k8s-2")
    assert ("k8s-2", "DeleteAttachments", True) in [entry[:3] for entry in stage.notes.acted_]
    assert not stage.agent.shared.memory.fenced
    assert stage.simulation.world.double_writers == 0
    end = "k8s-2: its Node was deleted while it was fenced; nothing of it is left, so its fence has ended"
    assert [said for said in stage.notes.said_ if said[0].startswith("k8s-2: ")] == [(end, False)]


def test_a_deleted_node_whose_guest_starts_again_is_left_alone(stage):
    stage.happen("crash")

    def lost():
        stage.simulation.api.nodes.pop("k8s-2")
        stage.happen("start")

    stage.before["clear"] = lost
    stage.run(90)
    assert ("k8s-2", "DeleteAttachments", True) not in [entry[:3] for entry in stage.notes.acted_]


def test_a_saved_guest_is_refused_by_default_and_its_memory_thrown_away_where_wanted():
    for saved, fenced in ((SavedGuest.REFUSE, False), (SavedGuest.DISCARD, True)):
        stage = Stagehand(policy=replace(ARMED, saved_guest=saved))
        stage.run(25)
        stage.happen("save")
        stage.run(90)
        assert (stage.node().out_of_service is not None) is fenced
        assert ("discard" in stage.calls) is fenced
        assert stage.simulation.world.double_writers == 0


def test_that_its_memory_was_thrown_away_is_written_though_the_node_was_written_meanwhile():
    """Nobody else knows: without that, its guest would never be believed to be off."""
    stage = Stagehand(policy=replace(ARMED, saved_guest=SavedGuest.DISCARD))
    stage.run(25)
    stage.happen("save")
    api = stage.simulation.api
    stage.before["discard"] = lambda: api.changed(api.nodes["k8s-2"])
    stage.run(90)
    assert stage.node().out_of_service is not None


def test_a_refused_power_off_is_told_as_such(stage):
    stage.happen("pause")
    stage.happen("power_denied", "")
    stage.run(70)
    stops = [(ok, text) for _, action, ok, text in stage.notes.acted_ if action == "StopGuest"]
    assert stops
    assert not any(ok for ok, _ in stops)
    assert "tried to stop" in stops[0][1]
    assert stage.node().out_of_service is None


def test_a_hypervisor_that_does_not_answer_is_no_news_about_each_node(stage):
    """Its endpoint is told of, once; and a node that comes back meanwhile is news all the same."""
    stage.run(30)
    stage.happen("power_off")
    stage.run(90)
    stage.notes.decided_.clear()
    stage.happen("unreachable", "lab")
    stage.run(60)
    assert {name for name, _, _ in stage.notes.decided_} <= {"k8s-2"}
