"""Memory on disk, phase by phase: hibernation, snapshots, rollbacks."""

from __future__ import annotations

from tests.support.pve import PveCluster
from tests.support.pve.tests.client import Client


def test_a_hibernated_guest_goes_on_with_its_memory(pve: PveCluster, ask: Client, vmid: int) -> None:
    memory, pid = pve.memory_of(vmid), ask.status(vmid)["pid"]
    task = pve.qm.hibernate(vmid, by_hand=True)
    assert ask.seen(vmid) == ("running", "running", "suspending")
    assert task.step() == "saved"
    assert ask.seen(vmid) == ("running", "save-vm", "suspending")
    assert task.step() is None
    assert ask.seen(vmid) == ("stopped", "stopped", "suspended")
    assert "vmstate" in ask.get(f"/nodes/pve1/qemu/{vmid}/config")
    started = pve.qm.start(vmid)
    assert started.finish() == "OK"
    assert started.log[0] == "Resuming suspended VM"
    assert pve.memory_of(vmid) == memory
    assert ask.status(vmid)["pid"] != pid
    assert not {"lock", "vmstate"} & ask.get(f"/nodes/pve1/qemu/{vmid}/config").keys()


def test_resume_starts_a_hibernated_guest_too(pve: PveCluster, vmid: int) -> None:
    memory = pve.memory_of(vmid)
    pve.qm.hibernate(vmid).finish()
    assert pve.qm.resume(vmid).finish() == "OK"
    assert pve.memory_of(vmid) == memory


def test_a_hibernation_that_is_stopped_leaves_the_guest_running(
    pve: PveCluster, ask: Client, vmid: int
) -> None:
    task = pve.qm.hibernate(vmid, by_hand=True)
    task.abort()
    assert task.exitstatus == "received interrupt"
    assert ask.seen(vmid) == ("running", "running", None)


def test_a_rollback_brings_old_memory_back(pve: PveCluster, ask: Client, vmid: int) -> None:
    then = pve.memory_of(vmid)
    pve.qm.snapshot(vmid, "with-ram").finish()
    pve.qm.reset(vmid).finish()
    assert pve.memory_of(vmid) != then
    task = pve.qm.rollback(vmid, "with-ram", by_hand=True)
    pve.clock.advance(1)
    assert task.phase == "stopped"
    assert ask.seen(vmid) == ("stopped", "stopped", "rollback")
    assert task.step() is None
    assert pve.memory_of(vmid) == then
    assert ask.get(f"/nodes/pve1/qemu/{vmid}/config")["parent"] == "with-ram"
    assert "vmstate" in ask.get(f"/nodes/pve1/qemu/{vmid}/config", snapshot="with-ram")


def test_a_rollback_without_memory_leaves_the_guest_off(pve: PveCluster, ask: Client, vmid: int) -> None:
    pve.qm.snapshot(vmid, ram=False).finish()
    pve.qm.rollback(vmid).finish()
    assert ask.seen(vmid) == ("stopped", "stopped", None)
    assert "vmstate" not in ask.get(f"/nodes/pve1/qemu/{vmid}/config", snapshot="before")


def test_a_snapshot_stops_the_guest_while_it_saves(pve: PveCluster, ask: Client, vmid: int) -> None:
    task = pve.qm.snapshot(vmid, by_hand=True)
    assert ask.seen(vmid) == ("running", "save-vm", "snapshot")
    assert task.step() is None
    assert ask.seen(vmid) == ("running", "running", None)
    pve.qm.delete_snapshot(vmid, by_hand=True)
    assert ask.seen(vmid) == ("running", "running", "snapshot-delete")
