"""HA: stops that are only queued, hosts that are fenced, and acknowledgements that prove nothing."""

from __future__ import annotations

import json

import pytest

from tests.support.pve import PveCluster, PveServers
from tests.support.pve.recordings import recordings
from tests.support.pve.tests.client import Client

States = tuple[str, str, str]
"""Of a host, and of a guest with its host, as the manager has them."""


@pytest.fixture
def vmid(pve: PveCluster) -> int:
    """An HA-managed guest that runs on pve3."""
    return pve.add_guest("k8s-1", "pve3", ha="started").vmid


def states(ask: Client, vmid: int, host: str = "pve3") -> States:
    """Return what the manager says of the host and of the guest: state and host."""
    manager = ask.get("/cluster/ha/status/manager_status")["manager_status"]
    service = manager["service_status"][f"vm:{vmid}"]
    return manager["node_status"][host], service["state"], service["node"]


def changes(pve: PveCluster, ask: Client, vmid: int, seconds: int) -> list[tuple[int, States]]:
    """Let time pass; return each change of `states` with the second at which it was seen."""
    found = [(0, states(ask, vmid))]
    for second in range(1, seconds + 1):
        pve.clock.advance(1)
        now = states(ask, vmid)
        if now != found[-1][1]:
            found.append((second, now))
    return found


def test_a_stop_is_queued_and_says_ok_at_once(pve: PveCluster, ask: Client, vmid: int) -> None:
    upid = ask.post(f"/nodes/pve3/qemu/{vmid}/status/stop")
    pve.clock.advance(1)
    assert upid.split(":")[5] == "hastop"
    assert ask.get(f"/nodes/pve3/tasks/{upid}/status")["exitstatus"] == "OK"
    assert ask.status(vmid, "pve3")["status"] == "running"
    pve.clock.advance(25)
    assert ask.status(vmid, "pve3")["status"] == "stopped"
    assert ask.service(vmid)["state"] == "stopped"
    assert ask.get(f"/cluster/ha/resources/vm:{vmid}")["state"] == "stopped"
    assert [row["type"] for row in ask.get("/nodes/pve3/tasks", vmid=vmid)] == ["qmstop", "hastop"]


def test_a_start_is_queued_and_undoes_the_lasting_stop(pve: PveCluster, ask: Client, vmid: int) -> None:
    pve.qm.stop(vmid)
    pve.clock.advance(30)
    assert pve.qm.start(vmid).kind == "hastart"
    pve.clock.advance(30)
    assert ask.status(vmid, "pve3")["status"] == "running"
    assert ask.service(vmid)["state"] == "started"


def test_a_crashed_guest_is_started_again_by_itself(pve: PveCluster, ask: Client, vmid: int) -> None:
    memory = pve.memory_of(vmid)
    pve.crash(vmid)
    assert ask.status(vmid, "pve3")["status"] == "stopped"
    pve.clock.advance(22)
    assert pve.memory_of(vmid) not in {None, memory}


def test_a_dead_host_is_fenced_and_its_guest_recovered(pve: PveCluster, ask: Client, vmid: int) -> None:
    pve.host_dies("pve3")
    seen = changes(pve, ask, vmid, 160)
    assert [state for _, state in seen] == [
        ("online", "started", "pve3"),
        ("unknown", "started", "pve3"),
        ("fence", "fence", "pve3"),
        ("unknown", "started", "pve1"),
    ]
    assert 60 <= seen[2][0] <= 90
    assert seen[3][0] >= 120
    assert [kvm.host for kvm in pve.kvms(vmid)] == ["pve1"]
    assert ask.row(vmid)["node"] == "pve1"


def test_a_dead_host_was_recorded_with_the_same_states(pve: PveCluster, ask: Client, vmid: int) -> None:
    file = recordings() / "08-dead-node-pve3.json"
    if not file.exists():
        pytest.skip(f"no recordings of the real API in {file.parent}")
    recorded: list[tuple[float, States]] = []
    for row in json.loads(file.read_text())["series"]:
        manager = row["ha_manager"]["manager_status"]
        service = manager["service_status"]["vm:206"]
        state = manager["node_status"]["pve3"], service["state"], service["node"]
        if not recorded or recorded[-1][1] != state:
            recorded.append((row["t"], state))
    pve.host_dies("pve3")
    ours = changes(pve, ask, vmid, 160)
    assert [state for _, state in ours] == [state for _, state in recorded]
    for (our_s, _), (their_s, _) in zip(ours, recorded, strict=True):
        assert our_s == pytest.approx(their_s, abs=12)


def test_recovery_can_be_made_visible(pve: PveCluster, ask: Client, vmid: int) -> None:
    pve.ha.crm.linger_in_recovery = True
    pve.host_dies("pve3")
    assert ("unknown", "recovery", "pve3") in [state for _, state in changes(pve, ask, vmid, 160)]


def test_an_agent_that_loses_quorum_is_reset_with_its_host_before_the_guest_starts_elsewhere(
    pve: PveCluster, ask: Client, vmid: int
) -> None:
    pve.partition({"pve3"})
    pve.clock.advance(100)
    assert not pve.hosts["pve3"].up
    assert pve.kvms(vmid) == []
    pve.clock.advance(60)
    assert [kvm.host for kvm in pve.kvms(vmid)] == ["pve1"]


def test_without_watchdogs_there_are_two(pve: PveCluster, vmid: int) -> None:
    """What HA rests on: with this broken the same guest runs twice."""
    pve.ha.lrm.watchdogs = False
    pve.partition({"pve3"})
    pve.clock.advance(170)
    assert [kvm.host for kvm in pve.kvms(vmid)] == ["pve1", "pve3"]


def test_an_acknowledged_host_may_live_where_its_agent_was_idle(
    pve: PveCluster, ask: Client, vmid: int
) -> None:
    """A service in error needs no lock: later its fencing is acknowledged at once, and the guest runs on."""
    other = pve.add_guest("k8s-2", "pve2", ha="started").vmid
    pve.ha.set_service(other, state="error")
    pve.clock.advance(700)
    pve.partition({"pve2"})
    pve.clock.advance(8)
    pve.ha.set_service(other, state="started")
    pve.clock.advance(80)
    assert states(ask, other, "pve2")[1:] == ("started", "pve1")
    assert "pve2" in [kvm.host for kvm in pve.kvms(other)]


def test_a_guest_that_starts_nowhere_ends_in_error(pve: PveCluster, ask: Client, vmid: int) -> None:
    """Its hook is missing on the hosts that are left: two tries on one, two on the other."""
    pve.confs[vmid].hookscript = "local:snippets/hook"
    pve.hosts["pve1"].lacks_hook = pve.hosts["pve2"].lacks_hook = True
    pve.host_dies("pve3")
    seen = [state for _, state in changes(pve, ask, vmid, 260)]
    assert seen[-4:] == [
        ("unknown", "started", "pve1"),
        ("unknown", "migrate", "pve1"),
        ("unknown", "started", "pve2"),
        ("unknown", "error", "pve2"),
    ]
    tried = [(task.kind, task.host.name, task.exitstatus == "OK") for task in pve.tasks.all]
    start = "qmstart"
    assert tried == [
        *[(start, "pve1", False)] * 2,
        ("qmigrate", "pve1", True),
        *[(start, "pve2", False)] * 2,
    ]


def test_guests_that_ha_does_not_manage_stay_where_they_died(pve: PveCluster, ask: Client, vmid: int) -> None:
    plain = pve.add_guest("plain", "pve3").vmid
    pve.host_dies("pve3")
    pve.clock.advance(200)
    assert ask.row(plain)["node"] == "pve3"
    assert pve.kvms(plain) == []


def test_rows_for_people_tell_the_same(pve: PveCluster, ask: Client, vmid: int) -> None:
    rows = {row["id"]: row for row in ask.get("/cluster/ha/status/current")}
    assert rows["fencing"]["armed-state"] == "armed"
    assert rows["lrm:pve3"]["status"].startswith("pve3 (active, watchdog active, ")
    assert rows["lrm:pve1"]["status"].startswith("pve1 (idle, watchdog standby, ")
    assert rows[f"service:vm:{vmid}"]["state"] == "started"
    pve.host_dies("pve3")
    pve.clock.advance(45)
    rows = {row["id"]: row for row in ask.get("/cluster/ha/status/current")}
    assert rows["lrm:pve3"]["status"].startswith("pve3 (old timestamp - dead?, watchdog standby, ")


def test_disarmed_means_disarmed(pve: PveCluster, ask: Client, vmid: int) -> None:
    pve.ha.disarm()
    assert ask.get("/cluster/ha/status/manager_status")["manager_status"]["disarm"]["state"] == "disarmed"
    [row] = [row for row in ask.get("/cluster/ha/status/current") if row["type"] == "fencing"]
    assert row["armed-state"] == "disarmed"


def test_the_manager_moves_to_another_host_when_its_own_dies(
    pve: PveCluster, api: PveServers, vmid: int
) -> None:
    pve.host_dies("pve1")
    with Client(api, "pve2") as ask:
        pve.clock.advance(60)
        assert ask.get("/cluster/ha/status/manager_status")["manager_status"]["master_node"] == "pve1"
        pve.clock.advance(90)
        assert ask.get("/cluster/ha/status/manager_status")["manager_status"]["master_node"] == "pve2"


def test_the_minority_sees_old_news_and_says_so(pve: PveCluster, api: PveServers, vmid: int) -> None:
    pve.partition({"pve1"})
    pve.clock.advance(40)
    with Client(api, "pve1") as ask:
        assert ask.get("/cluster/ha/status/manager_status")["quorum"]["quorate"] == ""
        rows = {row["id"]: row for row in ask.get("/cluster/ha/status/current")}
        assert rows["quorum"]["status"] == "No quorum on node 'pve1'!"
        assert "old timestamp - dead?" in rows["lrm:pve3"]["status"]


def test_a_managed_guest_can_migrate(pve: PveCluster, ask: Client, vmid: int) -> None:
    task = pve.qm.migrate(vmid, "pve2", by_hand=True)
    assert ask.service(vmid)["state"] == "migrate"
    while task.step() is not None:
        pass
    assert states(ask, vmid)[1:] == ("started", "pve2")


def test_a_managed_guest_cannot_be_hibernated(pve: PveCluster, ask: Client, vmid: int) -> None:
    pve.access.grant(pve.token, "/", {"VM.PowerMgmt", "VM.Config.Disk"})
    answer = ask("POST", f"/nodes/pve3/qemu/{vmid}/status/suspend", "todisk=1")
    assert answer.reason == "Cannot suspend HA managed VM to disk"
