"""Clones, templates, imports and restores of a node's guest: who is who afterwards, and what is never off.

A copy matters to fencer in three ways: by its UUID it may be the node, by its tags and hookscript it speaks
of itself where the original is meant, and by its number it may stand where the original stood.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencer.core.identity import Admission, Directory, Rules, bound
from fencer.core.model import Binding, Fleet, GuestHistory, Intent, NodeView, Observation, PowerState, Reason
from fencer.core.rung import Objection
from fencer.errors import GuestNotFound, HypervisorProtocol
from tests.hypervisors.proxmox.finality import final
from tests.support.pve import Refused

BOOT = "boot-1"
RULES = Rules(admitted={"home": Admission(groups=frozenset({"tag:fencer"}))})


def node(conf, home, *, is_bound=True):
    """Return the node whose guest this is; a person has approved that."""
    binding = Binding(home.ref(conf), (BOOT,)) if is_bound else None
    bare = NodeView("k8s-1", "uid-1", conf.uuid, BOOT, ready=None, version="1", binding=binding)
    return replace(bare, approved=conf.uuid)


def candidates(home, conf, *, is_bound=True):
    """Return who may be the node, as the numbers and what admits power on each."""
    readings = home.hypervisor.sweep()
    this = node(conf, home, is_bound=is_bound)
    found = Directory((it.guest for it in readings), (this,), RULES, {"home"}, readings).candidates(this)
    return [(int(it.guest.id), it.admitted_by) for it in found]


def who(home, conf, *, is_bound=True):
    """Return what core makes of the sweep: the one guest that is the node, or why there is none."""
    readings = {it.guest.key: it for it in home.hypervisor.sweep()}
    this = node(conf, home, is_bound=is_bound)
    guests = [it.guest for it in readings.values()]
    found = Directory(guests, (this,), RULES, {"home"}, readings.values()).candidates(this)
    states = [readings[it.guest.key].power_state if it.guest.key in readings else None for it in found]
    answer = bound(
        Observation(
            this,
            found,
            readings.get(found[0].guest.key),
            GuestHistory(),
            Fleet(nodes=3),
            Intent.WATCH,
            now_s=0.0,
            utc="2026-11-20T10:00:00Z",
            others=tuple(states[1:]),
        )
    )
    return answer.reason if isinstance(answer, Objection) else int(answer[0].guest.id)


@pytest.mark.parametrize("running", [True, False], ids=["of a running one", "of a stopped one"])
def test_a_clone_is_nobodys_candidate_though_it_bears_the_tag_and_runs_beside_it(home, running):
    conf = home.guest(running=running, tags=("fencer",), hookscript="local:snippets/fencer-hook", pool="k8s")
    home.pve.qm.clone(conf.vmid, 300).finish()
    home.pve.qm.start(300).finish()
    home.watch(20)
    copy = home.pve.confs[300]
    assert (copy.tags, copy.hookscript, copy.pool) == (conf.tags, conf.hookscript, None)
    assert candidates(home, conf) == [(conf.vmid, ("tag:fencer",))]
    assert (who(home, conf), home.read(copy).power_state) == (conf.vmid, PowerState.RUNNING)


def test_the_end_of_a_clone_says_nothing_of_its_original_and_the_other_way_round(home):
    conf = home.guest(hookscript="local:snippets/fencer-hook")
    home.pve.qm.clone(conf.vmid, 300).finish()
    home.pve.qm.start(300).finish()
    home.watch(20)
    home.pve.crash(300)
    home.hypervisor.nudge("300")
    assert (home.told(conf).power_state, home.read(conf).power_state) == (PowerState.RUNNING,) * 2
    assert final(home.read(home.pve.confs[300]))
    home.pve.crash(conf.vmid)
    home.pve.qm.start(300).finish()
    home.pve.clock.advance(5)
    assert final(home.read(conf))
    assert home.read(home.pve.confs[300]).power_state is PowerState.RUNNING


def test_a_guest_that_is_being_cloned_while_off_is_final_only_as_any_other(home):
    """The clone's lock is the copy's: the task carries the original's number, and goes on for long."""
    conf = home.guest(running=False)
    task = home.pve.qm.clone(conf.vmid, 300, by_hand=True)
    assert not home.read(conf).settled
    task.step()
    assert final(home.read(conf))


def test_a_template_made_of_a_nodes_guest_is_no_guest_any_more_and_proves_nothing(home):
    conf = home.guest(tags=("fencer",))
    home.watch(4)
    home.pve.qm.stop(conf.vmid).finish()
    assert home.pve.qm.template(conf.vmid).finish() == "OK"
    young = home.read(conf)  # the cluster learns of it up to ten seconds later, with the statistics
    assert (young.power_state, young.raw.endswith("a template")) == (PowerState.UNKNOWN, True)
    assert not any(final(it) for it in home.hypervisor.sweep())
    home.pve.clock.advance(12)
    assert home.hypervisor.sweep() == []
    with pytest.raises(HypervisorProtocol, match="is a template, and never runs"):
        home.read(conf)


def test_a_guest_made_of_that_template_is_another_one(home):
    conf = home.guest(running=False)
    home.pve.qm.template(conf.vmid).finish()
    home.pve.qm.clone(conf.vmid, 300).finish()
    home.pve.qm.start(300).finish()
    home.watch(4)
    assert [int(it.guest.id) for it in home.hypervisor.sweep()] == [300]
    with pytest.raises(GuestNotFound):
        home.hypervisor.read(replace(home.ref(conf), id="300"))


def test_a_running_guest_becomes_no_template(home):
    conf = home.guest()
    with pytest.raises(Refused, match="if VM is running"):
        home.pve.qm.template(conf.vmid)


def test_an_imported_copy_has_a_uuid_of_its_own_and_neither_tag_nor_hook(home):
    conf = home.guest(tags=("fencer",), hookscript="local:snippets/fencer-hook")
    made = home.pve.qm.import_ovf(300, conf.name, "pve2")
    home.pve.qm.start(300).finish()
    home.watch(4)
    assert candidates(home, conf) == [(conf.vmid, ("tag:fencer",))]
    assert home.read(made).groups == set()


def test_an_import_into_the_number_that_the_guest_had_is_not_the_guest(home):
    conf = home.guest()
    home.watch(4)
    home.pve.qm.stop(conf.vmid).finish()
    home.pve.qm.destroy(conf.vmid).finish()
    home.pve.qm.import_ovf(conf.vmid, conf.name, "pve1")
    home.pve.qm.start(conf.vmid).finish()
    home.pve.clock.advance(5)
    gone = home.read(conf)
    assert (gone.power_state, gone.guest.uuid) == (PowerState.ABSENT, conf.uuid)


# -- restores ---------------------------------------------------------------------------------------------


def test_a_restore_over_a_running_guest_is_refused_and_it_runs_on(home):
    conf = home.guest()
    home.watch(4)
    with pytest.raises(Refused, match="already exists"):
        home.pve.qm.restore(conf.vmid, conf.vmid)
    assert home.pve.qm.restore(conf.vmid, conf.vmid, force=True).finish().endswith("vm is running")
    still = home.read(conf)
    assert (still.power_state, still.settled) == (PowerState.RUNNING, True)


def test_a_restore_over_a_stopped_guest_is_final_only_when_it_is_over(home):
    """It is the same guest, by number and UUID, with other disks; what ran there is gone all the same."""
    conf = home.guest()
    home.watch(4)
    home.pve.qm.stop(conf.vmid).finish()
    task = home.pve.qm.restore(conf.vmid, conf.vmid, force=True, by_hand=True)
    during = home.read(conf)
    assert (during.power_state, during.settled) == (PowerState.STOPPED, False)
    task.step()
    assert final(home.read(conf))


def test_a_backup_of_another_guest_restored_over_it_ends_it_nowhere_on_record(home):
    conf, other = home.guest(), home.guest("k8s-2", running=False)
    home.watch(4)
    home.pve.qm.stop(conf.vmid).finish()
    home.pve.qm.restore(other.vmid, conf.vmid, force=True).finish()
    home.pve.clock.advance(5)
    with pytest.raises(GuestNotFound):
        home.read(conf)


@pytest.mark.parametrize("is_bound", [True, False], ids=["bound", "not bound yet"])
def test_a_restore_beside_the_guest_shares_its_uuid_and_is_in_the_way_once_it_runs(home, is_bound):
    conf = home.guest(tags=("fencer",))
    home.pve.qm.restore(conf.vmid, 300).finish()
    home.watch(4)
    both = [(conf.vmid, ("tag:fencer",)), (300, ("tag:fencer",))]
    assert sorted(candidates(home, conf, is_bound=is_bound)) == both
    at_rest = conf.vmid if is_bound else Reason.GUEST_AMBIGUOUS
    assert who(home, conf, is_bound=is_bound) == at_rest
    home.pve.qm.start(300).finish()
    home.watch(20)
    home.pve.crash(conf.vmid)
    home.watch(20)
    assert who(home, conf, is_bound=is_bound) is Reason.GUEST_AMBIGUOUS
    assert (home.read(conf).power_state, home.read(home.pve.confs[300]).power_state) == (
        PowerState.STOPPED,
        PowerState.RUNNING,
    )


def test_a_unique_restore_is_another_guest(home):
    conf = home.guest(tags=("fencer",))
    home.pve.qm.restore(conf.vmid, 300, unique=True).finish()
    home.pve.qm.start(300).finish()
    home.watch(20)
    assert candidates(home, conf) == [(conf.vmid, ("tag:fencer",))]
    assert who(home, conf) == conf.vmid
