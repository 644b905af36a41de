"""What could starve a node, or hold it for ever: each was found by somebody who tried to."""

import math
from dataclasses import replace

import pytest

from fencer.core.model import Intent, PowerState, Reason, Verdict, Word
from fencer.core.policy import Mode
from fencer.errors import HypervisorProtocol, HypervisorUnreachable
from fencer.runtime.found import LOOK_AGAIN_S
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from fencer.simulation.objects import ApiPod
from tests.runtime.stagehand import ARMED, POWER, Stagehand


def put(stage, name, node="k8s-2", *, volume=None, stays=False):
    """Bind a pod to a node by hand."""
    api = stage.simulation.api
    pod = ApiPod("demo", name, api.new_uid(), "Job/mine", api.clock.now_s())
    pod.volume, pod.tolerates_out_of_service, pod.toleration_s = volume, stays, None
    api.create_pod(pod)
    api.bind_pod(pod, node)


def told(stage, name="k8s-2"):
    return [reason for node, _, reason in stage.notes.decided_ if node == name]


def breaks():
    raise HypervisorProtocol("lab: the connection broke while it was being stopped")


class TestPowerThatFails:
    def two_paused(self, fault):
        stage = Stagehand(shape=Shape(nodes=("k8s-1", "k8s-2", "k8s-3", "k8s-4"), further=("lab-b",)))
        stage.run(30)
        stage.happen(What.MOVE_OUT, "k8s-3")
        stage.run(60)
        stage.happen(fault, "")
        stage.happen(What.PAUSE, "k8s-2")
        stage.happen(What.PAUSE, "k8s-3")
        return stage

    def test_a_guest_that_nobody_may_stop_takes_no_turn_of_another(self):
        stage = self.two_paused(What.POWER_DENIED)
        stage.run(150)
        assert stage.node("k8s-3").fenced
        assert stage.reason("k8s-2") is Reason.STOP_FAILED

    def test_it_is_stopped_once_that_is_mended(self):
        stage = self.two_paused(What.POWER_DENIED)
        stage.run(150)
        stage.happen(What.TRUTHFUL, "lab")
        stage.run(150)
        assert stage.node("k8s-2").fenced

    def test_an_order_that_broke_may_have_been_carried_out_and_keeps_its_window(self):
        """Else two guests could be stopped within the time in which one may."""
        stage = self.two_paused(What.POWER_DENIED)
        stage.simulation.hypervisor.trouble.power_denied = False
        stage.before["stop"] = breaks
        while "stop" not in stage.calls:
            stage.run(2)
        assert stage.reason("k8s-3") is Reason.POWER_WINDOW

    @pytest.mark.slow
    def test_it_is_tried_ever_more_rarely(self):
        stage = self.two_paused(What.POWER_DENIED)
        stage.run(1200)
        assert 3 <= stage.calls.count("stop") - 1 <= 5  # one of them was the other's


class TestClaims:
    @pytest.mark.parametrize(("pods", "answer_s"), [(10, 1.0), (120, 0.1)])
    def test_many_pods_that_stay_with_their_volumes_keep_no_node_from_its_fence(self, pods, answer_s):
        """Each claim is a call, and meanwhile the reading of the guest ages."""
        stage = Stagehand(shape=Shape(answer_s=answer_s))
        for number in range(pods):
            put(stage, f"stays-{number}", volume=f"theirs-{number}", stays=True)
        stage.run(60)
        stage.happen("crash")
        stage.run(150)
        assert stage.node().fenced
        stage.run(90)
        assert stage.reason() is Reason.PODS_CLEARED

    def test_without_the_right_to_read_them_the_others_are_cleared_all_the_same(self):
        stage = Stagehand()
        stage.simulation.cluster.missing.add("get persistentvolumeclaims")
        put(stage, "stays", volume="theirs", stays=True)
        stage.run(30)
        stage.happen("crash")
        stage.run(70)
        assert not [pod for pod in stage.pods() if pod.controller.startswith("StatefulSet")]
        stage.happen("start")
        stage.run(60)
        assert stage.reason() is Reason.VOLUMES_REMAIN


class TestRareLooks:
    @pytest.mark.parametrize("mode", Mode)
    def test_sweeps_that_prove_nothing_make_no_decision_flap(self, mode):
        """As those of Proxmox: only live readings count, and of a node that is left alone they are rare."""
        stage = Stagehand(replace(ARMED, mode=mode))
        stage.simulation.hypervisor.trouble.hearsay = True
        stage.run(30)
        stage.happen("crash")
        stage.run(90)
        known = len(told(stage))
        stage.run(4 * LOOK_AGAIN_S)
        assert told(stage)[known:] == []

    def test_a_guest_that_is_gone_without_a_record_is_asked_for_now_and_then_only(self):
        stage = Stagehand()
        stage.run(30)
        stage.happen(What.DELETE)
        stage.run(90)
        assert stage.reason() is Reason.ABSENCE_UNPROVEN
        stage.calls.clear()
        stage.run(3 * LOOK_AGAIN_S)
        assert 2 <= stage.calls.count("read") <= 6


class TestStandstill:
    def test_two_pauses_do_not_add_up_over_a_time_in_which_the_agent_stood_still(self):
        """Its machine was suspended; meanwhile the guest ran on, unheard, and was paused again."""
        stage = Stagehand()
        stage.run(30)
        stage.happen(What.NIC_OFF)
        stage.run(60)
        stage.happen(What.PAUSE)
        stage.run(10)
        stage.happen(What.RESUME)
        stage.simulation.clock.advance(300.0)
        stage.happen(What.PAUSE)
        stage.run(20)
        assert not POWER & set(stage.calls)
        stage.run(60)
        assert "stop" in stage.calls

    @pytest.mark.parametrize("stood_s", [25.0, 50.0])
    def test_nor_do_two_moments_in_which_it_read_off(self, stood_s):
        """Its node was looked at closely before: what was found there may rest, what was read may not."""
        stage = Stagehand()
        stage.run(30)
        stage.happen(What.NIC_OFF)
        stage.run(60)
        stage.happen(What.LIE_STOPPED)
        stage.run(2)
        stage.happen(What.TRUTHFUL, "lab")
        stage.simulation.clock.advance(stood_s)
        stage.happen(What.LIE_STOPPED)
        stage.run(ARMED.confirm_s - 1)
        assert "taint" not in stage.calls
        stage.run(5)
        assert "taint" in stage.calls

    @pytest.mark.parametrize(
        ("begin", "stood_still"),
        [
            (lambda agent: agent.observer.look(), False),
            (lambda agent: agent.tick(patience_s=math.inf), False),
            (lambda agent: agent.tick(), True),
        ],
        ids=["by hand", "watch --once", "watch"],
    )
    def test_a_long_action_is_no_standing_still_unless_passes_stood_still_beside_it(self, begin, stood_still):
        stage = Stagehand()
        agent = stage.new_agent()
        begin(agent)
        api, clock = agent.shared.api, stage.simulation.clock
        api.show_life()
        clock.advance(ARMED.apart_s + 5)
        api.worked(60.0)
        api.show_life()
        assert (api.awake_since_s == clock.now_s()) is stood_still


class TestCopies:
    def test_no_binding_follows_a_copy_that_was_booted(self):
        """The endpoint has lost sight of the guest, which runs on, and somebody starts a copy of it."""
        stage = Stagehand(shape=Shape(further=("lab-b",)))
        stage.run(30)
        stage.happen("clone")
        stage.happen("start", "k8s-2-copy")
        stage.happen("missing")
        stage.run(90)
        assert stage.node().binding.guest.name == "k8s-2"
        stage.happen("nic_off")
        stage.happen("power_off", "k8s-2-copy")
        stage.run(200)
        assert not stage.node().fenced


class TestWords:
    @pytest.mark.parametrize("what", [What.PAUSE, What.SAVE, What.NIC_OFF])
    def test_no_word_is_taken_against_what_was_read_a_moment_ago(self, what):
        """The list still has it; the closer look at it fails."""
        stage = Stagehand()
        stage.run(30)
        stage.happen(what)
        stage.run(45)
        stage.new_agent()
        stage.run(45)

        def fail():
            raise HypervisorUnreachable("lab: no answer")

        stage.before["read"] = fail
        judged = stage.agent.step("k8s-2", Intent.FENCE, Word(guest_off_why="I switched it off"))
        assert judged.decision.verdict is not Verdict.FENCE
        assert not stage.node().fenced
        assert stage.simulation.guest("k8s-2").power is not PowerState.STOPPED
