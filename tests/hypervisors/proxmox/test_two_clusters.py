"""Two Proxmox clusters as two endpoints, whose hosts and numbers are the same, as those of beginners are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencer.contract.deadlines import order
from fencer.core.identity import Admission, Directory, Rules
from fencer.core.model import Binding, Doubt, Doubted, NodeView, PowerState
from fencer.errors import GuestNotFound, HypervisorProtocol
from tests.hypervisors.proxmox.conftest import Home
from tests.hypervisors.proxmox.finality import final
from tests.support.pve import Clock, PveCluster, PveServers

BOOT = "boot-1"


class Barn(Home):
    """The other cluster: the endpoint "barn"."""

    def settings(self, **changes):
        return replace(super().settings(**changes), name="barn")

    def ref(self, conf):
        return replace(super().ref(conf), endpoint="barn")


@pytest.fixture
def clusters(tmp_path):
    """The clusters "lab" and "barn", each of pve1, pve2, pve3, with a guest 101 on its pve1."""
    clock = Clock()
    folders = tmp_path / "lab", tmp_path / "barn"
    for folder in folders:
        folder.mkdir()
    lab, barn = PveCluster("lab", clock=clock), PveCluster("barn", clock=clock)
    with PveServers(lab, folders[0]) as one, PveServers(barn, folders[1]) as two:
        homes = Home(lab, one, folders[0]), Barn(barn, two, folders[1])
        yield homes
        for home in homes:
            home.close()


@pytest.fixture
def pair(clusters):
    """A guest 101 in each."""
    lab, barn = clusters
    return lab.guest("k8s-1", vmid=101), barn.guest("k8s-2", vmid=101)


def found(clusters, node, rules=None):
    readings = [it for home in clusters for it in home.hypervisor.sweep()]
    guests = (it.guest for it in readings)
    directory = Directory(guests, (node,), rules or Rules(), {"home", "barn"}, readings)
    return [(it.guest.endpoint, it.guest.id, it.admitted_by) for it in directory.candidates(node)]


def node(conf, *, binding=None):
    return NodeView("k8s-1", "uid-1", conf.uuid, BOOT, ready=True, version="1", binding=binding)


def test_each_node_is_the_guest_with_its_uuid_whatever_number_it_shares(clusters, pair):
    ours, theirs = pair
    assert found(clusters, node(ours)) == [("home", "101", ())]
    assert found(clusters, node(theirs)) == [("barn", "101", ())]


def test_the_end_of_one_is_not_the_end_of_the_other(clusters, pair):
    lab, barn = clusters
    ours, theirs = pair
    lab.watch(4)
    barn.watch(4)
    lab.pve.crash(ours.vmid)
    lab.pve.clock.advance(5)
    assert (final(lab.read(ours)), barn.read(theirs).power_state) == (True, PowerState.RUNNING)
    with pytest.raises(GuestNotFound):
        barn.hypervisor.read(replace(lab.ref(ours), endpoint="barn"))


def test_an_order_to_one_touches_the_other_in_no_way(clusters, pair):
    lab, barn = clusters
    ours, theirs = pair
    with pytest.raises(GuestNotFound):
        order(barn.hypervisor.stop, replace(lab.ref(ours), endpoint="barn"))
    order(lab.hypervisor.stop, lab.ref(ours))
    assert (lab.pve.runs(ours.vmid), barn.pve.runs(theirs.vmid)) == (False, True)


def test_each_speaks_under_its_own_name_so_that_a_doubt_of_one_is_none_of_the_other(clusters, pair):
    lab, barn = clusters
    ours = lab.read(pair[0])
    theirs = barn.read(replace(pair[1]))
    assert (ours.witness, theirs.witness) == ("proxmox:lab", "proxmox:barn")
    doubt = Doubt(Doubted.CONTRADICTED, ours.guest, ours.witness, "fencer", "2026-11-20T10:00:00Z")
    assert doubt.means(ours)
    assert not doubt.means(replace(theirs, guest=replace(theirs.guest, uuid=ours.guest.uuid)))


def test_servers_of_the_one_under_the_name_of_the_other_are_not_believed(clusters):
    lab, barn = clusters
    with pytest.raises(HypervisorProtocol, match="belongs to the cluster barn, not to lab"):
        lab.agent(servers=tuple(barn.api.urls), token_file=barn.token_file).sweep()


def test_power_is_admitted_by_the_tag_in_the_cluster_that_the_tag_was_given_for(clusters, pair):
    ours, theirs = pair
    ours.tags = theirs.tags = ("fencer",)
    rules = Rules(admitted={"barn": Admission(groups=frozenset({"tag:fencer"}))})
    assert found(clusters, node(ours), rules) == [("home", "101", ())]
    assert found(clusters, replace(node(theirs), approved=theirs.uuid), rules) == [
        ("barn", "101", ("tag:fencer",))
    ]


def test_a_guest_that_moved_from_one_to_the_other_is_a_candidate_of_both_and_off_in_neither(clusters):
    """What it left behind has its number, its UUID and its tags."""
    lab, barn = clusters
    conf = lab.guest("k8s-1", vmid=101, tags=("fencer",))
    lab.watch(4)
    assert lab.pve.qm.remote_migrate(101, to=barn.pve, node="pve1").finish() == "OK"
    lab.pve.set_lock(101, None)
    lab.pve.clock.advance(20)
    bound = node(conf, binding=Binding(lab.ref(conf), (BOOT,)))
    assert found(clusters, bound) == [("home", "101", ()), ("barn", "101", ())]
    left, arrived = lab.read(conf), barn.read(barn.pve.confs[101])
    assert (left.power_state, left.away) == (PowerState.UNKNOWN, True)
    assert (arrived.power_state, arrived.guest.uuid) == (PowerState.RUNNING, conf.uuid)
    barn.pve.crash(101)
    lab.pve.clock.advance(5)
    assert final(barn.read(barn.pve.confs[101]))
    assert not final(lab.read(conf))
