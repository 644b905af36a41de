"""What a recorded HA trace tells of the truth: single rows of its log, written here by hand."""

from __future__ import annotations

import json

import pytest

from tests.hypervisors.proxmox.ha_report import DONE_S, Report
from tests.hypervisors.proxmox.ha_trace import load
from tests.hypervisors.proxmox.ha_watch import Account

SID = "vm:102"
HOSTS = ("pve1", "pve2", "pve3")
ALL_ON = [(20, "cmdlist", f"execute power {host} on") for host in HOSTS]
STARTS = (21, "pve2/lrm", f"starting service {SID}")
STEAL = {"kind": "steal_service", "sid": SID, "from": "pve2", "to": "pve1"}


def row(entry):
    """Return a line of the log: second, by whom, text; or a row as it is."""
    if isinstance(entry, dict):
        return entry
    t, by, text = entry
    return {"t": t, "by": by, "kind": "log", "level": "info", "text": text}


@pytest.fixture
def played(tmp_path):
    """Write a trace of one guest on pve2, and play it to its end."""

    def play(*entries, by_hand=False):
        scenario = {
            "kind": "scenario",
            "name": "by hand",
            "hardware_status": {host: {"power": "off", "network": "off"} for host in HOSTS},
            "service_config": {SID: {"node": "pve2", "state": "started"}},
        }
        path = tmp_path / "trace.jsonl"
        path.write_text("".join(json.dumps(row(it)) + "\n" for it in [scenario, *ALL_ON, *entries]))
        trace = load(path, by_hand=by_hand)
        for second in range(trace.ends_s + 1):
            trace.play(second)
        return trace

    return play


@pytest.mark.parametrize("by", ["cmdlist", "watchdog", "fence_virt"])
def test_whoever_powers_a_host_off_ends_its_guests(played, by):
    trace = played(STARTS, (50, by, "execute power pve2 off"))
    assert trace.guests[SID].runs == {}
    assert trace.alive_when_lost == {(SID, "pve2")}


def test_power_on_gives_a_host_that_runs_its_network_back(played):
    trace = played((30, "cmdlist", "execute network pve2 off"), (50, "cmdlist", "execute power pve2 on"))
    assert trace.hosts["pve2"].there
    assert trace.hosts["pve2"].booted_s == 20


def test_power_off_of_a_host_that_is_off_is_no_second_loss(played):
    off = "execute power pve2 off"
    assert played((50, "watchdog", off), (90, "cmdlist", off)).hosts["pve2"].lost_power_s == 50


@pytest.mark.parametrize(
    ("words", "runs"), [("", {}), (" started", {}), (" started 0", {}), (" stopped 1", {"pve3": 40})]
)
def test_a_service_may_run_before_it_is_added(played, words, runs):
    trace = played((40, "cmdlist", f"execute service vm:200 add pve3{words}"))
    assert trace.guests["vm:200"].runs == runs


def test_a_guest_runs_on_where_it_did_when_it_is_added_once_more(played):
    """HA has let go of it, and takes it for another host's: two writers as soon as that one starts it."""
    again = (60, "cmdlist", f"execute service {SID} add pve3")
    trace = played(STARTS, (40, "cmdlist", f"execute service {SID} delete"), again)
    assert (trace.guests[SID].conf, set(trace.guests[SID].runs)) == ("pve3", {"pve2"})


def test_nobody_starts_a_guest_by_hand_without_quorum(played):
    alone = (20, "cmdlist", "execute network pve2 off")
    assert played(by_hand=True).guests[SID].runs == {"pve2": 20}
    assert played(alone, (90, "hardware", "exit"), by_hand=True).guests[SID].runs == {}
    back = (60, "cmdlist", "execute network pve2 on")
    assert played(alone, back, by_hand=True).guests[SID].runs == {"pve2": 60}


def test_ha_recovers_only_what_died(played):
    """What it took off a host that lived, and that lost its power later, was no recovery."""
    off = (50, "watchdog", "execute power pve2 off")
    assert played(STARTS, off, STEAL | {"t": 90}).recovered == {(SID, "pve2")}
    assert played(STARTS, STEAL | {"t": 40}, off).recovered == set()
    stopped = (30, "pve2/lrm", f"service status {SID} stopped")
    assert played(STARTS, stopped, off, STEAL | {"t": 90}).recovered == set()


def test_a_recovery_that_found_no_other_host_yet_is_one_as_well(played):
    status = {
        "kind": "manager_status",
        "data": {"service_status": {SID: {"state": "recovery", "node": "pve2"}}},
    }
    trace = played(STARTS, (50, "watchdog", "execute power pve2 off"), status | {"t": 90})
    assert trace.recovered == {(SID, "pve2")}


OFF = (50, "watchdog", "execute power pve2 off")
ON = (60, "cmdlist", "execute power pve2 on")


@pytest.mark.parametrize(
    ("entries", "words", "explained"),
    [
        ([STARTS, OFF], "pve2 is offline", True),
        ([STARTS, OFF, STEAL | {"t": 90}], "pve2 is offline", False),
        ([STARTS, OFF, STEAL | {"t": 90}], "running, no lock", True),
        ([STARTS, OFF, ON], "stopped; HA is about to start it", True),
        ([STARTS, OFF, ON, (60 + DONE_S, "hardware", "exit")], "stopped; HA is about to start it", False),
    ],
    ids=["not recovered", "recovered", "started again", "just back", "long back"],
)
def test_only_a_good_reason_explains_why_a_guest_that_died_was_not_proven_off(
    played, entries, words, explained
):
    told = Report()
    told.add("by hand", played(*entries), Account(refused={SID: words}))
    assert bool(told.unexplained) is not explained


def test_a_recovery_that_was_proven_needs_no_explanation_for_the_next_loss(played):
    again = [(91, "pve1/lrm", f"starting service {SID}"), (120, "watchdog", "execute power pve1 off")]
    told = Report()
    proven = Account(recovered={(SID, "pve2"): 40}, refused={SID: "pve1 is offline"})
    told.add("by hand", played(STARTS, OFF, STEAL | {"t": 90}, *again), proven)
    assert told.unexplained == []


def test_rows_out_of_order_are_all_played(played):
    trace = played(STARTS, (50, "watchdog", "execute power pve2 off"), (49, "pve2/lrm", "killed by poweroff"))
    assert trace.now_s == 50
    assert trace.guests[SID].runs == {}


def test_only_the_last_line_may_be_cut_off(tmp_path):
    path = tmp_path / "trace.jsonl"
    first = json.dumps({"kind": "scenario", "name": "x", "hardware_status": {}, "service_config": {}})
    path.write_text(f'{first}\n\n{{"kind": "log", "t":')
    assert load(path).ends_s == 0
    path.write_text(f"{first}\n{{\n{first}\n")
    with pytest.raises(ValueError, match="line 2"):
        load(path)
    for no_trace in ("", '{"kind": "log", "t": 1}\n'):
        path.write_text(no_trace)
        with pytest.raises(ValueError, match="does not begin with a scenario"):
            load(path)
