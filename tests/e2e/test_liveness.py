"""What could keep a fence from coming, or from going, on a real control plane with real guests."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.e2e.lab import Lab
from tests.e2e.operator import Operator
from tests.e2e.storage import STORAGE_CLASS, create_volumes, volume_name
from tests.e2e.workloads import NAMESPACE
from tests.support import wait_until

pytestmark = pytest.mark.usefixtures("sound")

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
CLAIMS = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
KEEPER = "keeper"


@contextmanager
def one_that_stays(lab: Lab, node: str) -> Iterator[str]:
    """Put a pod on a node that tolerates every taint, with a volume; return the name of that."""
    volume = volume_name(NAMESPACE, KEEPER)
    create_volumes(lab.client, NAMESPACE, [KEEPER])
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": STORAGE_CLASS,
        "volumeName": volume,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    lab.client.post(CLAIMS, {"metadata": {"name": KEEPER}, "spec": spec})
    pod = {
        "nodeName": node,
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": "none"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": KEEPER}}],
    }
    lab.client.post(PODS, {"metadata": {"name": KEEPER, "labels": {"app": KEEPER}}, "spec": pod})
    try:
        yield volume
    finally:
        lab.client.delete(f"{PODS}/{KEEPER}", {"gracePeriodSeconds": 0})
        lab.client.delete(f"{CLAIMS}/{KEEPER}", {})
        lab.client.delete(f"/api/v1/persistentvolumes/{volume}", {})


def test_a_pod_that_tolerates_the_taint_and_its_volume_stay_and_hold_no_fence(
    lab: Lab, operator: Operator, afterwards: ExitStack
) -> None:
    """All others are cleared, and the fence comes off as soon as the guest has booted again."""
    with operator.watching(operator.configure()):
        name = lab.busiest()
        volume = afterwards.enter_context(one_that_stays(lab, name))
        wait_until(lambda: volume in lab.look().attached_to(name), f"{volume} attached to {name}")
        lab.wait_settled()
        began = len(operator.journal(name))
        afterwards.callback(lab.bring_back, name)
        lab.nodes[name].guest.destroy()
        wait_until(lambda: "fenced/pods_cleared" in operator.story(name)[began:], "end of the clearing")
        lab.wait_elsewhere(name)
        assert lab.look().attached_to(name) == {volume}
        lab.nodes[name].guest.start()
        lab.see_back(name)
        lab.wait_whole()
        assert lab.look().attached_to(name) >= {volume}
        assert KEEPER in {pod["metadata"]["name"] for pod in lab.look().on(name)}


def test_an_agent_that_was_restarted_between_death_and_fence_fences_all_the_same(
    lab: Lab, operator: Operator, afterwards: ExitStack
) -> None:
    """Fencing within seconds waits for no silence where the fall was seen; this agent has seen none."""
    config = operator.configure(require_not_ready=False, lease_silent_s=0)
    name = lab.busiest()
    with operator.watching(config):
        lab.wait_settled()
    afterwards.callback(lab.bring_back, name)
    lab.nodes[name].guest.destroy()
    began = len(operator.journal(name))
    with operator.watching(config):
        wait_until(lambda: "wait/fall_unseen" in operator.story(name)[began:], "word of what was not seen")
        wait_until(lambda: lab.is_fenced(name), f"fence of {name}")
        lab.wait_elsewhere(name)
        lab.nodes[name].guest.start()
        lab.see_back(name)
        lab.wait_whole()


def test_a_cordon_that_an_admin_sets_after_the_fence_was_lifted_stays(
    lab: Lab, operator: Operator, afterwards: ExitStack
) -> None:
    """`kubectl uncordon` and `kubectl cordon` leave fencer's own note where it is: who wrote last counts."""
    with operator.watching(operator.configure(settle_s=12.0)):
        name = lab.busiest()
        lab.wait_settled()
        began = len(operator.journal(name))
        afterwards.callback(lab.bring_back, name)
        afterwards.callback(lab.patch_node, name, {"spec": {"unschedulable": None}})
        lab.nodes[name].guest.destroy()
        wait_until(lambda: lab.is_fenced(name), f"fence of {name}")
        lab.nodes[name].guest.start()
        wait_until(lambda: not lab.is_fenced(name), f"end of the fence of {name}")
        assert lab.is_cordoned(name)
        lab.patch_node(name, {"spec": {"unschedulable": None}})
        lab.patch_node(name, {"spec": {"unschedulable": True}})
        wait_until(lambda: "healthy/node_healthy" in operator.story(name)[began:], "healthy node")
        assert lab.is_cordoned(name)
