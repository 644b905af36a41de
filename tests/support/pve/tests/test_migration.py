"""Migrations, phase by phase, and what they leave in logs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.pve import PveCluster, PveServers, Refused, Task
from tests.support.pve.recordings import recordings
from tests.support.pve.tests.client import Client, Seen

LIVE: dict[str, tuple[Seen | None, Seen | None]] = {
    "locked": (("running", "running", "migrate"), None),
    "copying": (("running", "running", "migrate"), None),
    "switching": (("running", "finish-migrate", "migrate"), None),
    "switched": (("running", "postmigrate", "migrate"), None),
    "moved": (None, ("running", "paused", "migrate")),
    "resumed": (None, ("running", "running", "migrate")),
}


def kinds(pve: PveCluster, host: str) -> list[str]:
    """Return the kinds of a host's tasks."""
    return [task.kind for task in pve.tasks.all if task.host.name == host]


def phases_of(task: Task, api: PveServers, vmid: int) -> dict[str | None, tuple[Seen | None, Seen | None]]:
    """Step through a migration from pve1 to pve2; return what both say in each phase."""
    with Client(api) as one, Client(api, "pve2") as two:
        found: dict[str | None, tuple[Seen | None, Seen | None]] = {}
        while True:
            found[task.phase] = (one.seen(vmid), two.seen(vmid))
            if task.step() is None:
                return found


def test_a_live_migration_shows_each_host_its_own_half(pve: PveCluster, api: PveServers, vmid: int) -> None:
    memory = pve.memory_of(vmid)
    task = pve.qm.migrate(vmid, "pve2", by_hand=True)
    assert phases_of(task, api, vmid) == LIVE
    assert task.exitstatus == "OK"
    [kvm] = pve.kvms(vmid)
    assert (kvm.host, kvm.memory, pve.confs[vmid].lock) == ("pve2", memory, None)


def test_a_live_migration_was_recorded_in_the_same_order() -> None:
    """Of the phases that the real one showed to somebody who looked every 20 ms."""
    file = recordings() / "06-live-migration-ok.json"
    if not file.exists():
        pytest.skip(f"no recordings of the real API in {file.parent}")

    def said(answer: dict[str, Any]) -> Seen | None:
        if answer["http"] != 200:
            return None
        return answer["status"], answer["qmpstatus"], answer.get("lock")

    told = [(said(row["pve3"]), said(row["pve2"])) for row in json.loads(file.read_text())["series"]]
    ours = [(("running", "running", None), None), *LIVE.values(), (None, ("running", "running", None))]
    places = [ours.index(pair) for pair in told]
    assert places == sorted(places)
    assert len(set(places)) >= 5


@pytest.mark.parametrize("phase", ["locked", "copying", "switching", "switched"])
def test_an_aborted_migration_leaves_the_guest_where_it_was(
    pve: PveCluster, ask: Client, vmid: int, phase: str
) -> None:
    memory = pve.memory_of(vmid)
    task = pve.qm.migrate(vmid, "pve2", by_hand=True)
    while task.phase != phase:
        task.step()
    task.abort()
    assert task.exitstatus == "migration problems"
    assert ask.seen(vmid) == ("running", "running", None)
    [kvm] = pve.kvms(vmid)
    assert (kvm.host, kvm.memory) == ("pve1", memory)


def test_a_stopped_guest_moves_with_its_lock(pve: PveCluster, api: PveServers, vmid: int) -> None:
    pve.crash(vmid)
    task = pve.qm.migrate(vmid, "pve2", by_hand=True)
    assert phases_of(task, api, vmid) == {
        "locked": (("stopped", "stopped", "migrate"), None),
        "moved": (None, ("stopped", "stopped", "migrate")),
    }


def test_the_log_of_a_migration_names_the_target(pve: PveCluster, ask: Client, vmid: int) -> None:
    task = pve.qm.migrate(vmid, "pve2")
    task.finish()
    lines = [line["t"] for line in ask.get(f"/nodes/pve1/tasks/{task.upid}/log")]
    assert lines[0].endswith(f"starting migration of VM {vmid} to node 'pve2' (10.77.0.12)")


def test_a_guest_that_went_to_another_cluster_reads_stopped_here_and_runs_there(
    pve: PveCluster, ask: Client, vmid: int
) -> None:
    assert pve.qm.remote_migrate(vmid).finish() == "OK"
    assert ask.seen(vmid) == ("stopped", "stopped", "migrate")
    assert pve.runs(vmid)


def test_a_live_migration_starts_a_task_on_its_target_and_one_that_fails_stops_it_there(
    pve: PveCluster, vmid: int
) -> None:
    pve.qm.migrate(vmid, "pve2").finish()
    assert (kinds(pve, "pve1"), kinds(pve, "pve2")) == (["qmigrate"], ["qmstart"])
    task = pve.qm.migrate(vmid, "pve3", by_hand=True)
    task.step()
    task.abort()
    assert kinds(pve, "pve3") == ["qmstart", "qmstop"]


def test_an_offline_migration_starts_nothing(pve: PveCluster, vmid: int) -> None:
    pve.crash(vmid)
    pve.qm.migrate(vmid, "pve2").finish()
    assert kinds(pve, "pve2") == []


def test_a_migration_into_another_cluster_says_so_before_it_names_a_host_and_leaves_a_tunnel_there(
    pve: PveCluster, ask: Client, vmid: int
) -> None:
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


def test_what_ha_manages_goes_to_no_other_cluster(pve: PveCluster, vmid: int) -> None:
    pve.ha.add(vmid)
    with pytest.raises(Refused) as refused:
        pve.qm.remote_migrate(vmid)
    assert refused.value.errors == {"vmid": "cannot remote-migrate VM that is configured for HA"}
