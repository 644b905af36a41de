"""What an agent has asked for or done once, it does not ask for again; and by hand it writes its notes."""

from fencer.core.model import Intent, Reason, Word
from fencer.core.policy import Policy
from fencer.errors import ClusterUnreachable
from fencer.simulation.faults import What
from tests.runtime.stagehand import ARMED, POWER


def steps(stage, intent, seconds):
    """Look again and again for so long, as a command does; return the last decision."""
    until_s = stage.simulation.clock.now_s() + seconds
    while stage.simulation.clock.now_s() < until_s:
        decision = stage.agent.step("k8s-2", intent, Word()).decision
        stage.simulation.clock.wait(ARMED.poll_s)
    return decision


def test_a_guest_is_asked_once_to_shut_down(stage):
    steps(stage, Intent.SHUTDOWN, 60)
    assert stage.calls.count("shutdown") == 1


def test_a_guest_is_started_once_though_it_reads_off_for_a_while(stage):
    stage.happen(What.POWER_OFF)
    stage.simulation.clock.wait(60)
    stage.agent.step("k8s-2", Intent.START, Word())
    stage.happen(What.LIE_STOPPED)
    assert steps(stage, Intent.START, 10).reason is Reason.AWAITING_BOOT
    assert stage.calls.count("start") == 1


def test_attachments_of_a_deleted_node_are_deleted_once(stage):
    stage.happen(What.CRASH)
    stage.before["clear"] = lambda: stage.simulation.api.nodes.pop("k8s-2")
    attached = len(stage.simulation.cluster.attachments().of("k8s-2"))
    stage.run(90)
    assert stage.calls.count("delete_attachment") == attached > 0


def test_by_hand_a_doubt_is_noted_on_the_node_whatever_the_mode(stage):
    """The next command, and an armed agent, have to know of that memory."""
    stage.new_agent(Policy())
    stage.happen(What.SAVE)
    stage.simulation.clock.wait(60)
    steps(stage, Intent.FENCE, 10)
    assert stage.node().doubts


def test_a_guest_that_another_heard_node_claims_is_not_stopped(stage):
    """Two nodes report the same UUID, and one of them is heard: it may be that one's guest."""
    stage.happen(What.NIC_OFF)
    stage.run(60)
    node = stage.simulation.api.nodes["k8s-3"]
    node.system_uuid = stage.simulation.guest("k8s-2").uuid
    stage.simulation.api.changed(node)
    stage.agent.pursue("k8s-2", Intent.FENCE, Word(stop_guest=True), 30.0)
    assert not POWER & set(stage.calls)


def test_a_look_that_took_long_in_vain_is_told_when_it_is_tried_and_not_while_the_node_waits(stage):
    tried = []

    def slowly():
        stage.before["pods"] = slowly
        tried.append(stage.simulation.clock.now_s())
        stage.simulation.clock.advance(6.0)
        raise ClusterUnreachable("list pods of k8s-2: no answer")

    stage.before["pods"] = slowly
    stage.happen(What.CRASH)
    stage.run(120)
    stage.simulation.clock.wait(10)
    told = [text for text, _ in stage.notes.said_ if "list pods of k8s-2" in text]
    assert len(told) == len(tried) > 2
    assert stage.calls.count("sweep") < 120 / ARMED.poll_s + 5  # nor is everything else read without a pause
