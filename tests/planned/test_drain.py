"""One node's drain, step by step: what overtakes it, and what it must never do then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, repeat
from types import SimpleNamespace

import pytest

from fencer.core import annotations as written
from fencer.core.model import Cordon, PodView
from fencer.errors import ClusterDenied, ClusterUnreachable
from fencer.evicting.answers import Answer
from fencer.planned.campaign import Campaign, Replacements
from fencer.planned.drain import DrainOptions, NodeDrain
from fencer.planned.turns import DrainTurn, ShutdownOptions, ShutdownTurn
from fencer.runtime.reconcile import Agent
from fencer.runtime.world import World
from fencer.simulation.objects import ApiBudget, ApiPod
from fencer.simulation.workloads import Deployment, Workload
from tests.runtime.stagehand import Stagehand

FOR_EVER = ApiBudget("demo", "db", "StatefulSet/db", 4)


class Otherwise:
    """A port of which some methods do something else."""

    def __init__(self, port, other) -> None:
        self._port, self._other = port, other

    def __getattr__(self, name: str):
        return getattr(self._other, name, None) or getattr(self._port, name)


class Scene(Stagehand):
    """A node to be drained, and all that is told of it."""

    def __init__(self, *more: Workload) -> None:
        super().__init__(more=more)
        self.told: list[tuple[str, str]] = []
        self.world = replace(self.world, evictor=self.simulation.cluster)

    def tell(self, _node: str, what: str, detail: str) -> None:
        self.told.append((what, detail))

    def drain(self, world: World | None = None, **options) -> NodeDrain:
        world = world or self.world
        agent = Agent(world, self.policy, self.simulation.rules())
        return NodeDrain(world, agent, "k8s-2", DrainOptions(**options), self.tell)

    def evictions(self, controller: str) -> list[PodView]:
        """From now on keep the pods of a controller whose eviction is asked for."""
        asked: list[PodView] = []
        evict = self.world.evictor.evict

        def keep(pod: PodView, grace_s: float | None = None) -> Answer:
            asked.extend([pod] if pod.controller == controller else [])
            return evict(pod, grace_s)

        self.world = replace(
            self.world,
            evictor=SimpleNamespace(evict=keep, pods_in=self.world.evictor.pods_in),
        )
        return asked

    def through(self, drain: NodeDrain, *, keep_cordon: bool = False) -> bool:
        turn = DrainTurn(self.node(), drain, keep_cordon=keep_cordon)
        return Campaign(self.world, [turn], 1, lambda *_words: None).run()

    def place(self, name: str, owner: str = "", **facts) -> ApiPod:
        api = self.simulation.api
        pod = ApiPod("demo", name, api.new_uid(), owner, api.clock.now_s(), node="k8s-2", **facts)
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
        "demo/bare: no controller would recreate it (--force evicts it, for good)",
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
    assert scene.calls.count("uncordon") == 2, "one failure may pass, two do not"
    assert drain.cordoned


# -- whom it moves ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trait", "why", "turns"),
    [
        ({"tolerates_cordon": True}, "tolerates the cordon", 1),
        ({"named_node": "k8s-2"}, "is bound here past the cordon", 3),
    ],
    ids=["tolerates the cordon", "its template names the node"],
)
def test_a_drain_ends_whatever_comes_back(trait, why, turns):
    """With the shape of cilium-operator: each eviction makes a pod that comes to this very node."""
    scene = Scene(Deployment("operator", 6, **trait))
    first = [pod for pod in scene.simulation.api.pods_on("k8s-2") if pod.owner == "Deployment/operator"]
    asked = scene.evictions("Deployment/operator")
    drain = scene.drain(timeout_s=600.0)
    assert scene.through(drain), scene.told
    assert len(first) <= len(asked) <= turns * len(first)
    back = [detail for what, detail in scene.told if what == "comes back"]
    left = [pod for pod in scene.simulation.api.pods_on("k8s-2") if pod.owner == "Deployment/operator"]
    assert back == [f"demo/{pod.name}: {why}; left where it is" for pod in left]
    assert left
    assert f"{len(left)} pod" in next(detail for what, detail in scene.told if what == "drained")


def test_a_volume_of_one_that_came_back_is_not_waited_for():
    scene = Scene()
    drain = scene.drain(timeout_s=60.0)
    drain.advance()
    scene.place("back", owner="StatefulSet/back", volume="data-back", tolerates_cordon=True)
    scene.simulation.api.add_attachment("data-back", "k8s-2").attached = True
    assert scene.through(drain), drain.failed


def test_a_pod_whose_own_spec_gives_it_no_time_is_there_until_its_container_has_ended():
    """Gone from the API at once, its StatefulSet would start the next one beside it."""
    scene = Scene()
    api = scene.simulation.api
    pods = [pod for pod in api.pods_on("k8s-2") if pod.owner == "StatefulSet/db"]
    for pod in pods:
        pod.grace_s = 0.0
    drain = scene.drain()
    drain.advance()
    assert pods
    assert all(pod.uid in api.pods and pod.deleted_s is not None for pod in pods)
    assert scene.through(drain)


# -- whose cordon it is -------------------------------------------------------------------------------------


def test_a_second_drain_that_fails_leaves_the_first_ones_cordon():
    scene = Scene()
    assert scene.through(scene.drain())
    scene.place("bare", owner="ReplicaSet/bare", phase="Running", ready=True)
    scene.simulation.api.budgets.append(ApiBudget("demo", "bare", "ReplicaSet/bare", 9))
    second = scene.drain(timeout_s=20.0)
    assert not scene.through(second)
    assert scene.node().unschedulable
    assert scene.node().cordon.by == "drain"


def test_a_failing_drain_from_outside_leaves_the_guests_own_cordon():
    scene = Scene()
    node = scene.simulation.api.nodes["k8s-2"]
    note = written.write_cordon(Cordon("drain", node.boot_id, scene.simulation.api.clock.utc()))
    node.unschedulable, node.cordoner, node.annotations[written.CORDON] = True, "fencer-guest", note
    scene.touch()
    scene.simulation.api.budgets.append(FOR_EVER)
    assert not scene.through(scene.drain(timeout_s=20.0))
    assert scene.node().unschedulable


def test_two_drains_of_one_second_know_their_cordons_apart():
    """One conflicts, looks again, and finds a cordon with the same words; when it fails, that stays."""
    scene = Scene()
    first, second = scene.drain(), scene.drain(timeout_s=20.0)
    scene.before["cordon"] = first.begin
    scene.simulation.api.budgets.append(FOR_EVER)
    assert not scene.through(second)
    assert scene.node().unschedulable


def test_a_cordon_whose_answer_was_lost_is_taken_back_all_the_same():
    scene = Scene()
    cordon = scene.simulation.cluster.cordon

    def lose(node, note) -> None:
        cordon(node, note)
        raise ClusterUnreachable("no answer within 10 s")

    scene.simulation.api.budgets.append(FOR_EVER)
    cluster = SimpleNamespace(cordon=lose)
    world = replace(scene.world, cluster=Otherwise(scene.world.cluster, cluster))
    drain = scene.drain(world, timeout_s=20.0)
    assert not scene.through(drain)
    assert ("cordoned", "though no answer came") in scene.told
    assert not scene.node().unschedulable


def test_a_cordon_that_ctrl_c_overtook_is_taken_back():
    """Pressed because the API is slow: what was under way is done all the same."""
    scene = Scene()
    cordon = scene.simulation.cluster.cordon

    def press(node, note) -> None:
        cordon(node, note)
        raise KeyboardInterrupt

    world = replace(scene.world, cluster=Otherwise(scene.world.cluster, SimpleNamespace(cordon=press)))
    turn = DrainTurn(scene.node(), scene.drain(world), keep_cordon=False)
    campaign = Campaign(world, [turn], 1, lambda *_words: None)
    with pytest.raises(KeyboardInterrupt):
        campaign.run()
    campaign.break_off()
    assert turn.given_back
    assert not scene.node().unschedulable


def test_an_api_that_is_lost_with_the_answer_leaves_no_cordon_behind():
    scene = Scene()
    cordon, nodes = scene.simulation.cluster.cordon, scene.simulation.cluster.nodes
    looks = []

    def lose(node, note) -> None:
        cordon(node, note)
        looks.append("lost")
        raise ClusterUnreachable("no answer within 10 s")

    def look():
        if looks and looks[-1] == "lost":
            looks.append("back")
            raise ClusterUnreachable("no answer within 10 s")
        return nodes()

    other = SimpleNamespace(cordon=lose, nodes=look)
    world = replace(scene.world, cluster=Otherwise(scene.world.cluster, other))
    turn = DrainTurn(scene.node(), scene.drain(world), keep_cordon=False)
    campaign = Campaign(world, [turn], 1, lambda *_words: None)
    with pytest.raises(ClusterUnreachable):
        campaign.run()
    campaign.break_off()
    assert turn.given_back
    assert not scene.node().unschedulable


def test_a_note_that_nobody_can_read_beside_no_cordon_keeps_none_standing():
    """It is about nothing: `kubectl uncordon` left it, or a kubelet wrote it."""
    scene = Scene()
    scene.simulation.api.nodes["k8s-2"].annotations[written.CORDON] = '{"schema": 9}'
    scene.touch()
    scene.simulation.api.budgets.append(FOR_EVER)
    assert not scene.through(scene.drain(timeout_s=10.0))
    assert not scene.node().unschedulable


@pytest.mark.parametrize("by", ["unfence", "hook"])
def test_what_the_agent_would_have_taken_off_is_left_to_it_again(by):
    scene = Scene()
    node = scene.simulation.api.nodes["k8s-2"]
    before = Cordon(by, node.boot_id, scene.simulation.api.clock.utc())
    node.unschedulable, node.cordoner = True, "fencer"
    node.annotations[written.CORDON] = written.write_cordon(before)
    scene.touch()
    scene.simulation.api.budgets.append(FOR_EVER)
    turn = DrainTurn(scene.node(), scene.drain(timeout_s=2.0), keep_cordon=False)
    assert not Campaign(scene.world, [turn], 1, scene.tell).run()
    assert scene.node().unschedulable
    assert scene.node().cordon == before
    assert not turn.given_back, "nobody is told that the node takes pods"


def test_a_kubelet_that_writes_amid_the_giving_back_does_not_keep_the_cordon_standing():
    scene = Scene()
    scene.simulation.api.budgets.append(FOR_EVER)
    times = iter(range(3))

    def write() -> None:
        if next(times, None) is not None:
            scene.touch()
            scene.before["uncordon"] = write

    scene.before["uncordon"] = write
    assert not scene.through(scene.drain(timeout_s=2.0))
    assert scene.calls.count("uncordon") == 4, "a conflict is no failure"
    assert not scene.node().unschedulable


def test_a_cordon_that_comes_after_all_is_still_this_drains_to_take_back():
    """No answer came, and no cordon stood when it was to be taken back: the request was still on its way."""
    scene = Scene()
    cordon = scene.simulation.cluster.cordon
    late = []

    def lose(node, note) -> None:
        late.append((node, note))
        raise ClusterUnreachable("no answer within 10 s")

    world = replace(scene.world, cluster=Otherwise(scene.world.cluster, SimpleNamespace(cordon=lose)))
    turn = DrainTurn(scene.node(), scene.drain(world), keep_cordon=False)
    assert not Campaign(world, [turn], 1, scene.tell).run()
    assert not turn.given_back, "nobody is told that the node takes pods"
    cordon(*late[-1])
    turn.withdraw()
    assert (turn.given_back, scene.node().unschedulable) == (True, False)


@pytest.mark.parametrize("waits", [False, True])
def test_a_node_that_somebody_uncordons_meanwhile_is_not_called_drained(waits):
    """The first drain failed, and took its cordon off; or a person wants an end. Pods come back to it."""
    scene = Scene()
    scene.simulation.api.budgets += [FOR_EVER] if waits else []
    drain = scene.drain(timeout_s=600.0)
    drain.advance()
    node = scene.simulation.api.nodes["k8s-2"]
    node.unschedulable, node.cordoner = False, ""
    scene.touch()
    assert not scene.through(drain)
    assert drain.failed == "it was uncordoned meanwhile, by somebody else"
    assert scene.simulation.clock.now_s() < 300


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


# -- several nodes ------------------------------------------------------------------------------------------


def turns(scene: Scene, *names: str) -> list[ShutdownTurn]:
    options = ShutdownOptions(DrainOptions(timeout_s=300.0), 300.0)
    agent = Agent(scene.world, scene.policy, scene.simulation.rules())
    return [
        ShutdownTurn(scene.world, agent, scene.policy, scene.node(name), options, scene.tell)
        for name in names
    ]


def one_after_the_other(scene: Scene, *names: str) -> Campaign:
    """Shutdowns of nodes, each when the pods of the last are back; all are cordoned."""
    agent = Agent(scene.world, scene.policy, scene.simulation.rules())
    waits = Replacements(scene.world, agent)
    options = DrainOptions(timeout_s=300.0)
    campaign = Campaign(scene.world, turns(scene, *names), 1, scene.tell, waits, options, 300.0)
    campaign.prepare()
    return campaign


def several(scene: Scene, *names: str) -> bool:
    """Shut nodes down one after the other."""
    campaign = one_after_the_other(scene, *names)
    went = campaign.run()
    assert went, (campaign.stuck, [turn.failed for turn in campaign.ended], scene.told)
    return went


@pytest.mark.parametrize("trait", [{"tolerates_cordon": True}, {"named_node": "k8s-2"}])
def test_several_are_shut_down_though_pods_come_back_to_each(trait):
    """What is left on them is cleared, once they are proven off: that is no crash, and no brake is for it."""
    scene = Scene(Deployment("operator", 6, **trait))
    assert several(scene, "k8s-2", "k8s-3")
    assert [scene.simulation.guest(name).power for name in ("k8s-2", "k8s-3")] == ["stopped"] * 2


@pytest.mark.parametrize("way", ["a bare pod comes", "the right to cordon is lost"])
def test_a_node_that_cannot_be_drained_as_all_are_cordoned_is_not_shut_down(way):
    """While the person reads the question. No node is drained, and each is as it was."""
    scene = Scene()
    if way == "a bare pod comes":
        bare = scene.place("bare", phase="Running", ready=True)
        bare.node = "k8s-3"
        scene.simulation.api.changed(bare)
    else:
        scene.simulation.cluster.missing.add("patch nodes")
    them = turns(scene, "k8s-2", "k8s-3")
    campaign = Campaign(scene.world, them, 1, scene.tell)
    campaign.prepare()
    assert not campaign.run()
    guests = [scene.simulation.guest(name).power for name in ("k8s-2", "k8s-3")]
    assert guests == ["running"] * 2
    assert all(pod.deleted_s is None for pod in scene.simulation.api.pods.values())
    assert not any(node.unschedulable for node in scene.simulation.api.nodes.values())


def test_a_lost_answer_to_the_giving_back_is_looked_after():
    scene = Scene()
    scene.simulation.api.budgets.append(FOR_EVER)
    uncordon = scene.simulation.cluster.uncordon

    def lose(node) -> None:
        uncordon(node)
        raise ClusterUnreachable("no answer within 10 s")

    world = replace(scene.world, cluster=Otherwise(scene.world.cluster, SimpleNamespace(uncordon=lose)))
    turn = DrainTurn(scene.node(), scene.drain(world, timeout_s=5.0), keep_cordon=False)
    assert not Campaign(world, [turn], 1, lambda *_words: None).run()
    assert (turn.given_back, turn.drain.cordoned, scene.node().unschedulable) == (True, False, False)


def losing(scene: Scene, lost: Iterator[bool]) -> None:
    """Have the API not tell of namespaces as often as that, in turn."""
    pods_in = scene.world.evictor.pods_in

    def answer(namespace: str):
        if next(lost):
            raise ClusterUnreachable("no answer within 10 s")
        return pods_in(namespace)

    evictor = Otherwise(scene.world.evictor, SimpleNamespace(pods_in=answer))
    scene.world = replace(scene.world, evictor=evictor)


def test_an_api_that_is_lost_while_replacements_are_waited_for_ends_nothing():
    """As after a control-plane node was drained."""
    scene = Scene()
    losing(scene, chain([False, True, True], repeat(False)))
    assert several(scene, "k8s-2", "k8s-3")
    assert ("trouble", "no answer within 10 s") in scene.told


@pytest.mark.parametrize("told_of", [0, 1])
def test_one_that_is_lost_for_good_is_not_waited_for_longer_than_pods_are(told_of):
    """Before the first node, and between two. What was not begun is as it was."""
    scene = Scene()
    losing(scene, chain([False] * told_of, repeat(True)))
    campaign = one_after_the_other(scene, "k8s-2", "k8s-3")
    assert not campaign.run()
    assert campaign.stuck == "after 5m00s, no answer within 10 s"
    begun = ["k8s-2", "k8s-3"][:told_of]
    for name in ("k8s-2", "k8s-3"):
        assert scene.simulation.guest(name).power == ("stopped" if name in begun else "running")
        assert scene.node(name).unschedulable == (name in begun)
