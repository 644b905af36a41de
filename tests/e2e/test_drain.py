"""`fencer drain`, `shutdown` and `start` as a person types them, on real parts, with fencer's own rights.

The account is the one of ``config/kubernetes/rbac.yaml``, under the admission policy; an armed agent watches
beside the commands, as it would.
"""

import json
from contextlib import ExitStack

import pytest

from tests.e2e.lab import Lab, stays
from tests.e2e.operator import Operator
from tests.e2e.podwatch import budget, pods_watched
from tests.e2e.workloads import DATABASE, DATABASE_PODS, NAMESPACE
from tests.support import wait_until

pytestmark = pytest.mark.usefixtures("sound")

STAYS = {"DaemonSet"}


def movable(lab: Lab, name: str) -> list[str]:
    """Name the pods on a node that a drain has to move."""
    return [
        pod["metadata"]["name"]
        for pod in lab.look().on(name)
        if pod["status"]["phase"] not in {"Succeeded", "Failed"}
        and not STAYS & {owner["kind"] for owner in pod["metadata"].get("ownerReferences", [])}
    ]


def cordon_of(lab: Lab, name: str) -> str:
    """Return by whom fencer's note says that the node is cordoned."""
    note = lab.annotations(name).get("fencer.dev/cordon")
    return str(json.loads(note)["by"]) if note else ""


def test_a_drain_never_goes_below_its_budget_and_start_takes_it_back(lab: Lab, operator: Operator) -> None:
    """Eight replicas, seven must stay: by every single event of a watch, never fewer were healthy."""
    config = operator.configure()
    name = lab.busiest()
    with budget(lab.cluster, NAMESPACE, "db", DATABASE, minAvailable=DATABASE_PODS - 1):
        with pods_watched(lab.cluster, NAMESPACE, DATABASE) as watched:
            done = operator.run("drain", name, "--yes", "--timeout", "600", "-c", str(config))
        assert done.returncode == 0, done
        assert watched.lowest == DATABASE_PODS - 1
    look = lab.look()
    assert (movable(lab, name), look.attached_to(name)) == ([], set())
    assert (lab.is_cordoned(name), cordon_of(lab, name)) == (True, "drain")
    back = operator.run("start", name, "--yes", "-c", str(config))
    assert back.returncode == 0, back
    assert (lab.is_cordoned(name), cordon_of(lab, name)) == (False, "")
    lab.spread_out()


def test_what_no_budget_will_ever_allow_is_said_and_the_cordon_taken_back(
    lab: Lab, operator: Operator
) -> None:
    """A budget of all replicas, or two on one pod: refused. Told to begin: an end in time, or at once."""
    config = operator.configure()
    name = lab.busiest()
    told, c = ("--yes", "--even-if-blocked"), ("-c", str(config))
    with budget(lab.cluster, NAMESPACE, "all-of-it", DATABASE, minAvailable=DATABASE_PODS):
        with pods_watched(lab.cluster, NAMESPACE, DATABASE) as watched:
            refused = operator.run("drain", name, "--yes", *c)
            assert (refused.returncode, "all-of-it" in refused.stdout) == (1, True), refused
            assert cordon_of(lab, name) == ""
            stuck = operator.run("drain", name, *told, "--timeout", "24", *c)
            assert (stuck.returncode, "budget all-of-it needs 8" in stuck.stdout) == (1, True), stuck
            assert not lab.is_cordoned(name)
            with budget(lab.cluster, NAMESPACE, "once-more", DATABASE, minAvailable=1):
                twice = operator.run("drain", name, *told, "--timeout", "600", *c)
            assert (twice.returncode, "more than one budget" in twice.stdout) == (1, True), twice
            assert not lab.is_cordoned(name)
        assert watched.lowest == DATABASE_PODS


@pytest.mark.smoke
def test_a_node_that_was_drained_and_shut_down_leaves_nothing_to_fence(lab: Lab, operator: Operator) -> None:
    """ACPI, a real guest that obeys it; an agent that sees it die keeps its hands off, and says nothing."""
    config = operator.configure()
    with operator.watching(config):
        name = lab.busiest()
        before = {event["metadata"]["uid"] for event in lab.events(name)}
        began = len(operator.journal(name))
        done = operator.run("shutdown", name, "--yes", "--timeout", "600", "-c", str(config))
        assert (done.returncode, "proven off" in done.stdout) == (0, True), done
        assert lab.nodes[name].guest.pid is None
        wait_until(lambda: lab.ready_status(name) == "Unknown", f"silence of {name}")
        stays(lambda: not lab.is_fenced(name), f"{name} is not fenced", for_s=2.0)
        assert {"TaintNode", "ClearPods", "StopGuest"}.isdisjoint(operator.story(name)[began:])

        back = operator.run("start", name, "--yes", "--timeout", "600", "-c", str(config))
        assert back.returncode == 0, back
        assert lab.is_ready(name)
        assert not lab.is_cordoned(name)
    told = [event for event in lab.events(name) if event["metadata"]["uid"] not in before]
    fencers = {(it["type"], it["reason"]): it["message"] for it in told if it["reason"].startswith("Fencer")}
    assert fencers.keys() == {
        ("Normal", "FencerShutdownBegun"),
        ("Normal", "FencerShutDown"),
        ("Normal", "FencerStarted"),
    }
    assert fencers["Normal", "FencerShutdownBegun"].startswith("cordoned for a planned stop by ")
    lab.spread_out()


def test_a_shutdown_that_hangs_is_cut_off_after_its_time_and_what_is_left_fenced(
    lab: Lab, operator: Operator, afterwards: ExitStack
) -> None:
    """The guest's kernel hangs: no ACPI, no kubelet. Without --stop-after it is left alone, and said."""
    config = operator.configure()
    name = lab.busiest()
    afterwards.callback(lab.bring_back, name)
    lab.nodes[name].guest.hang_inside()
    alone = operator.run("shutdown", name, "--yes", "--drain", "none", "--timeout", "16", "-c", str(config))
    assert (alone.returncode, "asked to shut down" in alone.stdout) == (1, True), alone
    assert lab.nodes[name].guest.pid is not None
    assert not lab.is_fenced(name)

    words = ("--drain", "none", "--stop-after", "12", "--timeout", "600")
    done = operator.run("shutdown", name, "--yes", *words, "-c", str(config))
    assert (done.returncode, "left over" in done.stdout) == (0, True), done
    assert lab.nodes[name].guest.pid is None
    assert lab.is_fenced(name)
    lab.wait_elsewhere(name)

    back = operator.run("start", name, "--yes", "--timeout", "600", "-c", str(config))
    assert back.returncode == 0, back
    assert (lab.is_fenced(name), lab.is_cordoned(name)) == (False, False)
    wait_until(lambda: not lab.missing(), "whole cluster")
