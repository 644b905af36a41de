"""The control plane's quirks, held against what was measured on a real one."""

import pytest

from fencer.core.model import OUT_OF_SERVICE
from fencer.simulation.controllers import Timing
from fencer.simulation.objects import UNREACHABLE
from fencer.simulation.workloads import DaemonSet, Deployment, Job, StatefulSet
from tests.simulation.worlds import What, happen, names, set_taint_by_hand, warm

DB = StatefulSet("db", 8)


def on(simulation, node):
    return simulation.api.pods_on(node)


def dead(simulation, node="k8s-2", for_s=0.0):
    happen(simulation, What.POWER_OFF, node)
    simulation.clock.advance(for_s)


def test_a_warm_world_has_every_pod_ready_and_every_volume_in_one_place():
    simulation = warm(DB, Deployment("web", 3), DaemonSet("log"), Job("count", 2))
    assert all(pod.ready for pod in simulation.api.pods.values())
    assert sorted(volume for volume, _ in simulation.api.attachments) == [f"data-db-{n}" for n in range(8)]
    assert sum(len(guest.mounts) for guest in simulation.world.guests.values()) == 8
    assert {len(on(simulation, node)) for node in simulation.api.nodes} <= {4, 5, 6}


@pytest.mark.parametrize("seed", range(6))
def test_a_silent_node_is_unknown_after_40_to_55_seconds(seed):
    simulation = warm(seed=seed)
    node = simulation.api.nodes["k8s-2"]
    dead(simulation, for_s=40)
    assert node.ready is True
    simulation.clock.advance(15.1)
    assert node.ready is None
    assert node.tainted(UNREACHABLE, "NoSchedule")
    assert node.tainted(UNREACHABLE, "NoExecute")


def test_a_status_report_without_a_renewal_is_a_sign_of_life_too():
    simulation = warm()
    node = simulation.api.nodes["k8s-2"]
    dead(simulation, for_s=40)
    node.reported = simulation.clock.utc("microseconds")
    simulation.clock.advance(45)
    assert node.ready is True
    simulation.clock.advance(15.1)
    assert node.ready is None


def test_unknown_leaves_alone_when_the_kubelet_last_reported():
    simulation = warm()
    node = simulation.api.nodes["k8s-2"]
    reported = node.reported
    assert reported
    dead(simulation, for_s=60)
    assert (node.ready, node.reported) == (None, reported)


def test_further_silent_nodes_are_tainted_one_in_ten_seconds():
    simulation = warm()
    for node in ("k8s-1", "k8s-2"):
        dead(simulation, node)
    simulation.clock.advance(56)
    tainted = [node.name for node in simulation.api.nodes.values() if node.tainted(UNREACHABLE, "NoExecute")]
    assert len(tainted) == 1
    simulation.clock.advance(10)
    assert all(simulation.api.nodes[name].tainted(UNREACHABLE, "NoExecute") for name in ("k8s-1", "k8s-2"))


def test_nobody_is_evicted_when_every_node_is_silent():
    simulation = warm()
    for node in simulation.api.nodes:
        dead(simulation, node)
    simulation.clock.advance(600)
    assert all(node.ready is None for node in simulation.api.nodes.values())
    assert not any(pod.deleted_s for pod in simulation.api.pods.values())


def test_pods_of_a_dead_node_are_terminating_after_350_seconds_and_stay_so():
    simulation = warm()
    lost = names(on(simulation, "k8s-2"))
    dead(simulation, for_s=340)
    assert not any(pod.deleted_s for pod in on(simulation, "k8s-2"))
    simulation.clock.advance(16)
    assert all(pod.deleted_s for pod in on(simulation, "k8s-2"))
    simulation.clock.advance(3600)
    assert names(on(simulation, "k8s-2")) == lost
    assert {volume for volume, node in simulation.api.attachments if node == "k8s-2"} == {
        f"data-{name}" for name in lost
    }


def test_a_deployment_is_replaced_when_it_is_marked_and_a_statefulset_is_not():
    simulation = warm(DB, Deployment("web", 3))
    dead(simulation, for_s=360)
    web = [pod for pod in simulation.api.pods_of("Deployment/web") if pod.ready]
    assert len(web) == 3
    assert not DB.whole(simulation.api)


def test_a_daemonsets_pod_tolerates_silence_but_not_the_out_of_service_taint():
    simulation = warm(DaemonSet("log"))
    dead(simulation, for_s=400)
    (pod,) = on(simulation, "k8s-2")
    assert pod.deleted_s is None
    set_taint_by_hand(simulation, "k8s-2")
    simulation.clock.advance(1)
    assert pod.deleted_s is not None
    simulation.clock.advance(21)
    assert on(simulation, "k8s-2") == ()


def test_the_taint_on_a_dead_node_lets_podgc_take_its_pods_within_20_seconds():
    simulation = warm()
    dead(simulation, for_s=60)
    set_taint_by_hand(simulation, "k8s-2")
    simulation.clock.advance(20.2)
    assert on(simulation, "k8s-2") == ()
    simulation.clock.advance(20)
    assert DB.whole(simulation.api)


def test_podgc_leaves_pods_alone_while_the_node_is_still_ready():
    simulation = warm()
    dead(simulation)
    set_taint_by_hand(simulation, "k8s-2")
    simulation.clock.advance(30)
    assert simulation.api.nodes["k8s-2"].ready is True
    assert all(pod.deleted_s for pod in on(simulation, "k8s-2"))


def test_the_taint_on_a_living_node_evicts_gracefully():
    simulation = warm()
    set_taint_by_hand(simulation, "k8s-2")
    simulation.clock.advance(25)
    assert on(simulation, "k8s-2") == ()
    assert simulation.guest("k8s-2").mounts == set()


def test_volumes_of_a_tainted_node_are_torn_off_at_once():
    simulation = warm()
    dead(simulation)
    set_taint_by_hand(simulation, "k8s-2")
    for pod in on(simulation, "k8s-2"):
        simulation.api.fail_pod(pod, "by hand")
        simulation.api.delete_pod(pod, force=True)
    simulation.clock.advance(1.2)
    assert not [key for key in simulation.api.attachments if key[1] == "k8s-2"]


def test_without_the_taint_volumes_of_deleted_pods_wait_six_minutes():
    simulation = warm()
    dead(simulation, for_s=60)
    for pod in on(simulation, "k8s-2"):
        simulation.api.fail_pod(pod, "by hand")
        simulation.api.delete_pod(pod, force=True)
    simulation.clock.advance(355)
    assert [key for key in simulation.api.attachments if key[1] == "k8s-2"]
    assert not DB.whole(simulation.api)
    simulation.clock.advance(30)
    assert not [key for key in simulation.api.attachments if key[1] == "k8s-2"]
    assert DB.whole(simulation.api)


def test_podgc_and_attach_detach_believe_a_cache_that_lags():
    """The taint came off, the pod still dies, and its volume is still torn off: kubernetes#142331."""
    simulation = warm(timing=Timing(informer_lag_s=30.0))
    dead(simulation, for_s=60)
    set_taint_by_hand(simulation, "k8s-2")
    simulation.clock.advance(0.1)
    simulation.cluster.untaint(simulation.cluster.fact("k8s-2").node, None)
    simulation.clock.advance(20.2)
    assert on(simulation, "k8s-2") == ()


def test_ordered_ready_replaces_one_after_the_other():
    ordered = StatefulSet("db", 8, parallel=False)
    simulation = warm(ordered)
    dead(simulation, for_s=60)
    set_taint_by_hand(simulation, "k8s-2")
    simulation.clock.advance(20.2)
    made = [pod for pod in simulation.api.pods_of(ordered.owner) if not pod.ready]
    assert len(made) <= 1
    simulation.clock.advance(60)
    assert ordered.whole(simulation.api)


def test_a_finalizer_holds_a_cleared_job_pod_until_it_was_counted():
    simulation = warm(Job("count", 6))
    dead(simulation)
    pod = next(pod for pod in simulation.cluster.pods("k8s-2"))
    cleared = simulation.cluster.clear(pod, "test")
    assert (cleared.gone, cleared.note) == (False, "held by batch.kubernetes.io/job-tracking")
    simulation.clock.advance(5)
    assert pod.uid not in simulation.api.pods


def test_pods_of_a_deleted_node_are_taken_as_orphans_after_40_to_60_seconds():
    simulation = warm(Deployment("web", 6))
    dead(simulation)
    simulation.api.delete_node("k8s-2")
    simulation.clock.advance(39)
    assert on(simulation, "k8s-2")
    simulation.clock.advance(22)
    assert on(simulation, "k8s-2") == ()


def test_a_node_that_comes_back_loses_the_unreachable_taints_but_never_out_of_service():
    simulation = warm()
    dead(simulation, for_s=60)
    set_taint_by_hand(simulation, "k8s-2")
    happen(simulation, What.START, "k8s-2")
    simulation.clock.advance(40)
    assert [taint.key for taint in simulation.api.nodes["k8s-2"].taints] == [OUT_OF_SERVICE]


def test_pods_of_a_node_that_is_back_in_time_restart_in_place():
    simulation = warm()
    before = [pod.uid for pod in on(simulation, "k8s-2")]
    dead(simulation, for_s=5)
    happen(simulation, What.START, "k8s-2")
    simulation.clock.advance(60)
    assert [pod.uid for pod in on(simulation, "k8s-2")] == before
    assert len(simulation.guest("k8s-2").mounts) == len(before)


def test_terminating_pods_are_finished_by_the_node_that_comes_back():
    simulation = warm()
    dead(simulation, for_s=400)
    happen(simulation, What.START, "k8s-2")
    simulation.clock.advance(60)
    assert DB.whole(simulation.api)


def test_new_pods_go_neither_to_tainted_nor_to_cordoned_nodes():
    web = Deployment("web", 3)
    simulation = warm(web)
    simulation.api.nodes["k8s-1"].unschedulable = True
    dead(simulation, for_s=400)
    ready = sorted(pod.node for pod in simulation.api.pods_of(web.owner) if pod.ready)
    assert ready == ["k8s-1", "k8s-3", "k8s-3"]
