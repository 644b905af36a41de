"""What follows from readings one after the other: which run it is, and whether "off" is to be believed."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.core.model import PowerState
from fencer.hypervisors.virtualbox.chronicle import Chronicle
from fencer.hypervisors.virtualbox.ended import ABORTED_FOR_S, QUIET_S, Place, Scene
from fencer.hypervisors.virtualbox.parse import STATES, LogHead, Machine
from fencer.hypervisors.virtualbox.processes import Process

ME = "47cafe86-104b-457a-b097-1defd7f3d598"
OFF_WORDS = ["poweroff", "aborted", "saved", "aborted-saved"]


def at(second: float) -> str:
    """A time of VirtualBox's."""
    return f"2026-11-20T18:02:{second:012.9f}"


def machine(state: str, since: float) -> Machine:
    return Machine(ME, ME, "m1", state, at(since))


def log(opened: float, *, cold_start: bool | None = True, ended: str = "PoweredOff") -> LogHead:
    return LogHead(at(opened), cold_start, ended)


@pytest.fixture
def take():
    """Take in one reading after the other; return what each comes to."""
    chronicle = Chronicle()

    def take_it(what, of_log, now_s=0.0):
        return chronicle.take(what, of_log, now_s)[0]

    return take_it


# -- whether to believe "off" ---------------------------------------------------------------------------


@pytest.mark.parametrize("state", OFF_WORDS)
def test_a_machine_whose_log_is_older_than_its_end_is_off(take, state):
    take(machine(state, 9.5), log(3.2), 0)
    reading = take(machine(state, 9.5), log(3.2), ABORTED_FOR_S)
    assert reading.power_state is STATES[state]
    assert reading.settled


@pytest.mark.parametrize("state", OFF_WORDS)
def test_a_machine_whose_log_is_younger_than_its_end_is_unknown(take, state):
    """That is what a second VBoxSVC says of a machine that the first one runs."""
    for now_s in (0, ABORTED_FOR_S):
        reading = take(machine(state, 3.0), log(3.1), now_s)
        assert reading.power_state is PowerState.UNKNOWN
        assert reading.way_out
        assert "a run of it began at 2026-11-20T18:02:03Z" in reading.raw


@pytest.mark.parametrize("state", OFF_WORDS)
def test_a_machine_whose_log_cannot_be_read_is_unknown(take, state):
    for now_s in (0, ABORTED_FOR_S):
        reading = take(machine(state, 9.5), None, now_s)
        assert reading.power_state is PowerState.UNKNOWN


def test_the_exact_time_of_the_end_is_kept_when_the_server_forgets_the_fraction(take):
    """Else a run that began and ended within one second would look as if it had begun after its end."""
    take(machine("poweroff", 9.9), log(9.1))
    assert take(machine("poweroff", 9.0), log(9.1)).power_state is PowerState.STOPPED


def test_a_start_after_the_kept_time_is_noticed(take):
    take(machine("poweroff", 9.3), log(3.2))
    assert take(machine("poweroff", 9.0), log(9.5)).power_state is PowerState.UNKNOWN


@given(st.sampled_from(sorted(STATES)) | st.text(), st.none() | st.floats(0, 59), st.floats(0, 59))
def test_only_an_older_log_lets_anything_be_stopped(state, opened, since):
    chronicle = Chronicle()
    of_log = None if opened is None else log(opened)
    for now_s in (0.0, ABORTED_FOR_S):
        reading, _ = chronicle.take(machine(state, since), of_log, now_s)
        if reading.power_state in {PowerState.STOPPED, PowerState.SAVED}:
            assert state in OFF_WORDS
            assert opened is not None
            assert at(opened) <= at(since)


@given(st.text().filter(lambda word: word not in STATES))
def test_a_word_never_heard_is_unknown(state):
    reading, _ = Chronicle().take(machine(state, 9.5), log(3.2), 0.0)
    assert reading.power_state is PowerState.UNKNOWN
    assert not reading.settled
    assert reading.raw.isprintable()


def test_only_the_run_that_was_seen_alive_here_cannot_be_another_hosts():
    """The one before it says nothing: another host that has the folder as well may have started the next."""
    shared = Scene((Process(1, "/sbin/init"),), None, Place("nfs4", 0.0))
    chronicle = Chronicle()
    chronicle.take(machine("running", 3.5), log(3.2, ended=""), 0.0)

    def later(opened, now_s):
        return chronicle.take(machine("poweroff", 1.0), log(opened, ended=""), now_s, shared)[0].power_state

    assert later(9.2, 100.0) is PowerState.UNKNOWN
    assert later(3.2, 110.0) is PowerState.STOPPING
    assert later(3.2, 110.0 + QUIET_S) is PowerState.STOPPED


# -- aborted --------------------------------------------------------------------------------------------


def test_aborted_counts_once_it_was_seen_for_twenty_seconds_after_its_run(take):
    take(machine("running", 3.5), log(3.2, ended=""), 99)
    for now_s in (100, 101, 119.9):
        reading = take(machine("aborted", 9.5), log(3.2, ended=""), now_s)
        assert reading.power_state is PowerState.STOPPING
        assert not reading.settled
    assert take(machine("aborted", 9.5), log(3.2, ended=""), 120).power_state is PowerState.STOPPED


def test_aborted_of_a_run_that_was_not_seen_is_not_believed_by_time(take):
    take(machine("aborted", 9.5), log(3.2, ended=""), 100)
    reading = take(machine("aborted", 9.5), log(3.2, ended=""), 200)
    assert reading.power_state is PowerState.UNKNOWN
    assert "--confirm-guest-off" in reading.way_out


def test_aborted_twice_is_counted_from_the_second_time(take):
    take(machine("aborted", 9.5), log(3.2, ended=""), 100)
    assert take(machine("aborted", 30.5), log(20.2, ended=""), 120).power_state is PowerState.STOPPING


def test_aborted_is_counted_on_although_the_server_forgot_the_fraction(take):
    take(machine("running", 3.5), log(3.2, ended=""), 99)
    take(machine("aborted", 9.5), log(3.2, ended=""), 100)
    assert take(machine("aborted", 9.0), log(3.2, ended=""), 120).power_state is PowerState.STOPPED


def test_aborted_keeps_its_incarnation_over_the_waiting(take):
    young = take(machine("aborted", 9.5), log(3.2, ended=""), 100)
    assert take(machine("aborted", 9.5), log(3.2, ended=""), 120).incarnation == young.incarnation


# -- which run ------------------------------------------------------------------------------------------


def test_a_pause_is_of_the_same_run_and_a_start_of_another(take):
    running = take(machine("running", 4.5), log(3.2))
    assert take(machine("paused", 5.5), log(3.2)).incarnation == running.incarnation
    assert take(machine("running", 6.5), log(3.2)).incarnation == running.incarnation
    assert take(machine("running", 8.5), log(7.5)).incarnation != running.incarnation


def test_a_start_and_an_end_between_two_readings_change_the_incarnation(take):
    before = take(machine("poweroff", 4.5), log(3.2))
    assert take(machine("poweroff", 4.5), log(3.2)).incarnation == before.incarnation
    assert take(machine("poweroff", 9.5), log(8.2)).incarnation != before.incarnation


def test_a_machine_that_stays_off_keeps_its_incarnation_when_the_server_forgets_the_fraction(take):
    before = take(machine("poweroff", 4.5), log(3.2))
    assert take(machine("poweroff", 4.0), log(3.2)).incarnation == before.incarnation


@pytest.mark.parametrize("cold_start", [True, False, None])
def test_a_run_began_as_its_log_says(take, cold_start):
    assert take(machine("running", 4.5), log(3.2, cold_start=cold_start)).cold_start is cold_start
    assert take(machine("running", 4.5), None).cold_start is cold_start


def test_a_run_without_a_log_is_told_by_its_state(take):
    first = take(machine("running", 4.5), None)
    assert first.cold_start is None
    assert take(machine("running", 4.5), None).incarnation == first.incarnation
    assert take(machine("running", 6.5), None).incarnation != first.incarnation


def test_the_log_of_a_living_machine_is_asked_for_once():
    chronicle = Chronicle()
    running = machine("running", 4.5)
    assert chronicle.needs_log(running)
    chronicle.take(running, log(3.2), 0.0)
    assert not chronicle.needs_log(running)
    assert chronicle.needs_log(machine("paused", 5.5))


def test_the_log_of_a_machine_that_is_off_is_asked_for_each_time():
    """Each reading has to know that no run began since."""
    chronicle = Chronicle()
    for _ in range(2):
        assert chronicle.needs_log(machine("poweroff", 4.5))
        chronicle.take(machine("poweroff", 4.5), log(3.2), 0.0)


def test_the_log_of_a_machine_in_between_is_not_asked_for():
    assert not Chronicle().needs_log(machine("starting", 4.5))


# -- what stays -----------------------------------------------------------------------------------------


def test_only_a_proven_stop_is_a_record_of_the_end():
    chronicle = Chronicle()
    for state, of_log, is_end in [
        ("running", log(3.2), False),
        ("poweroff", log(3.2), True),
        ("saved", log(3.2), False),
        ("aborted", log(3.2, ended=""), False),
        ("poweroff", log(3.2), True),
        ("poweroff", log(30.2), False),
        ("starting", None, False),
    ]:
        chronicle.take(machine(state, 9.5), of_log, 0.0)
        assert (chronicle.end_of(ME) is not None) is is_end


def test_a_late_answer_does_not_overwrite_a_newer_one():
    chronicle = Chronicle()
    chronicle.take(machine("running", 9.5), log(9.2), 10.0)
    chronicle.take(machine("poweroff", 4.5), log(3.2), 5.0)
    assert chronicle.end_of(ME) is None


def test_a_change_is_told_once():
    chronicle = Chronicle()
    changes = [
        chronicle.take(machine(state, since), log(3.2), 0.0)[1]
        for state, since in [("running", 4), ("running", 4), ("paused", 5), ("poweroff", 6), ("poweroff", 6)]
    ]
    assert changes == [False, False, True, True, False]


def test_machines_that_are_not_believed_to_be_off_are_named_until_they_are():
    chronicle = Chronicle()

    def named():
        return [name for name, reading in chronicle.disbelieved() if "confirm-guest-off" in reading.way_out]

    chronicle.take(machine("poweroff", 3.0), log(3.1), 0.0)
    chronicle.take(replace(machine("poweroff", 4.0), uuid="other", name="m2"), log(3.1), 0.0)
    assert named() == ["m1"]
    chronicle.take(machine("running", 4.0), log(3.1), 1.0)
    assert named() == []
