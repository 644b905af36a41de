"""A fence that is interrupted, on real parts: what is half done is finished, and nothing is done twice."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.binaries import API_SERVER, CONTROLLER_MANAGER
from tests.e2e.gate import Gate, running_gate
from tests.e2e.lab import Lab
from tests.e2e.operator import Operator
from tests.support import wait_until

pytestmark = pytest.mark.usefixtures("sound")

AGENTS_BOUND = 40


@pytest.fixture
def gate(lab: Lab) -> Iterator[Gate]:
    """What stands between fencer and the API server."""
    with running_gate(lab.cluster) as gate:
        yield gate


def test_agents_that_are_killed_after_a_write_or_two_finish_what_one_would(
    lab: Lab, operator: Operator, gate: Gate, afterwards: ExitStack
) -> None:
    """The cluster is left half done after each write of a fence, and each time a new agent comes.

    None of them knows more than what it reads. By turns they are killed after one write and after two (a pod
    is failed, a pod is deleted), before they learn that it was done and when they are about to send the next.
    Kubernetes' own controllers stand still while pods are cleared: they would do it in fencer's place.
    """
    config = operator.configure(gate=gate, clear_parallel=1)
    with operator.watching(config) as agent:
        name = lab.busiest()
        lab.wait_settled()
        node, writes, began = lab.nodes[name], len(operator.writes()), len(operator.journal(name))
        boot_id, pods_count = node.boot_id(), len(lab.look().living_on(name))
        afterwards.callback(lab.bring_back, name)
        gate.let(0)
        node.guest.destroy()
        gate.wait_held(f"PATCH /api/v1/nodes/{name}")
        lab.cluster.freeze_component(CONTROLLER_MANAGER)
        afterwards.callback(lab.cluster.thaw_component, CONTROLLER_MANAGER)
        agent.kill()
        gate.turn_away()
    killed = kill_agents_in_turn(
        operator, gate, config, lambda: "fenced/releasing_volumes" in operator.story(name)[began:]
    )
    assert killed >= pods_count, "after the taint, and in the midst of each pod but the last"
    lab.cluster.thaw_component(CONTROLLER_MANAGER)
    lab.wait_elsewhere(name)
    node.guest.start()

    def over() -> bool:
        known = json.loads(lab.annotations(name)["fencer.dev/binding"])["bootIDs"]
        return node.boot_id() != boot_id and node.boot_id() in known and not lab.is_cordoned(name)

    assert kill_agents_in_turn(operator, gate, config, over), "one at least after the end of the taint"
    assert not lab.is_fenced(name)
    check_that_nothing_was_done_twice(operator.writes()[writes:], name)


def kill_agents_in_turn(operator: Operator, gate: Gate, config: Path, over: Callable[[], bool]) -> int:
    """Run one agent after the other until one has nothing to write any more; return how many were killed."""
    for killed in range(AGENTS_BOUND):
        gate.let(1 + killed % 2, keep_answer=killed % 4 < 2)
        with operator.watching(config) as agent:
            wait_until(lambda: gate.held or over(), "write, or an end of all writes")
            if not gate.held:
                gate.open()
                return killed
            agent.kill()
            gate.turn_away()
    raise AssertionError(f"not over after {AGENTS_BOUND} agents")


def test_a_death_while_the_api_server_is_down_is_found_afterwards(
    lab: Lab, operator: Operator, afterwards: ExitStack
) -> None:
    """Nothing is queued, nothing is lost: when the API is back, every node is judged from the beginning."""
    with operator.watching(operator.configure()) as watch:
        name = lab.busiest()
        afterwards.callback(lab.bring_back, name)
        lab.cluster.stop_component(API_SERVER)
        try:
            lab.nodes[name].guest.destroy()
            wait_until(lambda: "cannot" in watch.log or "refused" in watch.log, "complaint about the API")
        finally:
            lab.cluster.start_component(API_SERVER)
        wait_until(lambda: lab.is_fenced(name), "fence")
        lab.wait_elsewhere(name)
        lab.see_back(name)


def check_that_nothing_was_done_twice(writes: list[dict[str, Any]], name: str) -> None:
    """One taint and one end of it, one cordon and one end of it; no pod was failed or deleted twice."""
    done = [write for write in writes if write["responseStatus"]["code"] < 300]
    to_nodes = [write for write in done if write["objectRef"]["resource"] == "nodes"]
    assert {write["objectRef"]["name"] for write in to_nodes} == {name}
    notes = [write["requestObject"]["metadata"]["annotations"] for write in to_nodes]
    for key in ("fencer.dev/mark", "fencer.dev/cordon"):
        assert [note[key] is not None for note in notes if key in note] == [True, False], notes
    to_pods = Counter(
        (write["verb"], pod_uid(write)) for write in done if write["objectRef"]["resource"] == "pods"
    )
    assert to_pods
    assert set(to_pods.values()) == {1}, to_pods


def pod_uid(write: dict[str, Any]) -> str:
    """Return which pod a write was about."""
    sent = write["requestObject"]
    return str((sent.get("preconditions") or sent["metadata"])["uid"])
