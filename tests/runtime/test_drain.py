"""One node's drain, step by step: what overtakes it, and what it must never do then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencer.errors import ClusterDenied
from fencer.runtime.drain import DrainOptions, NodeDrain
from fencer.runtime.planned import Campaign
from fencer.runtime.reconcile import Agent
from fencer.runtime.turns import DrainTurn, ShutdownOptions, ShutdownTurn
from fencer.simulation.objects import ApiBudget, ApiPod
from tests.runtime.stagehand import Stagehand

FOR_EVER = ApiBudget("demo", "db", "StatefulSet/db", 4)


class Scene(Stagehand):
    """A node to be drained, and all that is told of it."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, str]] = []
        self.world = replace(self.world, evictor=self.simulation.cluster)

    def tell(self, _node: str, what: str, detail: str) -> None:
        self.told.append((what, detail))

    def drain(self, **options) -> NodeDrain:
        agent = Agent(self.world, self.policy, self.simulation.rules())
        return NodeDrain(self.world, agent, "k8s-2", DrainOptions(**options), self.tell)

    def through(self, drain: NodeDrain, *, keep_cordon: bool = False) -> bool:
        turn = DrainTurn(self.node(), drain, keep_cordon=keep_cordon)
        return Campaign(self.world, [turn], 1, lambda *_words: None).run()

    def place(self, name: str, **facts) -> ApiPod:
        api = self.simulation.api
        pod = ApiPod("demo", name, api.new_uid(), "", api.clock.now_s(), node="k8s-2", **facts)
        api.create_pod(pod)
        return pod

    def touch(self) -> None:
        """The kubelet writes its node's status in this very moment."""
        self.simulation.api.changed(self.simulation.api.nodes["k8s-2"])


def test_a_node_that_changes_while_it_is_being_cordoned_is_looked_at_again():
    scene = Scene()
    scene.before["cordon"] = scene.touch
    assert scene.through(scene.drain())
    assert scene.calls.count("cordon") == 2
    assert scene.node().unschedulable


def test_a_node_that_cannot_be_cordoned_is_not_drained():
    scene = Scene()
    scene.simulation.cluster.missing.add("patch nodes")
    drain = scene.drain()
    assert not scene.through(drain)
    assert "could not be cordoned: fencer may not patch nodes" in drain.failed
    assert drain.progress() == "0 of 0 pods are gone"


def test_a_pod_that_may_not_be_evicted_is_found_before_the_cordon_however_late_it_came():
    scene = Scene()
    scene.place("bare")
    drain = scene.drain()
    assert not scene.through(drain)
    assert "1 pod needs an option that was not given; nothing was changed" in drain.failed
    assert (
        "in the way",
        "demo/bare: no controller would make it anew (--force evicts it, for good)",
    ) in scene.told
    assert "cordon" not in scene.calls


def test_one_that_comes_in_the_midst_of_it_is_never_evicted():
    scene = Scene()
    drain = scene.drain(timeout_s=60.0)
    drain.advance()
    bare = scene.place("bare")
    assert not scene.through(drain)
    assert "refused for good" in drain.failed
    assert bare.deleted_s is None
    assert not scene.node().unschedulable


def test_losing_the_right_to_look_is_no_reason_to_call_it_drained():
    scene = Scene()
    drain = scene.drain()
    drain.advance()
    scene.simulation.cluster.missing.add("list pods")
    scene.simulation.clock.advance(2)
    with pytest.raises(ClusterDenied):
        drain.advance()
    assert not drain.over


def test_a_volume_that_stays_attached_is_no_success():
    scene = Scene()
    scene.simulation.api.add_attachment("data-left", "k8s-2").attached = False
    drain = scene.drain(timeout_s=60.0)
    assert not scene.through(drain)
    assert "1 still attached: data-left" in drain.failed


def test_a_cordon_that_an_admin_made_his_own_meanwhile_is_not_taken_back():
    scene = Scene()
    scene.simulation.api.budgets.append(FOR_EVER)
    drain = scene.drain(timeout_s=30.0)
    drain.advance()
    scene.simulation.api.nodes["k8s-2"].cordoner = "kubectl-cordon"
    scene.touch()
    assert not scene.through(drain)
    assert scene.node().unschedulable


def test_a_cordon_that_cannot_be_taken_back_is_said():
    scene = Scene()
    scene.simulation.api.budgets.append(FOR_EVER)
    drain = scene.drain(timeout_s=10.0)
    drain.advance()
    scene.simulation.cluster.missing.add("patch nodes")
    assert not scene.through(drain)
    assert ("trouble", "not uncordoned: fencer may not patch nodes") in scene.told
    assert drain.cordoned


def test_a_shutdown_waits_for_an_api_that_comes_back():
    scene = Scene()
    turn = ShutdownTurn(
        scene.world, scene.agent, scene.policy, scene.node(), ShutdownOptions(None, 120.0), scene.tell
    )
    turn.advance()
    scene.happen("api_down", "")
    scene.simulation.clock.after(12, lambda: scene.happen("api_up", ""))
    assert Campaign(scene.world, [turn], 1, lambda *_words: None).run()
    assert [what for what, _ in scene.told].count("trouble") >= 1
    assert scene.simulation.guest("k8s-2").power == "stopped"
