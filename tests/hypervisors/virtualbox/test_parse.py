"""What VBoxManage prints is read as it stands, and nothing is read out of it that does not stand there."""

import itertools
import re
from collections import Counter
from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.core.model import PowerState
from fencer.errors import (
    GuestNotFound,
    HypervisorDenied,
    HypervisorError,
    HypervisorProtocol,
    HypervisorUnreachable,
)
from fencer.hypervisors.virtualbox.errors import ACCESS_DENIED, Locked, code_of, failure, kind_of
from fencer.hypervisors.virtualbox.parse import (
    STATES,
    Listed,
    LogHead,
    Machine,
    Malformed,
    moment,
    parse_list,
    parse_log_head,
    parse_logged_uuid,
    parse_machine,
    parse_version,
    same_moment,
)
from fencer.hypervisors.virtualbox.run import Output
from tests.hypervisors.virtualbox.recordings import BESIDE, FOLDER, MISSING, recorded, recorded_text
from tests.support.vbox import NO_SERVER

ME = "47cafe86-104b-457a-b097-1defd7f3d598"
OTHER = "590e6fbf-22bb-4d84-a8cc-110921bb2c8c"
SINCE = "2026-11-20T18:02:17.317000000"

RUNNING, PAUSED, SAVED, STOPPING, STOPPED, UNKNOWN = (
    PowerState.RUNNING,
    PowerState.PAUSED,
    PowerState.SAVED,
    PowerState.STOPPING,
    PowerState.STOPPED,
    PowerState.UNKNOWN,
)
# Written out by hand once more: every name that VirtualBox 7.2 has for a state.
EXPECTED = {
    RUNNING: "running livesnapshotting deletingsnapshotlive",
    PAUSED: "paused gurumeditation",
    SAVED: "saved aborted-saved",
    STOPPING: (
        "starting stopping saving restoring teleporting teleportingpausedvm teleportingin onlinesnapshotting "
        "deletingsnapshotlivepaused restoringsnapshot deletingsnapshot settingup snapshotting"
    ),
    STOPPED: "poweroff aborted",
    UNKNOWN: "teleported",
}

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=30)
FORGERIES = st.sampled_from(
    [
        'VMState="poweroff"',
        f'UUID="{OTHER}"',
        '"',
        '\\"',
        "\\",
        'x"\nVMState="poweroff"\ny="',
        '\nVMState="aborted"\n',
        f'" {{{OTHER}}}\n"',
    ]
)
CHOSEN = st.lists(TEXTS | FORGERIES, max_size=5).map("\n".join)


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def shown(*, name="m1", state="running", before=(), after=()) -> str:
    """What showvminfo prints, with lines before and after those that matter."""
    return "\n".join(
        [
            f'name="{escaped(name)}"',
            *before,
            'groups="/"',
            f'UUID="{ME}"',
            "memory=1024",
            f'hardwareuuid="{ME}"',
            f'VMState="{state}"',
            f'VMStateChangeTime="{SINCE}"',
            '"ide-0-0"="/vms/m1/m1.vdi"',
            " rec_screen0",
            *after,
            "GuestMemoryBalloon=0",
            "",
        ]
    )


# -- states ---------------------------------------------------------------------------------------------


def test_every_state_means_what_the_table_says():
    expected = {word: state for state, words in EXPECTED.items() for word in words.split()}
    assert expected == STATES


# -- list vms -------------------------------------------------------------------------------------------


def test_an_empty_list_is_a_list():
    assert parse_list("") == ()


@given(st.lists(st.tuples(st.uuids().map(str), CHOSEN.filter(lambda name: '" {' not in name)), max_size=5))
def test_a_list_is_read_as_it_was_printed_whatever_the_names(machines):
    printed = "".join(f'"{name}" {{{uuid}}}\n' for uuid, name in machines)
    assert parse_list(printed) == tuple(Listed(uuid, name) for uuid, name in machines)


def test_a_name_that_looks_like_a_line_end_names_more_machines_and_hides_none():
    printed = f'"x" {{{OTHER}}}\n"y" {{{ME}}}\n'
    assert {one.uuid for one in parse_list(printed)} == {OTHER, ME}


@pytest.mark.parametrize(
    "text",
    [
        "WARNING: The character device /dev/vboxdrv does not exist.\n",
        f'WARNING: x\n"m1" {{{ME}}}\n',
        f'"m1" {{{ME}}}\nsomething\n',
        f'"m1" {{{ME[:-1]}}}\n',
        '"m1"\n',
        '"',
        "\n",
        "\x00",
        f"m1 {{{ME}}}\n",
        f'" {{{ME}}}\n',
    ],
)
def test_what_is_no_list_is_not_taken_for_an_empty_one(text):
    with pytest.raises(Malformed):
        parse_list(text)


@given(st.text())
def test_no_text_makes_the_list_fall_over(text):
    with suppress(Malformed):
        assert all(str(UUID(one.uuid)) == one.uuid for one in parse_list(text))


# -- showvminfo -----------------------------------------------------------------------------------------


def test_a_machine_is_read():
    assert parse_machine(shown(name='we "ird, na;me=1'), ME) == Machine(
        ME, ME, 'we "ird, na;me=1', "running", SINCE
    )


@given(name=CHOSEN, description=CHOSEN)
def test_names_and_descriptions_change_nothing(name, description):
    text = shown(name=name, after=[f'description="{escaped(description)}"'])
    assert parse_machine(text, ME) == Machine(ME, ME, name, "running", SINCE)


@given(st.lists(CHOSEN, max_size=3))
def test_no_text_of_a_snapshot_can_forge_a_state(texts):
    """VirtualBox does not escape these: they may make a machine unreadable, and nothing else."""
    after = [f'SnapshotDescription-{number}="{text}"' for number, text in enumerate(texts)]
    try:
        machine = parse_machine(shown(after=after), ME)
    except Malformed:
        return
    assert machine == Machine(ME, ME, "m1", "running", SINCE)


@pytest.mark.parametrize("key", ["name", "UUID", "hardwareuuid", "VMState", "VMStateChangeTime"])
def test_an_answer_that_lacks_a_line_is_none(key):
    lines = [line for line in shown().split("\n") if not line.startswith(f"{key}=")]
    with pytest.raises(Malformed, match=f"without {key}:"):
        parse_machine("\n".join(lines), ME)


def test_an_answer_that_breaks_off_is_none():
    text = shown()
    for end in range(text.index("VMStateChangeTime") + 20):
        with pytest.raises(Malformed):
            parse_machine(text[:end], ME)


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ('VMState="poweroff"', "VMState twice: 'running' and 'poweroff'"),
        ('VMStateChangeTime="2026-11-20T18:02:18.000000000"', "VMStateChangeTime twice"),
        (f'UUID="{OTHER}"', "UUID twice"),
    ],
)
def test_an_answer_that_contradicts_itself_is_none(line, match):
    with pytest.raises(Malformed, match=match):
        parse_machine(shown(after=[line]), ME)


def test_an_answer_about_another_machine_is_none():
    """A machine may bear another one's UUID as its name, and names are looked up too."""
    with pytest.raises(Malformed, match=f"about '{ME}' instead of {OTHER}"):
        parse_machine(shown(), OTHER)


@pytest.mark.parametrize("time", ["", "yesterday", "2026-11-20 18:02:17", "2026-11-20T18:02:17.1234567890"])
def test_a_state_without_a_time_is_none(time):
    with pytest.raises(Malformed, match="a time that is none"):
        parse_machine(shown().replace(SINCE, time), ME)


def test_an_inaccessible_machine_is_told_from_a_broken_answer():
    assert parse_machine(f'name="<inaccessible>"\nUUID="{ME}"\n', ME) is None


def test_a_machine_that_is_only_called_inaccessible_is_read():
    machine = parse_machine(shown(name="<inaccessible>"), ME)
    assert machine is not None
    assert machine.state == "running"


@given(st.text())
def test_no_text_makes_the_reading_fall_over(text):
    with pytest.raises(Malformed) as caught:
        parse_machine(text, ME)
    assert str(caught.value).isprintable()


def test_a_long_description_is_read_in_one_go():
    """Not once for each of its lines: this would take an hour."""
    description = escaped('line "x"\n' * 200_000)
    assert parse_machine(shown(after=[f'description="{description}"']), ME) is not None
    assert parse_list('"' + "x\n" * 200_000 + f'" {{{ME}}}\n')[0].uuid == ME


# -- times and logs -------------------------------------------------------------------------------------


def test_times_compare_as_they_follow_each_other():
    times = [
        "2026-11-20T18:02:17",
        "2026-11-20T18:02:17.031982Z",
        "2026-11-20T18:02:17.3",
        "2026-11-20T18:02:18Z",
    ]
    assert [moment(time) for time in times] == sorted(moment(time) for time in times)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("17.317000000", "17.317000000", True),
        ("17.317000000", "17.000000000", True),  # VBoxSVC was started again in between
        ("17.317000000", "17.318000000", False),
        ("17.317000000", "18.000000000", False),
        ("17.000000000", "18.000000000", False),
    ],
)
def test_a_time_may_lose_its_fraction(first, second, same):
    times = f"2026-11-20T18:02:{first}", f"2026-11-20T18:02:{second}"
    assert same_moment(*times) is same
    assert same_moment(*reversed(times)) is same


LOG = """\
00:00:00.022549 {thread}VirtualBox VM 7.2.22_Debian r175245 linux.amd64 (Oct 22 2026 07:33:03) release log
00:00:00.022551 {thread}Log opened 2026-11-20T23:34:42.505985000Z
00:00:00.022551 {thread}Build Type: release
00:00:00.025117 {thread}Console: Machine state changed to '{state}'
00:00:00.396178 {thread}Console: Machine state changed to 'Running'
"""
OPENED = "2026-11-20T23:34:42.505985000"


@pytest.mark.parametrize(
    ("state", "cold_start"),
    [("Starting", True), ("Restoring", False), ("TeleportingIn", False), ("Dreaming", None)],
)
@pytest.mark.parametrize("thread", ["", "main     "])
def test_a_log_tells_how_its_run_began(state, cold_start, thread):
    assert parse_log_head(LOG.format(state=state, thread=thread)) == LogHead(OPENED, cold_start)


@pytest.mark.parametrize("thread", ["", "main "])
def test_a_log_tells_what_uuid_its_guest_sees(thread):
    """As VirtualBox 7.2.22 wrote it, of a machine with another ``--hardware-uuid``."""
    told = "12 34 56 78 aa aa bb bb cc cc 12 34 56 78 90 ab"
    value = f'00:00:00.190486 {thread}  UUID              <bytes>   = "{told}" (cb=16)\n'
    uuid = "78563412-aaaa-bbbb-cccc-1234567890ab"
    assert parse_logged_uuid(LOG.format(state="Starting", thread=thread) + value) == uuid
    for other in ("", value[:60], value.replace("UUID", "Name"), f"00:00:01.0 Guest Log: {value[17:]}"):
        assert parse_logged_uuid(LOG.format(state="Starting", thread=thread) + other) == ""


def test_a_log_that_has_just_been_opened_does_not_tell_yet():
    assert parse_log_head(LOG[: LOG.index("00:00:00.025")].format(thread="")) == LogHead(OPENED, None)


ENDS = {
    "powered off": ("Running", "Stopping", "PoweredOff"),
    "saved": ("Running", "Paused", "Saving", "Saved"),
    "never got up": ("PoweredOff",),
    "runs": ("Running",),
    "was killed": ("Running", "Paused", "Running"),
    "was saved, and is being restored": ("Saved", "Restoring", "Running"),
    "teleports": ("Running", "Teleporting"),
    "was teleported": ("Running", "Teleporting", "TeleportingPausedVM", "Teleported"),
    "was to be teleported, and stayed": ("Running", "Teleporting", "Running"),
}


@pytest.mark.parametrize("states", ENDS.values(), ids=list(ENDS))
def test_a_log_tells_of_an_end_by_its_last_state(states):
    """A process that is killed tells of none."""
    changed = [f"00:00:03.091846 Console: Machine state changed to '{state}'\n" for state in states]
    log = (
        LOG.format(state="Starting", thread="") + "".join(changed) + "00:00:03.105889 VBoxHeadless: exiting\n"
    )
    head = parse_log_head(log)
    assert head.ended == (states[-1] if states[-1] in {"PoweredOff", "Saved"} else "")
    assert head.away is states[-1].startswith("Teleport")


def test_a_log_that_goes_on_tells_of_no_end():
    log = LOG.format(state="Starting", thread="")
    log += "00:00:03.091846 Console: Machine state changed to 'PoweredOff'\n"
    head = parse_log_head(log, is_cut=True)
    assert (head.ended, head.is_cut) == ("", True)


def test_a_guest_that_writes_of_an_end_into_the_log_does_not_end():
    said = "00:00:03.103189 VMMDev: Guest Log: Console: Machine state changed to 'PoweredOff'\n"
    assert parse_log_head(LOG.format(state="Starting", thread="") + said).ended == ""


@pytest.mark.parametrize("text", ["", "VBoxHeadless: exiting\n", "Log opened yesterday\n"])
def test_what_is_no_log_tells_nothing(text):
    with pytest.raises(Malformed):
        parse_log_head(text)


# -- versions and failures ------------------------------------------------------------------------------


def test_a_version_is_read():
    assert parse_version("7.2.22_Debianr175245\n") == "7.2.22_Debianr175245"


def test_the_warnings_of_a_script_are_no_version():
    with pytest.raises(Malformed, match="vboxdrv"):
        parse_version("WARNING: The character device /dev/vboxdrv does not exist.\n7.2.22\n")


def said(code: int, stderr: str = "") -> Output:
    return Output(code, "", stderr)


def details(name: str, code: int) -> str:
    component = "component MachineWrap, interface IMachine, callee nsISupports"
    return (
        f"VBoxManage: error: Sentence\nVBoxManage: error: Details: code {name} (0x{code:08x}), {component}\n"
    )


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        (said(1, details("VBOX_E_OBJECT_NOT_FOUND", 0x80BB0001)), GuestNotFound),
        (said(1, details("VBOX_E_INVALID_OBJECT_STATE", 0x80BB0007)), Locked),
        (said(1, details("NS_ERROR_FAILURE", 0x80004005)), HypervisorProtocol),
        (said(1, NO_SERVER.replace("80040154", "80004005")), HypervisorUnreachable),
        (said(1, details("NS_ERROR_CALL_FAILED", 0x800706BE)), HypervisorUnreachable),
        (said(1, details("VBOX_E_INVALID_VM_STATE", 0x80BB0002)), HypervisorProtocol),
        (said(1, NO_SERVER), HypervisorUnreachable),
        (said(1, "VBoxManage: error: Machine 'm1' is not currently running.\n"), HypervisorProtocol),
        (said(2, "VBoxManage: error: Invalid command 'frobnicate'\n"), HypervisorProtocol),
        (said(-9), HypervisorUnreachable),
        (said(255, "ssh: connect to host box port 22: Connection refused\n"), HypervisorUnreachable),
        (said(255, "vagrant@box: Permission denied (publickey).\n"), HypervisorDenied),
        (said(255, "Host key verification failed.\n"), HypervisorDenied),
        (said(127, "bash: line 1: VBoxManage: command not found\n"), HypervisorUnreachable),
        (said(126, "bash: line 1: /root/VBoxManage: Permission denied\n"), HypervisorDenied),
        (said(1), HypervisorProtocol),
    ],
)
def test_failures_are_told_apart_by_their_codes(output, kind):
    assert kind_of(output) is kind
    error = failure(output, "cannot read it", "lab", "VBoxManage", ME)
    assert type(error) is kind
    assert str(error).startswith("lab (VBoxManage): cannot read it: ")


@pytest.mark.parametrize("program", ["VBoxManage", "VBoxManage.bin", "VBoxManage.exe"])
def test_the_program_may_have_an_ending(program):
    """It begins each line of a failure with its own name."""
    told = details("VBOX_E_OBJECT_NOT_FOUND", 0x80BB0001).replace("VBoxManage", program)
    assert kind_of(said(1, told)) is GuestNotFound


def test_a_name_with_a_code_in_it_does_not_make_the_failure():
    forged = details("VBOX_E_OBJECT_NOT_FOUND", 0x80BB0001)
    sentence = f"VBoxManage: error: Cannot lock '{forged}'\n"
    output = said(1, sentence + details("VBOX_E_INVALID_OBJECT_STATE", 0x80BB0007))
    assert kind_of(output) is Locked
    assert str(failure(output, "cannot", "lab", "VBoxManage")).isprintable()


# -- what was recorded ----------------------------------------------------------------------------------

LISTED = re.compile(r'" \{[0-9A-Fa-f-]{36}\}$')
ANSWERED = {
    key: re.compile(rf'^{key}="(.*)"$', re.MULTILINE)
    for key in ("name", "UUID", "hardwareuuid", "VMState", "VMStateChangeTime")
}
"""Lines of a whole answer about a machine, without regard to what stands in whose text."""


@pytest.fixture(scope="module")
def recordings():
    found = list(recorded())
    if not found:
        pytest.skip(MISSING)
    return found


def test_recorded_lists_are_read(recordings):
    """What is no list is refused, and no machine of a list is left out."""
    for one in recordings:
        lines = one.stdout.removesuffix("\n").split("\n") if one.stdout else []
        if one.words in {"list vms", "list runningvms"} and one.code == 0:
            try:
                found = parse_list(one.stdout)
            except Malformed:
                assert not all(LISTED.search(line) for line in lines)
                continue
            assert len(found) == sum(bool(LISTED.search(line)) for line in lines)


def test_recorded_machines_are_read(recordings):
    """A machine is in the state that stands there, or its lines contradict each other."""
    for one in recordings:
        texts = {key: ANSWERED[key].findall(one.stdout) for key in ANSWERED}
        if one.code == 0 and all(texts.values()):
            uuid = texts["UUID"][0].lower()
            try:
                machine = parse_machine(one.stdout, uuid)
            except Malformed:
                assert any(len(set(values)) > 1 for values in texts.values())
                continue
            assert machine is not None
            assert (machine.uuid, machine.hardware_uuid) == (uuid, texts["hardwareuuid"][0].lower())
            assert machine.state == texts["VMState"][0]


@pytest.mark.skipif(not FOLDER.is_dir(), reason=MISSING)
def test_no_recorded_word_for_a_machine_that_runs_means_off():
    """Lines like ``-- state m1: VMState="paused"  list: vms=1 runningvms=1``."""
    for word in re.findall(r'^-- state .*VMState="([^"]*)".* runningvms=1\b', recorded_text(), re.MULTILINE):
        assert STATES.get(word) not in {STOPPED, SAVED}


def test_recorded_failures_are_told_apart(recordings):
    """By the last of their codes, whatever else they say."""
    for one in recordings:
        codes = re.findall(r"code \w+ \(0x([0-9a-f]+)\)", one.stderr.lower())
        if one.code != 0 and one.stderr:
            kind = kind_of(Output(one.code, one.stdout, one.stderr))
            assert (kind is GuestNotFound) == (codes[-1:] == ["80bb0001"])
            assert (kind is Locked) == (codes[-1:] == ["80bb0007"])
            assert issubclass(kind, HypervisorError)


def test_recorded_versions_are_read(recordings):
    for one in recordings:
        if one.words == "--version" and one.code == 0:
            with suppress(Malformed):  # a script around the program may warn of something instead
                assert parse_version(one.stdout) == one.stdout.strip()


# -- what was recorded, counted -------------------------------------------------------------------------

usual = pytest.mark.skipif(FOLDER != BESIDE, reason="this is about the usual recordings")


@usual
def test_all_of_the_usual_lists_are_there(recordings):
    lists = [parse_list(one.stdout) for one in recordings if one.words == "list vms" and one.code == 0]
    names = set(itertools.chain.from_iterable(lists))
    assert {Listed("c501b399-bf86-410a-98f0-0474766135ec", 'we "ird, na;me=1')} <= names
    assert {Listed("f6978d56-755b-43ba-be86-91d3c6c7cd22", " lead")} <= names
    assert sorted(map(len, lists)) == [0, 1, 2, 7, 11]


@usual
def test_an_inaccessible_machine_is_on_a_recorded_list(recordings):
    (line,) = (one.stdout for one in recordings if one.stdout.startswith('"<inaccessible>"'))
    assert parse_list(line) == (Listed("5815fdf5-ac39-4871-a530-9b4f3331509a", "<inaccessible>"),)


@usual
def test_all_of_the_usual_machines_are_there(recordings):
    whole = [one.stdout for one in recordings if all(key.search(one.stdout) for key in ANSWERED.values())]
    assert len(whole) == 3
    for text in whole:
        uuid = text.partition('UUID="')[2][:36]
        assert parse_machine(text, uuid) is not None
        assert 'VMState="poweroff"' in text


@usual
def test_all_of_the_usual_failures_are_there(recordings):
    kinds: Counter[type] = Counter()
    for one in recordings:
        if one.code in {1, 2} and one.stderr:
            kind = kind_of(Output(one.code, one.stdout, one.stderr))
            kinds[kind] += 1
            assert (kind is GuestNotFound) == ("Could not find a registered machine" in one.stderr)
    assert kinds.keys() == {GuestNotFound, HypervisorProtocol, Locked}
    assert kinds[GuestNotFound] == 8
    assert kinds[HypervisorProtocol] > 20


@usual
def test_recorded_refusals_of_an_inaccessible_machine_are_known_as_such(recordings):
    limited = [one for one in recordings if "functionality is limited" in one.stderr]
    assert len(limited) == 3
    for one in limited:
        assert code_of(Output(one.code, one.stdout, one.stderr)) == ACCESS_DENIED


@usual
def test_the_usual_version_is_read(recordings):
    (text,) = (one.stdout for one in recordings if one.words == "--version")
    assert parse_version(text).startswith("7.2.22")
