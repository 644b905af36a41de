"""Backups, phase by phase."""

from __future__ import annotations

import pytest

from tests.support.pve import PveCluster
from tests.support.pve.tests.client import Client


def test_a_backup_in_stop_mode_reads_stopped_under_its_lock_and_its_task(
    pve: PveCluster, ask: Client, vmid: int
) -> None:
    task = pve.qm.backup(vmid, "stop", by_hand=True)
    phases = {task.phase: ask.seen(vmid)}
    while task.step() is not None:
        phases[task.phase] = ask.seen(vmid)
        [row] = ask.get("/nodes/pve1/tasks", source="active")
        assert (row["type"], row["id"]) == ("vzdump", str(vmid))
    assert phases == {
        "stopping": ("running", "running", "backup"),
        "off": ("stopped", "stopped", "backup"),
        "prelaunch": ("running", "prelaunch", "backup"),
        "running": ("running", "running", "backup"),
    }
    assert ask.seen(vmid) == ("running", "running", None)


@pytest.mark.parametrize(("mode", "qmp"), [("snapshot", "running"), ("suspend", "paused")])
def test_other_backups_keep_the_memory(pve: PveCluster, ask: Client, vmid: int, mode: str, qmp: str) -> None:
    memory = pve.memory_of(vmid)
    task = pve.qm.backup(vmid, mode, by_hand=True)
    assert ask.seen(vmid) == ("running", qmp, "backup")
    while task.step() is not None:
        pass
    assert pve.memory_of(vmid) == memory


def test_a_backup_of_a_stopped_guest_shows_a_process_that_never_runs(
    pve: PveCluster, ask: Client, vmid: int
) -> None:
    pve.crash(vmid)
    task = pve.qm.backup(vmid, by_hand=True)
    assert ask.seen(vmid) == ("running", "prelaunch", "backup")
    task.step()
    assert ask.seen(vmid) == ("stopped", "stopped", None)
