"""Ends that a VBoxSVC knows, does not know, or dates wrongly, and what the host says besides."""

import time

import pytest

from fencer.contract.deadlines import order
from fencer.core.model import (
    Intent,
    Outcome,
    PowerState,
    Verdict,
    Word,
)
from fencer.errors import (
    HypervisorUnreachable,
)
from fencer.hypervisors.virtualbox.client import VirtualBoxHypervisor
from fencer.hypervisors.virtualbox.settings import VirtualBoxSettings
from tests.hypervisors.virtualbox.looks import (
    BUSY_S,
    LONG_S,
    in_the_end,
    judged,
    not_registered,
    runs,
    states,
)

pytestmark = pytest.mark.slow  # each call of VBoxManage is a process, and some hang


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
    assert "when its host last told, which it does not do now: `ps` there failed" in untold.raw
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
    "an odd folder": ({}, {"folder": "/vms/it's mine"}, "not safe in a shell"),
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
