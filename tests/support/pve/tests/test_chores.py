"""Memory on disk, snapshots, backups, copies and migrations, phase by phase."""

import json

import pytest

from tests.support.pve.recordings import recordings
from tests.support.pve.tests.client import Client


@pytest.fixture
def vmid(pve):
    """A running guest on pve1."""
    return pve.add_guest("k8s-1", tags=("k8s",)).vmid


def seen(ask, vmid, host="pve1"):
    """Return status, qmpstatus and lock as a host says them; None: the guest is not there."""
    answer = ask("GET", f"/nodes/{host}/qemu/{vmid}/status/current")
    if answer.status == 500:
        assert answer.reason == f"Configuration file 'nodes/{host}/qemu-server/{vmid}.conf' does not exist"
        return None
    return answer.data["status"], answer.data["qmpstatus"], answer.data.get("lock")


# -- memory on disk ---------------------------------------------------------------------------------------


def test_a_hibernated_guest_goes_on_with_its_memory(pve, ask, vmid):
    memory, pid = pve.memory_of(vmid), ask.status(vmid)["pid"]
    task = pve.qm.hibernate(vmid, by_hand=True)
    assert seen(ask, vmid) == ("running", "running", "suspending")
    assert task.step() == "saved"
    assert seen(ask, vmid) == ("running", "save-vm", "suspending")
    assert task.step() is None
    assert seen(ask, vmid) == ("stopped", "stopped", "suspended")
    assert "vmstate" in ask.get(f"/nodes/pve1/qemu/{vmid}/config")
    started = pve.qm.start(vmid)
    assert started.finish() == "OK"
    assert started.log[0] == "Resuming suspended VM"
    assert pve.memory_of(vmid) == memory
    assert ask.status(vmid)["pid"] != pid
    assert not {"lock", "vmstate"} & ask.get(f"/nodes/pve1/qemu/{vmid}/config").keys()


def test_resume_starts_a_hibernated_guest_too(pve, vmid):
    memory = pve.memory_of(vmid)
    pve.qm.hibernate(vmid).finish()
    assert pve.qm.resume(vmid).finish() == "OK"
    assert pve.memory_of(vmid) == memory


def test_a_hibernation_that_is_stopped_leaves_the_guest_running(pve, ask, vmid):
    task = pve.qm.hibernate(vmid, by_hand=True)
    task.abort()
    assert task.exitstatus == "received interrupt"
    assert seen(ask, vmid) == ("running", "running", None)


def test_a_rollback_brings_old_memory_back(pve, ask, vmid):
    then = pve.memory_of(vmid)
    pve.qm.snapshot(vmid, "with-ram").finish()
    pve.qm.reset(vmid).finish()
    assert pve.memory_of(vmid) != then
    task = pve.qm.rollback(vmid, "with-ram", by_hand=True)
    pve.clock.advance(1)
    assert task.phase == "stopped"
    assert seen(ask, vmid) == ("stopped", "stopped", "rollback")
    assert task.step() is None
    assert pve.memory_of(vmid) == then
    assert ask.get(f"/nodes/pve1/qemu/{vmid}/config")["parent"] == "with-ram"
    assert "vmstate" in ask.get(f"/nodes/pve1/qemu/{vmid}/config", snapshot="with-ram")


def test_a_rollback_without_memory_leaves_the_guest_off(pve, ask, vmid):
    pve.qm.snapshot(vmid, ram=False).finish()
    pve.qm.rollback(vmid).finish()
    assert seen(ask, vmid) == ("stopped", "stopped", None)
    assert "vmstate" not in ask.get(f"/nodes/pve1/qemu/{vmid}/config", snapshot="before")


def test_a_snapshot_stops_the_guest_while_it_saves(pve, ask, vmid):
    task = pve.qm.snapshot(vmid, by_hand=True)
    assert seen(ask, vmid) == ("running", "save-vm", "snapshot")
    assert task.step() is None
    assert seen(ask, vmid) == ("running", "running", None)
    pve.qm.delete_snapshot(vmid, by_hand=True)
    assert seen(ask, vmid) == ("running", "running", "snapshot-delete")


# -- backups ----------------------------------------------------------------------------------------------


def test_a_backup_in_stop_mode_reads_stopped_under_its_lock_and_its_task(pve, ask, vmid):
    task = pve.qm.backup(vmid, "stop", by_hand=True)
    phases = {task.phase: seen(ask, vmid)}
    while task.step() is not None:
        phases[task.phase] = seen(ask, vmid)
        [row] = ask.get("/nodes/pve1/tasks", source="active")
        assert (row["type"], row["id"]) == ("vzdump", str(vmid))
    assert phases == {
        "stopping": ("running", "running", "backup"),
        "off": ("stopped", "stopped", "backup"),
        "prelaunch": ("running", "prelaunch", "backup"),
        "running": ("running", "running", "backup"),
    }
    assert seen(ask, vmid) == ("running", "running", None)


@pytest.mark.parametrize(("mode", "qmp"), [("snapshot", "running"), ("suspend", "paused")])
def test_other_backups_keep_the_memory(pve, ask, vmid, mode, qmp):
    memory = pve.memory_of(vmid)
    task = pve.qm.backup(vmid, mode, by_hand=True)
    assert seen(ask, vmid) == ("running", qmp, "backup")
    while task.step() is not None:
        pass
    assert pve.memory_of(vmid) == memory


def test_a_backup_of_a_stopped_guest_shows_a_process_that_never_runs(pve, ask, vmid):
    pve.crash(vmid)
    task = pve.qm.backup(vmid, by_hand=True)
    assert seen(ask, vmid) == ("running", "prelaunch", "backup")
    task.step()
    assert seen(ask, vmid) == ("stopped", "stopped", None)


# -- copies and ends --------------------------------------------------------------------------------------


def test_a_clone_has_its_own_uuid_and_the_same_hook(pve, ask, vmid):
    pve.confs[vmid].hookscript = "local:snippets/hook"
    task = pve.qm.clone(vmid, 900, by_hand=True)
    assert seen(ask, 900) == ("stopped", "stopped", "clone")
    task.step()
    old, new = (ask.get(f"/nodes/pve1/qemu/{it}/config") for it in (vmid, 900))
    assert old["smbios1"] != new["smbios1"]
    assert old["hookscript"] == new["hookscript"]
    assert "lock" not in new


def test_a_restored_copy_has_the_same_uuid(pve, ask, vmid):
    pve.qm.restore(vmid, 900).finish()
    old, new = (ask.get(f"/nodes/pve1/qemu/{it}/config") for it in (vmid, 900))
    assert old["smbios1"] == new["smbios1"]
    assert old["vmgenid"] != new["vmgenid"]


def test_a_destroyed_guest_leaves_a_task_and_its_number_can_be_used_again(pve, ask, vmid):
    assert ask("GET", f"/cluster/nextid?vmid={vmid}").status == 400
    pve.crash(vmid)
    assert pve.qm.destroy(vmid).finish() == "OK"
    assert ask.get("/cluster/nextid", vmid=vmid) == str(vmid)
    assert seen(ask, vmid) is None
    assert [row["type"] for row in ask.get("/nodes/pve1/tasks", vmid=vmid)] == ["qmdestroy"]
    again = pve.add_guest("another", vmid=vmid)
    assert again.uuid in ask.get(f"/nodes/pve1/qemu/{vmid}/config")["smbios1"]


# -- migration --------------------------------------------------------------------------------------------

LIVE = {
    "locked": (("running", "running", "migrate"), None),
    "copying": (("running", "running", "migrate"), None),
    "switching": (("running", "finish-migrate", "migrate"), None),
    "switched": (("running", "postmigrate", "migrate"), None),
    "moved": (None, ("running", "paused", "migrate")),
    "resumed": (None, ("running", "running", "migrate")),
}


def phases_of(task, api, vmid):
    """Step through a migration from pve1 to pve2; return what both say in each phase."""
    with Client(api) as one, Client(api, "pve2") as two:
        found = {}
        while True:
            found[task.phase] = (seen(one, vmid), seen(two, vmid, "pve2"))
            if task.step() is None:
                return found


def test_a_live_migration_shows_each_host_its_own_half(pve, api, vmid):
    memory = pve.memory_of(vmid)
    task = pve.qm.migrate(vmid, "pve2", by_hand=True)
    assert phases_of(task, api, vmid) == LIVE
    assert task.exitstatus == "OK"
    [kvm] = pve.kvms(vmid)
    assert (kvm.host, kvm.memory, pve.confs[vmid].lock) == ("pve2", memory, None)


def test_a_live_migration_was_recorded_in_the_same_order():
    """Of the phases that the real one showed to somebody who looked every 20 ms."""
    file = recordings() / "06-live-migration-ok.json"
    if not file.exists():
        pytest.skip(f"no recordings of the real API in {file.parent}")

    def said(answer):
        known = (answer.get("status"), answer.get("qmpstatus"), answer.get("lock"))
        return known if answer["http"] == 200 else None

    told = [(said(row["pve3"]), said(row["pve2"])) for row in json.loads(file.read_text())["series"]]
    ours = [(("running", "running", None), None), *LIVE.values(), (None, ("running", "running", None))]
    places = [ours.index(pair) for pair in told]
    assert places == sorted(places)
    assert len(set(places)) >= 5


@pytest.mark.parametrize("phase", ["locked", "copying", "switching", "switched"])
def test_an_aborted_migration_leaves_the_guest_where_it_was(pve, ask, vmid, phase):
    memory = pve.memory_of(vmid)
    task = pve.qm.migrate(vmid, "pve2", by_hand=True)
    while task.phase != phase:
        task.step()
    task.abort()
    assert task.exitstatus == "migration problems"
    assert seen(ask, vmid) == ("running", "running", None)
    [kvm] = pve.kvms(vmid)
    assert (kvm.host, kvm.memory) == ("pve1", memory)


def test_a_stopped_guest_moves_with_its_lock(pve, api, vmid):
    pve.crash(vmid)
    task = pve.qm.migrate(vmid, "pve2", by_hand=True)
    assert phases_of(task, api, vmid) == {
        "locked": (("stopped", "stopped", "migrate"), None),
        "moved": (None, ("stopped", "stopped", "migrate")),
    }


def test_the_log_of_a_migration_names_the_target(pve, ask, vmid):
    task = pve.qm.migrate(vmid, "pve2")
    task.finish()
    lines = [line["t"] for line in ask.get(f"/nodes/pve1/tasks/{task.upid}/log")]
    assert lines[0].endswith(f"starting migration of VM {vmid} to node 'pve2' (10.77.0.12)")


def test_a_guest_that_went_to_another_cluster_reads_stopped_here_and_runs_there(pve, ask, vmid):
    assert pve.qm.remote_migrate(vmid).finish() == "OK"
    assert seen(ask, vmid) == ("stopped", "stopped", "migrate")
    assert pve.runs(vmid)
