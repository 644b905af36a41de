"""Orders: given once, carried out in their time, and read again."""

from dataclasses import replace

import pytest

from fencer.contract.deadlines import IN_TIME, order
from fencer.core.model import (
    GuestRef,
    PowerState,
)
from fencer.errors import (
    GuestChanged,
    HypervisorProtocol,
    HypervisorUnreachable,
)
from tests.hypervisors.virtualbox.looks import BUSY_S, LONG_S, SOON_S, freeze, runs, states
from tests.support.vbox import NO_SERVER

pytestmark = pytest.mark.slow  # each call of VBoxManage is a process, and some hang


@pytest.mark.slow
def test_a_machine_that_does_not_obey_is_killed(vbox, opened):
    hypervisor, machine = opened(off_s=BUSY_S * 2.5), vbox.add("frozen")  # else it may not even have begun
    vbox.trouble(f"controlvm {machine.id} poweroff", hang=True)
    order(hypervisor.stop, machine)
    ordered = [words for words in vbox.calls() if words[0] != "showvminfo"]
    assert ordered == [
        ["controlvm", machine.id, "poweroff"],
        ["startvm", machine.id, "--type", "emergencystop"],
    ]
    vbox.recover()
    assert hypervisor.read(machine).raw.startswith("aborted since")


def test_a_stop_that_stood_still_and_was_carried_out_all_the_same_kills_nothing(vbox, opened):
    """VBoxManage hangs, and VirtualBox obeys it: a kill would be for whatever runs by then."""
    hypervisor, machine = opened(off_s=BUSY_S), vbox.add("k8s-1")
    vbox.trouble("controlvm", hang=True, also=[["controlvm", machine.id, "poweroff"]])
    order(hypervisor.stop, machine)
    assert not [words for words in vbox.calls() if "emergencystop" in words]


NOT_READY = "VBoxManage: error: Details: code E_ACCESSDENIED (0x80070005), component MachineWrap\n"


@pytest.mark.parametrize("frozen", [False, True], ids=["answers", "frozen"])
def test_a_stop_that_stood_still_kills_no_other_run(vbox, opened, frozen):
    """Also where that one's process does not answer: its log tells."""
    hypervisor = opened(off_s=BUSY_S, still_s=SOON_S if frozen else LONG_S)
    machine = runs(vbox)
    meant = hypervisor.read(machine).incarnation
    again = [["controlvm", machine.id, "poweroff"], ["startvm", machine.id, "--type", "headless"]]
    vbox.trouble("controlvm", hang=True, also=again, then=[freeze(machine)] if frozen else [])
    with pytest.raises(GuestChanged):
        hypervisor.stop(machine, meant, IN_TIME)
    assert not [words for words in vbox.calls() if "emergencystop" in words]


def test_a_frozen_machine_of_the_run_that_was_meant_is_killed(vbox, opened):
    hypervisor, machine = opened(off_s=BUSY_S, still_s=SOON_S), runs(vbox)
    meant = hypervisor.read(machine).incarnation
    vbox.trouble("controlvm", hang=True, then=[freeze(machine)])
    hypervisor.stop(machine, meant, IN_TIME)
    assert vbox.calls()[-1] == ["startvm", machine.id, "--type", "emergencystop"]


def test_a_stop_that_stood_still_is_no_reason_to_kill_what_cannot_be_read(vbox, opened):
    hypervisor, machine = opened(off_s=BUSY_S), runs(vbox)
    meant = hypervisor.read(machine).incarnation
    unready = {"on": "showvminfo", "stderr": NOT_READY, "code": 1}
    vbox.trouble("controlvm", hang=True, then=[unready])
    with pytest.raises(HypervisorUnreachable, match="was ordered to stop, and is on the way"):
        hypervisor.stop(machine, meant, IN_TIME)
    assert not [words for words in vbox.calls() if "emergencystop" in words]


def test_all_of_a_stop_ends_in_its_time(vbox, opened):
    hypervisor, machine = opened(stop_s=BUSY_S), runs(vbox)
    vbox.trouble("controlvm", hang=True)
    with pytest.raises(HypervisorUnreachable, match="no time was left"):
        order(hypervisor.stop, machine)
    assert not [words for words in vbox.calls() if "emergencystop" in words]


def test_a_reading_that_stands_still_is_asked_again_at_once(vbox, opened):
    machine = vbox.add("k8s-1")
    hypervisor = opened(again_s=SOON_S)
    for on in ("list", f"showvminfo {machine.id} --machinereadable", f"showvminfo {machine.id} --log"):
        vbox.trouble(on, hang=True, times=1)
        assert states(hypervisor) == {"k8s-1": PowerState.RUNNING}
        vbox.change(machine, changed="2026-11-20T12:00:00.000000001")  # so that its log is asked for


def test_an_order_is_given_once_however_long_it_takes(vbox, opened):
    machine = vbox.add("k8s-1", "poweroff")
    hypervisor = opened(again_s=0.05, start_s=BUSY_S)
    vbox.trouble("startvm", hang=True)
    with pytest.raises(HypervisorUnreachable):
        order(hypervisor.start, machine)
    assert sum(words[0] == "startvm" for words in vbox.calls()) == 1


def test_a_machine_whose_killing_fails_too_is_said(vbox, opened):
    hypervisor, machine = opened(off_s=SOON_S), vbox.add("frozen")
    vbox.trouble("controlvm", hang=True)
    vbox.trouble("startvm", stderr=NO_SERVER, code=1)
    with pytest.raises(HypervisorUnreachable, match="cannot kill lab/frozen, which does not react"):
        order(hypervisor.stop, machine)


@pytest.mark.parametrize(
    "trouble",
    [{"stderr": NO_SERVER, "code": 1}, {"code": 1}, {"signal": 9}],
    ids=["server", "refused", "dead"],
)
def test_a_stop_that_is_refused_kills_nothing(vbox, hypervisor, trouble):
    machine = vbox.add("k8s-1")
    vbox.trouble("controlvm", **trouble)
    with pytest.raises((HypervisorProtocol, HypervisorUnreachable)):
        order(hypervisor.stop, machine)
    assert vbox.calls() == [["controlvm", machine.id, "poweroff"]]


def test_a_start_waits_until_the_last_run_has_let_go(vbox, hypervisor):
    machine = vbox.add("k8s-1", "poweroff", held=2)
    order(hypervisor.start, machine)
    assert hypervisor.read(machine).power_state is PowerState.RUNNING


def test_a_start_of_a_machine_that_runs_does_not_wait(vbox, hypervisor):
    machine = vbox.add("k8s-1")
    with pytest.raises(HypervisorProtocol, match=r"cannot start lab/k8s-1: .*already locked"):
        order(hypervisor.start, machine)
    assert sum(words[0] == "startvm" for words in vbox.calls()) == 1


def test_a_machine_that_is_held_for_good_is_not_started(vbox, opened):
    machine = vbox.add("k8s-1", "poweroff", held=1_000)
    with pytest.raises(HypervisorProtocol, match="already locked"):
        order(opened(start_s=BUSY_S).start, machine)


def test_a_shutdown_that_is_refused_says_so(vbox, hypervisor):
    machine = vbox.add("k8s-1", "paused")
    with pytest.raises(HypervisorProtocol, match="cannot shut down lab/k8s-1: Invalid machine state: Paused"):
        order(hypervisor.shutdown, machine)


def test_a_guest_that_does_not_care_for_the_button_runs_on(vbox, hypervisor):
    machine = vbox.add("k8s-1", deaf=True)
    order(hypervisor.shutdown, machine)
    assert hypervisor.read(machine).power_state is PowerState.RUNNING


def test_a_saved_state_can_be_discarded(vbox, hypervisor):
    machine = vbox.add("k8s-1", "saved")
    assert hypervisor.read(machine).power_state is PowerState.SAVED
    order(hypervisor.discard, machine)
    assert hypervisor.read(machine).power_state is PowerState.STOPPED
    order(hypervisor.discard, machine)  # nothing to discard is no mistake to VirtualBox


def test_a_running_machine_has_no_state_to_discard(vbox, hypervisor):
    with pytest.raises(HypervisorProtocol, match="cannot discard the saved state of lab/k8s-1"):
        order(hypervisor.discard, vbox.add("k8s-1"))


@pytest.mark.parametrize("id_", ["101", "k8s-1", "", "x; reboot", "--help", "47cafe86\n"])
@pytest.mark.parametrize("verb", ["read", "stop", "start", "shutdown", "discard"])
def test_only_uuids_are_given_to_a_program(vbox, hypervisor, verb, id_):
    """A guest's id may come from an annotation, which anybody may have written."""
    words = () if verb == "read" else (None, IN_TIME)
    with pytest.raises(HypervisorProtocol, match="these are named by UUID"):
        getattr(hypervisor, verb)(GuestRef("lab", id_, id_, "k8s-1"), *words)
    assert vbox.calls() == []


def test_a_uuid_in_another_spelling_is_given_in_the_usual_one(vbox, hypervisor):
    machine = vbox.add("k8s-1")
    assert hypervisor.read(replace(machine, id=f"{{{machine.id.upper()}}}")).guest == machine
