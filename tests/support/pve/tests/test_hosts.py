"""Hosts that die, are cut off, lose quorum or their daemons; what the others say, and how stale it is."""

from __future__ import annotations

import pytest

from tests.support.pve import Daemon, Pmxcfs, PveCluster, PveServers
from tests.support.pve.tests.client import Client
from tests.support.pve.tests.conftest import Serve

MISSING = "Configuration file 'nodes/{}/qemu-server/{}.conf' does not exist"


def quorate(ask: Client) -> int | None:
    """Return what cluster/status says of quorum; None: it does not even know a cluster."""
    rows = {row["type"]: row for row in ask.get("/cluster/status")}
    return rows["cluster"]["quorate"] if "cluster" in rows else None


def online(ask: Client) -> set[str]:
    """Return who is online, by cluster/status."""
    return {row["name"] for row in ask.get("/cluster/status") if row["type"] == "node" and row["online"]}


# -- staleness --------------------------------------------------------------------------------------------


def test_resources_says_stopped_of_a_guest_that_was_just_started(pve: PveCluster, ask: Client) -> None:
    vmid = pve.add_guest("k8s-1", running=False).vmid
    pve.clock.advance(20)
    pve.qm.start(vmid)
    pve.clock.advance(1)
    assert ask.status(vmid)["status"] == "running"
    assert ask.row(vmid)["status"] == "stopped"
    pve.clock.advance(10)
    assert ask.row(vmid)["status"] == "running"


def test_resources_says_running_of_a_guest_that_has_just_ended(pve: PveCluster, ask: Client) -> None:
    vmid = pve.add_guest("k8s-1").vmid
    pve.crash(vmid)
    assert ask.row(vmid)["status"] == "running"
    pve.clock.advance(10)
    assert ask.row(vmid)["status"] == "stopped"


def test_resources_says_stopped_for_minutes_of_a_guest_that_runs_behind_a_partition(
    pve: PveCluster, ask: Client
) -> None:
    """Stopped, told, started, cut off: the worst that can be read there."""
    vmid = pve.add_guest("k8s-1", "pve3", running=False).vmid
    pve.clock.advance(10)
    pve.qm.start(vmid)
    pve.partition({"pve3"})
    pve.clock.advance(280)
    assert pve.runs(vmid)
    assert ask.row(vmid)["status"] == "stopped"


def test_a_guest_of_a_dead_host_reads_as_before_for_five_minutes(pve: PveCluster, ask: Client) -> None:
    vmid = pve.add_guest("k8s-1", "pve3").vmid
    pve.host_dies("pve3")
    pve.clock.advance(285)
    assert ask.row(vmid)["status"] == "running"
    pve.clock.advance(20)
    assert ask.row(vmid) == {
        "id": f"qemu/{vmid}",
        "vmid": vmid,
        "node": "pve3",
        "type": "qemu",
        "status": "unknown",
    }


def test_lock_and_host_in_resources_are_current(pve: PveCluster, ask: Client) -> None:
    vmid = pve.add_guest("k8s-1").vmid
    pve.set_lock(vmid, "backup")
    pve.move_conf(vmid, "pve2")
    assert (ask.row(vmid)["lock"], ask.row(vmid)["node"]) == ("backup", "pve2")


def test_a_dead_pvestatd_freezes_what_is_told(pve: PveCluster, ask: Client) -> None:
    vmid = pve.add_guest("k8s-1").vmid
    pve.set_daemon("pve1", "pvestatd", Daemon.DEAD)
    pve.crash(vmid)
    pve.clock.advance(60)
    assert ask.row(vmid)["status"] == "running"


# -- rights -----------------------------------------------------------------------------------------------


def test_guests_that_one_may_not_see_are_left_out_without_a_word(pve: PveCluster, ask: Client) -> None:
    seen, hidden = pve.add_guest("seen").vmid, pve.add_guest("hidden").vmid
    pve.access.revoke(pve.token, "/")
    pve.access.grant(pve.token, f"/vms/{seen}", {"VM.Audit"})
    assert [row["vmid"] for row in ask.get("/cluster/resources", type="vm")] == [seen]
    assert [row["vmid"] for row in ask.get("/nodes/pve1/qemu")] == [seen]
    for vmid in (hidden, 999):
        answer = ask("GET", f"/nodes/pve1/qemu/{vmid}/status/current")
        assert (answer.status, answer.reason) == (403, f"Permission check failed (/vms/{vmid}, VM.Audit)")
    assert ask("GET", f"/cluster/nextid?vmid={hidden}").status == 400
    assert ask.get("/cluster/nextid", vmid=999) == "999"
    assert ask.get("/access/permissions") == {f"/vms/{seen}": {"VM.Audit": 1}}


# -- dead hosts -------------------------------------------------------------------------------------------


def test_a_dead_host_is_missed_after_eight_seconds(pve: PveCluster, ask: Client) -> None:
    pve.add_guest("k8s-1", "pve3")
    pve.host_dies("pve3")
    pve.clock.advance(7)
    assert online(ask) == {"pve1", "pve2", "pve3"}
    pve.clock.advance(1)
    assert online(ask) == {"pve1", "pve2"}
    assert quorate(ask) == 1
    [row] = [row for row in ask.get("/nodes") if row["node"] == "pve3"]
    assert row["status"] == "offline"
    assert "uptime" not in row


@pytest.mark.parametrize("path", ["qemu/101/status/current", "qemu/101/config", "qemu", "status", "tasks"])
def test_nothing_is_learnt_of_a_dead_host(pve: PveCluster, api: PveServers, ask: Client, path: str) -> None:
    pve.add_guest("k8s-1", "pve3")
    pve.host_dies("pve3")
    answer = ask("GET", f"/nodes/pve3/{path}")
    assert (answer.status, answer.reason, answer.body) == (595, "No route to host", None)
    assert api.requests[-1].delay_s == 20.2
    pve.clock.advance(60)
    ask("GET", f"/nodes/pve3/{path}")
    assert api.requests[-1].delay_s == 3.1


def test_a_host_that_is_back_has_lost_its_guests_and_its_tasks(pve: PveCluster, ask: Client) -> None:
    vmid = pve.add_guest("k8s-1", "pve3").vmid
    boots = pve.add_guest("k8s-2", "pve3", onboot=True).vmid
    task = pve.qm.shutdown(vmid)
    pve.host_dies("pve3")
    pve.clock.advance(60)
    pve.host_returns("pve3")
    pve.clock.advance(8)
    assert ask.status(vmid, "pve3")["status"] == "stopped"
    assert ask.status(boots, "pve3")["status"] == "running"
    assert ask.get("/nodes/pve3/status")["uptime"] == 8
    assert ask.get(f"/nodes/pve3/tasks/{task.upid}/status")["exitstatus"] == "unexpected status"


@pytest.mark.parametrize(
    ("daemon", "state", "status", "delay_s"),
    [
        ("pveproxy", Daemon.DEAD, 595, 0.03),
        ("pveproxy", Daemon.FROZEN, 596, 30.0),
        ("pvedaemon", Daemon.DEAD, 595, 0.03),
        ("pvedaemon", Daemon.FROZEN, 596, 30.0),
    ],
)
def test_a_daemon_that_is_gone_is_no_news_of_the_guest(
    pve: PveCluster, api: PveServers, ask: Client, daemon: str, state: Daemon, status: int, delay_s: float
) -> None:
    vmid = pve.add_guest("k8s-1", "pve3").vmid
    pve.set_daemon("pve3", daemon, state)
    answer = ask("GET", f"/nodes/pve3/qemu/{vmid}/status/current")
    assert (answer.status, answer.body, api.requests[-1].delay_s) == (status, None, delay_s)
    config = ask("GET", f"/nodes/pve3/qemu/{vmid}/config")
    assert config.status == (200 if daemon == "pvedaemon" else status)


def test_a_dead_pvedaemon_of_the_asked_host_shows_in_protected_calls_only(
    pve: PveCluster, ask: Client
) -> None:
    pve.set_daemon("pve1", "pvedaemon", Daemon.DEAD)
    assert ask("GET", "/cluster/status").status == 595
    assert ask.get("/cluster/resources") is not None


# -- quorum -----------------------------------------------------------------------------------------------


def test_without_quorum_one_reads_old_news_and_starts_nothing(pve: PveCluster, ask: Client) -> None:
    vmid = pve.add_guest("k8s-1").vmid
    off = pve.add_guest("k8s-2", running=False).vmid
    pve.lose_quorum()
    assert quorate(ask) == 1
    pve.clock.advance(8)
    assert quorate(ask) == 0
    answer = ask("POST", f"/nodes/pve1/qemu/{off}/status/start", "")
    assert (answer.status, answer.reason) == (500, "cluster not ready - no quorum?")
    assert pve.qm.stop(vmid).finish() == "OK"
    assert "Permission denied" in pve.qm.backup(off).finish()
    pve.heal()
    pve.clock.advance(6)
    assert quorate(ask) == 1
    assert pve.qm.start(off).finish() == "OK"


def test_a_configuration_that_is_moved_in_a_partition_hides_a_running_guest(
    pve: PveCluster, ask: Client
) -> None:
    """The new host says stopped, unlocked and quorate, while the guest runs on the old one."""
    vmid = pve.add_guest("k8s-1", "pve3").vmid
    pve.partition({"pve3"})
    pve.clock.advance(10)
    pve.move_conf(vmid, "pve2")
    status = ask.status(vmid, "pve2")
    assert (status["status"], "lock" in status, quorate(ask)) == ("stopped", False, 1)
    assert ask.row(vmid)["node"] == "pve2"
    assert ask.status(vmid, "pve3")["status"] == "running"
    pve.heal()
    pve.clock.advance(10)
    assert ask("GET", f"/nodes/pve3/qemu/{vmid}/status/current").reason == MISSING.format("pve3", vmid)
    assert ask.status(vmid, "pve2")["status"] == "stopped"
    assert pve.runs(vmid)


# -- the file system --------------------------------------------------------------------------------------


def test_without_its_file_system_a_host_refuses_everything(
    pve: PveCluster, api: PveServers, ask: Client
) -> None:
    pve.set_pmxcfs("pve1", Pmxcfs.STOPPED)
    for path in ("/version", "/cluster/status", "/cluster/resources"):
        answer = ask("GET", path)
        assert (answer.status, answer.body) == (500, None)
        assert answer.reason.startswith("RPCEnvironment init request failed")
        assert api.requests[-1].delay_s == 3.0


def test_a_file_system_that_dies_at_the_wrong_moment_looks_like_a_single_host(
    pve: PveCluster, api: PveServers, ask: Client
) -> None:
    vmid = pve.add_guest("k8s-1").vmid
    pve.set_pmxcfs("pve1", Pmxcfs.ALONE)
    assert quorate(ask) is None
    assert ask.get("/cluster/resources", type="vm") == []
    assert ask.get("/cluster/nextid", vmid=vmid) == str(vmid)
    assert ask("GET", f"/nodes/pve1/qemu/{vmid}/status/current").reason == MISSING.format("pve1", vmid)
    with Client(api, "pve2") as other:
        assert other.row(vmid)["status"] == "running"


def test_a_standalone_host_has_no_cluster_and_always_quorum(serve: Serve) -> None:
    pve = PveCluster(None, ("pve1",))
    vmid = pve.add_guest("k8s-1", running=False).vmid
    with Client(serve(pve)) as ask:
        assert quorate(ask) is None
        ask.post(f"/nodes/localhost/qemu/{vmid}/status/start")
        pve.clock.advance(2)
        assert ask.status(vmid)["status"] == "running"
