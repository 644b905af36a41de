"""Starts: plain, under HA, and of guests whose memory is on disk, which fencer never brings back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencer.contract.deadlines import order
from fencer.core.decide import decide
from fencer.core.model import (
    Candidate,
    Fleet,
    GuestHistory,
    Intent,
    NodeView,
    Observation,
    PowerState,
    Reason,
    StartGuest,
    Via,
)
from fencer.core.policy import Mode, Policy
from fencer.errors import GuestChanged
from tests.hypervisors.proxmox.finality import final
from tests.support.pve import Refused


def would_start(home, conf):
    """Return what `fencer start` makes of a live reading: whether it orders a start, and why not."""
    evidence = home.read(conf)
    node = NodeView("k8s-1", "uid-1", conf.uuid, "boot-1", ready=None, version="1")
    seen = Observation(
        node=replace(node, lease_age_s=90.0, not_ready_s=50.0),
        candidates=(Candidate(evidence.guest, Via.UUID, ("uuids",)),),
        evidence=evidence,
        history=GuestHistory(),
        fleet=Fleet(nodes=3, silent=1),
        intent=Intent.START,
        now_s=home.pve.clock.now_s(),
        utc="2026-11-20T10:00:00Z",
        close=True,
    )
    decision = decide(seen, Policy(mode=Mode.ARMED))
    return decision.reason, [it for it in decision.actions if isinstance(it, StartGuest)]


def test_a_plain_start_is_one_task_and_a_cold_run(home):
    conf = home.guest(running=False)
    reason, orders = would_start(home, conf)
    assert (reason, len(orders)) == (Reason.START_DUE, 1)
    order(home.hypervisor.start, home.ref(conf), orders[0].incarnation)
    up = home.read(conf)
    assert (up.power_state, up.cold_start) == (PowerState.RUNNING, None)
    assert [it.kind for it in home.pve.tasks.all] == ["qmstart"]


def test_a_start_under_ha_is_wished_for_waited_for_and_comes(home):
    conf = home.guest(running=False, ha="stopped")
    reason, orders = would_start(home, conf)
    assert (reason, len(orders)) == (Reason.START_DUE, 1)
    order(home.hypervisor.start, home.ref(conf), orders[0].incarnation)
    assert home.pve.tasks.all[-1].kind == "hastart"
    for _ in range(30):
        reading = home.read(conf)
        if reading.power_state is PowerState.RUNNING:
            break
        assert reading.power_state is PowerState.STOPPED
        home.pve.clock.advance(2)
    assert home.pve.runs(conf.vmid)
    home.pve.clock.advance(30)
    home.pve.crash(conf.vmid)
    assert "HA is about to start it" in home.read(conf).raw  # the wish is kept
    assert not home.read(conf).settled


@pytest.mark.parametrize("vmstate", [True, False], ids=["with its memory", "with the lock alone"])
def test_a_hibernated_guest_is_never_started_by_fencer(home, vmstate):
    conf = home.guest()
    home.pve.qm.hibernate(conf.vmid).finish()
    if not vmstate:
        conf.vmstate = conf.saved = None
    home.pve.clock.advance(20)
    assert would_start(home, conf) == (Reason.GUEST_SAVED, [])
    assert {it.power_state for it in (home.read(conf), home.told(conf))} == {PowerState.SAVED}
    home.pve.set_lock(conf.vmid, None)
    saved = PowerState.SAVED if vmstate else PowerState.STOPPED
    assert home.read(conf).power_state is saved


def test_while_it_is_being_hibernated_it_is_neither_off_nor_to_be_started(home):
    conf = home.guest()
    task = home.pve.qm.hibernate(conf.vmid, by_hand=True)
    while task.exitstatus is None:
        assert home.read(conf).power_state is PowerState.STOPPING
        assert would_start(home, conf)[1] == []
        task.step()
    assert home.read(conf).power_state is PowerState.SAVED


def test_an_order_to_start_what_was_hibernated_in_between_is_not_sent(home):
    """It was off when that was decided; since then it was started, and its memory is on disk now."""
    conf = home.guest(running=False)
    off = home.read(conf)
    home.pve.qm.start(conf.vmid).finish()
    home.pve.clock.advance(5)
    home.pve.qm.hibernate(conf.vmid).finish()
    before = len(home.pve.tasks.all)
    with pytest.raises(GuestChanged):
        order(home.hypervisor.start, home.ref(conf), off.incarnation)
    assert len(home.pve.tasks.all) == before


@pytest.mark.parametrize("verb", ["start", "resume"])
def test_whoever_brings_old_memory_back_it_is_told_also_to_an_agent_that_did_not_see_it_saved(home, verb):
    conf = home.guest()
    memory = home.pve.memory_of(conf.vmid)
    home.read(conf)
    home.pve.qm.hibernate(conf.vmid).finish()
    home.pve.clock.advance(300)
    task = getattr(home.pve.qm, verb)(conf.vmid)
    assert (task.kind, task.finish()) == (f"qm{verb}", "OK")
    home.pve.clock.advance(5)
    assert home.pve.memory_of(conf.vmid) == memory
    assert home.read(conf).cold_start is False
    assert home.agent().read(home.ref(conf)).cold_start is False


def test_a_pause_and_resume_does_not_hide_how_the_run_began(home):
    conf = home.guest()
    home.pve.qm.hibernate(conf.vmid).finish()
    home.pve.qm.start(conf.vmid).finish()
    home.pve.clock.advance(200)
    home.pve.qm.suspend(conf.vmid).finish()
    home.pve.qm.resume(conf.vmid).finish()
    home.pve.qm.start(conf.vmid).finish()  # "already running"
    home.pve.clock.advance(5)
    assert home.agent().read(home.ref(conf)).cold_start is False


def test_what_ended_after_a_resume_is_off_and_starts_cold(home):
    conf = home.guest()
    home.pve.qm.hibernate(conf.vmid).finish()
    home.pve.qm.resume(conf.vmid).finish()
    home.pve.clock.advance(40)  # so long the clean-up of the hibernated process holds the guest's lock
    home.read(conf)
    assert home.pve.qm.stop(conf.vmid).finish() == "OK"
    assert final(home.read(conf))
    assert would_start(home, conf)[0] is Reason.START_DUE


def test_under_ha_nothing_is_hibernated(home):
    conf = home.guest(ha="started")
    with pytest.raises(Refused, match="Cannot suspend HA managed VM to disk"):
        home.pve.qm.hibernate(conf.vmid)
    assert home.read(conf).power_state is PowerState.RUNNING
