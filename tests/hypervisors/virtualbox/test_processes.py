"""Which of a host's processes may run a machine, and when a list of them holds all."""

import re
import subprocess
import sys
from contextlib import ExitStack

import pytest

from fencer.hypervisors.virtualbox.processes import (
    COMMAND,
    Process,
    Suspects,
    Unlisted,
    parse_processes,
    suspects,
)
from tests.support import wait_until

ME = "47cafe86-104b-457a-b097-1defd7f3d598"
OTHER = "590e6fbf-22bb-4d84-a8cc-110921bb2c8c"
HEADLESS = "/usr/lib/virtualbox/VBoxHeadless"
HEAD = "    PID      PIDNS STAT COMMAND\n"
INIT = "      1          - Ss   /sbin/init splash\n"
KERNEL = "      2 4026531836 S    [kthreadd]\n"


def of(*lines: str) -> Suspects:
    return suspects([Process(100 + number, line) for number, line in enumerate(lines)], ME)


OWN = {
    "started by VBoxSVC": f"{HEADLESS} --comment m1 --startvm {ME} --vrde config",
    "with a window": f"/usr/lib/virtualbox/VirtualBoxVM --comment m1 --startvm {ME} --no-startvm-errormsgbox",
    "with SDL": f"VBoxSDL --startvm {ME}",
    "of VirtualBox 5": f"/usr/lib/virtualbox/VirtualBox --comment m1 --startvm {ME}",
    "by hand": f"VBoxHeadless -s {ME}",
    "in capitals and braces": f"VBoxHeadless --startvm {{{ME.upper()}}}",
    "named like another": f"{HEADLESS} --comment --startvm {OTHER} --startvm {ME} --vrde config",
    "named like a manager": f"{HEADLESS} --comment VBoxManage startvm {OTHER} --startvm {ME}",
    "through a wrapper": f"/bin/sh /usr/bin/VBoxHeadless --startvm {ME}",
}


@pytest.mark.parametrize("line", OWN.values(), ids=list(OWN))
def test_a_process_that_names_the_machine_is_its_own(line):
    found = of("/sbin/init", line)
    assert (found.own, found.unclear) == (Process(101, line), None)
    assert found.any is found.own


UNCLEAR = {
    "by name": "VBoxHeadless --startvm m1",
    "by another name, which two may have": "VBoxHeadless --startvm m2",
    "by a name of 32 digits": "VBoxHeadless --startvm " + OTHER.replace("-", ""),
    "by a short option": "VBoxHeadless -s m1",
    "a name that names another": f"VBoxHeadless --startvm m1 --comment --startvm {OTHER}",
    "cut in the UUID": f"{HEADLESS} --comment m1 --startvm {ME[:13]}",
    "cut before it": f"{HEADLESS} --comment m1",
    "cut behind the option": f"{HEADLESS} --comment m1 --startvm",
    "no command line at all": "[VBoxHeadless]",
    "of VirtualBox 5 by name": "/usr/lib/virtualbox/VirtualBox --startvm m1",
    "watched": f"gdb --args {HEADLESS}",
}


@pytest.mark.parametrize("line", UNCLEAR.values(), ids=list(UNCLEAR))
def test_a_process_of_which_it_is_not_plain_that_it_is_anothers_may_be_its_own(line):
    found = of("/sbin/init", line)
    assert (found.own, found.unclear) == (None, Process(101, line))
    assert found.any is found.unclear


@pytest.mark.parametrize("name", ["m1", "my lab", "m1 (2)"])
@pytest.mark.parametrize("option", ["--startvm ", "-startvm ", "--startvm=", "-s "])
def test_a_process_that_was_started_by_the_machines_name_is_its_own(name, option):
    """Another user's machine may have it: that one is a copy, or needs another name."""
    line = f"{HEADLESS} {option}{name} --vrde config"
    assert suspects([Process(100, line)], ME, name) == Suspects(own=Process(100, line))
    for other in ("m2", f"{name}0", f"{name} x"):
        assert suspects([Process(100, line)], ME, other).own is None


OTHERS = {
    "another machine's": f"{HEADLESS} --comment m2 --startvm {OTHER} --vrde config",
    "another's with this one's name": f"{HEADLESS} --comment m1 --startvm {OTHER}",
    "another's, in capitals and braces": f"{HEADLESS} --startvm {{{OTHER.upper()}}}",
    "VBoxSVC": "/usr/lib/virtualbox/VBoxSVC --auto-shutdown",
    "the manager's window": "/usr/lib/virtualbox/VirtualBox",
    "an asking about it": f"VBoxManage showvminfo {ME} --machinereadable",
    "an asking over ssh": f"ssh me@box VBoxManage showvminfo {ME}",
    "a start of it": f"VBoxManage startvm {ME} --type headless",
    "another program's option": "nginx -s reload",
}


@pytest.mark.parametrize("line", OTHERS.values(), ids=list(OTHERS))
def test_other_processes_are_none_of_its(line):
    assert of(line).any is None


def test_its_own_process_is_told_even_behind_one_that_may_be():
    found = of("VBoxHeadless --startvm m1", f"VBoxHeadless --startvm {ME}")
    assert found.own == found.any == Process(101, f"VBoxHeadless --startvm {ME}")


def test_a_list_of_all_processes_is_read():
    line = f"    915 4026532201 Sl   {HEADLESS} --comment my  machine --startvm {ME}\n"
    assert parse_processes(HEAD + INIT + KERNEL + line) == (
        Process(1, "/sbin/init splash"),
        Process(2, "[kthreadd]"),
        Process(915, f"{HEADLESS} --comment my  machine --startvm {ME}"),
    )


@pytest.mark.parametrize(
    ("state", "there"), [("Z", False), ("Z+", False), ("Zl", True), ("Ssl", True), ("D", True)]
)
def test_the_dead_are_left_out_unless_a_thread_of_theirs_lives(state, there):
    line = f"    915 4026531836 {state:<4} [VBoxHeadless] <defunct>\n"
    assert (suspects(parse_processes(HEAD + INIT + KERNEL + line), ME).any is not None) is there


LEADER_ENDS = """
import ctypes, threading
threading.Thread(target=threading.Event().wait).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_of_one_that_is_dead_to_its_last_thread_the_ps_of_this_machine_tells_no_living_one():
    """So nobody who awaits its burial for good keeps an end unproven; a thread that is left does."""
    with subprocess.Popen((sys.executable, "-IS", "-c", LEADER_ENDS)) as process, ExitStack() as at_last:
        at_last.callback(process.kill)

        def state() -> str:
            asked = ("ps", "-o", "stat=", "-p", str(process.pid))
            return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()

        def is_there() -> bool:
            line = f"{process.pid:>7} 4026531836 {state():<4} [VBoxHeadless] <defunct>\n"
            return suspects(parse_processes(HEAD + INIT + KERNEL + line), ME).any is not None

        wait_until(lambda: state().startswith("Z"), "end of its first thread")
        assert is_there()
        process.kill()
        wait_until(lambda: not is_there(), "end of its last thread")


PARTIAL = {
    "empty": ("", "another form"),
    "no head": (INIT + KERNEL, "another form"),
    "busybox": ("PID   USER     COMMAND\n    1 root     init\n", "another form"),
    "macOS": ("  PID STAT ARGS\n    1 Ss   /sbin/launchd\n", "another form"),
    "cut in a line": (HEAD + INIT + KERNEL + "    915 40265", "another form"),
    "a container": (HEAD + "      1 4026532201 Ss   /bin/bash\n     40 4026532201 R    ps\n", "container"),
    "hidepid": (HEAD + "    915 4026531836 Ss   -bash\n    940 4026531836 R    ps\n", "hidepid"),
}


@pytest.mark.parametrize(("text", "why"), PARTIAL.values(), ids=list(PARTIAL))
def test_an_answer_that_may_lack_processes_is_no_list(text, why):
    with pytest.raises(Unlisted, match=why):
        parse_processes(text)


def test_the_ps_of_this_machine_answers_in_that_form():
    """It may be a container's, which for this is set right."""
    said = subprocess.run(COMMAND, check=True, capture_output=True, text=True).stdout
    found = parse_processes(re.sub(r"402653\d{4}", "4026531836", said))
    assert " ".join(COMMAND) in [process.line for process in found]
