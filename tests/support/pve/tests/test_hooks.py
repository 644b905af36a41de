"""When the stand-in runs a guest's hookscript: the table of facts about Proxmox's own, row by row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import wait_until
from tests.support.pve import Clock, PveCluster

STOP = ["pre-stop", "post-stop"]
START = ["pre-start", "post-start"]


@pytest.fixture
def home(tmp_path: Path) -> PveCluster:
    """A cluster of which time flows, and whose guests have a script."""
    script = tmp_path / "hook"
    script.write_text('#!/bin/sh\n[ "$FAIL" != "$2" ]\n')
    script.chmod(0o755)
    pve = PveCluster(clock=Clock(speed=8.0))
    pve.hooks.script = script
    return pve


@pytest.fixture
def vmid(home: PveCluster) -> int:
    return home.add_guest("k8s-1", hookscript="local:snippets/hook").vmid


def ends(pve: PveCluster, vmid: int, phases: list[str]) -> None:
    wait_until(lambda: pve.clock.now_s() and pve.hooks.phases(vmid) == phases, f"{phases}", timeout_s=30)


@pytest.mark.parametrize(
    ("event", "phases"),
    [
        (lambda pve, vmid: pve.qm.stop(vmid), STOP),
        (lambda pve, vmid: pve.qm.shutdown(vmid), STOP),
        (lambda pve, vmid: pve.crash(vmid), ["post-stop"]),
        (lambda pve, vmid: pve.qm.reboot(vmid), [*STOP, *START]),
        (lambda pve, vmid: pve.qm.hibernate(vmid), ["post-stop"]),
        (lambda pve, vmid: pve.qm.backup(vmid, "stop"), STOP),
        (lambda pve, vmid: (pve.qm.reset(vmid), pve.qm.suspend(vmid), pve.qm.resume(vmid)), []),
        (lambda pve, _vmid: (pve.host_dies("pve1"), pve.clock.advance(60)), []),
    ],
    ids=["stop", "shutdown", "crash", "reboot", "hibernate", "backup", "reset-pause-resume", "host-death"],
)
def test_which_phases_an_event_runs(
    home: PveCluster, vmid: int, event: Callable[[PveCluster, int], object], phases: list[str]
) -> None:
    event(home, vmid)
    ends(home, vmid, phases)


def test_post_stop_is_run_once_for_a_process(home: PveCluster, vmid: int) -> None:
    """Whoever cleans up first: the task that stopped it, not the cleaner that comes later."""
    home.qm.stop(vmid)
    ends(home, vmid, STOP)
    home.clock.advance(30)
    ends(home, vmid, STOP)


def test_a_failing_script_keeps_a_guest_from_starting_and_from_nothing_else(
    home: PveCluster, vmid: int
) -> None:
    home.hooks.environment = {"FAIL": "pre-stop"}
    home.qm.stop(vmid)
    ends(home, vmid, STOP)
    home.hooks.environment = {"FAIL": "pre-start"}
    task = home.qm.start(vmid)
    wait_until(lambda: home.clock.now_s() and task.exitstatus, "end of the start")
    assert task.exitstatus == f"hookscript error for {vmid} on pre-start: exit code 1"
    assert home.kvms(vmid) == []
