"""One machine of many: it hangs, is inaccessible, lies between two states, or is told in odd words."""

import pytest

from fencer.core.identity import Directory, Rules
from fencer.core.model import (
    Binding,
    NodeView,
    Outcome,
    PowerState,
    Verdict,
    Word,
)
from fencer.errors import (
    HypervisorProtocol,
    HypervisorUnreachable,
)
from tests.core.build import BOOT
from tests.hypervisors.virtualbox.looks import BUSY_S, freeze, in_the_end, judged, states
from tests.support import wait_until

pytestmark = pytest.mark.slow  # each call of VBoxManage is a process, and some hang


@pytest.mark.slow
def test_a_machine_that_hangs_is_unknown_and_the_others_are_read(vbox, opened):
    hypervisor = opened(read_s=BUSY_S)
    frozen = vbox.add("frozen")
    vbox.add("off", "poweroff")
    for number in range(6):
        vbox.add(f"on-{number}")
    vbox.trouble(f"showvminfo {frozen.id}", hang=True)
    alive = {f"on-{number}": PowerState.RUNNING for number in range(6)}
    expected = {"frozen": PowerState.UNKNOWN, "off": PowerState.STOPPED, **alive}
    wait_until(lambda: in_the_end(lambda: states(hypervisor)) == expected, "readings of all the others")


@pytest.mark.slow
def test_a_machine_that_hung_is_left_in_peace_by_sweeps_for_a_while(vbox, opened, clock):
    hypervisor = opened(read_s=BUSY_S)
    frozen = vbox.add("frozen")
    vbox.trouble(f"showvminfo {frozen.id}", hang=True)

    def asked() -> int:
        return sum(words[:2] == ["showvminfo", frozen.id] for words in vbox.calls())

    for _ in range(2):
        in_the_end(hypervisor.sweep)
    before = asked()
    (again,) = in_the_end(hypervisor.sweep)
    assert asked() == before
    assert "did not answer" in again.raw
    clock.ahead_s += 31
    in_the_end(hypervisor.sweep)
    assert asked() > before
    with pytest.raises(HypervisorUnreachable, match=f"startvm {frozen.id} --type emergencystop"):
        hypervisor.read(frozen)
    vbox.recover()
    assert in_the_end(lambda: hypervisor.read(frozen)).power_state is PowerState.RUNNING
    wait_until(
        lambda: in_the_end(lambda: states(hypervisor)) == {"frozen": PowerState.RUNNING}, "its reading"
    )


def test_a_machine_that_hangs_is_refused_with_the_command_that_ends_its_process(vbox, opened):
    """`fencer fence --stop-guest` is: whoever waits at night for its guest "stopped" needs to know how."""
    hypervisor = opened(read_s=BUSY_S)
    frozen = vbox.add("frozen")
    vbox.trouble(f"showvminfo {frozen.id}", hang=True)

    def hung():
        return [read for read in in_the_end(hypervisor.sweep) if read.stuck]

    (read,) = wait_until(hung, "reading of a machine that hangs")
    decision = judged(read, word=Word(stop_guest=True))
    [refusal] = [check for check in decision.checks if check.outcome is Outcome.FAILED]
    command = " ".join((*vbox.command, "startvm", frozen.id, "--type", "emergencystop"))
    assert (decision.verdict, decision.actions) == (Verdict.REFUSE, ())
    assert refusal.needs == f"`{command}`: its process hangs, and only that ends it"


HARDWARE_UUID = "12345678-aaaa-bbbb-cccc-1234567890ab"


def test_a_machine_that_hangs_and_was_never_read_is_one_guest_by_its_log(vbox, opened):
    """In each command typed again: its own UUID in place of the guest's would make two of it and its node."""
    hypervisor = opened(read_s=BUSY_S)
    frozen = vbox.add("k8s-2", hardware_uuid=HARDWARE_UUID)
    vbox.trouble(**freeze(frozen))
    guests = wait_until(
        lambda: [read.guest for read in in_the_end(hypervisor.sweep) if read.stuck], "machine that hangs"
    )
    assert guests == [frozen]
    bound = NodeView("k8s-2", "uid", HARDWARE_UUID, BOOT, None, "1", binding=Binding(frozen, (BOOT,)))
    directory = Directory(guests, [bound], Rules({"k8s-2": ("lab", "k8s-2")}, by_name=frozenset({"lab"})))
    assert [candidate.guest for candidate in directory.candidates(bound)] == [frozen]


def test_a_machine_that_hangs_and_whose_log_hangs_goes_by_its_uuid(vbox, opened):
    """Not by none at all: a copy of a node's guest that may run has to be somebody's."""
    hypervisor = opened(read_s=BUSY_S)
    frozen = vbox.add("k8s-2", hardware_uuid=HARDWARE_UUID)
    vbox.trouble(f"showvminfo {frozen.id}", hang=True)
    (read,) = in_the_end(hypervisor.sweep)
    assert read.guest.key == ("lab", frozen.id, frozen.id)


def test_a_machine_that_did_not_answer_once_is_asked_again_and_not_said_to_hang(vbox, opened):
    hypervisor = opened(read_s=BUSY_S)
    machine = vbox.add("k8s-1")
    vbox.trouble(f"showvminfo {machine.id}", hang=True)
    (missed,) = in_the_end(hypervisor.sweep)
    assert "emergencystop" not in f"{missed.raw} {missed.stuck}"
    with pytest.raises(HypervisorUnreachable) as caught:
        hypervisor.read(machine)
    assert "emergencystop" not in str(caught.value)
    vbox.recover()
    wait_until(lambda: in_the_end(lambda: states(hypervisor)) == {"k8s-1": PowerState.RUNNING}, "its reading")


def test_a_machine_that_was_not_given_its_time_does_not_rest(vbox, opened):
    """Others that hang had taken it."""
    hypervisor = opened(look_s=BUSY_S)
    machine = vbox.add("k8s-1")
    vbox.trouble(f"showvminfo {machine.id}", hang=True)
    for _ in range(3):
        (missed,) = in_the_end(hypervisor.sweep)
        assert "s ago" not in missed.raw


@pytest.mark.slow
def test_many_that_hang_do_not_take_more_than_a_call_has(vbox, opened):
    for number in range(12):
        vbox.add(f"frozen-{number}")
    vbox.trouble("showvminfo", hang=True)
    hypervisor = opened(look_s=BUSY_S * 1.5, read_s=BUSY_S)
    assert set(in_the_end(lambda: states(hypervisor)).values()) == {PowerState.UNKNOWN}
    assert sum(words[0] == "showvminfo" for words in vbox.calls()) <= 8


def test_an_inaccessible_machine_is_unknown_under_the_name_it_had(vbox, hypervisor):
    machine = vbox.add("k8s-1", hardware_uuid="12345678-aaaa-bbbb-cccc-1234567890ab")
    hypervisor.sweep()
    vbox.change(machine, inaccessible=True)
    (swept,) = hypervisor.sweep()
    read = hypervisor.read(machine)
    for evidence in (swept, read):
        assert evidence.guest == machine
        assert evidence.power_state is PowerState.UNKNOWN
        assert "inaccessible" in evidence.raw
        [refusal] = [
            check for check in judged(evidence, word=Word()).checks if check.outcome is Outcome.FAILED
        ]
        assert refusal.needs == "its settings file readable again"


def test_a_machine_never_read_that_is_inaccessible_goes_by_its_uuid(vbox, hypervisor):
    machine = vbox.add("k8s-1", inaccessible=True)
    (swept,) = hypervisor.sweep()
    assert swept.guest.key == ("lab", machine.id, machine.id)


@pytest.mark.parametrize(
    "code",
    ["E_UNEXPECTED (0x8000ffff)", "NS_ERROR_CALL_FAILED (0x800706be)", "NS_ERROR_ABORT (0x80004004)"],
)
def test_a_machine_between_two_states_is_unknown(vbox, hypervisor, code):
    machine = vbox.add("k8s-1")
    sentence = "VBoxManage: error: The object is not ready\nVBoxManage: error: Details: code"
    vbox.trouble("showvminfo", stderr=f"{sentence} {code}, component x\n", code=1)
    evidence = hypervisor.read(machine)
    assert evidence.power_state is PowerState.UNKNOWN
    assert "between two states" in evidence.raw
    vbox.trouble("showvminfo", stderr=f"{sentence} {code}, component x\n", code=1, times=2)
    assert hypervisor.read(machine).power_state is PowerState.RUNNING


ON_THE_WAY = {
    "starts": ("The object is not ready", "E_ACCESSDENIED (0x80070005)", "not ready yet"),
    "opens its session": ("The machine is locked", "VBOX_E_INVALID_OBJECT_STATE (0x80bb0007)", "session"),
    "has a snapshot taken": ("It is not possible now", "VBOX_E_VM_ERROR (0x80bb0003)", "snapshot"),
    "is saved": ("The saved state file '' is invalid", "VBOX_E_FILE_ERROR (0x80bb0004)", "to disk"),
    "ends its session": ("was unlocked", "VBOX_E_INVALID_SESSION_STATE (0x80bb000b)", "session was closed"),
}


@pytest.mark.parametrize(("sentence", "code", "told"), ON_THE_WAY.values(), ids=list(ON_THE_WAY))
def test_a_machine_on_the_way_to_another_state_is_asked_again_and_then_said_to_be(
    vbox, hypervisor, sentence, code, told
):
    """The first of these codes is that of an unreadable settings file, too, which people would look for."""
    machine = vbox.add("k8s-1")
    said = f"VBoxManage: error: {sentence}\nVBoxManage: error: Details: code {code}, component x\n"
    vbox.trouble("showvminfo", stderr=said, code=1, times=2)
    assert hypervisor.read(machine).power_state is PowerState.RUNNING
    vbox.trouble("showvminfo", stderr=said, code=1)
    for evidence in (hypervisor.read(machine), *hypervisor.sweep()):
        assert (evidence.power_state, evidence.settled) == (PowerState.STOPPING, False)
        assert told in evidence.raw
        assert "inaccessible" not in evidence.raw


def test_a_machine_that_the_list_calls_inaccessible_is_asked_once_in_a_sweep(vbox, hypervisor):
    vbox.add("k8s-1", inaccessible=True)
    hypervisor.sweep()
    assert [words[0] for words in vbox.calls()] == ["list", "showvminfo"]


def test_a_machine_that_vanishes_during_a_sweep_is_left_out(vbox, hypervisor):
    vbox.add("stays")
    gone = vbox.add("goes")
    error = "VBoxManage: error: Details: code VBOX_E_OBJECT_NOT_FOUND (0x80bb0001), component x\n"
    vbox.trouble(f"showvminfo {gone.id}", stderr=error, code=1)
    assert states(hypervisor) == {"stays": PowerState.RUNNING}


def test_garbage_about_one_machine_is_unknown_in_a_sweep_and_an_error_when_read(vbox, hypervisor):
    machine = vbox.add("k8s-1")
    vbox.trouble("showvminfo", stdout='VMState="poweroff"\n\udcff\n')
    assert states(hypervisor) == {"k8s-1": PowerState.UNKNOWN}
    with pytest.raises(HypervisorProtocol, match="an answer without name and UUID"):
        hypervisor.read(machine)


def test_odd_names_arrive_whole(vbox, hypervisor):
    names = ['we "ird, na;me=1', " lead", "new\nline", "b\\s", "47cafe86-104b-457a-b097-1defd7f3d598"]
    for name in names:
        vbox.add(name, description='VMState="poweroff"\nsay "hi" \\')
    assert states(hypervisor) == dict.fromkeys(names, PowerState.RUNNING)


def test_text_of_a_snapshot_that_forges_a_state_proves_nothing(vbox, hypervisor):
    vbox.add("k8s-1", snapshot='x"\nVMState="poweroff"\ny="')
    assert states(hypervisor) == {"k8s-1": PowerState.UNKNOWN}
