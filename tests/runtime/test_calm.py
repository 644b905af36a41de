"""A healthy node is not judged again, until anything changes that its health rests on."""

from dataclasses import replace

import pytest

from fencer.core.model import Reason, Verdict
from fencer.core.policy import Mode
from fencer.core.requests import NO_CALL, Strategy
from fencer.runtime.reconcile import Agent
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from tests.runtime.stagehand import ARMED, AT_ONCE, Stagehand

SIX = Shape(nodes=tuple(f"k8s-{number}" for number in range(1, 7)))
NAME = "k8s-5"


@pytest.fixture
def stage():
    stage = Stagehand(shape=SIX)
    stage.run(60)
    return stage


@pytest.fixture
def hearing():
    """The same, and the agent hears what other controllers ask."""
    stage = Stagehand(shape=SIX)
    stage.simulation.requests.known = True
    world = replace(stage.world, requests=stage.simulation.requests)
    stage.agent = Agent(world, ARMED, stage.simulation.rules())
    stage.run(60)
    return stage


def judged(stage, name=NAME):
    return stage.agent.tick().judged[name]


def test_what_was_said_of_it_is_said_again(stage):
    before = judged(stage)
    stage.run(60)
    assert judged(stage) is before
    assert before.decision.verdict is Verdict.HEALTHY


def test_so_it_is_for_an_agent_that_only_observes():
    stage = Stagehand(shape=SIX)
    stage.agent = stage.new_agent(policy=ARMED.__class__(mode=Mode.OBSERVE))
    stage.run(60)
    assert judged(stage) is judged(stage)


@pytest.mark.parametrize(
    "what", [What.CRASH, What.PAUSE, What.REBOOT, What.SAVE, What.DELETE, What.MIGRATE, What.CLONE]
)
def test_not_once_its_guest_is_read_otherwise_or_another_one_may_be_it(stage, what):
    before = judged(stage)
    stage.happen(what, NAME)
    stage.run(1)
    if what is What.CLONE:
        stage.happen(What.START, f"{NAME}-copy")
    assert judged(stage) is not before


@pytest.mark.parametrize("change", ["taint", "cordon", "label"])
def test_not_once_its_node_is_told_otherwise(stage, change):
    before, cluster = judged(stage), stage.simulation.cluster
    if change == "taint":
        cluster.taint_by_hand(NAME)
    elif change == "cordon":
        cluster.cordon_by_hand(NAME)
    else:
        stage.simulation.api.changed(stage.simulation.api.nodes[NAME])
    assert judged(stage) is not before


def test_not_once_another_node_says_that_it_is_the_same_guest(stage):
    before, api = judged(stage), stage.simulation.api
    other = api.nodes["k8s-2"]
    other.system_uuid = stage.simulation.guest(NAME).uuid
    api.changed(other)
    assert judged(stage) is not before


def test_not_once_fencing_is_paused_nor_once_it_goes_on(stage):
    before = judged(stage)
    stage.simulation.api.paused_why = "maintenance"
    paused = judged(stage)
    assert paused is not before
    stage.simulation.api.paused_why = None
    assert judged(stage) is not paused


def test_not_while_somebody_asks_for_it_or_works_on_it(hearing):
    """Whoever asks is told how it is now."""
    stage, requests = hearing, hearing.simulation.requests
    before = judged(stage)
    assert judged(stage) is before
    assert not before.observation.node.asked
    asked = requests.make(NAME, Strategy.PROVE, "NodeHealthCheck workers")
    for _ in range(3):
        found = judged(stage)
        assert found is not before
        assert found.observation.call.strategy is Strategy.PROVE
        assert found.observation.node.asked, "its lease is read"
        before = found
    requests.give_up(asked)
    assert judged(stage).observation.call.given_up
    requests.delete(asked)
    requests.reserve(NAME, "NodeHealthCheck workers")
    assert judged(stage).observation.call.reserved_by == "NodeHealthCheck workers"
    requests.leave(NAME)
    assert judged(stage).observation.call == NO_CALL
    stage.run(10)
    assert judged(stage) is judged(stage)


def test_for_that_no_other_node_is_judged_again(hearing):
    before = judged(hearing)
    hearing.simulation.requests.make("k8s-6", Strategy.PROVE, "NodeHealthCheck workers")
    assert judged(hearing) is before


def test_not_while_its_endpoint_does_not_answer(stage):
    before = judged(stage)
    stage.happen(What.UNREACHABLE, "lab")
    assert judged(stage) is not before


def test_a_calm_node_that_dies_is_fenced_as_any_other(stage):
    stage.run(600)
    stage.happen(What.CRASH, NAME)
    stage.run(70)
    assert stage.node(NAME).fenced
    assert stage.reason(NAME) is Reason.PODS_CLEARED


@pytest.mark.parametrize("confirm_s", [4.0, 5.0])
@pytest.mark.parametrize("between_s", [2.5, 4.0])
def test_that_it_runs_again_is_never_missed(confirm_s, between_s):
    """Its hypervisor is wrong again and again, for a second each time: that does not add up."""
    stage = Stagehand(replace(AT_ONCE, confirm_s=confirm_s), shape=SIX)
    stage.run(60)
    for _ in range(12):
        stage.happen(What.LIE_STOPPED, NAME)
        stage.run(1.0)
        stage.happen(What.TRUTHFUL, "lab")
        stage.run(between_s)
    assert "taint" not in stage.calls


def test_that_it_was_paused_before_makes_no_pause_longer():
    stage = Stagehand(shape=SIX)
    stage.run(60)
    for _ in range(3):
        stage.happen(What.PAUSE, NAME)
        stage.run(2)
        stage.happen(What.RESUME, NAME)
        stage.run(2)
    stage.happen(What.PAUSE, NAME)
    stage.run(ARMED.paused_for_s - 2)
    assert "stop" not in stage.calls
