"""Tags and pools: what a guest is counted among, by which rights, and what becomes of one that has left."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fencer.contract.deadlines import order
from fencer.core.identity import Admission
from fencer.core.model import PowerState
from fencer.errors import HypervisorDenied
from fencer.hypervisors.proxmox.groups import hidden_pools, read_groups
from fencer.hypervisors.proxmox.parse import read_listing
from tests.support.pve.cluster import RIGHTS
from tests.support.pve.recordings import recordings

POOL = "Pool.Audit"


@pytest.mark.parametrize(
    ("tags", "pool", "groups"),
    [
        ("fencer", None, {"tag:fencer"}),
        ("fencer;web", "", {"tag:fencer", "tag:web"}),
        ("a, b;;c  d;", None, {"tag:a", "tag:b", "tag:c", "tag:d"}),
        ("Fencer", None, {"tag:Fencer"}),
        (" ", "k8s", {"pool:k8s"}),
        (None, "k8s/lab/a", {"pool:k8s", "pool:k8s/lab", "pool:k8s/lab/a"}),
        (17, ["k8s"], set()),
        (None, None, set()),
    ],
)
def test_tags_and_pools_are_read_as_proxmox_means_them(tags, pool, groups):
    assert read_groups(tags, pool) == groups


RECORDED = recordings() / "02-lock-suspended-resources.json"


@pytest.mark.skipif(not RECORDED.is_file(), reason="no recordings of the real API")
def test_the_tags_of_a_recorded_guest_are_found():
    recorded = json.loads(RECORDED.read_text())
    row = read_listing(recorded["body"]["data"]).rows[100]
    assert row.groups == {"tag:fencer", "tag:k8s"}


@pytest.mark.parametrize(
    ("rights", "hidden"),
    [
        ({}, ("k8s/lab",)),
        ({"/": {POOL: True}}, ()),
        ({"/": {POOL: False}}, ("k8s/lab",)),
        ({"/pool/k8s": {POOL: True}}, ()),
        ({"/pool/k8s": {POOL: False}}, ("k8s/lab",)),
        ({"/pool/k8s/lab": {POOL: False}}, ()),
        ({"/": {POOL: True}, "/pool/k8s/lab": {"VM.PowerMgmt": True}}, ("k8s/lab",)),
        ({"/pool/k8": {POOL: True}}, ("k8s/lab",)),
    ],
)
def test_a_pool_is_hidden_from_a_token_without_the_right_on_it(rights, hidden):
    assert hidden_pools(rights, {"pool:k8s/lab", "tag:fencer"}) == hidden


def test_sweeps_and_readings_tell_the_groups_of_each_guest_in_every_state(home):
    home.pve.access.grant(home.pve.token, "/", (*RIGHTS, POOL))
    conf = home.guest(tags=("fencer",), pool="k8s/lab")
    other = home.guest("k8s-2")
    all_ = {"tag:fencer", "pool:k8s", "pool:k8s/lab"}
    assert (home.told(conf).groups, home.read(conf).groups) == (all_, all_)
    assert (home.told(other).groups, home.read(other).groups) == (set(), set())
    home.pve.qm.stop(conf.vmid).finish()
    assert (home.read(conf).power_state, home.read(conf).groups) == (PowerState.STOPPED, all_)
    home.pve.host_dies("pve1")
    home.pve.clock.advance(20)
    assert (home.told(conf).power_state, home.told(conf).groups) == (PowerState.UNKNOWN, all_)


def test_a_guest_that_left_its_pool_is_in_it_no_more_whatever_was_read_before(home):
    home.pve.access.grant(home.pve.token, "/", (*RIGHTS, POOL))
    conf = home.guest(tags=("fencer",), pool="k8s")
    assert home.told(conf).groups == {"tag:fencer", "pool:k8s"}
    conf.pool, conf.tags = None, ()
    assert (home.told(conf).groups, home.read(conf).groups) == (set(), set())


def test_without_pool_audit_no_guest_is_in_any_pool(home):
    conf = home.guest(pool="k8s", tags=("fencer",))
    assert home.told(conf).groups == {"tag:fencer"}
    (remark,) = home.agent(power=Admission(groups=frozenset({"pool:k8s", "tag:fencer"}))).describe().remarks
    assert "pool k8s, but the token lacks Pool.Audit on /pool/k8s" in remark
    home.pve.access.grant(home.pve.token, "/pool", (*RIGHTS, POOL))
    assert home.told(conf).groups == {"tag:fencer", "pool:k8s"}
    assert home.agent(power=Admission(groups=frozenset({"pool:k8s"}))).describe().remarks == ()


def test_a_deleted_guest_does_not_inherit_the_groups_of_the_next_one_under_its_number(home):
    conf = home.guest()
    home.watch(4)
    home.pve.qm.stop(conf.vmid).finish()
    old = replace(home.ref(conf))
    home.pve.qm.destroy(conf.vmid).finish()
    home.guest("web", vmid=conf.vmid, tags=("fencer",))
    home.watch(4)
    gone = home.hypervisor.read(old)
    assert (gone.power_state, gone.groups) == (PowerState.ABSENT, set())


def test_power_granted_on_a_pool_reaches_its_guests_and_those_below_it_and_no_others(home):
    """What `pveum acl modify /pool/k8s` gives is what `pool: k8s` admits."""
    rights = {"/": ("Sys.Audit", "VM.Audit"), "/pool/k8s": ("VM.Audit", "VM.PowerMgmt", POOL)}
    home.pve.access.add_token("pool@pve!tk", home.pve.secret, rights)
    agent = home.agent(token_id="pool@pve!tk", power=Admission(groups=frozenset({"pool:k8s"})))  # noqa: S106 - a name
    assert (agent.describe().can_power, agent.describe().remarks) == (True, ())
    inside, below, outside = home.guest(pool="k8s"), home.guest("k8s-2", pool="k8s/lab"), home.guest("k8s-3")
    groups = {it.guest.id: it.groups for it in agent.sweep()}
    admitted = {vmid for vmid, of in groups.items() if "pool:k8s" in of}
    assert admitted == {str(inside.vmid), str(below.vmid)}
    for conf in (inside, below):
        order(agent.stop, home.ref(conf))
        assert not home.pve.runs(conf.vmid)
    with pytest.raises(HypervisorDenied, match=r"VM\.PowerMgmt"):
        order(agent.stop, home.ref(outside))
    assert home.pve.runs(outside.vmid)
