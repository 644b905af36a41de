"""One look of a command that has not watched before: honest ages, and never an action."""

from functools import partial

from fencer.core.model import Reason, Verdict
from fencer.core.policy import Policy
from fencer.runtime.onlooker import Onlooker
from fencer.wording.foresight import NEEDS_MEMORY
from tests.runtime.stagehand import POWER, WRITES, Stagehand


def onlooker(stage):
    return Onlooker(stage.world, stage.policy, stage.simulation.rules())


def judged(stage, name="k8s-2"):
    return onlooker(stage).look(name).judged[name]


def silent(what="nic_off", for_s=90.0):
    """A stage whose k8s-2 was bound by an agent, and then fell silent."""
    stage = Stagehand()
    stage.run(30)
    stage.happen(what)
    stage.simulation.clock.advance(for_s)
    stage.calls.clear()
    return stage


def test_a_first_look_takes_the_age_of_a_lease_from_the_api():
    stage = silent()
    node = judged(stage).observation.node
    assert 80 < node.lease_age_s < 101


def test_a_first_look_takes_the_age_of_not_ready_from_the_taint():
    stage = silent(for_s=120)
    taint_age_s = judged(stage).observation.node.not_ready_s
    assert 50 < taint_age_s < 75


def test_a_node_that_is_heard_is_fresh_at_first_sight():
    stage = silent()
    node = judged(stage, "k8s-1").observation.node
    assert node.lease_age_s < 11
    assert node.not_ready_s is None


def test_a_cut_off_node_is_judged_by_its_guest_at_first_sight():
    """An agent that has just started would only say that it has not waited long enough."""
    assert judged(silent()).decision.reason is Reason.GUEST_RUNNING


def test_what_one_look_cannot_tell_is_named():
    decision = judged(silent("power_off")).decision
    assert decision.verdict is Verdict.WAIT
    assert decision.reason in NEEDS_MEMORY


def test_it_never_acts_however_often_it_looks():
    stage = silent("power_off")
    onlooking = onlooker(stage)
    for _ in range(10):
        seen = onlooking.look()
        stage.simulation.clock.advance(2)
    assert seen.judged["k8s-2"].decision.verdict is Verdict.FENCE
    assert not (WRITES | POWER) & set(stage.calls)


def test_a_kubelet_that_is_heard_again_counts_from_the_second_look_on():
    stage = silent()
    onlooking = onlooker(stage)
    onlooking.look()
    stage.happen("nic_on")
    stage.simulation.clock.advance(60)
    assert onlooking.look().judged["k8s-2"].decision.verdict is Verdict.HEALTHY


def test_a_time_that_cannot_be_read_is_no_age():
    stage = silent()
    stage.simulation.api.nodes["k8s-2"].lease = "yesterday"
    assert judged(stage).observation.node.lease_age_s < 1


def unwritten(before=None):
    """A look at k8s-2, dead and never bound on its Node, because whoever watches only observes."""
    stage = Stagehand(policy=Policy())
    stage.run(30)
    stage.happen("power_off")
    stage.simulation.clock.advance(90)
    stage.calls.clear()
    stage.before.update(before(stage) if before else {})
    return stage, judged(stage)


def test_whose_guest_only_an_observing_agent_saw_alive_is_looked_at_to_say_what_that_one_would_do():
    stage, seen = unwritten()
    assert seen.decision.reason is Reason.BINDING_UNPROVEN
    assert seen.untold.startswith("would fence, if the agent has seen its guest alive with it, ")
    assert stage.calls.count("read") == 1
    assert not (WRITES | POWER) & set(stage.calls)


def test_where_the_cluster_fails_then_what_it_cannot_tell_is_said_all_the_same():
    _, seen = unwritten(lambda stage: {"fact": lambda: stage.happen("api_down", "")})
    assert seen.untold == "stopped (destroyed); one look cannot tell whether its guest was seen alive with it"


def test_what_that_look_finds_counts():
    def exclude(stage):
        node = stage.simulation.api.nodes["k8s-2"]
        node.annotations["fencer.dev/exclude"] = "true"
        stage.simulation.api.changed(node)

    _, seen = unwritten(lambda stage: {"read": partial(exclude, stage)})
    assert (seen.decision.reason, seen.untold) == (Reason.NODE_EXCLUDED, "")


def test_a_second_look_has_counted_itself():
    stage = silent("power_off")
    onlooking = onlooker(stage)
    assert onlooking.look().judged["k8s-2"].untold
    stage.simulation.clock.advance(2)
    assert not onlooking.look().judged["k8s-2"].untold


def test_a_fenced_node_is_called_fenced_at_first_sight():
    """Whoever fenced it has waited for what one look cannot tell."""
    stage = silent("power_off", for_s=0.0)
    stage.run(120)
    assert stage.node().fenced
    seen = judged(stage)
    assert (seen.decision.verdict, seen.decision.reason) == (Verdict.FENCED, Reason.PODS_CLEARED)
    assert not seen.untold
