"""What others do to a node while fencer is at it: it keeps to the facts, and to what is its own."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.e2e.gate import Gate, running_gate
from tests.e2e.lab import OUT_OF_SERVICE, UNREACHABLE, Lab, stays
from tests.e2e.operator import SPEED, Operator
from tests.e2e.storage import ATTACHMENTS
from tests.support import PATIENCE_S, wait_until

pytestmark = pytest.mark.usefixtures("sound")

WATCHED_S = 4.0
"""How long a refusal must last: the careful recipe fences within that time after Ready became Unknown."""
PATIENT_S = SPEED * PATIENCE_S
"""A deadline for requests that a gate holds."""


@pytest.fixture
def gate(lab: Lab) -> Iterator[Gate]:
    """What stands between fencer and the API server."""
    with running_gate(lab.cluster) as gate:
        yield gate


@pytest.mark.parametrize("reported", [True, False], ids=["and-reports", "unheard-of"])
def test_a_guest_that_is_started_between_the_proof_and_the_taint(
    lab: Lab, operator: Operator, gate: Gate, afterwards: ExitStack, reported: bool
) -> None:
    """The taint is on its way. Either the node has changed, and it is refused; or it lands, and is all."""
    with operator.watching(operator.configure(gate=gate, call_deadline_s=PATIENT_S)):
        name = lab.busiest()
        lab.wait_settled()
        node, began, writes = lab.nodes[name], len(operator.journal(name)), len(operator.writes())
        boot_id = node.boot_id()
        afterwards.callback(lab.bring_back, name)
        afterwards.callback(node.nic_on)
        gate.let(0)
        node.guest.destroy()
        hold_the_taint_of_a_node_that_nobody_changes_any_more(lab, gate, name)
        if not reported:
            node.nic_off()
        node.guest.start()
        wait_until(lambda: node.boot_id() != boot_id, "new boot")
        if reported:
            wait_until(
                lambda: lab.node(name)["status"]["nodeInfo"]["bootID"] == node.boot_id(),
                "report of the new boot",
            )
        gate.open()
        if reported:
            wait_until(lambda: len(operator.writes()) > writes, "attempt")
            assert operator.writes()[writes]["responseStatus"]["code"] == 409
            stays(lambda: not lab.is_fenced(name), f"{name} is not fenced", for_s=WATCHED_S)
        else:
            wait_until(lambda: lab.is_fenced(name), f"taint of {name}")
            stays(lambda: lab.is_fenced(name), f"{name} is unheard of", for_s=1.0)
            node.nic_on()
            lab.see_back(name)
        lab.wait_whole()
        assert "ClearPods" not in operator.story(name)[began:]


def hold_the_taint_of_a_node_that_nobody_changes_any_more(lab: Lab, gate: Gate, name: str) -> None:
    """Kubernetes writes to a silent node three times; a fence in between is refused, and made again."""
    held = f"PATCH /api/v1/nodes/{name}"
    gate.wait_held(held)
    wait_until(lambda: lab.taints(name) >= UNREACHABLE, f"both of Kubernetes' taints of {name}")
    gate.turn_away()
    gate.wait_held(held)


def test_a_node_that_is_not_ready_and_renews_its_lease_is_left_alone(
    lab: Lab, operator: Operator, afterwards: ExitStack
) -> None:
    """Its kubelet says Ready=False, as when the container runtime is down: it lives, and ends its pods."""
    config = operator.configure()
    with operator.watching(config):
        name = lab.busiest()
        lab.wait_settled()
        node, began, writes = lab.nodes[name], len(operator.journal(name)), len(operator.writes())
        node.runtime_down()
        afterwards.callback(node.runtime_up)
        wait_until(lambda: lab.ready_status(name) == "False", f"Ready=False of {name}")
        wait_until(lambda: "wait/silence_too_short" in operator.story(name)[began:], "decision")
        lab.wait_elsewhere(name)
        by_hand = operator.run("fence", name, "--yes", "-c", str(config))
        assert by_hand.returncode == 1, by_hand
        assert "its guest runs" in by_hand.stdout
        node.runtime_up()
        lab.wait_whole()
        assert len(operator.writes()) == writes


def test_the_out_of_service_taint_of_somebody_else_is_neither_used_nor_taken_off(
    lab: Lab, operator: Operator, afterwards: ExitStack
) -> None:
    """An administrator was quicker; whoever set it takes it off, also long after the node is back."""
    with operator.watching(operator.configure()):
        name = lab.busiest()
        lab.wait_settled()
        node, began, writes = lab.nodes[name], len(operator.journal(name)), len(operator.writes())
        afterwards.callback(lab.drop_taint, name, OUT_OF_SERVICE)
        afterwards.callback(lab.bring_back, name)
        node.guest.destroy()
        lab.add_taint(name, OUT_OF_SERVICE, "NoExecute")
        wait_until(lambda: "refuse/foreign_taint" in operator.story(name)[began:], "refusal")
        lab.wait_elsewhere(name)
        assert len(operator.writes()) == writes
        node.guest.start()
        wait_until(lambda: "healthy/node_healthy" in operator.story(name)[began:], "healthy node")
        stays(lambda: lab.is_fenced(name), "the taint stays", for_s=WATCHED_S)
        assert "fencer.dev/mark" not in lab.annotations(name)
        lab.drop_taint(name, OUT_OF_SERVICE)
        lab.wait_whole()


def test_a_fence_that_an_operator_took_back_is_not_made_again(
    lab: Lab, operator: Operator, afterwards: ExitStack
) -> None:
    """Not for this boot; the mark says so until the node has booted again, and goes then."""
    with operator.watching(operator.configure()):
        name = lab.busiest()
        node, began = lab.nodes[name], len(operator.journal(name))
        afterwards.callback(lab.bring_back, name)
        node.guest.destroy()
        wait_until(lambda: "fenced/pods_cleared" in operator.story(name)[began:], "fence")
        lab.wait_elsewhere(name)
        lab.drop_taint(name, OUT_OF_SERVICE)
        wait_until(lambda: "refuse/taint_taken_off" in operator.story(name)[began:], "refusal")
        stays(lambda: not lab.is_fenced(name), f"{name} is not fenced again", for_s=WATCHED_S)
        taints = [it for it in operator.journal(name)[began:] if it.what == "TaintNode" and it.facts["ok"]]
        assert len(taints) == 1
        node.guest.start()
        wait_until(lambda: "fencer.dev/mark" not in lab.annotations(name), "end of the mark")
        assert not lab.is_cordoned(name)


def test_a_node_that_is_deleted_in_mid_fence_is_cleared_all_the_same(
    lab: Lab, operator: Operator, gate: Gate, afterwards: ExitStack
) -> None:
    """Taint and mark went with it; without fencer its volumes would be held for six minutes."""
    with operator.watching(operator.configure(gate=gate, call_deadline_s=PATIENT_S)):
        name = lab.busiest()
        lab.wait_settled()
        node, began = lab.nodes[name], len(operator.journal(name))
        afterwards.callback(lab.bring_back, name)
        gate.let(1)
        node.guest.destroy()
        gate.wait_held("PATCH /api/v1/namespaces/")
        assert lab.is_fenced(name)
        lab.client.delete(f"/api/v1/nodes/{name}")
        gate.open()
        lab.wait_elsewhere(name)
        assert "DeleteAttachments" in operator.story(name)[began:]
        wait_until(lambda: not lab.look().attached_to(name), f"end of {ATTACHMENTS} of {name}")
        lab.bring_back(name)
        wait_until(lambda: lab.is_ready(name), f"new Node {name}")
        wait_until(lambda: "fencer.dev/binding" in lab.annotations(name), "its binding")
        assert not lab.is_fenced(name)
