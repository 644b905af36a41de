"""Hosts that die with all their guests: one incident each, for the brake, and a bound for hosts."""

from dataclasses import replace

import pytest

from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import ARMED, Scenario, Watcher
from fencer.simulation.stage import Stage
from tests.scenarios.recipes import real_agent

NODES = tuple(f"k8s-{number}" for number in range(1, 10))
HOSTS = ("pve1", "pve2", "pve3")
ONE, TWO = (Watcher(),), (Watcher(), Watcher(from_s=7.3))
TWO_AT_A_TIME = replace(ARMED, max_fenced=2)


def fenced_after(seed, *dead, policy=TWO_AT_A_TIME, watchers=ONE):
    """Let hosts lose their power; return the nodes that are fenced three minutes later."""
    story = Scenario(
        "dead-hosts",
        "",
        (),
        tuple(Fault(40.0, What.HOST_OFF, host, death=True) for host in dead),
        (),
        None,
        duration_s=220.0,
        shape=Shape(nodes=NODES, hosts=HOSTS, watched=True, answer_s=0.1),
        policy=policy,
        watchers=watchers,
        interleaved=True,
    )
    stage = Stage(story, real_agent, seed=seed, strict=True)
    list(stage.play())
    return {name for name, node in stage.simulation.api.nodes.items() if node.out_of_service}


def on(host):
    return set(NODES[HOSTS.index(host) :: len(HOSTS)])


@pytest.mark.parametrize("watchers", [ONE, TWO], ids=["one", "two"])
def test_all_nodes_of_a_dead_host_are_one_incident(watchers):
    """Three nodes, where the brake lets two be fenced."""
    assert fenced_after(0, "pve2", watchers=watchers) == on("pve2")


@pytest.mark.parametrize("seed", range(3))
def test_of_three_hosts_one_may_die(seed):
    fenced = fenced_after(seed, "pve1", "pve3", watchers=TWO)
    assert fenced in [on("pve1"), on("pve3")]


def test_more_may_where_that_is_configured():
    policy = replace(TWO_AT_A_TIME, max_fenced_hosts=2)
    assert fenced_after(0, "pve1", "pve3", policy=policy) == on("pve1") | on("pve3")


ABROAD = (
    Fault(50.0, What.HOST_OFF, "pve2", death=True),
    Fault(175.0, What.STARTED_ABROAD, "k8s-2"),
    Fault(300.0, What.KUBELET_STOP, "k8s-2@elsewhere"),
    Fault(312.0, What.HOST_ON, "pve2"),
)
"""Another tool boots a VM of a dead host where fencer has no endpoint, and there it falls silent."""


@pytest.mark.parametrize("watchers", [ONE, (Watcher(until_s=290.0), Watcher(from_s=291.0))])
def test_a_host_that_is_back_does_not_speak_for_a_vm_that_booted_elsewhere_meanwhile(watchers):
    """It is right that the VM is off there, and the VM runs."""
    shape = Shape(nodes=NODES[:3], hosts=HOSTS, foreign=("elsewhere",))
    story = Scenario(
        "abroad", "", (), ABROAD, (), None, duration_s=700.0, shape=shape, policy=ARMED, watchers=watchers
    )
    stage = Stage(story, real_agent, seed=1, strict=True)
    list(stage.play())
    assert not stage.simulation.api.nodes["k8s-2"].out_of_service
