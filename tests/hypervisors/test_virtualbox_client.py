"""The VirtualBox adapter where something is wrong: one machine, the registry, VBoxManage, or the question."""

import sys
import time
from dataclasses import replace

import pytest

from fencer.contract.deadlines import IN_TIME, order
from fencer.core.decide import decide
from fencer.core.identity import Directory, Rules, subject_of, swapped
from fencer.core.model import (
    Binding,
    Candidate,
    Fleet,
    GuestHistory,
    GuestRef,
    Intent,
    NodeView,
    Observation,
    Outcome,
    PowerState,
    Verdict,
    Via,
    Word,
)
from fencer.errors import (
    GuestChanged,
    GuestNotFound,
    HypervisorDenied,
    HypervisorProtocol,
    HypervisorUnreachable,
)
from fencer.hypervisors.virtualbox.client import VirtualBoxHypervisor
from fencer.hypervisors.virtualbox.settings import VirtualBoxSettings
from tests.core.build import ARMED, BOOT, NOW_S, in_state, node
from tests.support import wait_until
from tests.support.vbox import NO_SERVER, FakeVBox, QuickClock

pytestmark = pytest.mark.slow  # each call of VBoxManage is a process, and some hang

LONG_S = 60.0
SOON_S = 0.3
"""For what hangs anyway."""
BUSY_S = 4.0
"""For what hangs, where something else has to come in time. Nobody promises that it does: a machine may stand
still for longer (12 s were not enough once in three gates). So it is asked again: see `in_the_end`."""


@pytest.fixture
def vbox(tmp_path):
    return FakeVBox(tmp_path)


@pytest.fixture
def clock():
    return QuickClock()


@pytest.fixture
def opened(vbox, clock):
    """Open the endpoint with the patience given: by default more than any test has."""
    made = []

    def open_it(**patience):
        limits = ("look_s", "read_s", "again_s", "off_s", "kill_s", "still_s", "stop_s", "start_s")
        settings = vbox.settings(**{**dict.fromkeys(limits, LONG_S), **patience})
        made.append(VirtualBoxHypervisor(settings, clock.now_s))
        return made[-1]

    yield open_it
    for hypervisor in made:
        hypervisor.close()


@pytest.fixture
def hypervisor(opened):
    return opened()


def not_registered(machine) -> str:
    return (
        f"VBoxManage: error: Could not find a registered machine with UUID {{{machine.id}}}\n"
        "VBoxManage: error: Details: code VBOX_E_OBJECT_NOT_FOUND (0x80bb0001), component VirtualBoxWrap\n"
    )


def in_the_end(ask):
    """Ask again where an answer that is not about the machine that hangs came too late."""

    def answered():
        try:
            return [ask()]
        except HypervisorUnreachable:
            return []

    return wait_until(answered, "answer in time")[0]


def states(hypervisor) -> dict[str, PowerState]:
    return {evidence.guest.name: evidence.power_state for evidence in hypervisor.sweep()}


# -- one machine of many --------------------------------------------------------------------------------


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
    directory = Directory(guests, [bound], Rules({"k8s-2": ("lab", "k8s-2")}))
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


# -- two servers ----------------------------------------------------------------------------------------


def test_a_server_that_does_not_know_of_the_run_proves_nothing_and_is_said(vbox, hypervisor):
    machine = vbox.add("k8s-1", "poweroff", log_opened="2026-11-20T11:00:00.000", runs_unknown=True)
    vbox.add("k8s-2")
    evidence = hypervisor.read(machine)
    assert (evidence.power_state, evidence.settled) == (PowerState.STOPPING, False)
    assert evidence.stuck.startswith("process 100 runs it; to end it: `kill 100` on its host")
    assert "second VBoxSVC?" in evidence.stuck
    (problem,) = hypervisor.describe().problems
    assert problem.startswith("k8s-1: poweroff since 2026-11-20T10:00:00Z, but a run of it began at")
    assert f"process 100 (/usr/lib/virtualbox/VBoxHeadless --comment k8s-1 --startvm {machine.id}" in problem
    vbox.run("startvm", machine.id, "--type", "headless")
    assert hypervisor.describe().problems == ()


def runs(vbox, name="k8s-1"):
    """Register a machine, and start it: so that VirtualBox has an end on record from before that run."""
    machine = vbox.add(name, "poweroff")
    vbox.run("startvm", machine.id, "--type", "headless")
    return machine


def test_a_machine_whose_host_was_booted_since_it_ran_is_off(vbox, hypervisor):
    """A power loss: VirtualBox tells the end before the last run, for good."""
    machine = runs(vbox)
    vbox.forget_runs(booted_s=int(time.time()) + 3600)
    for evidence in (hypervisor.read(machine), *hypervisor.sweep()):
        assert (evidence.power_state, evidence.settled) == (PowerState.STOPPED, True)
        assert "its host was booted at" in evidence.raw
    assert hypervisor.describe().problems == ()


def test_a_machine_that_died_with_its_server_is_off_once_nothing_of_it_was_seen_for_a_while(
    vbox, hypervisor, clock
):
    clock.stop()
    machine = vbox.add("k8s-1", "poweroff")
    before = hypervisor.read(machine)
    vbox.run("startvm", machine.id, "--type", "headless")
    running = hypervisor.read(machine)
    vbox.forget_runs()
    first = hypervisor.read(machine)
    assert (first.power_state, first.settled) == (PowerState.STOPPING, False)
    clock.ahead_s += 19
    assert hypervisor.read(machine).power_state is PowerState.STOPPING
    clock.ahead_s += 1
    over = hypervisor.read(machine)
    assert (over.power_state, over.settled) == (PowerState.STOPPED, True)
    assert over.incarnation == first.incarnation
    assert over.incarnation not in {before.incarnation, running.incarnation}
    order(hypervisor.start, machine)
    assert hypervisor.read(machine).power_state is PowerState.RUNNING


def test_a_process_that_is_seen_begins_the_watch_anew(vbox, hypervisor, clock):
    clock.stop()
    machine = runs(vbox)
    vbox.forget_runs()
    hypervisor.read(machine)
    clock.ahead_s += 19
    vbox.change(machine, runs_unknown=True)
    seen = hypervisor.read(machine)
    assert seen.power_state is PowerState.STOPPING
    assert "`kill 100`" in seen.stuck
    vbox.change(machine, runs_unknown=False)
    clock.ahead_s += 19
    assert hypervisor.read(machine).power_state is PowerState.STOPPING
    clock.ahead_s += 19
    assert hypervisor.read(machine).power_state is PowerState.STOPPING
    clock.ahead_s += 1
    assert hypervisor.read(machine).power_state is PowerState.STOPPED


def test_another_run_begins_the_watch_anew(vbox, hypervisor, clock):
    machine = runs(vbox)
    vbox.forget_runs()
    hypervisor.read(machine)
    clock.ahead_s += 20
    with vbox.world() as world:
        state = world["machines"][machine.id]
        state["log_opened"] = "2026-11-20T12:00:00.000"
        state["written_s"] = 0
    assert hypervisor.read(machine).power_state is PowerState.STOPPING


def test_a_machine_that_another_server_runs_is_never_off(vbox, hypervisor, clock):
    machine = runs(vbox)
    vbox.forget_runs(runs_unknown=True, booted_s=int(time.time()) + 3600)
    for _ in range(3):
        assert hypervisor.read(machine).power_state is PowerState.STOPPING
        assert states(hypervisor) == {"k8s-1": PowerState.STOPPING}
        clock.ahead_s += 30


def judged(read, intent=Intent.FENCE, word=Word(guest_off_why="I switched it off")):  # noqa: B008 - frozen
    """Return what core decides of a silent node that is bound to the guest that was read."""
    return decide(
        in_state(
            read.power_state,
            evidence=replace(read, observed_at_s=NOW_S - 1),
            candidates=(Candidate(read.guest, Via.UUID),),
            node=node(binding=Binding(read.guest, (BOOT,))),
            intent=intent,
            word=word,
            last_state=read.power_state,
        ),
        ARMED,
    )


@pytest.mark.parametrize("dated", ["before its run", "within it, 20 s ago"])
def test_no_word_is_taken_against_a_machine_whose_own_process_is_there(vbox, hypervisor, clock, dated):
    """As typed by somebody at night, whom `--confirm-guest-off` was proposed to: two machines would write."""
    machine = runs(vbox)
    vbox.forget_runs(runs_unknown=True)
    if dated != "before its run":
        vbox.change(machine, changed="2999-01-01T00:00:00.000000000")
        hypervisor.read(machine)
        clock.ahead_s += 20
    read = hypervisor.read(machine)
    for decision in (judged(read), judged(read, Intent.WATCH, Word())):
        assert (decision.verdict, decision.actions) == (Verdict.REFUSE, ())
        [refusal] = [check for check in decision.checks if check.outcome is Outcome.FAILED]
        assert refusal.needs.startswith("process 100 runs it; to end it: `kill 100` on its host as the mach")
        assert "--confirm-guest-off" not in f"{refusal.seen} {refusal.needs}"
    vbox.change(machine, runs_unknown=False)
    hypervisor.read(machine)
    clock.ahead_s += 20
    over = hypervisor.read(machine)
    assert (over.power_state, over.settled, over.stuck) == (PowerState.STOPPED, True, "")


def test_a_word_is_taken_where_it_is_not_plain_whose_the_process_is(vbox, hypervisor):
    machine = runs(vbox)
    vbox.forget_runs(processes=[[900, "4026531836", "Sl", "VBoxHeadless -s windows"]])
    assert judged(hypervisor.read(machine)).verdict is Verdict.FENCE


def test_a_machine_that_another_server_runs_is_not_off_because_its_settings_were_written_meanwhile(
    vbox, hypervisor, clock
):
    """A snapshot writes them: with a state from before the run, dated after it began."""
    machine = runs(vbox)
    vbox.forget_runs(runs_unknown=True)
    vbox.change(machine, changed="2999-01-01T00:00:00.000000000")
    assert hypervisor.read(machine).power_state is PowerState.STOPPING
    vbox.trouble("ps", code=1)
    assert hypervisor.read(machine).power_state is PowerState.STOPPING
    clock.ahead_s += 31
    untold = hypervisor.read(machine)
    assert (untold.power_state, "`kill 100`" in untold.stuck) == (PowerState.STOPPING, True)
    assert "when its host told last, which it does not now: `ps` there failed" in untold.raw
    vbox.recover()
    clock.ahead_s += 31
    assert "`kill 100`" in hypervisor.read(machine).stuck
    vbox.change(machine, runs_unknown=False)
    assert hypervisor.read(machine).power_state is PowerState.STOPPING
    clock.ahead_s += 20
    assert hypervisor.read(machine).power_state is PowerState.STOPPED


@pytest.mark.parametrize("state", ["poweroff", "saved"])
def test_a_machine_that_a_server_elsewhere_runs_is_not_off_because_its_settings_were_written_meanwhile(
    vbox, hypervisor, state
):
    """As in a container, which sees no process of it, or on another host with the same home folder."""
    machine = runs(vbox)
    vbox.forget_runs(pidns="4026532201")
    vbox.change(machine, state=state, changed="2999-01-01T00:00:00.000000000")
    evidence = hypervisor.read(machine)
    assert evidence.power_state is PowerState.UNKNOWN
    assert "its log tells of no end" in evidence.raw
    vbox.change(machine, log_ended="PoweredOff")
    assert hypervisor.read(machine).power_state is not PowerState.UNKNOWN


REASONS = {
    "a container": ({"pidns": "4026532201"}, {}, "a container's processes only"),
    "a shared folder": ({}, {"filesystem": "nfs4"}, "another host may run it: it lies on nfs4"),
    "settings written since": (
        {},
        {"written_s": 4_000_000_000},
        "its settings file was written at 2096-10-02",
    ),
    "an odd folder": ({}, {"folder": "/vms/it's mine"}, "not given to a shell"),
    "a stranger's machine by name": (
        {"processes": [[900, "4026531836", "Sl", "VBoxHeadless -s windows"]]},
        {},
        "process 900 (VBoxHeadless -s windows) may be it",
    ),
}


@pytest.mark.parametrize(("host", "of_machine", "why"), REASONS.values(), ids=list(REASONS))
def test_a_machine_that_died_with_its_server_stays_unknown_with_a_reason(
    vbox, hypervisor, clock, host, of_machine, why
):
    machine = runs(vbox)
    vbox.change(machine, **of_machine)
    vbox.forget_runs(**host)
    hypervisor.read(machine)
    clock.ahead_s += 31
    evidence = hypervisor.read(machine)
    assert evidence.power_state is PowerState.UNKNOWN
    assert why in evidence.raw
    assert evidence.stuck
    (problem,) = hypervisor.describe().problems
    assert why in problem


def test_a_machine_that_was_restored_and_seen_alive_is_off_once_it_died_with_its_server(
    vbox, hypervisor, clock
):
    """A restore writes the settings file after the log was opened, as whoever changes a setting does."""
    machine = runs(vbox)
    assert hypervisor.read(machine).power_state is PowerState.RUNNING
    vbox.change(machine, written_s=4_000_000_000)
    vbox.forget_runs()
    assert hypervisor.read(machine).power_state is PowerState.STOPPING
    clock.ahead_s += 20
    assert hypervisor.read(machine).power_state is PowerState.STOPPED


def test_a_machine_on_a_shared_folder_is_off_if_its_run_was_seen_alive_here(vbox, hypervisor, clock):
    machine = runs(vbox)
    vbox.change(machine, filesystem="nfs4")
    assert hypervisor.read(machine).power_state is PowerState.RUNNING
    vbox.forget_runs()
    hypervisor.read(machine)
    clock.ahead_s += 20
    assert hypervisor.read(machine).power_state is PowerState.STOPPED


def test_a_machine_whose_end_is_unknown_and_host_cannot_be_asked_stays_unknown(vbox, clock):
    machine = runs(vbox)
    settings = VirtualBoxSettings("lab", vbox.script, look_s=LONG_S, read_s=LONG_S)
    hypervisor = VirtualBoxHypervisor(settings, clock.now_s)
    vbox.forget_runs(booted_s=int(time.time()) + 3600)
    evidence = hypervisor.read(machine)
    assert evidence.power_state is PowerState.UNKNOWN
    assert "only a command that ends with VBoxManage can ask its host" in evidence.raw
    assert evidence.stuck.startswith("its host telling: a `command` that ends with VBoxManage, and lets `ps`")
    assert "--confirm-guest-off" in evidence.stuck


def test_aborted_counts_at_once_where_the_host_has_no_process_of_it(vbox, hypervisor):
    machine = runs(vbox)
    vbox.run("startvm", machine.id, "--type", "emergencystop")
    evidence = hypervisor.read(machine)
    assert (evidence.power_state, evidence.settled) == (PowerState.STOPPED, True)


def test_a_copy_that_is_off_proves_nothing_while_another_users_machine_runs_under_its_name(
    vbox, hypervisor, clock
):
    """Both have its UUID; the log of the copy, which ends as it should, is not that run's."""
    machine = vbox.add("k8s-1", "poweroff")
    vbox.host(processes=[[4242, "-", "Sl", "/usr/lib/virtualbox/VBoxHeadless --startvm k8s-1"]])
    for way_out in ("", "`kill 4242`"):
        read = hypervisor.read(machine)
        assert read.power_state is PowerState.STOPPING
        assert way_out in read.stuck
        clock.ahead_s += 20


def test_aborted_is_held_where_the_host_cannot_be_asked(vbox, clock):
    machine = runs(vbox)
    settings = VirtualBoxSettings("lab", vbox.script, look_s=LONG_S, read_s=LONG_S)
    hypervisor = VirtualBoxHypervisor(settings, clock.now_s)
    assert hypervisor.read(machine).power_state is PowerState.RUNNING
    vbox.run("startvm", machine.id, "--type", "emergencystop")
    assert hypervisor.read(machine).power_state is PowerState.STOPPING
    clock.ahead_s += 20
    assert hypervisor.read(machine).power_state is PowerState.STOPPED


def test_the_host_is_asked_once_in_a_sweep_after_all_machines_and_not_where_all_run(vbox, hypervisor):
    for number in range(3):
        vbox.add(f"off-{number}", "poweroff")
    vbox.add("on-1")
    hypervisor.sweep()
    assert [words[0] for words in vbox.asked()] == ["ps"]
    vbox.host(asked=[])
    for number in range(2):
        vbox.add(f"killed-{number}", "aborted")
    hypervisor.sweep()
    assert [words[0] for words in vbox.asked()] == ["ps", "cat", "find", "find"]
    with vbox.world() as world:
        world["machines"], world["asked"] = {}, []
    vbox.add("on")
    hypervisor.sweep()
    assert vbox.asked() == []


def test_a_machine_that_was_never_started_proves_nothing(vbox, hypervisor):
    machine = vbox.add("k8s-1", "poweroff", log_opened=None)
    evidence = hypervisor.read(machine)
    assert evidence.power_state is PowerState.UNKNOWN
    assert "log" in evidence.raw


def test_a_machine_that_vanishes_in_the_midst_of_a_look_keeps_the_record_of_its_end(vbox, hypervisor):
    """``vagrant destroy`` stops and unregisters at once: its state can still be read, its log cannot."""
    machine = vbox.add("k8s-1", "poweroff")
    vbox.add("k8s-2")
    assert hypervisor.read(machine).power_state is PowerState.STOPPED
    vbox.trouble(f"showvminfo {machine.id} --log", stderr=not_registered(machine), code=1)
    assert list(states(hypervisor)) == ["k8s-2"]
    vbox.run("unregistervm", machine.id)
    evidence = hypervisor.read(machine)
    assert (evidence.power_state, evidence.end_recorded) == (PowerState.ABSENT, True)


@pytest.mark.slow
def test_a_log_that_hangs_is_no_answer(vbox, opened):
    hypervisor, machine = opened(read_s=BUSY_S), vbox.add("k8s-1", "poweroff")
    vbox.trouble(f"showvminfo {machine.id} --log", hang=True)
    with pytest.raises(HypervisorUnreachable):
        hypervisor.read(machine)
    assert in_the_end(lambda: states(hypervisor)) == {"k8s-1": PowerState.UNKNOWN}


# -- the registry ---------------------------------------------------------------------------------------


def test_the_wrong_user_sees_nothing_and_is_told_why(vbox, hypervisor):
    assert list(hypervisor.sweep()) == []
    info = hypervisor.describe()
    assert info.can_power is None
    assert "as the user who made them" in info.problems[0]
    with pytest.raises(GuestNotFound, match="every user of a host has machines of their own"):
        hypervisor.read(GuestRef("lab", "47cafe86-104b-457a-b097-1defd7f3d598", "", "k8s-1"))


def stopped_and_gone(vbox, hypervisor, *others: str) -> GuestRef:
    """A machine whose end was read, and that is not registered any more."""
    machine = vbox.add("k8s-1", "poweroff")
    for name in others:
        vbox.add(name)
    hypervisor.sweep()
    vbox.run("unregistervm", machine.id)
    return machine


def test_a_machine_removed_after_its_end_is_absent_beside_its_neighbours(vbox, hypervisor):
    machine = stopped_and_gone(vbox, hypervisor, "neighbour")
    absent = hypervisor.read(machine)
    assert (absent.power_state, absent.end_recorded) == (PowerState.ABSENT, True)
    assert "poweroff since" in absent.raw


def test_a_machine_that_another_user_runs_now_is_not_absent(vbox, hypervisor):
    machine = stopped_and_gone(vbox, hypervisor, "neighbour")
    line = f"/usr/lib/virtualbox/VBoxHeadless --comment k8s-1 --startvm {machine.id} --vrde config"
    vbox.host(processes=[[4242, "-", "Sl", line]])
    with pytest.raises(GuestNotFound):
        hypervisor.read(machine)


def test_a_registry_that_became_empty_proves_no_absence(vbox, hypervisor):
    machine = stopped_and_gone(vbox, hypervisor)
    with pytest.raises(GuestNotFound):
        hypervisor.read(machine)


def test_another_registry_proves_no_absence(vbox, hypervisor):
    machine = stopped_and_gone(vbox, hypervisor, "neighbour")
    with vbox.world() as world:
        world["machines"].clear()
    vbox.add("somebody else's")
    with pytest.raises(GuestNotFound):
        hypervisor.read(machine)


@pytest.mark.parametrize("state", ["running", "paused", "saved", "aborted"])
def test_a_machine_not_read_as_stopped_is_not_absent(vbox, hypervisor, state):
    machine = vbox.add("k8s-1", state)
    vbox.add("neighbour")
    vbox.host(pidns="4026532201")  # so that the aborted one may have a process yet
    hypervisor.sweep()
    with vbox.world() as world:
        del world["machines"][machine.id]
    with pytest.raises(GuestNotFound):
        hypervisor.read(machine)


def test_a_machine_that_was_started_again_is_not_absent(vbox, hypervisor):
    machine = vbox.add("k8s-1", "poweroff")
    vbox.add("neighbour")
    hypervisor.sweep()
    vbox.run("startvm", machine.id, "--type", "headless")
    hypervisor.sweep()
    with vbox.world() as world:
        del world["machines"][machine.id]
    with pytest.raises(GuestNotFound):
        hypervisor.read(machine)


# -- VBoxManage -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["80040154", "80004005"])
@pytest.mark.parametrize("on", ["--version", "list vms", "showvminfo"])
def test_who_meets_a_server_that_leaves_asks_once_more(vbox, hypervisor, on, code):
    """VBoxSVC leaves 5 s after its last client, and a sweep may come every 5 s."""
    vbox.add("k8s-1")
    vbox.trouble(on, stderr=NO_SERVER.replace("80040154", code), code=1, times=1)
    assert states(hypervisor) == {"k8s-1": PowerState.RUNNING}
    assert hypervisor.describe().version == "VirtualBox 7.2.22_Debianr175245"


def test_an_endpoint_without_a_server_is_not_asked_for_ever(vbox, hypervisor):
    vbox.trouble("list", stderr=NO_SERVER, code=1)
    with pytest.raises(HypervisorUnreachable, match="0x80040154"):
        hypervisor.sweep()
    assert vbox.calls() == [["list", "vms"]] * 2


def test_a_failure_that_the_server_itself_tells_is_not_asked_for_again(vbox, hypervisor):
    machine = vbox.add("k8s-1")
    said = "VBoxManage: error: Details: code NS_ERROR_FAILURE (0x80004005), component x\n"
    vbox.trouble("showvminfo", stderr=said, code=1)
    with pytest.raises(HypervisorProtocol, match="0x80004005"):
        hypervisor.read(machine)
    assert len(vbox.calls()) == 1


def all_readings(hypervisor, machine):
    return (hypervisor.describe, hypervisor.sweep, lambda: hypervisor.read(machine))


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [
        ({"stderr": NO_SERVER, "code": 1}, HypervisorUnreachable),
        ({"signal": 9}, HypervisorUnreachable),
        ({"hang": True}, HypervisorUnreachable),
        ({"huge": True}, HypervisorProtocol),
        ({"stdout": "garbage\n"}, HypervisorProtocol),
        ({"stdout": "\udcff\udcfe\0"}, HypervisorProtocol),
        ({"code": 3}, HypervisorProtocol),
        ({"stderr": "me@box: Permission denied (publickey).\n", "code": 255}, HypervisorDenied),
        ({"stderr": "ssh: Could not resolve hostname box\n", "code": 255}, HypervisorUnreachable),
    ],
    ids=["no server", "killed", "hangs", "huge", "garbage", "no text", "code 3", "denied", "no host"],
)
def test_a_vboxmanage_that_does_not_work_tells_nothing_of_any_machine(vbox, opened, trouble, kind):
    hypervisor, machine = (
        opened(read_s=SOON_S if "hang" in trouble else LONG_S),
        vbox.add("k8s-1", "poweroff"),
    )
    vbox.trouble("", **trouble)
    for reading in all_readings(hypervisor, machine):
        with pytest.raises(kind) as caught:
            reading()
        assert str(caught.value).startswith("lab")
        assert str(caught.value).isprintable()


def test_a_server_that_hangs_is_named_with_what_ends_it_and_what_that_costs(vbox, opened):
    """Who types it ends all machines of that user: measured on a real VirtualBox, 11 to 15 s later."""
    vbox.add("k8s-1")
    vbox.trouble("", hang=True)
    hypervisor = opened(read_s=SOON_S)
    for reading in (hypervisor.describe, hypervisor.sweep):
        with pytest.raises(HypervisorUnreachable) as caught:
            reading()
        assert "`pkill -KILL -u USER -x VBoxSVC`" in str(caught.value)
        assert "That ends all that run of them as well" in str(caught.value)


def test_an_ssh_that_does_not_get_in_is_no_question_of_virtualbox(vbox, hypervisor):
    vbox.trouble("", stderr="ssh: connect to host box port 22: No route to host\n", code=255)
    with pytest.raises(HypervisorUnreachable, match="ssh did not get in") as caught:
        hypervisor.sweep()
    assert "VBoxSVC" not in str(caught.value)


def test_an_answer_that_ends_early_with_success_proves_nothing(vbox, hypervisor):
    machine = vbox.add("k8s-1", "poweroff")
    vbox.trouble("showvminfo", stdout=f'name="k8s-1"\nUUID="{machine.id}"\nVMState="poweroff"\n')
    with pytest.raises(HypervisorProtocol, match="without hardwareuuid and VMStateChangeTime"):
        hypervisor.read(machine)


def test_the_script_around_the_program_is_named_as_the_fault(vbox, hypervisor):
    vbox.trouble("list", stdout="WARNING: The character device /dev/vboxdrv does not exist.\n")
    with pytest.raises(HypervisorProtocol, match="call /usr/lib/virtualbox/VBoxManage itself"):
        hypervisor.sweep()


def test_a_program_that_is_not_there_is_named(clock):
    hypervisor = VirtualBoxHypervisor(VirtualBoxSettings("lab", ("/nowhere/VBoxManage",)), clock.now_s)
    with pytest.raises(HypervisorUnreachable, match="cannot run /nowhere/VBoxManage"):
        hypervisor.sweep()


def test_what_stands_before_the_program_is_run_with_it(vbox, clock, tmp_path):
    """As `ssh me@box VBoxManage` is."""
    relay = tmp_path / "relay.py"
    relay.write_text("import os, sys\nassert sys.argv[1] == 'me@box'\nos.execv(sys.argv[2], sys.argv[2:])\n")
    vbox.add("k8s-1")
    command = (sys.executable, "-IS", str(relay), "me@box", *vbox.command)
    settings = VirtualBoxSettings("lab", command, look_s=LONG_S, read_s=LONG_S)
    assert states(VirtualBoxHypervisor(settings, clock.now_s)) == {"k8s-1": PowerState.RUNNING}


def test_it_describes_itself(vbox, hypervisor):
    vbox.add("k8s-1")
    info = hypervisor.describe()
    assert (info.kind, info.version) == ("virtualbox", "VirtualBox 7.2.22_Debianr175245")
    assert info.detail.endswith(": 1 machine")


SILENT = {
    "no ps": (
        "ps",
        {"code": 127, "stderr": "sh: 1: ps: not found\n"},
        "`ps` there failed: sh: 1: ps: not found",
    ),
    "no boot": ("cat", {"code": 1, "stderr": "cat: not allowed\n"}, "`cat` there failed: cat: not allowed"),
    "no folder": ("find", {"code": 1, "stderr": "sorry\n"}, "`find` there failed: sorry"),
}


@pytest.mark.parametrize(("on", "trouble", "told"), SILENT.values(), ids=list(SILENT))
@pytest.mark.parametrize("state", ["running", "aborted"])
def test_a_host_that_will_not_tell_after_a_power_loss_is_named_before_it(
    vbox, hypervisor, state, on, trouble, told
):
    """`fencer check` says "Ready, and armed" where nothing is in the way; this is."""
    vbox.add("k8s-1", state)
    assert hypervisor.describe().remarks == ()
    vbox.trouble(on, **trouble)
    (remark,) = hypervisor.describe().remarks
    assert f"does not tell ({told}): after its power loss, or once VBoxSVC was killed" in remark
    assert "`ps`, `cat` and `find`" in remark


def test_a_script_as_the_command_is_named_as_what_keeps_ends_unproven(vbox, clock):
    vbox.add("k8s-1")
    settings = VirtualBoxSettings("lab", vbox.script, look_s=LONG_S, read_s=LONG_S)
    (remark,) = VirtualBoxHypervisor(settings, clock.now_s).describe().remarks
    assert "only a command that ends with VBoxManage can ask its host" in remark


def test_a_host_without_machines_is_asked_for_all_but_their_folder(vbox, hypervisor):
    assert hypervisor.describe().remarks == ()
    assert [words[0] for words in vbox.asked()] == ["ps", "cat"]
    vbox.trouble("ps", code=1)
    assert "`ps` there failed" in hypervisor.describe().remarks[0]


# -- power ----------------------------------------------------------------------------------------------


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


def freeze(machine) -> dict[str, object]:
    """What befalls the readings of a machine whose process is frozen: its log can still be read."""
    return {"on": f"showvminfo {machine.id} --machinereadable", "hang": True}


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
    with pytest.raises(HypervisorUnreachable, match="cannot kill lab/frozen, which does not obey"):
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
    with pytest.raises(HypervisorProtocol, match="these go by UUID"):
        getattr(hypervisor, verb)(GuestRef("lab", id_, id_, "k8s-1"), *words)
    assert vbox.calls() == []


def test_a_uuid_in_another_spelling_is_given_in_the_usual_one(vbox, hypervisor):
    machine = vbox.add("k8s-1")
    assert hypervisor.read(replace(machine, id=f"{{{machine.id.upper()}}}")).guest == machine


# -- who is who -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of_node", "via"), [(swapped, Via.UUID_SWAPPED), (str.upper, Via.UUID)], ids=["little-endian", "old"]
)
def test_a_node_is_found_by_the_uuid_that_its_guest_sees(vbox, hypervisor, of_node, via):
    """Which is hardwareuuid, in either byte order; the machine is asked for by the registry's UUID."""
    hardware_uuid = "12345678-aaaa-bbbb-cccc-1234567890ab"
    machine = vbox.add("k8s-1", hardware_uuid=hardware_uuid)
    vbox.add("k8s-2")
    node = NodeView("k8s-1", "uid", of_node(hardware_uuid), "boot", ready=True, version="1")
    directory = Directory((evidence.guest for evidence in hypervisor.sweep()), [node], Rules())
    (candidate,) = directory.candidates(node)
    assert (candidate.guest, candidate.via) == (machine, via)
    observation = Observation(
        node, (candidate,), None, GuestHistory(), Fleet(1), Intent.WATCH, time.monotonic(), ""
    )
    assert subject_of(observation).candidate == candidate
    assert hypervisor.read(candidate.guest).guest.id == machine.id != hardware_uuid


def test_a_node_is_found_by_the_map_through_the_registrys_uuid(vbox, hypervisor):
    """That is what Vagrant knows of a machine."""
    machine = vbox.add("default", hardware_uuid="12345678-aaaa-bbbb-cccc-1234567890ab")
    node = NodeView("k8s-1", "uid", "", "boot", ready=True, version="1")
    guests = [evidence.guest for evidence in hypervisor.sweep()]
    (candidate,) = Directory(guests, [node], Rules({"k8s-1": ("lab", machine.id)})).candidates(node)
    assert (candidate.guest, candidate.via) == (machine, Via.MAP)
