"""What becomes of power commands: the states one sees meanwhile, and tasks that fail after their 200."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.pve import PveCluster, PveServers, Refused
from tests.support.pve.tasks import LOCK_WAIT_S
from tests.support.pve.tests.client import Client
from tests.support.pve.tests.conftest import Serve


def exit_of(ask: Client, upid: str) -> Any:
    """Return what the API says of a task's end; None: it runs."""
    return ask.get(f"/nodes/{upid.split(':')[1]}/tasks/{upid}/status").get("exitstatus")


def power(ask: Client, vmid: int, verb: str, **form: str | int) -> str:
    """Order something of a guest on pve1, and return the UPID."""
    return ask.post(f"/nodes/pve1/qemu/{vmid}/status/{verb}", **form)


def test_a_stop_is_taken_first_and_done_later(pve: PveCluster, ask: Client, vmid: int) -> None:
    upid = power(ask, vmid, "stop")
    assert ask.status(vmid)["status"] == "running"
    assert exit_of(ask, upid) is None
    pve.clock.advance(2)
    assert ask.status(vmid)["status"] == "stopped"
    assert exit_of(ask, upid) == "OK"


def test_a_stop_of_a_locked_guest_is_taken_and_fails(pve: PveCluster, ask: Client, vmid: int) -> None:
    pve.set_lock(vmid, "backup")
    upid = power(ask, vmid, "stop")
    pve.clock.advance(2)
    assert exit_of(ask, upid) == "VM is locked (backup)"
    assert ask.status(vmid)["status"] == "running"


def test_a_stop_of_a_guest_that_is_nowhere_is_taken_and_fails(ask: Client) -> None:
    assert exit_of(ask, power(ask, 999, "stop")).startswith("unable to find configuration file for VM 999")


def test_a_second_stop_waits_for_the_first_ones_late_cleanup(pve: PveCluster, ask: Client, vmid: int) -> None:
    """Stop, start, stop: the lock is held for half a minute by what the first stop left behind."""
    pve.qm.stop(vmid).finish()
    pve.qm.start(vmid).finish()
    pve.clock.advance(1)
    upid = power(ask, vmid, "stop")
    pve.clock.advance(LOCK_WAIT_S + 1)
    assert "got timeout" in exit_of(ask, upid)
    pve.clock.advance(30)
    assert pve.qm.stop(vmid).finish() == "OK"


def test_a_frozen_guest_reads_running_after_three_seconds_and_dies_late(
    pve: PveCluster, api: PveServers, ask: Client, vmid: int
) -> None:
    pve.freeze(vmid)
    assert ask.status(vmid)["qmpstatus"] == "running"
    assert api.requests[-1].delay_s == 3.0
    task = pve.qm.stop(vmid)
    pve.clock.advance(70)
    assert (task.exitstatus, pve.kvms(vmid) != []) == (None, True)
    assert task.finish() == "OK"
    assert pve.kvms(vmid) == []


def test_a_deaf_guest_outlives_a_shutdown_unless_it_is_forced(pve: PveCluster, vmid: int) -> None:
    pve.deafen(vmid)
    assert pve.qm.shutdown(vmid, timeout_s=5).finish() == "VM quit/powerdown failed - got timeout"
    assert pve.runs(vmid)
    assert pve.qm.shutdown(vmid, timeout_s=5, force=True).finish() == "OK"
    assert not pve.runs(vmid)


def test_a_shutdown_holds_the_lock_while_it_waits(pve: PveCluster, vmid: int) -> None:
    pve.deafen(vmid)
    waiting = pve.qm.shutdown(vmid, timeout_s=60)
    assert "got timeout" in pve.qm.stop(vmid).finish()
    assert pve.qm.stop(vmid, overrule_shutdown=True).finish() == "OK"
    assert waiting.exitstatus == "received interrupt"


def test_a_reboot_reads_stopped_and_unlocked_for_a_moment(pve: PveCluster, ask: Client, vmid: int) -> None:
    """Nothing in the API tells it from a stop: only that it is over after 1.6 s."""
    before, memory = ask.status(vmid)["pid"], pve.memory_of(vmid)
    power(ask, vmid, "reboot")
    off = []
    for _ in range(40):
        pve.clock.advance(0.1)
        status = ask.status(vmid)
        if status["status"] == "stopped":
            assert "lock" not in status
            off.append(pve.clock.now_s())
    assert 1.0 < off[-1] - off[0] < 2.5
    assert ask.status(vmid)["pid"] != before
    assert pve.memory_of(vmid) != memory


def test_a_reboot_of_a_deaf_guest_leaves_no_mark_behind(pve: PveCluster, vmid: int) -> None:
    pve.deafen(vmid)
    assert pve.qm.reboot(vmid, timeout_s=5).finish() == "VM quit/powerdown failed - got timeout"
    pve.crash(vmid)
    pve.clock.advance(60)
    assert pve.kvms(vmid) == []


def test_a_reset_boots_in_the_same_process(pve: PveCluster, ask: Client, vmid: int) -> None:
    before, memory = ask.status(vmid)["pid"], pve.memory_of(vmid)
    pve.qm.reset(vmid).finish()
    assert ask.status(vmid)["pid"] == before
    assert pve.memory_of(vmid) != memory


def test_a_pause_keeps_the_memory_and_a_reset_of_it_is_a_prelaunch(
    pve: PveCluster, ask: Client, vmid: int
) -> None:
    memory = pve.memory_of(vmid)
    pve.qm.suspend(vmid).finish()
    status = ask.status(vmid)
    assert (status["status"], status["qmpstatus"], pve.runs(vmid)) == ("running", "paused", False)
    pve.qm.resume(vmid).finish()
    assert pve.memory_of(vmid) == memory
    pve.qm.suspend(vmid).finish()
    pve.qm.reset(vmid).finish()
    assert ask.status(vmid)["qmpstatus"] == "prelaunch"


@pytest.mark.parametrize("verb", ["shutdown", "reboot"])
def test_a_paused_guest_cannot_be_asked(pve: PveCluster, vmid: int, verb: str) -> None:
    pve.set_qmp(vmid, "paused")
    with pytest.raises(Refused, match="VM is paused - cannot shutdown"):
        getattr(pve.qm, verb)(vmid)


@pytest.mark.parametrize("verb", ["reboot", "reset", "suspend", "resume"])
def test_a_stopped_guest_cannot_be(pve: PveCluster, vmid: int, verb: str) -> None:
    pve.crash(vmid)
    with pytest.raises(Refused, match=f"VM {vmid} not running"):
        getattr(pve.qm, verb)(vmid)


@pytest.mark.parametrize("verb", ["stop", "shutdown"])
def test_what_is_off_can_be_put_off_again_whatever_its_lock(pve: PveCluster, vmid: int, verb: str) -> None:
    pve.crash(vmid)
    pve.set_lock(vmid, "snapshot")
    assert getattr(pve.qm, verb)(vmid).finish() == "OK"


def test_a_missing_hook_keeps_a_guest_from_starting_on_that_host_alone(pve: PveCluster, vmid: int) -> None:
    pve.crash(vmid)
    pve.confs[vmid].hookscript = "local:snippets/hook"
    pve.hosts["pve1"].lacks_hook = True
    assert pve.qm.start(vmid).finish().startswith(f"hookscript error for {vmid} on pre-start")
    pve.move_conf(vmid, "pve2")
    assert pve.qm.start(vmid).finish() == "OK"


def test_a_crash_is_seen_at_once_where_it_happened(pve: PveCluster, ask: Client, vmid: int) -> None:
    pve.crash(vmid)
    assert ask.status(vmid)["status"] == "stopped"


def test_a_process_that_lingers_reads_stopped_and_can_still_write(
    pve: PveCluster, ask: Client, vmid: int
) -> None:
    pve.crash(vmid, lingers=True)
    assert ask.status(vmid)["status"] == "stopped"
    assert [kvm.lingers for kvm in pve.kvms(vmid)] == [True]


def test_power_needs_its_right(pve: PveCluster, ask: Client, vmid: int) -> None:
    pve.access.grant(pve.token, "/", {"Sys.Audit", "VM.Audit"})
    answer = ask("POST", f"/nodes/pve1/qemu/{vmid}/status/stop", "")
    assert (answer.status, answer.reason) == (403, f"Permission check failed (/vms/{vmid}, VM.PowerMgmt)")


def test_the_log_of_tasks_tells_who_did_what(pve: PveCluster, ask: Client, vmid: int) -> None:
    own = power(ask, vmid, "stop")
    pve.clock.advance(2)
    pve.qm.start(vmid)
    rows = ask.get("/nodes/pve1/tasks", source="all", vmid=vmid)
    assert [(row["type"], row.get("tokenid"), row["status"]) for row in rows] == [
        ("qmstart", None, "RUNNING"),
        ("qmstop", "agent", "OK"),
    ]
    assert "endtime" not in rows[0]
    assert [row["upid"] for row in ask.get("/nodes/pve1/tasks")] == [own]
    assert ask.get("/nodes/pve1/tasks", typefilter="qmdestroy") == []
    assert [line["t"] for line in ask.get(f"/nodes/pve1/tasks/{own}/log")] == ["TASK OK"]


def test_only_own_tasks_are_told_to_those_who_may_not_audit(
    pve: PveCluster, api: PveServers, ask: Client, vmid: int
) -> None:
    pve.qm.stop(vmid).finish()
    pve.access.grant(pve.token, "/", {"VM.Audit", "VM.PowerMgmt"})
    own = power(ask, vmid, "stop")
    pve.clock.advance(1)
    assert [row["upid"] for row in ask.get("/nodes/pve1/tasks")] == [own]
    assert ask("GET", f"/nodes/pve1/tasks/{pve.tasks.all[0].upid}/status").status == 403


def test_the_guest_agent_answers_where_there_is_one(pve: PveCluster, ask: Client, vmid: int) -> None:
    pve.access.grant(pve.token, "/vms", {"VM.GuestAgent.Audit"})
    talker = pve.add_guest("talker", agent=True).vmid
    path = "/nodes/pve1/qemu/{}/agent/get-host-name"
    assert ask.get(path.format(talker)) == {"result": {"host-name": "talker"}}
    assert ask("GET", path.format(vmid)).reason == "No QEMU guest agent configured"
    pve.set_qmp(talker, "paused")
    assert ask("GET", path.format(talker)).reason == "QEMU guest agent is not running"


def test_an_older_version_answers_in_its_own_shapes(serve: Serve) -> None:
    pve = PveCluster(version="8.4.1")
    guest = pve.add_guest("old", ha="started")
    with Client(serve(pve)) as ask:
        assert not any(key.startswith(("memhost", "pressure")) for key in ask.status(guest.vmid))
        assert "message" not in ask("GET", "/nodes/pve1/qemu/999/status/current").body
        assert "fencing" not in {row["type"] for row in ask.get("/cluster/ha/status/current")}
