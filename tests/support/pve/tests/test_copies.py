"""What makes guests of guests, or of files, and what migrations leave in logs, as qemu-server does it."""

from __future__ import annotations

import pytest

from tests.support.pve import PveCluster, Refused


@pytest.fixture
def vmid(pve):
    """A running guest on pve1."""
    return pve.add_guest("k8s-1").vmid


def kinds(pve, host):
    return [task.kind for task in pve.tasks.all if task.host.name == host]


def test_a_clone_leaves_pool_template_and_uuid_behind_and_takes_the_rest(pve, vmid):
    conf = pve.confs[vmid]
    conf.tags, conf.pool, conf.startup = ("fencer",), "k8s", "order=2"
    assert pve.qm.clone(vmid, 900).finish() == "OK"
    copy = pve.confs[900]
    assert (copy.name, copy.tags, copy.startup, copy.pool) == (
        f"Copy-of-VM-{conf.name}",
        ("fencer",),
        "order=2",
        None,
    )
    with pytest.raises(Refused, match="config file already exists"):
        pve.qm.clone(vmid, 900)


def test_a_restore_takes_another_number_or_by_force_one_that_does_not_run(pve, vmid):
    with pytest.raises(Refused, match=rf"unable to restore VM {vmid} - VM {vmid} already exists on node"):
        pve.qm.restore(vmid, vmid)
    assert pve.qm.restore(vmid, vmid, force=True).finish() == f"unable to restore VM {vmid} - vm is running"
    assert pve.confs[vmid].lock is None
    pve.crash(vmid)
    task = pve.qm.restore(vmid, vmid, force=True, by_hand=True)
    assert (pve.confs[vmid].lock, task.kind, task.guest) == ("create", "qmrestore", str(vmid))
    with pytest.raises(Refused, match=r"VM is locked \(create\)"):
        pve.qm.restore(vmid, vmid, force=True)
    task.step()
    assert pve.confs[vmid].lock is None


def test_only_a_unique_restore_has_another_uuid(pve, vmid):
    uuid = pve.confs[vmid].uuid
    pve.qm.restore(vmid, 900).finish()
    pve.qm.restore(vmid, 901, unique=True).finish()
    assert (pve.confs[900].uuid, pve.confs[901].uuid != uuid) == (uuid, True)


def test_a_template_is_made_of_a_stopped_guest_without_snapshots_and_never_starts(pve, ask, vmid):
    with pytest.raises(Refused, match="if VM is running"):
        pve.qm.template(vmid)
    pve.crash(vmid)
    pve.confs[vmid].snapshots["before"] = None
    with pytest.raises(Refused, match="contains snapshots"):
        pve.qm.template(vmid)
    pve.confs[vmid].snapshots.clear()
    assert pve.qm.template(vmid).finish() == "OK"
    assert ask.get(f"/nodes/pve1/qemu/{vmid}/config")["template"] == 1
    assert "template" in pve.qm.start(vmid).finish()


def test_an_import_leaves_no_task(pve, vmid):
    made = pve.qm.import_ovf(900, "web", "pve2")
    assert (made.uuid != pve.confs[vmid].uuid, made.tags, kinds(pve, "pve2")) == (True, (), [])
    with pytest.raises(Refused, match="already exists"):
        pve.qm.import_ovf(900, "web", "pve2")


def test_a_live_migration_starts_a_task_on_its_target_and_one_that_fails_stops_it_there(pve, vmid):
    pve.qm.migrate(vmid, "pve2").finish()
    assert (kinds(pve, "pve1"), kinds(pve, "pve2")) == (["qmigrate"], ["qmstart"])
    task = pve.qm.migrate(vmid, "pve3", by_hand=True)
    task.step()
    task.abort()
    assert kinds(pve, "pve3") == ["qmstart", "qmstop"]


def test_an_offline_migration_starts_nothing(pve, vmid):
    pve.crash(vmid)
    pve.qm.migrate(vmid, "pve2").finish()
    assert kinds(pve, "pve2") == []


def test_a_migration_into_another_cluster_says_so_before_it_names_a_host_and_leaves_a_tunnel_there(
    pve, ask, vmid
):
    other = PveCluster("barn", clock=pve.clock)
    memory = pve.memory_of(vmid)
    task = pve.qm.remote_migrate(vmid, to=other, node="pve2")
    assert task.finish() == "OK"
    lines = [line["t"] for line in ask.get(f"/nodes/pve1/tasks/{task.upid}/log")]
    assert "remote: started tunnel worker 'UPID:pve2:" in lines[0]
    assert any(f"starting migration of VM {vmid} to node 'pve2'" in line for line in lines[5:])
    assert (other.memory_of(vmid), other.confs[vmid].uuid) == (memory, pve.confs[vmid].uuid)
    assert (pve.confs[vmid].lock, other.confs[vmid].lock, kinds(other, "pve2")) == (
        "migrate",
        None,
        ["qmtunnel"],
    )


def test_what_ha_manages_goes_to_no_other_cluster(pve, vmid):
    pve.ha.add(vmid)
    with pytest.raises(Refused) as refused:
        pve.qm.remote_migrate(vmid)
    assert refused.value.errors == {"vmid": "cannot remote-migrate VM that is configured for HA"}
