"""Every answer that was recorded from the real API code goes through the parsers, and gets its right meaning.

The recordings are no part of the project: without them this leaves its tests out, and says so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from fnmatch import fnmatch
from typing import Any

import pytest

from fencer.core.model import PowerState
from fencer.errors import (
    HypervisorDenied,
    HypervisorError,
    HypervisorProtocol,
    HypervisorUnreachable,
)
from fencer.hypervisors.proxmox.errors import HostSilent, NotThere, ServerUnfit
from fencer.hypervisors.proxmox.ha_read import read_armed, read_ha
from fencer.hypervisors.proxmox.parse import (
    Config,
    Row,
    ended_well,
    read_config,
    read_listing,
    read_log,
    read_members,
    read_rights,
    read_status,
    read_task_end,
    read_tasks,
    read_upid,
    read_uptime,
)
from fencer.hypervisors.proxmox.rights import compare
from fencer.hypervisors.proxmox.states import QMP_STATES, PowerReading, read_power, read_row
from tests.hypervisors.proxmox.replay import as_received, path_of
from tests.support.pve.recordings import recordings

FOLDER = recordings()
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
USUAL = "FENCER_PVE_RECORDINGS" not in os.environ
"""The tables are about the recordings beside the project. Others must be read all the same."""
pytestmark = pytest.mark.skipif(not NAMES, reason=f"no recordings of the real API in {FOLDER}")

OFF = Config(uuid="", name="")
RUNNING, PAUSED, STOPPING = PowerState.RUNNING, PowerState.PAUSED, PowerState.STOPPING
STOPPED, SAVED, UNKNOWN = PowerState.STOPPED, PowerState.SAVED, PowerState.UNKNOWN

STATES: dict[str, tuple[PowerState, bool]] = {
    "01-localhost-node": (RUNNING, True),
    "01-status-current-running": (RUNNING, True),
    "01-status-current-stopped": (STOPPED, True),
    "02-lock-backup-running": (RUNNING, False),
    "02-lock-backup-stopped": (STOPPED, True),  # its task is asked after besides
    "02-lock-clone-running": (RUNNING, False),
    "02-lock-create-running": (RUNNING, False),
    "02-lock-migrate-running": (RUNNING, False),
    "02-lock-migrate-stopped": (STOPPED, False),
    "02-lock-rollback-running": (RUNNING, False),
    "02-lock-snapshot-running": (RUNNING, False),
    "02-lock-snapshot-stopped": (STOPPED, False),
    "02-lock-suspended-running": (RUNNING, False),
    "02-lock-suspended-stopped": (SAVED, True),
    "02-sigstop-status-0": (RUNNING, True),  # a frozen process: its word is all there is
    "02-sigstop-status-1": (RUNNING, True),
    "02-sigstop-status-2": (RUNNING, True),
    "02-status-during-shutdown": (RUNNING, True),
    "02-status-paused": (PAUSED, True),
    "02-template-status": (UNKNOWN, False),
    "03-fencerpvesep-status-100": (RUNNING, True),
    "03-onepvetk-status-100": (RUNNING, True),
    "03-vmonlypvetk-status-100": (RUNNING, True),
    "03-vmonlypvetk-status-101": (STOPPED, True),
    "04-noqmeventd-crash-status": (STOPPED, True),
    "07-proxy-ok-status": (RUNNING, True),
    "08-ha-status-current-vm": (RUNNING, True),
    "09-internal-error-after-reset-status": (STOPPING, False),
    "09-internal-error-status": (PAUSED, True),
    "09-io-error-after-reset-status": (STOPPING, False),
    "09-io-error-after-resume-status": (PAUSED, True),
    "09-io-error-status": (PAUSED, True),
    "10-back-201-status": (STOPPED, True),
    "10-minority-own-status": (RUNNING, True),
    "10-noquorum-own-status": (RUNNING, True),
    "10-noquorum-status-after-stop": (STOPPED, True),
    "10-partition-majority-status-201": (RUNNING, True),
    "10-partition-majority-status-203": (STOPPED, True),
    # It runs on pve3. Only where it last ran tells: test_proof_steps.py
    "10-partition-healed-status-pve2": (STOPPED, True),
    "10-partition-moved-status-pve2": (STOPPED, True),
    "10-partition-moved-status-pve3": (RUNNING, True),
    "10-partition-moved-status-pve3-via-pve2": (RUNNING, True),
}
"""What `status/current` says by itself: power state, settled."""

REFUSALS: dict[str, type[HypervisorError]] = {
    "01-bad-param": HypervisorProtocol,
    "01-bad-path": HypervisorProtocol,
    "01-bad-vmid": HypervisorProtocol,
    "01-config-missing-vmid": NotThere,
    "01-method-not-impl": HypervisorProtocol,
    "01-nextid-used": HypervisorProtocol,
    "01-status-missing-vmid": NotThere,
    "01-status-unknown-node": HostSilent,
    "01-version-noauth": HypervisorDenied,
    "02-agent-403": HypervisorDenied,
    "02-destroy-running": HypervisorProtocol,
    "02-reboot-paused": HypervisorProtocol,
    "02-shutdown-paused": HypervisorProtocol,
    "02-stopped-reset": HypervisorProtocol,
    "03-bad-token-id": HypervisorDenied,
    "03-bad-token-secret": HypervisorDenied,
    "03-bad-user": HypervisorDenied,
    "03-expired-token": HypervisorDenied,
    "03-nonepvetk-cluster-status": HypervisorDenied,
    "03-nonepvetk-status-100": HypervisorDenied,
    "03-onepvetk-status-101": HypervisorDenied,
    "03-skiplock-token": HypervisorProtocol,
    "03-vmonlypvetk-status-999": NotThere,
    "05-ghost-pve1-status": NotThere,
    "05-ghost-status": HostSilent,
    "05-ghost-status-unreachable": HostSilent,
    "07-base-wrongnode": NotThere,
    "07-dead-0s-status": HostSilent,
    "07-drop-config": HostSilent,
    "07-link-down-nodestatus": HostSilent,
    "07-pmxcfs-frozen-cluster-status": ServerUnfit,
    "07-pmxcfs-frozen-resources": ServerUnfit,
    "07-pmxcfs-stopped1-cluster-status": ServerUnfit,
    "07-pmxcfs-stopped1-status": ServerUnfit,
    "07-pmxcfs-stopped1-stop": ServerUnfit,
    "07-pmxcfs-stopped2-list": ServerUnfit,
    "07-pvedaemon-dead-status": HostSilent,
    "07-pvedaemon-frozen-status": HostSilent,
    "07-pveproxy-dead-stop": HostSilent,
    "07-pveproxy-frozen-config": HostSilent,
    "08-ha-overrule": HypervisorProtocol,
    "08-ha-suspend-todisk": HypervisorProtocol,
    "10-noquorum-dead-status": HostSilent,
    "10-noquorum-start": HypervisorProtocol,
    "10-partition-healed-status-pve3": NotThere,
    "13-etcpve-unmounted-resources": ServerUnfit,
    "13-etcpve-unmounted-version": ServerUnfit,
}
"""Which error an answer is."""

QUORATE: dict[str, tuple[str | None, bool]] = {
    "01-cluster-status-standalone": (None, False),
    "05-ghost-cluster-status": (None, False),
    "07-base-cluster-status": ("lab", True),
    "10-minority-cluster-status": ("lab", False),
    "10-noquorum-cluster-status": ("lab", False),
}


def load(name: str) -> dict[str, Any]:
    """Return a recording; those that are lists of exchanges hold no single answer."""
    content = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return content if isinstance(content, dict) else {}


def answered(name: str) -> bool:
    request = load(name).get("request")
    return isinstance(request, dict) and "path" in request


ANSWERS = [name for name in NAMES if answered(name)]
SERIES = [name for name in NAMES if "series" in load(name)]


PARSERS: dict[str, Callable[[Any], Any]] = {
    "cluster/resources": read_listing,
    "cluster/status": read_members,
    "access/permissions": lambda data: compare(read_rights(data)),
    "cluster/ha/status/manager_status": read_ha,
    "cluster/ha/status/current": read_armed,
    "nodes/*/qemu/*/status/current": lambda data: read_power(read_status(data), OFF),
    "nodes/*/qemu/*/config": read_config,
    "nodes/*/tasks/*/status": read_task_end,
    "nodes/*/tasks/*/log": read_log,
    "nodes/*/tasks": read_tasks,
    "nodes/*/status": read_uptime,
}


def read(name: str) -> Any:
    """Put a recorded answer through the parser of its path."""
    recording = load(name)
    data, path = as_received(recording), "/".join(path_of(recording))
    if recording["request"]["method"] != "GET":
        return read_upid(data) if fnmatch(path, "nodes/*/status/*") else data
    parts = path.count("/")
    known = [parser for it, parser in PARSERS.items() if it.count("/") == parts and fnmatch(path, it)]
    return known[0](data) if known else data


@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_is_read_or_refused(name):
    """Nothing but our own errors comes out; a refusal is never data; only what was stopped is ever off."""
    recording = load(name)
    try:
        found = read(name)
    except HypervisorProtocol:
        assert recording["status"] != 200 or not USUAL  # others may hold what nobody can read
        return
    except HypervisorError:
        assert recording["status"] != 200
        return
    assert recording["status"] == 200
    if isinstance(found, PowerReading) and found.power_state in {STOPPED, SAVED, PowerState.ABSENT}:
        data = recording["body"]["data"]
        assert data.get("pid") is None
        assert data["status"] == data.get("qmpstatus", "stopped") == "stopped"


@pytest.mark.parametrize("name", sorted(STATES.keys() & set(ANSWERS)))
def test_status_current_has_its_meaning(name):
    reading = read(name)
    assert (reading.power_state, reading.settled) == STATES[name]
    assert reading.io_error == (load(name)["body"]["data"]["qmpstatus"] == "io-error")


@pytest.mark.parametrize("name", sorted(REFUSALS.keys() & set(ANSWERS)))
def test_a_refusal_has_its_class(name):
    with pytest.raises(REFUSALS[name]) as caught:
        read(name)
    assert type(caught.value) is REFUSALS[name]
    assert "home (https://pve2:8006)" in str(caught.value)


@pytest.mark.parametrize("name", [name for name in ANSWERS if load(name)["status"] != 200])
def test_a_refusal_has_the_class_of_its_number(name):
    """Also one without a row above."""
    recording = load(name)
    status, of_host = recording["status"], path_of(recording)[0] == "nodes"
    with pytest.raises(HypervisorError) as caught:
        read(name)
    kind = type(caught.value)
    if status in {401, 403}:
        assert kind is HypervisorDenied
    elif status is None or status in {502, 503, 504}:
        assert kind is ServerUnfit
    elif status in range(595, 600):
        assert kind is (HostSilent if of_host else ServerUnfit)
    elif status == 500:
        assert kind in {HypervisorProtocol, NotThere, HostSilent, ServerUnfit}
    else:
        assert kind is HypervisorProtocol


@pytest.mark.parametrize("name", sorted(QUORATE.keys() & set(ANSWERS)))
def test_a_cluster_says_its_name_and_whether_it_has_quorum(name):
    members = read(name)
    assert (members.name, members.quorate) == QUORATE[name]


@pytest.mark.skipif(not USUAL, reason="the tables are about the usual recordings")
def test_the_tables_are_complete():
    """A row without a recording would test nothing; a state without a row would be nobody's judgement."""
    states = {name for name in ANSWERS if fnmatch("/".join(path_of(load(name))), "nodes/*/qemu/*/current")}
    assert {name for name in states if load(name)["status"] == 200} == STATES.keys()
    assert (REFUSALS.keys() | QUORATE.keys()) <= set(ANSWERS)


@pytest.mark.parametrize("name", SERIES)
def test_no_row_of_a_series_is_off_while_its_process_lives(name):
    """Rows are summaries: one answer, or one for each host; both with a pid where there was a process."""
    for row in load(name)["series"]:
        for answer in [row, *row.values()]:
            if isinstance(answer, dict) and answer.get("http") == 200 and "qmpstatus" in answer:
                state = read_power(read_status(answer), OFF).power_state
                if answer.get("pid") is not None:
                    assert state not in {STOPPED, SAVED}, answer
                elif answer["status"] == "stopped" and not (answer.get("lock") or answer.get("template")):
                    assert state is STOPPED, answer
        for entry in listed(row.get("resources")):
            lock, word = entry.get("lock"), entry["status"]
            hint = read_row(Row(201, "qemu", entry.get("node", ""), word, lock=lock), host_online=True)
            assert (hint.power_state is UNKNOWN) == (word not in {"stopped", *QMP_STATES})
            assert (hint.power_state in {STOPPED, SAVED}) == (word == "stopped")


def listed(resources: Any) -> list[dict[str, Any]]:
    """Return the guests that a row of a series tells of: one, or some by their numbers, or none."""
    if not isinstance(resources, dict):
        return []
    entries = [resources] if "status" in resources else resources.values()
    return [entry for entry in entries if isinstance(entry, dict) and "status" in entry]


@pytest.mark.skipif(not (FOLDER / "hook-log.jsonl").is_file(), reason=f"no hook runs in {FOLDER}")
def test_hooks_never_saw_a_guest_off_whose_process_was_there():
    log = FOLDER / "hook-log.jsonl"
    seen = 0
    for line in log.read_text(encoding="utf-8").splitlines():
        run = json.loads(line)
        answer = run.get("api_status_current") or {}
        if answer.get("status") == 200:
            state = read_power(read_status(answer["data"]), OFF).power_state
            assert not (run.get("kvm_procs") and state is STOPPED), run["argv"]
            seen += 1
    assert seen > 100 or not USUAL


@pytest.mark.skipif("08-dead-node-pve3" not in SERIES, reason=f"no dead host in {FOLDER}")
def test_cluster_resources_of_a_dead_host_is_no_state():
    """It says running for 293 s after the power was cut, then unknown; the row is never more than a hint."""
    rows = load("08-dead-node-pve3")["series"]
    words = {row["resources"]["201"]["status"] for row in rows}
    assert words == {"running", "unknown"}
    for word in words:
        assert read_row(Row(201, "qemu", "pve3", word), host_online=False).power_state is UNKNOWN


TASK_ENDS: dict[str, bool] = {
    "02-stop": True,
    "02-lock-backup-stop": False,
    "02-shutdown-ignored": False,
    "02-stop-paused": False,
    "08-ha-api-stop": True,
    "10-noquorum-stop-local": True,
    "11-quick-restart-3-stop": False,
}


@pytest.mark.parametrize("name", sorted(TASK_ENDS.keys() & set(NAMES)))
def test_a_task_that_failed_later_is_no_success(name):
    task = load(name)["task"]
    ended = read_task_end(task.get("final_status_body", task.get("final"))["data"])
    assert ended is not None
    assert ended_well(ended) is TASK_ENDS[name]


def test_an_order_that_was_not_reached_says_so():
    """595 and 596 to a POST: nothing is known of its outcome."""
    for name in ("07-pveproxy-dead-stop", "07-pvedaemon-frozen-stop", "07-drop-stop"):
        if name in ANSWERS:
            with pytest.raises(HypervisorUnreachable, match="pve3"):
                read(name)
