"""HA as it really runs, against the truth: no guest is confirmed off before it is, and recovered ones are.

See `tests.hypervisors.proxmox.ha_watch` for how a trace is watched. The traces are no part of the project:
without them this leaves its tests out, and says so.
"""

from __future__ import annotations

import pytest

from tests.hypervisors.proxmox.ha_report import report
from tests.hypervisors.proxmox.ha_trace import Trace, read_rows
from tests.hypervisors.proxmox.ha_watch import FOLDER, NAMES, play

pytestmark = [
    pytest.mark.skipif(not NAMES, reason=f"no traces of HA's simulator in {FOLDER}"),
    pytest.mark.slow,
    pytest.mark.no_cover,  # counting takes longer than replaying
]


@pytest.mark.parametrize("name", NAMES)
def test_no_guest_is_confirmed_before_it_is_off(name):
    """Neither by core, nor by what HA is taken to prove."""
    _, account = play(name)
    assert account.premature == []


def expected(trace: Trace) -> set[tuple[str, str]]:
    """Return which service's end on which host HA proves: taken off it, after it had lost power with it."""
    taken = {(sid, host) for sid, host, _ in trace.stolen}
    return set() if trace.disarmed else taken & trace.recovered


@pytest.mark.parametrize("name", NAMES)
def test_what_ha_recovered_is_confirmed(name):
    """A guest that an armed agent had started, and that the manager took off a host, is proven off there."""
    trace, account = play(name)
    assert expected(trace) - unguarded(name) <= account.recovered.keys()


def unguarded(name: str) -> set[tuple[str, str]]:
    """Return what HA took off hosts whose agent never reported it as started: it may not even be armed."""
    started: set[tuple[str, str]] = set()
    taken: set[tuple[str, str]] = set()
    for row in read_rows(FOLDER / name):
        if row["kind"] == "lrm_status":
            results = (row["data"].get("results") or {}).values()
            started |= {
                (it["sid"], row["node"])
                for it in results
                if it["state"] == "started" and it["exit_code"] == 0
            }
        elif row["kind"] == "steal_service" and row["sid"].startswith("vm:"):
            taken |= {(row["sid"], row["from"])} - started
    return taken


@pytest.mark.parametrize("name", [name for name in NAMES if unguarded(name)])
def test_an_acknowledged_fence_of_an_idle_host_proves_nothing(name):
    """The trap: the guest was started by hand, its host's agent is idle, and HA takes it all the same."""
    trace, account = play(name, by_hand=True)
    assert trace.stolen
    assert account.premature == []
    assert not account.recovered.keys() & unguarded(name)


def test_how_many_confirm_and_refuse():
    """Not one kind alone: a watch that never confirms is as useless as one that always does."""
    told = report()
    assert told.premature == 0
    assert told.recovered or not any(expected(play(name)[0]) for name in NAMES)
    assert told.unexplained == []
    assert told.lines()
