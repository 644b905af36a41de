"""Fencer's cordon on a Node for which the API server has no record of who wrote what."""

from dataclasses import replace

from fencer.core.model import Cordon, Intent, Reason, Word
from fencer.errors import ClusterUnreachable
from fencer.runtime.cordons import OwnCordons
from fencer.simulation.assembly import Shape
from fencer.simulation.clock import VirtualClock
from tests.core.build import node
from tests.runtime.stagehand import ARMED, Stagehand

UNRECORDED = Shape(unrecorded=True)


def lifted(stage):
    """Let the guest end, be fenced and boot again, until its fence was lifted a moment ago."""
    stage.run(30)
    stage.happen("crash")
    stage.run(120)
    assert stage.node().fenced
    stage.happen("start")
    while not stage.node().unschedulable:
        stage.run(1)
    stage.calls.clear()
    return stage


def test_who_set_it_and_watched_it_lifts_it():
    stage = lifted(Stagehand(shape=UNRECORDED))
    assert not stage.node().recorded
    stage.run(ARMED.settle_s + 5.0)
    assert (stage.node().unschedulable, stage.reason()) == (False, Reason.NODE_HEALTHY)


def test_one_that_was_restarted_leaves_it_and_says_why():
    stage = lifted(Stagehand(shape=UNRECORDED))
    stage.new_agent()
    stage.run(ARMED.settle_s + 50.0)
    assert stage.reason() is Reason.SETTLING
    stage.run(30)
    assert (stage.node().unschedulable, stage.reason()) == (True, Reason.CORDON_UNRECORDED)
    stage.new_agent()
    stage.notes.decided_.clear()
    stage.run(5)
    assert stage.reason() is Reason.CORDON_UNRECORDED, "a later restart finds it at once"
    stage.simulation.cluster.uncordon_by_hand("k8s-2")
    stage.run(5)
    assert stage.node().cordon is None
    assert stage.reason() is Reason.NODE_HEALTHY


def test_another_agent_says_nothing_while_who_set_it_is_about_to_lift_it():
    stage = lifted(Stagehand(shape=UNRECORDED))
    setter, words = stage.agent, stage.notes.decided_
    other = stage.new_agent()
    words.clear()
    for _ in range(60):
        other.tick()
        setter.tick()
        stage.simulation.clock.wait(1.0)
    assert not stage.node().unschedulable
    assert Reason.CORDON_UNRECORDED not in {reason for _, _, reason in words}


def test_an_administrators_cordon_since_stays():
    """A look between the two commands shows the node uncordoned."""
    stage = lifted(Stagehand(shape=UNRECORDED))
    stage.run(5)
    stage.simulation.cluster.uncordon_by_hand("k8s-2")
    stage.run(5)
    stage.simulation.cluster.cordon_by_hand("k8s-2")
    stage.run(ARMED.settle_s + 120.0)
    assert stage.node().unschedulable
    assert stage.simulation.api.nodes["k8s-2"].cordoner == "kubectl"


def test_an_agent_that_stood_still_for_too_long_leaves_it():
    stage = lifted(Stagehand(shape=UNRECORDED))
    stage.simulation.clock.wait(ARMED.apart_s + 1.0)
    stage.run(ARMED.settle_s + 120.0)
    assert (stage.node().unschedulable, stage.reason()) == (True, Reason.CORDON_UNRECORDED)


def test_one_whose_answer_was_lost_is_this_agents_all_the_same():
    stage = Stagehand(shape=UNRECORDED)
    untaint = stage.simulation.cluster.untaint

    def lose(*what):
        del stage.simulation.cluster.untaint
        untaint(*what)
        raise ClusterUnreachable("no answer within 10 s")

    stage.simulation.cluster.untaint = lose
    lifted(stage).run(ARMED.settle_s + 15.0)
    assert not stage.node().unschedulable


def test_what_a_command_lifts_it_uncordons_as_well():
    """`fencer start` waits until caches have settled."""
    stage = Stagehand(shape=UNRECORDED)
    stage.run(30)
    stage.happen("crash")
    stage.run(120)
    by_hand = stage.new_agent()
    for _ in range(120):
        judged = by_hand.step("k8s-2", Intent.START, Word())
        if judged.decision.reason is Reason.STARTED:
            break
        stage.simulation.clock.wait(2.0)
    assert (stage.node().fenced, stage.node().unschedulable) == (False, False)


class TestOwnCordons:
    NOTE = Cordon("unfence", "boot-1", "2026-11-20T10:00:00Z")
    BEFORE = node(version="1")

    def cordoned(self, version="2", **facts):
        stands = {"unschedulable": True, "cordon": self.NOTE, "recorded": False}
        return replace(self.BEFORE, version=version, **(stands | facts))

    def test_a_node_that_was_not_cordoned_here_is_as_it_was_read(self):
        seen = self.cordoned()
        assert OwnCordons(VirtualClock(), ARMED).look(seen) is seen

    def test_after_a_gap_it_stays_forgotten(self):
        own = OwnCordons(VirtualClock(), ARMED)
        own.set(self.BEFORE, self.NOTE)
        assert own.look(self.cordoned()).cordoner == "fencer"
        assert own.look(self.cordoned("3", unschedulable=False)).cordoner == ""
        assert own.look(self.cordoned("4")).cordoner == ""

    def test_a_node_that_is_gone_is_forgotten(self):
        own = OwnCordons(VirtualClock(), ARMED)
        own.set(self.BEFORE, self.NOTE)
        own.keep({self.BEFORE.uid})
        assert own.look(self.cordoned()).cordoner == "fencer"
        own.keep(())
        assert own.look(self.cordoned()).cordoner == ""
