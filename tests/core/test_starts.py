"""Each start of a VM counts once, by its run and its boot id; and what is a crash loop."""

from dataclasses import replace
from itertools import count

import pytest

from fencer.core.history import glimpse, remember
from fencer.core.model import GuestHistory, PowerState, Starts
from fencer.core.starts import (
    BOOTS_KEPT,
    LOOP_S,
    LOOP_STARTS,
    STARTS_KEPT,
    STAYS_OFF_S,
    loop_starts,
    with_reading,
)
from tests.core.build import GUEST, evidence, node

ON, OFF = PowerState.RUNNING, PowerState.STOPPED
ELSEWHERE = replace(GUEST, host="lab2")


class Vm:
    """A VM and its node as an agent sees them, with a look every two seconds."""

    def __init__(self):
        self.history = GuestHistory()
        self.now_s, self.run, self.boot = 1000.0, 1, 1
        self.look()

    def look(self, state=ON, **facts):
        self.now_s += 2.0
        reading = evidence(
            state, **{"incarnation": f"run-{self.run}", "observed_at_s": self.now_s - 0.5} | facts
        )
        seen = node(boot_id=f"boot-{self.boot}" if self.boot else "")
        self.history = remember(self.history, seen, reading, self.now_s, apart_s=60.0)

    def start(self, *, off_s=0.0, boots=True, **facts):
        """It ends, is off for so long, runs again; its kubelet reports that 20 seconds later."""
        for _ in range(int(off_s // 2)):
            self.look(OFF)
        self.run += 1
        self.look(**facts)
        self.now_s += 20.0
        self.look(**facts)
        if boots:
            self.boot += 1
            self.look(**facts)

    @property
    def counted(self):
        return max(len(self.history.starts.runs), len(self.history.starts.boots))

    @property
    def loops(self):
        return len(loop_starts(self.history, self.now_s))


@pytest.fixture
def vm():
    return Vm()


def test_what_is_seen_first_is_no_start(vm):
    vm.look()
    assert vm.counted == 0


def test_a_start_counts_once_by_its_run_and_its_boot_id(vm):
    for number in range(1, 4):
        vm.start(off_s=4.0)
        assert vm.counted == number


def test_a_start_counts_once_if_the_boot_id_is_seen_before_the_run(vm):
    """Its hypervisor did not answer for a while."""
    for number in range(1, 4):
        vm.run, vm.boot = vm.run + 1, vm.boot + 1
        vm.look(conclusive=False)
        vm.look()
        vm.look()
        assert vm.counted == number


def test_a_reset_counts_by_its_boot_id_as_a_start_after_it_does(vm):
    for number in range(1, 4):
        vm.boot += 1
        vm.look()
        vm.look()
        assert vm.counted == number
    vm.start()
    assert vm.counted == 4


def test_a_start_whose_kubelet_never_comes_up_counts(vm):
    for number in range(1, 4):
        vm.start(boots=False)
        assert vm.counted == number


def test_a_vm_that_is_moved_is_not_started(vm):
    """A live migration: another run on another host, in the same boot."""
    for host in ("lab2", "lab3", "lab2", "lab3", "lab2"):
        vm.start(boots=False, guest=replace(GUEST, host=host))
    assert vm.counted == 0


def test_one_that_is_started_on_another_host_is(vm):
    vm.start(guest=ELSEWHERE)
    assert vm.counted == 1


@pytest.mark.parametrize("incarnations", [("run-1", None), (None, "run-1")])
def test_a_run_without_a_name_is_no_start(vm, incarnations):
    for incarnation in incarnations * 3:
        vm.look(incarnation=incarnation)
    assert vm.counted == 0


def test_memory_that_is_restored_is_not_started(vm):
    vm.start(boots=False, cold_start=False)
    assert vm.counted == 0


@pytest.mark.parametrize("state", [state for state in PowerState if state is not ON])
def test_only_a_vm_that_runs_was_started(vm, state):
    vm.run += 1
    vm.look(state)
    assert vm.counted == 0


def test_a_list_that_lags_shows_boots_of_before_and_they_do_not_count_again(vm):
    vm.start()
    for boot in (1, 2, 1, 2, 0, 2):
        vm.boot = boot
        vm.look()
    assert vm.counted == 1


def test_boot_ids_that_are_seen_late_do_not_count_beside_their_runs(vm):
    """Lists lag: of each start the boot id is seen only after the next start."""
    vm.start(boots=False)
    for number in range(2, 5):
        vm.start(boots=False)
        vm.boot += 1
        vm.look()
        assert vm.counted == number


def test_a_reading_from_before_does_not_count(vm):
    vm.start()
    vm.look(incarnation="run-1", observed_at_s=vm.now_s - 30.0)
    vm.look()
    assert vm.counted == 1


def test_runs_are_counted_while_the_api_server_is_away(vm):
    for run in count(2):
        reading = evidence(ON, incarnation=f"run-{run}", observed_at_s=vm.now_s + 30.0 * run)
        vm.history = glimpse(vm.history, reading)
        assert vm.counted == run - 1
        if run == 5:
            break


def test_what_is_remembered_is_bounded(vm):
    for _ in range(STARTS_KEPT + 5):
        vm.start()
    assert len(vm.history.starts.runs) == len(vm.history.starts.boots) == STARTS_KEPT
    assert len(vm.history.starts.boot_ids) == BOOTS_KEPT


class TestCrashLoop:
    """Four starts within ten minutes; until it runs for ten minutes, or stays off."""

    @staticmethod
    def at(*times, now_s=None, run=None):
        now_s = times[-1] if now_s is None else now_s
        by_run, by_boot = (
            loop_starts(GuestHistory(run, starts=starts), now_s)
            for starts in (Starts(runs=times), Starts(boots=times))
        )
        assert by_run == by_boot
        return by_run

    def test_so_many_starts_in_so_short_a_time(self):
        assert self.at(0.0, 10.0, 20.0) == ()
        assert self.at(0.0, 10.0, 20.0, LOOP_S) == (0.0, 10.0, 20.0, LOOP_S)
        assert self.at(0.0, 10.0, 20.0, LOOP_S + 1) == ()
        assert LOOP_STARTS == 4
        assert loop_starts(GuestHistory(), 0.0) == ()

    def test_it_goes_on_with_each_start_and_is_over_once_it_has_run_for_long_enough(self):
        times = (0.0, 10.0, 20.0, 30.0, 500.0)
        assert self.at(*times, now_s=500.0 + LOOP_S - 1) == times
        assert self.at(*times, now_s=500.0 + LOOP_S) == ()

    def test_after_that_starts_are_counted_from_the_first_again(self, vm):
        for _ in range(4):
            vm.start()
        assert vm.loops == 4
        vm.now_s += LOOP_S
        vm.start()
        assert (vm.counted, vm.loops) == (1, 0)

    def test_it_is_over_once_the_vm_stays_off(self, vm):
        for _ in range(4):
            vm.start(off_s=4.0)
        while vm.loops:
            vm.look(OFF)
        assert vm.now_s - vm.history.run.since_s == pytest.approx(STAYS_OFF_S, abs=4.0)
        vm.start()
        assert (vm.counted, vm.loops) == (1, 0)

    def test_the_larger_number_counts(self):
        """Runs are seen also while the API server is away; boots, also where the run stays."""
        few, many = (0.0, 20.0, 40.0, 60.0), (0.0, 10.0, 20.0, 30.0, 60.0)
        for starts in (Starts(runs=few, boots=many), Starts(runs=many, boots=few)):
            assert loop_starts(GuestHistory(starts=starts), 60.0) == many

    def test_two_reboots_are_none(self, vm):
        vm.start(off_s=2.0)
        vm.start(off_s=2.0)
        assert vm.loops == 0


def test_how_much_is_remembered():
    """By numbers: a constant that changes is a decision."""
    assert (LOOP_STARTS, LOOP_S, STAYS_OFF_S, STARTS_KEPT, BOOTS_KEPT) == (4, 600.0, 120.0, 32, 8)


def seen_in_loop(*, last_s=0.0, **facts):
    """A loop of four starts, the last one a while ago, and the run that goes on since then."""
    history = Vm().history
    times = tuple(1000.0 - last_s - ago_s for ago_s in (90.0, 60.0, 30.0, 0.0))
    return replace(history, run=replace(history.run, **facts), starts=Starts(times))


@pytest.mark.parametrize(("state", "loops"), [(OFF, False), (ON, True), (PowerState.PAUSED, True)])
def test_only_a_vm_that_stays_off_has_left_the_loop(state, loops):
    history = seen_in_loop(power_state=state, since_s=1000.0 - 120.0)
    assert bool(loop_starts(history, 1000.0)) is loops
    assert loop_starts(replace(history, run=replace(history.run, since_s=880.1)), 1000.0)


def test_after_a_calm_as_long_as_a_loop_it_is_counted_from_the_first(vm):
    def runs_after(calm_s):
        history = seen_in_loop(power_state=ON, since_s=900.0, incarnation="run-4")
        starts = replace(history.starts, guest=GUEST, incarnation="run-4", read_s=1000.0)
        reading = evidence(ON, incarnation="run-5", observed_at_s=1000.0 + calm_s)
        return with_reading(replace(history, starts=starts), reading).runs

    assert [len(runs_after(calm_s)) for calm_s in (599.9, 600.0)] == [5, 1]


def test_what_is_started_after_it_stayed_off_is_counted_from_that_start(vm):
    vm.start(off_s=4.0)
    vm.start(off_s=130.0)
    assert len(vm.history.starts.runs) == 1
