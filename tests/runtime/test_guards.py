"""What is asked once more between a decision and its end: each guard alone, as a world changes meanwhile."""

from dataclasses import replace
from itertools import groupby

import pytest

from fencer.core.model import FenceMark, Intent, PowerState, Reason, Word
from fencer.core.policy import SavedGuest
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from fencer.simulation.objects import ApiNode, ApiPod
from tests.runtime.stagehand import ARMED, POWER, Stagehand

MANY = tuple(f"k8s-{number}" for number in range(1, 9))


def told(stage):
    """Every reason that was told of k8s-2."""
    return [reason for name, _, reason in stage.notes.decided_ if name == "k8s-2"]


def put(stage, count, node="k8s-2"):
    """Bind so many pods to a node by hand."""
    api = stage.simulation.api
    for number in range(count):
        pod = ApiPod("demo", f"mine-{number}", api.new_uid(), "Job/mine", api.clock.now_s())
        api.create_pod(pod)
        api.bind_pod(pod, node)


class TestTheBrakeWithinOnePass:
    @pytest.mark.parametrize("lag_s", [0.0, 40.0])
    def test_each_fence_counts_for_the_next_node_even_where_lists_lag(self, lag_s):
        """Six of eight are due in the same pass, because their endpoint answers again: four may be fenced."""
        stage = Stagehand(shape=Shape(nodes=MANY))
        stage.run(25)
        stage.simulation.cluster.lag(lag_s)
        stage.happen(What.UNREACHABLE, "")
        for name in MANY[:6]:
            put(stage, 1, name)
            stage.happen(What.CRASH, name)
        stage.run(120)
        stage.happen(What.TRUTHFUL, "")
        passes = []
        for _ in range(30):
            at = len(stage.calls)
            stage.simulation.clock.wait(ARMED.poll_s)
            stage.agent.tick()
            passes.append(stage.calls[at:].count("taint"))
        left = [name for name in MANY[:6] if not stage.node(name).fenced]
        assert max(passes) == sum(passes) == ARMED.brake_at(len(MANY)) == 6 - len(left)
        assert {stage.reason(name) for name in left} == {Reason.BRAKE}

    def test_what_others_fence_while_a_guest_is_being_stopped_counts_for_its_own_fence(self):
        """Stop and taint follow each other in one turn where nothing has to be waited for."""
        stage = Stagehand(replace(ARMED, confirm_s=0.0))
        stage.run(25)
        other = stage.node("k8s-3")

        def fenced_by_another():
            guest = stage.simulation.guest("k8s-3").ref
            mark = FenceMark("inc", stage.simulation.clock.utc(), other.boot_id, guest, "another")
            stage.simulation.cluster.taint(stage.node("k8s-3"), mark)

        stage.before["stop"] = fenced_by_another
        stage.happen(What.PAUSE)
        stage.run(200)
        assert (stage.calls.count("stop"), stage.calls.count("taint")) == (1, 0)
        assert stage.reason("k8s-2") is Reason.BRAKE


class TestOthersAreCountedOnceMore:
    """A pass may take long: what was written since it began counts before what others count for."""

    @pytest.mark.parametrize(("fault", "write"), [(What.CRASH, "taint"), (What.PAUSE, "stop")])
    def test_fencing_that_is_paused_during_the_last_look_is_paused(self, stage, fault, write):
        def pause():
            stage.before["read"] = pause  # until a look that leads to something
            stage.simulation.api.paused_why = "maintenance"

        stage.happen(fault)
        while write not in stage.calls and Reason.FENCING_PAUSED not in told(stage):
            stage.simulation.api.paused_why = None
            stage.before["read"] = pause
            done = stage.agent.tick()
            stage.simulation.clock.wait(done.recheck_s)
        assert write not in stage.calls


class TestTheGuestMeantByAnOrder:
    """It was restarted after the decision: the order is about a run that is over."""

    def restart(self, stage, *, then=""):
        def happen():
            stage.happen(What.POWER_OFF)
            stage.happen(What.START)
            if then:
                stage.happen(then)

        return happen

    def test_one_that_was_restarted_before_its_power_off_gets_none_though_it_is_paused_again(self, stage):
        stage.happen(What.PAUSE)
        stage.before["claim"] = self.restart(stage, then=What.PAUSE)
        while "claim" not in stage.calls:
            stage.simulation.clock.wait(ARMED.poll_s)
            stage.agent.tick()
        [stop] = [entry for entry in stage.notes.acted_ if entry[1] == "StopGuest"]
        assert not stop[2]
        assert "changed before it was stopped" in stop[3]
        assert not POWER & set(stage.calls)

    def test_nor_one_that_is_restarted_while_the_power_off_is_on_its_way(self, stage):
        """And since nothing was sent, the next guest need not wait for its turn."""
        stage.happen(What.PAUSE)
        stage.before["stop"] = self.restart(stage)
        stage.run(90)
        assert stage.calls.count("stop") == 1
        assert stage.simulation.guest("k8s-2").power is PowerState.RUNNING
        assert stage.agent.shared.memory.last_stop_s is None

    def test_nor_one_whose_reboot_was_not_meant_by_a_shutdown(self, stage):
        stage.before["shutdown"] = self.restart(stage)
        stage.agent.step("k8s-2", Intent.SHUTDOWN, Word())
        stage.simulation.clock.wait(90)
        assert "shutdown" in stage.calls
        assert stage.simulation.guest("k8s-2").power is PowerState.RUNNING

    def test_one_that_somebody_started_and_stopped_again_is_not_started(self, stage):
        stage.happen(What.POWER_OFF)
        stage.simulation.clock.wait(60)

        def start_and_stop():
            stage.happen(What.START)
            stage.happen(What.POWER_OFF)

        stage.before["start"] = start_and_stop
        stage.agent.step("k8s-2", Intent.START, Word())
        assert "start" in stage.calls
        assert stage.simulation.guest("k8s-2").power is PowerState.STOPPED

    def test_memory_that_was_saved_since_is_not_thrown_away_for_that_of_before(self):
        stage = Stagehand(replace(ARMED, saved_guest=SavedGuest.DISCARD))
        stage.run(25)
        stage.happen(What.SAVE)
        stage.before["discard"] = self.restart(stage, then=What.SAVE)
        while "discard" not in stage.calls:
            stage.simulation.clock.wait(ARMED.poll_s)
            stage.agent.tick()
        assert stage.simulation.guest("k8s-2").power is PowerState.SAVED


class TestTheLookBeforeEachBatch:
    def test_a_guest_that_starts_while_a_batch_is_cleared_keeps_the_next_one(self, stage):
        put(stage, 2 * ARMED.clear_batch)
        stage.happen(What.CRASH)
        stage.before["clear"] = lambda: stage.happen(What.START)
        stage.run(75)
        assert stage.calls.count("clear") == ARMED.clear_batch

    def test_guest_and_node_are_read_between_any_two(self, stage):
        put(stage, 2 * ARMED.clear_batch)
        stage.happen(What.CRASH)
        stage.run(75)
        runs = [(name, len(list(calls))) for name, calls in groupby(stage.calls)]
        batches = [number for number, (name, _) in enumerate(runs) if name == "clear"]
        assert len(batches) >= 3
        assert all(runs[number][1] <= ARMED.clear_batch for number in batches)
        for number in batches:
            assert [name for name, _ in runs[number - 3 : number]] == ["read", "fact", "pods"]


class TestADeletedNode:
    """Its guest is off, and its pods are there all the same: only one that was fenced is cleared on."""

    def delete(self, stage):
        return lambda: stage.simulation.api.nodes.pop("k8s-2")

    def test_one_that_nobody_had_fenced_is_not_cleared(self, stage):
        stage.happen(What.CRASH)
        stage.before["taint"] = self.delete(stage)
        stage.run(90)
        assert "taint" in stage.calls
        assert not {"clear", "delete_attachment"} & set(stage.calls)
        assert ("k8s-2", "TaintNode", False) in [entry[:3] for entry in stage.notes.acted_]

    def test_nor_is_one_tainted_that_is_deleted_right_before_its_closer_look(self, stage):
        stage.happen(What.CRASH)
        stage.simulation.clock.wait(ARMED.poll_s)
        while stage.node().ready:
            stage.agent.tick()
            stage.simulation.clock.wait(ARMED.poll_s)
        stage.before["read"] = self.delete(stage)
        stage.calls.clear()
        stage.run(30)
        assert "fact" in stage.calls
        assert not {"taint", "clear", "delete_attachment"} & set(stage.calls)
        assert ("k8s-2: no node k8s-2", True) in stage.notes.said_

    def test_nor_one_whose_fence_was_lifted_before(self, stage):
        stage.happen(What.CRASH)
        stage.run(80)
        stage.happen(What.START)
        stage.run(120)
        assert not stage.node().fenced
        stage.happen(What.CRASH)
        self.delete(stage)()
        stage.calls.clear()
        stage.run(90)
        assert set(stage.calls) == {"sweep", "nodes", "heartbeats", "attend"}

    def test_nor_is_a_new_one_of_its_name_taken_for_it(self, stage):
        """It joined as another machine: whatever is attached there now is not the old one's."""
        stage.happen(What.CRASH)
        stage.before["clear"] = lambda: self.join_again(stage)
        done = stage.run(90)
        seen = done.judged["k8s-2"].observation.node
        assert (seen.uid, seen.gone) == (stage.node().uid, False)
        assert "delete_attachment" not in stage.calls
        assert not stage.agent.shared.memory.fenced

    def join_again(self, stage):
        api = stage.simulation.api
        del api.nodes["k8s-2"]
        new = stage.simulation.replace("k8s-2")
        api.add_node(ApiNode("k8s-2", api.new_uid(), new.uuid, new.boot_id))


class TestTheOperatorsWord:
    WORD = Word(guest_off_why="I pulled its plug")

    @pytest.fixture
    def silent(self, stage):
        """Ready has been Unknown for a while, no hypervisor answers, and a command begins to look."""
        stage.happen(What.NIC_OFF)
        stage.happen(What.UNREACHABLE, "")
        stage.simulation.clock.wait(90)
        assert stage.node().ready is None
        stage.new_agent()
        return stage

    def say(self, stage):
        return stage.agent.step("k8s-2", Intent.FENCE, self.WORD).decision

    def test_it_is_taken_where_no_renewal_came_while_the_command_looked(self, silent):
        silent.happen(What.POWER_OFF)
        self.say(silent)
        silent.simulation.clock.wait(1.5 * ARMED.lease_period_s)
        self.say(silent)
        assert silent.node().fenced

    def test_one_renewal_and_the_silence_of_a_whole_lease_has_to_be_seen_first(self, silent):
        """Of the lease alone: that the node is Ready again, its kubelet has not said yet."""
        silent.happen(What.POWER_OFF)
        self.say(silent)
        silent.simulation.api.renew(silent.simulation.api.nodes["k8s-2"])
        self.say(silent)
        heard_s, clock = silent.simulation.clock.now_s(), silent.simulation.clock
        while clock.now_s() < heard_s + ARMED.lease_silent_s - 2:
            assert self.say(silent).reason in {Reason.EVIDENCE_MISSING, Reason.SILENCE_TOO_SHORT}
            assert not silent.node().fenced
            clock.wait(1)
        clock.wait(2)
        self.say(silent)
        assert silent.node().fenced
