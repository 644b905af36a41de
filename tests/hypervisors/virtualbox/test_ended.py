"""Whether a machine that VirtualBox calls off is off: what proves it, and what the lack of it leaves."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.hypervisors.virtualbox.ended import (
    ABORTED_FOR_S,
    CLOCK_S,
    QUIET_S,
    START_WRITES_S,
    Ending,
    Place,
    Scene,
    Traces,
    find,
)
from fencer.hypervisors.virtualbox.parse import LogHead, Machine, moment_of
from fencer.hypervisors.virtualbox.processes import Process, Suspects

ME = "47cafe86-104b-457a-b097-1defd7f3d598"
BEGAN_S = 1_795_000_000.0
BEFORE_S, AFTER_S = BEGAN_S - 3600, BEGAN_S + 3600
OWN = Suspects(own=Process(42, f"VBoxHeadless --startvm {ME}"))
UNCLEAR = Suspects(unclear=Process(43, "VBoxHeadless --startvm m1"))
INIT = (Process(1, "/sbin/init"),)
HERE = Place("", BEFORE_S)


def look(state="poweroff", changed_s=BEFORE_S, **more) -> Traces:
    """A machine that is called off since before its last run; booted before that run, quiet for long."""
    told = Traces(
        machine=Machine(ME, ME, "m1", state, moment_of(changed_s)),
        log=LogHead(moment_of(BEGAN_S), cold_start=True, ended=more.pop("ended", "")),
        scene=Scene(INIT, BEFORE_S, HERE),
        suspects=Suspects(),
        lived_here=False,
        seen_for_s=1000.0,
        quiet_for_s=1000.0,
    )
    scene = {key: more.pop(key) for key in ("processes", "booted_s", "place", "untold") if key in more}
    return replace(told, scene=replace(told.scene, **scene), **more)


# -- a run of which VirtualBox knows no end -------------------------------------------------------------

REBOOTED = {"booted_s": AFTER_S, "quiet_for_s": 0.0}
NFS = Place("nfs4", BEFORE_S)

OVER = {
    "the host was booted since": REBOOTED,
    "... and its settings file written, by whoever came then": {**REBOOTED, "place": Place("", AFTER_S)},
    "... with a shared folder, the run seen alive here": {**REBOOTED, "place": NFS, "lived_here": True},
    "no process for long": {},
    "no process for just as long": {"quiet_for_s": QUIET_S},
    "... and the boot not known": {"booted_s": None},
    "no process for long, on a shared folder, the run seen alive here": {"place": NFS, "lived_here": True},
    "... its settings written by the start itself": {"place": Place("", BEGAN_S + START_WRITES_S)},
    "... or later, the run seen alive here": {"place": Place("", AFTER_S), "lived_here": True},
}


@pytest.mark.parametrize("facts", OVER.values(), ids=list(OVER))
@pytest.mark.parametrize("state", ["poweroff", "aborted", "saved", "aborted-saved"])
def test_a_run_that_cannot_go_on_is_over(state, facts):
    found = find(look(state, **facts))
    assert (found.ending, found.way_out) == (Ending.OVER, "")


SOON = {
    "seen once": {"quiet_for_s": 0.0},
    "not seen for long enough": {"quiet_for_s": QUIET_S - 0.1},
    "booted as it began, by clocks that may differ": {"quiet_for_s": 0.0, "booted_s": BEGAN_S + CLOCK_S},
}


@pytest.mark.parametrize("facts", SOON.values(), ids=list(SOON))
def test_a_run_without_process_is_watched_for_a_while(facts):
    assert find(look(**facts)).ending is Ending.SOON


OPEN = {
    "a process that may be its own": ({"suspects": UNCLEAR}, "process 43"),
    "... which is there after a boot": ({"suspects": UNCLEAR, **REBOOTED}, "process 43"),
    "its log tells of an end, VirtualBox does not": ({"ended": "Saved", "place": NFS}, "nfs4"),
    "no list": ({"processes": None, "untold": "no ps"}, "no ps"),
    "no list after a boot": ({"processes": None, "untold": "no ps", **REBOOTED}, "no ps"),
    "not known where it lies": ({"place": None, "untold": "no find"}, "no find"),
    "not known where, after a boot": ({"place": None, "untold": "no find", **REBOOTED}, "no find"),
    "... but seen alive here": ({"place": None, "untold": "no find", "lived_here": True}, "no find"),
    "on a shared folder": ({"place": NFS}, "nfs4"),
    "... after a boot of this host": ({"place": NFS, **REBOOTED}, "nfs4"),
    "its settings written later": ({"place": Place("", BEGAN_S + START_WRITES_S + 0.1)}, "settings file"),
    "... the run seen alive here, and its memory saved then": (
        {"place": Place("", AFTER_S), "lived_here": True, "ended": "Saved"},
        "settings file",
    ),
}


@pytest.mark.parametrize(("facts", "told"), OPEN.values(), ids=list(OPEN))
@pytest.mark.parametrize("state", ["poweroff", "aborted", "saved", "aborted-saved"])
def test_a_run_that_may_go_on_is_not_over(state, facts, told):
    found = find(look(state, **facts))
    assert found.ending is Ending.OPEN
    assert told in f"{found.why} {found.way_out}"


def test_a_second_server_is_suspected_only_where_a_process_was_seen():
    for facts, _ in OPEN.values():
        found = find(look(**facts))
        assert ("second VBoxSVC" in found.way_out) is ("suspects" in facts)
        assert ("--confirm-guest-off" in found.way_out) is ("suspects" not in facts)


@pytest.mark.parametrize("changed_s", [BEFORE_S, AFTER_S], ids=["before", "after"])
@pytest.mark.parametrize("state", ["poweroff", "aborted"])
def test_where_the_host_does_not_tell_the_way_out_begins_with_that(state, changed_s):
    for facts in ({"processes": None}, {"place": None}, {"place": NFS}):
        found = find(look(state, changed_s, **facts))
        silent = facts != {"place": NFS}
        assert found.ending is Ending.OPEN
        assert found.way_out.startswith("its host telling: a `command`" if silent else "the machine started")
        assert "--confirm-guest-off" in found.way_out


def state_is_aborted(told: Traces) -> bool:
    return told.machine.state == "aborted"


places = st.none() | st.builds(Place, st.sampled_from(["", "nfs4"]), st.floats(BEFORE_S, AFTER_S))


@given(
    state=st.sampled_from(["poweroff", "aborted", "saved"]),
    changed_s=st.floats(BEFORE_S, AFTER_S),
    processes=st.none() | st.just(INIT),
    booted_s=st.none() | st.floats(BEFORE_S, AFTER_S),
    place=places,
    suspects=st.sampled_from([Suspects(), OWN, UNCLEAR]),
    lived_here=st.booleans(),
    ended=st.sampled_from(["", "Saved", "PoweredOff"]),
    seen_for_s=st.floats(0, 100),
    quiet_for_s=st.none() | st.floats(0, 100),
)
def test_nothing_is_over_while_its_own_process_is_seen_nor_a_run_of_unknown_end_without_a_list(**facts):
    told = look(**facts)
    if find(told).ending is Ending.OVER:
        assert told.suspects.own is None
        contradicted = told.log.opened > told.machine.changed
        long = told.lived_here and told.seen_for_s >= ABORTED_FOR_S
        held = state_is_aborted(told) and long and not contradicted
        if (contradicted or not told.log.ended) and not held:
            assert told.scene.processes is not None
            assert told.suspects.any is None
            assert told.scene.place is not None
            assert told.lived_here or not told.scene.place.shared_by


@pytest.mark.parametrize("changed_s", [BEFORE_S, AFTER_S], ids=["told before it", "told after it"])
@pytest.mark.parametrize("state", ["poweroff", "aborted", "saved"])
@pytest.mark.parametrize("last", ["away", "is_cut"])
def test_a_run_whose_guest_was_teleported_or_may_have_been_is_never_over_here(last, state, changed_s):
    """Once VBoxSVC has gone, the next one calls ``teleported`` ``poweroff``; a log that is cut may say so."""
    log = replace(LogHead(moment_of(BEGAN_S), cold_start=True), **{last: True})
    for facts in ({}, REBOOTED, {"lived_here": True}, {"seen_for_s": 0.0}):
        found = find(replace(look(state, changed_s, **facts), log=log))
        assert found.ending is Ending.OPEN
        assert "teleport" in found.why
        assert "--confirm-guest-off" in found.way_out


# -- an end that VirtualBox dated -----------------------------------------------------------------------

DOUBTS = {
    "no list": {"processes": None},
    "a process that may be its own": {"suspects": UNCLEAR},
    "not known where it lies": {"place": None},
    "on a shared folder": {"place": NFS},
}
doubtful = pytest.mark.parametrize("facts", DOUBTS.values(), ids=list(DOUBTS))
undoubted = pytest.mark.parametrize(
    "facts", [{}, {"lived_here": True, "place": NFS}], ids=["here", "seen alive here"]
)


@doubtful
@pytest.mark.parametrize("ended", ["PoweredOff", "Saved"])
@pytest.mark.parametrize("state", ["poweroff", "saved"])
def test_an_end_of_which_the_log_tells_counts_at_once(state, ended, facts):
    assert find(look(state, AFTER_S, seen_for_s=0.0, ended=ended, **facts)).ending is Ending.OVER


@undoubted
@pytest.mark.parametrize("state", ["aborted", "aborted-saved"])
def test_aborted_counts_at_once_where_no_process_is_left(state, facts):
    told = look(state, AFTER_S, seen_for_s=0.0, quiet_for_s=0.0, **facts)
    assert find(told).ending is Ending.OVER


@undoubted
@pytest.mark.parametrize("state", ["poweroff", "saved"])
def test_an_end_of_which_the_log_does_not_tell_counts_once_no_process_was_seen_for_a_while(state, facts):
    """VBoxSVC was killed in a run in which it had written the settings file."""
    for quiet_for_s in (None, 0.0, QUIET_S - 0.1):
        assert find(look(state, AFTER_S, quiet_for_s=quiet_for_s, **facts)).ending is Ending.SOON
    assert find(look(state, AFTER_S, quiet_for_s=QUIET_S, **facts)).ending is Ending.OVER


@doubtful
@pytest.mark.parametrize("state", ["poweroff", "saved"])
def test_an_end_of_which_the_log_does_not_tell_does_not_count_where_a_process_may_be_left(state, facts):
    """A second VBoxSVC tells of such an end of a machine that runs, once its settings were written."""
    found = find(look(state, AFTER_S, **facts))
    assert found.ending is Ending.OPEN
    assert "its log tells of no end" in found.why
    assert "--confirm-guest-off" in found.way_out


@doubtful
@pytest.mark.parametrize("state", ["aborted", "aborted-saved"])
def test_aborted_is_held_for_a_while_and_then_as_long_as_a_process_is_there_that_may_be_its_own(state, facts):
    """A process that is killed tells its log of no end; one that hangs outlives even its VBoxSVC's death."""
    facts = {**facts, "lived_here": True}
    young = find(look(state, AFTER_S, seen_for_s=ABORTED_FOR_S - 0.1, **facts))
    old = find(look(state, AFTER_S, seen_for_s=ABORTED_FOR_S, **facts))
    may_live = facts.get("suspects", Suspects()).any is not None
    told = facts.get("place") == NFS  # of a run that was seen alive here, that is no doubt
    assert young.ending is (Ending.OVER if told else Ending.SOON)
    assert old.ending is (Ending.OPEN if may_live else Ending.OVER)


@doubtful
@pytest.mark.parametrize("state", ["aborted", "aborted-saved"])
def test_no_time_ends_a_doubt_about_a_run_that_was_never_seen_alive_here(state, facts):
    """Another VBoxSVC tells ``aborted`` of before that run, dated after its log if a clock was set back."""
    found = find(look(state, AFTER_S, **facts))
    assert found.ending is Ending.OPEN
    assert "--confirm-guest-off" in found.way_out


# -- its own process is there ---------------------------------------------------------------------------

KILL = "process 42 runs it; to end it: `kill 42` on its host as the machines' user"
logs = pytest.mark.parametrize(
    "log", [{}, {"ended": "PoweredOff"}, {"away": True}], ids=["no end", "an end", "a teleport"]
)


@logs
@pytest.mark.parametrize("state", ["poweroff", "saved", "aborted", "aborted-saved"])
def test_no_end_counts_while_the_machines_own_process_is_there(state, log):
    told = LogHead(moment_of(BEGAN_S), cold_start=True, **log)
    young = find(replace(look(state, AFTER_S, suspects=OWN, seen_for_s=ABORTED_FOR_S - 0.1), log=told))
    old = find(replace(look(state, AFTER_S, suspects=OWN, seen_for_s=ABORTED_FOR_S), log=told))
    assert (young.ending, old.ending) == (Ending.SOON, Ending.SOON)
    assert "process 42" in young.why
    assert young.way_out == ""
    assert old.way_out.startswith(f"{KILL}. Has this user a second VBoxSVC?")


@logs
@pytest.mark.parametrize("facts", [{}, REBOOTED, {"processes": None, "untold": "no ps"}, {"place": None}])
@pytest.mark.parametrize("state", ["poweroff", "aborted", "saved", "aborted-saved"])
def test_a_run_of_which_virtualbox_does_not_know_goes_on_while_its_own_process_is_there(state, facts, log):
    """After a boot as well: a clock can have been set. And no person is asked for a word against it."""
    told = LogHead(moment_of(BEGAN_S), cold_start=True, **log)
    found = find(replace(look(state, suspects=OWN, **facts), log=told))
    assert found.ending is Ending.SOON
    assert found.way_out.startswith(KILL)
    assert "--confirm-guest-off" not in f"{found.why} {found.way_out}"
    assert ("no ps" in found.why) is ("untold" in facts)


def test_a_process_that_was_started_by_name_may_be_ended_or_told_apart():
    by_name = Suspects(own=Process(42, "VBoxHeadless --startvm m1"))
    found = find(look(suspects=by_name))
    assert "`kill 42`" in found.way_out
    assert "another name" in found.way_out
    assert "another name" not in find(look(suspects=OWN)).way_out
