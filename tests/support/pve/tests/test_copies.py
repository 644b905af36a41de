"""What makes guests of guests, or of files, and what ends them."""

from __future__ import annotations

import pytest

from tests.support.pve import PveCluster, Refused
from tests.support.pve.tests.client import Client


def test_a_clone_leaves_pool_template_and_uuid_behind_and_takes_the_rest(pve: PveCluster, vmid: int) -> None:
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


def test_a_restore_takes_another_number_or_by_force_one_that_does_not_run(pve: PveCluster, vmid: int) -> None:
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


def test_only_a_unique_restore_has_another_uuid(pve: PveCluster, vmid: int) -> None:
    uuid = pve.confs[vmid].uuid
    pve.qm.restore(vmid, 900).finish()
    pve.qm.restore(vmid, 901, unique=True).finish()
    assert (pve.confs[900].uuid, pve.confs[901].uuid != uuid) == (uuid, True)


def test_a_template_is_made_of_a_stopped_guest_without_snapshots_and_never_starts(
    pve: PveCluster, ask: Client, vmid: int
) -> None:
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


def test_an_import_leaves_no_task(pve: PveCluster, vmid: int) -> None:
    made = pve.qm.import_ovf(900, "web", "pve2")
    assert (made.uuid != pve.confs[vmid].uuid, made.tags, pve.tasks.all) == (True, (), [])
    with pytest.raises(Refused, match="already exists"):
        pve.qm.import_ovf(900, "web", "pve2")


def test_a_clone_has_its_own_uuid_and_the_same_hook(pve: PveCluster, ask: Client, vmid: int) -> None:
    pve.confs[vmid].hookscript = "local:snippets/hook"
    task = pve.qm.clone(vmid, 900, by_hand=True)
    assert ask.seen(900) == ("stopped", "stopped", "clone")
    task.step()
    old, new = (ask.get(f"/nodes/pve1/qemu/{it}/config") for it in (vmid, 900))
    assert old["smbios1"] != new["smbios1"]
    assert old["hookscript"] == new["hookscript"]
    assert "lock" not in new


def test_a_restored_copy_has_the_same_uuid(pve: PveCluster, ask: Client, vmid: int) -> None:
    pve.qm.restore(vmid, 900).finish()
    old, new = (ask.get(f"/nodes/pve1/qemu/{it}/config") for it in (vmid, 900))
    assert old["smbios1"] == new["smbios1"]
    assert old["vmgenid"] != new["vmgenid"]


def test_a_destroyed_guest_leaves_a_task_and_its_number_can_be_used_again(
    pve: PveCluster, ask: Client, vmid: int
) -> None:
    assert ask("GET", f"/cluster/nextid?vmid={vmid}").status == 400
    pve.crash(vmid)
    assert pve.qm.destroy(vmid).finish() == "OK"
    assert ask.get("/cluster/nextid", vmid=vmid) == str(vmid)
    assert ask.seen(vmid) is None
    assert [row["type"] for row in ask.get("/nodes/pve1/tasks", vmid=vmid)] == ["qmdestroy"]
    again = pve.add_guest("another", vmid=vmid)
    assert again.uuid in ask.get(f"/nodes/pve1/qemu/{vmid}/config")["smbios1"]
