"""Power admitted by group: the newest reading says who is in it, from afar and right before an order."""

from dataclasses import replace

import pytest

from fencer.core.identity import Admission, Rules
from fencer.core.model import Intent, Reason, Verdict, Word
from fencer.runtime.outages import Outages
from fencer.runtime.reconcile import Agent
from fencer.runtime.watch import News
from fencer.simulation.assembly import Shape
from tests.runtime.stagehand import ARMED, POWER, Stagehand

TAGGED = frozenset({"tag:fencer"})


class Grouped:
    """A hypervisor that counts all its guests among groups, by sweeps and by readings of one alone."""

    def __init__(self, port):
        self._port = port
        self.swept = self.read_alone = TAGGED

    def __getattr__(self, name):
        return getattr(self._port, name)

    def sweep(self):
        return [replace(reading, groups=self.swept) for reading in self._port.sweep()]

    def read(self, guest):
        return replace(self._port.read(guest), groups=self.read_alone)


@pytest.fixture
def stage():
    """A sound cluster whose VMs are admitted by their tag, and approved; every binding proven."""
    hand = Stagehand()
    hand.grouped = {name: Grouped(port) for name, port in hand.world.hypervisors.items()}
    admitted = Rules(admitted=dict.fromkeys(hand.grouped, Admission(groups=TAGGED)))
    hand.agent = Agent(replace(hand.world, hypervisors=hand.grouped), ARMED, admitted)
    for node in hand.simulation.cluster.nodes().views:
        hand.simulation.cluster.approve(node, node.system_uuid, "anna", "2026-11-30T12:00:00Z")
    hand.run(25)
    return hand


def powered(stage):
    return [call for call in stage.calls if call in POWER]


def test_a_paused_guest_with_the_tag_is_stopped_and_its_node_fenced(stage):
    stage.happen("pause")
    stage.run(150)
    assert powered(stage) == ["stop"]
    assert stage.node().out_of_service is not None


def test_an_agent_says_which_vms_wait_before_a_node_dies_and_when_none_does():
    hand = Stagehand(shape=Shape(grouped=True, admitted=("k8s-1",)))
    news = News(hand.world, Outages(hand.world, 5.0))
    news.of_pass(hand.run(25))
    [(text, is_warning)] = [one for one in hand.notes.said_ if "until a person approves" in one[0]]
    assert "the VMs of k8s-2, k8s-3 until a person approves that: `fencer approve`" in text
    assert is_warning
    for node in hand.simulation.cluster.nodes().views:
        hand.simulation.cluster.approve(node, node.system_uuid, "anna", "2026-11-30T12:00:00Z")
    news.of_pass(hand.run(600))
    assert ("no VM waits for an approval any more", False) in hand.notes.said_


def withdraw(stage):
    stage.simulation.cluster.approve(stage.node(), "", "anna", "2026-11-30T12:00:00Z")


def test_a_vm_whose_approval_was_withdrawn_is_not_stopped(stage):
    withdraw(stage)
    stage.happen("pause")
    done = stage.run(150)
    assert powered(stage) == []
    assert done.judged["k8s-2"].decision.reason is Reason.POWER_UNAPPROVED


def test_a_vm_whose_approval_is_withdrawn_while_the_incident_is_claimed_is_not_stopped(stage):
    stage.before["claim"] = lambda: withdraw(stage)
    stage.happen("pause")
    stage.run(150)
    assert powered(stage) == []


@pytest.mark.parametrize("when", ["swept", "read_alone"])
def test_a_guest_that_lost_its_tag_is_not_stopped_however_that_is_found_out(stage, when):
    for port in stage.grouped.values():
        setattr(port, when, frozenset())
    stage.happen("pause")
    done = stage.run(150)
    assert powered(stage) == []
    assert done.judged["k8s-2"].decision.reason is Reason.NO_POWER_RIGHTS


def test_a_guest_that_loses_its_tag_while_the_incident_is_claimed_is_not_stopped(stage):
    def lose():
        for port in stage.grouped.values():
            port.swept = port.read_alone = frozenset()

    stage.before["claim"] = lose
    stage.happen("pause")
    stage.run(150)
    assert powered(stage) == []
    assert [ok for _, action, ok, _ in stage.notes.acted_ if action == "StopGuest"] == [False]


@pytest.mark.parametrize(
    ("intent", "fault", "word"),
    [
        (Intent.FENCE, "pause", Word(stop_guest=True)),
        (Intent.SHUTDOWN, "", Word()),
        (Intent.START, "crash", Word()),
    ],
)
def test_no_door_leads_to_the_power_of_a_guest_that_lost_its_tag(stage, intent, fault, word):
    if fault:
        stage.happen(fault)
        stage.run(20)
    for port in stage.grouped.values():
        port.read_alone = frozenset()
    reasons = set()
    for _ in range(60):
        judged = stage.agent.step("k8s-2", intent, word)
        reasons.add(judged.decision.reason)
        stage.simulation.clock.wait(2)
    assert powered(stage) == []
    assert Reason.NO_POWER_RIGHTS in reasons
    assert judged.decision.verdict is not Verdict.START
