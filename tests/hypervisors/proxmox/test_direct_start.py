"""Guests that others start: their hosts repeat "stopped" for ten seconds, and that proves nobody wrong.

A node that renews its lease while its guest reads off proves its hypervisor wrong, and after two of them
nothing is believed any more. So what the cache repeats must never count: only live readings do.
"""

import pytest

from tests.hypervisors.proxmox.nodes import Watch
from tests.support.pve.model import Daemon


@pytest.fixture
def two(home):
    """Two guests that run, each a node, and an agent that has watched them for a minute."""
    watch = Watch(home.pve, home.hypervisor, [home.guest(name) for name in ("k8s-1", "k8s-2")])
    watch.passes(60)
    return watch


def vmids(watch):
    return [kubelet.conf.vmid for kubelet in watch.nodes.kubelets.values()]


def never_contradicted(watch, seconds):
    """Watch on, and hold that no sign of life counts against whoever called these guests off."""
    for done in watch.passes(seconds):
        for item in done.judged.values():
            heard = item.observation.history.heard
            assert heard is None or not heard.renewals, heard
            assert not item.observation.fleet.contradicted_endpoints
    assert all(not kubelet.doubts for kubelet in watch.nodes.kubelets.values())


def off(watch, seconds):
    for vmid in vmids(watch):
        watch.pve.qm.stop(vmid)
    watch.passes(seconds)


def start(watch):
    for vmid in vmids(watch):
        watch.pve.qm.start(vmid)


@pytest.mark.parametrize("off_s", [5, 30, 120])
def test_a_start_by_hand_contradicts_nobody(two, off_s):
    off(two, off_s)
    start(two)
    never_contradicted(two, 60)


def test_nor_does_one_at_once_after_a_stop(two):
    for vmid in vmids(two):
        two.pve.qm.stop(vmid).finish()
    start(two)
    never_contradicted(two, 60)


def test_nor_one_by_ha(home):
    watch = Watch(home.pve, home.hypervisor, [home.guest(name, ha="started") for name in ("k8s-1", "k8s-2")])
    watch.passes(60)
    for vmid in vmids(watch):
        home.pve.crash(vmid)
    never_contradicted(watch, 90)
    assert all(home.pve.runs(vmid) for vmid in vmids(watch))


@pytest.mark.slow
def test_nor_one_on_a_host_whose_statistics_stand_still(two):
    """Their host's pvestatd is dead: the cluster repeats "stopped" for five minutes."""
    off(two, 30)
    two.pve.set_daemon("pve1", "pvestatd", Daemon.DEAD)
    start(two)
    never_contradicted(two, 320)


def test_an_agent_that_begins_to_watch_then_is_not_misled_either(home, two):
    off(two, 30)
    start(two)
    two.pve.clock.advance(4)
    confs = [kubelet.conf for kubelet in two.nodes.kubelets.values()]
    never_contradicted(Watch(home.pve, home.agent(), confs), 60)
