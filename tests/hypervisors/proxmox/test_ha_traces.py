"""HA as it really runs, against the truth: no guest is confirmed off before it is, and recovered ones are.

See `tests.hypervisors.proxmox.ha_watch` for how a trace is watched. The traces are no part of the project:
without them this leaves its tests out, and says so.
"""

from __future__ import annotations

import json

import pytest

from tests.hypervisors.proxmox.ha_report import report
from tests.hypervisors.proxmox.ha_watch import FOLDER, NAMES, play

pytestmark = pytest.mark.skipif(not NAMES, reason=f"no traces of HA's simulator in {FOLDER}")


@pytest.mark.parametrize("name", NAMES)
def test_no_guest_is_confirmed_before_it_is_off(name):
    """Neither by core, nor by what HA is taken to prove."""
    _, account = play(name)
    assert account.premature == []


@pytest.mark.parametrize("name", NAMES)
def test_what_ha_recovered_is_confirmed(name):
    """A guest that an armed agent had started, and that the manager took off a host, is proven off there."""
    trace, account = play(name)
    expected = {
        (sid, host)
        for sid, host, _ in trace.stolen
        if (sid, host) in trace.alive_when_lost and not trace.disarmed
    }
    assert expected <= account.recovered.keys()


def unguarded(name: str) -> bool:
    """Whether HA takes a guest off a host whose agent never started it: it may not even be armed."""
    started: set[tuple[str, str]] = set()
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        words = row.get("text", "").split()
        if words[:2] == ["starting", "service"]:
            started.add((row["by"].removesuffix("/lrm"), words[2]))
        taken = row["kind"] == "steal_service" and row["sid"].startswith("vm:")
        if taken and (row["from"], row["sid"]) not in started:
            return True
    return False


@pytest.mark.parametrize("name", [name for name in NAMES if unguarded(name)])
def test_an_acknowledged_fence_of_an_idle_host_proves_nothing(name):
    """The trap: the guest was started by hand, its host's agent is idle, and HA takes it all the same."""
    trace, account = play(name, by_hand=True)
    assert trace.stolen
    assert account.premature == []
    assert not account.recovered.keys() & {(sid, host) for sid, host, _ in trace.stolen}


def test_how_many_confirm_and_refuse():
    """Not one kind alone: a watch that never confirms is as useless as one that always does."""
    told = report()
    assert told.premature == 0
    assert told.recovered
    assert told.unexplained == []
    assert told.lines()
