"""libvirt's numbers become power states by the table, and nothing becomes more than the table says."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.core.model import PowerState
from fencer.hypervisors.libvirt.parse import TABLE, host_uuid, read_power
from tests.support.guests import libvirt_binding

RUNNING, PAUSED, SAVED, STOPPING, STOPPED, UNKNOWN = (
    PowerState.RUNNING,
    PowerState.PAUSED,
    PowerState.SAVED,
    PowerState.STOPPING,
    PowerState.STOPPED,
    PowerState.UNKNOWN,
)
NAMES = {
    1: "RUNNING",
    2: "BLOCKED",
    3: "PAUSED",
    4: "SHUTDOWN",
    5: "SHUTOFF",
    6: "CRASHED",
    7: "PMSUSPENDED",
}
NUMBERS = st.integers(-(2**31), 2**31 - 1)
IMAGES = st.sampled_from([True, False, None])

# Written out by hand once more: state, and the power states of its reasons from 0 on, without a saved image.
EXPECTED = {
    1: [RUNNING] * 12,
    2: [RUNNING],
    3: [
        *[PAUSED, PAUSED, STOPPING, STOPPING, STOPPING, PAUSED, PAUSED, PAUSED],
        *[STOPPING, STOPPING, PAUSED, STOPPING, STOPPING, UNKNOWN, UNKNOWN],
    ],
    4: [STOPPING, STOPPING],
    5: [STOPPED, STOPPED, STOPPED, STOPPED, UNKNOWN, UNKNOWN, STOPPED, STOPPED, STOPPED],
    6: [PAUSED, PAUSED],
    7: [PAUSED],
}
CASES = [(state, reason, meant) for state, row in EXPECTED.items() for reason, meant in enumerate(row)]


@pytest.mark.parametrize(("state", "reason", "meant"), CASES)
def test_each_known_pair_means_what_the_table_says(state, reason, meant):
    assert read_power(state, reason, has_saved_image=False).power_state is meant


def test_the_table_has_no_pair_that_is_not_tested():
    assert {(state, reason) for state, row in TABLE.items() for reason in row} == {case[:2] for case in CASES}


@given(state=NUMBERS.filter(lambda number: number not in range(1, 8)), reason=NUMBERS, image=IMAGES)
def test_a_state_never_seen_is_unknown(state, reason, image):
    reading = read_power(state, reason, has_saved_image=image)
    assert reading.power_state is UNKNOWN
    assert not reading.settled
    assert str(state) in reading.raw


@given(
    state=st.sampled_from([3, 5, 6, 7]),
    reason=NUMBERS.filter(lambda number: not 0 <= number < 15),
    image=IMAGES,
)
def test_a_reason_never_seen_makes_a_state_that_permits_actions_unknown(state, reason, image):
    assert read_power(state, reason, has_saved_image=image).power_state is UNKNOWN


@given(reason=NUMBERS, image=IMAGES)
def test_a_reason_never_seen_leaves_a_state_that_permits_nothing_as_it_is(reason, image):
    assert read_power(1, reason, has_saved_image=image).power_state is RUNNING
    assert read_power(2, reason, has_saved_image=image).power_state is RUNNING
    assert read_power(4, reason, has_saved_image=image).power_state is STOPPING


@given(state=NUMBERS | st.integers(0, 8), reason=NUMBERS | st.integers(0, 15), image=IMAGES)
def test_stopped_needs_shut_off_and_the_certainty_that_no_image_is_there(state, reason, image):
    if read_power(state, reason, has_saved_image=image).power_state is STOPPED:
        assert (state, image) == (5, False)


@pytest.mark.parametrize("reason", [0, 1, 2, 3, 6, 7, 8])
def test_a_saved_image_makes_a_guest_that_is_off_saved(reason):
    reading = read_power(5, reason, has_saved_image=True)
    assert reading.power_state is SAVED
    assert "by hand `virsh managedsave-remove` and then `virsh start`" in reading.raw


def test_a_saved_guest_tells_a_managed_image_from_a_file_and_names_the_way_out():
    managed, file = (read_power(5, 5, has_saved_image=image) for image in (True, False))
    assert (managed.power_state, file.power_state) == (SAVED, UNKNOWN)
    assert "virsh managedsave-remove" in managed.raw
    assert "virsh restore FILE" in file.raw
    assert "virsh managedsave-remove" not in file.raw


def test_a_guest_that_was_migrated_away_is_unknown_even_with_a_saved_image():
    assert read_power(5, 4, has_saved_image=True).power_state is UNKNOWN


@given(state=st.sampled_from([1, 2, 3, 4, 6, 7]), reason=st.integers(0, 14))
def test_a_saved_image_says_nothing_about_a_guest_that_is_on(state, reason):
    with_image = read_power(state, reason, has_saved_image=True)
    assert with_image.power_state is read_power(state, reason, has_saved_image=False).power_state


@pytest.mark.parametrize(
    ("state", "reason", "cold_start"),
    [(1, 1, True), (1, 3, False), (1, 4, False), (3, 7, False), (1, 5, None), (1, 0, None), (5, 1, None)],
)
def test_only_some_reasons_tell_how_the_run_began(state, reason, cold_start):
    assert read_power(state, reason, has_saved_image=False).cold_start is cold_start


def test_only_a_pause_by_failed_storage_is_an_io_error():
    failed = [case[:2] for case in CASES if read_power(*case[:2], has_saved_image=False).io_error]
    assert failed == [(3, 5)]


def test_a_state_on_its_way_is_not_settled():
    unsettled = {
        meant
        for state, reason, meant in CASES
        if not read_power(state, reason, has_saved_image=False).settled
    }
    assert unsettled == {STOPPING, UNKNOWN}


def test_raw_has_words_and_numbers():
    assert read_power(5, 3, has_saved_image=False).raw == "shut off (state 5, reason 3 crashed)"
    assert read_power(1, 99, has_saved_image=False).raw == "running (state 1, reason 99)"


@pytest.mark.libvirt
@pytest.mark.parametrize(("state", "name"), NAMES.items())
def test_the_words_are_those_of_the_binding(state, name):
    """A number that was mistyped in the table has another name in libvirt."""
    libvirt = libvirt_binding()
    assert getattr(libvirt, f"VIR_DOMAIN_{name}") == state
    words = {
        reason: re.sub(r"\W", "_", word.replace("-", "")).upper()
        for reason, (word, _) in TABLE[state].items()
    }
    there = {reason: getattr(libvirt, f"VIR_DOMAIN_{name}_{word}", None) for reason, word in words.items()}
    oldest_missing = min((reason for reason, number in there.items() if number is None), default=len(there))
    assert there == {reason: reason if reason < oldest_missing else None for reason in there}
    assert oldest_missing >= {"PAUSED": 14}.get(name, len(there)), (
        "only the newest may be missing, in an old binding"
    )


UUID_TEXT = "4C4C4544-0042-3510-8054-B9C04F4E3532"
CAPABILITIES = f"<capabilities><host><uuid>{UUID_TEXT}</uuid></host></capabilities>"
OTHER = "3F1C2AD0-7B1E-4D39-9A5F-3F0D6F1C2AE1"
MANY_HAVE_IT = "03000200-0400-0500-0006-000700080009"


def sysinfo(uuid):
    return f"<sysinfo type='smbios'><system><entry name='uuid'>{uuid}</entry></system></sysinfo>"


SYSINFO = sysinfo(UUID_TEXT)


def test_a_host_is_known_by_the_uuid_of_its_firmware():
    assert host_uuid(CAPABILITIES, SYSINFO) == UUID_TEXT.lower()


@pytest.mark.parametrize(
    ("capabilities", "table"),
    [
        (CAPABILITIES, ""),
        (CAPABILITIES, "<sysinfo type='smbios'><bios/></sysinfo>"),
        (CAPABILITIES, sysinfo("ffffffff-ffff-ffff-ffff-ffffffffffff")),
        (CAPABILITIES, sysinfo(OTHER)),
        (CAPABILITIES, sysinfo("Not Settable")),
        (CAPABILITIES.replace(UUID_TEXT, MANY_HAVE_IT), sysinfo(MANY_HAVE_IT)),
        (CAPABILITIES.replace(UUID_TEXT, "none"), SYSINFO),
        ("<capabilities/>", SYSINFO),
        ("not XML", SYSINFO),
    ],
    ids=[
        "invented at each start",
        "table without one",
        "invented, as libvirt takes no such one",
        "set in libvirtd.conf",
        "table without a UUID of its own",
        "many have it",
        "no UUID",
        "none told",
        "no XML",
    ],
)
def test_what_may_not_last_or_not_be_its_own_is_no_hosts_uuid(capabilities, table):
    assert host_uuid(capabilities, table) is None
