"""What is asked of a host, on which way, and what is made of its answers."""

import sys

import pytest

from fencer.hypervisors.virtualbox.budget import Budget
from fencer.hypervisors.virtualbox.ended import Place, Scene
from fencer.hypervisors.virtualbox.host import Host
from fencer.hypervisors.virtualbox.parse import Machine
from fencer.hypervisors.virtualbox.processes import COMMAND
from tests.support.vbox import BOOTED_S

pytestmark = pytest.mark.slow  # each question is a process

REST_S = 30.0
WRITTEN_S = 1_795_000_123.25
FIND = ["find", "-L", "-maxdepth", "0", "-printf", "%F,%T@,"]


@pytest.fixture
def host(vbox, clock):
    return Host("lab", vbox.command, REST_S, clock.now_s)


def budget() -> Budget:
    return Budget("lab", 60.0, 60.0)


def machine(uuid: str, folder: str = "/home/me/VirtualBox VMs") -> Machine:
    return Machine(uuid, uuid, "m1", "poweroff", "", f"{folder}/{uuid}/machine.vbox", f"{folder}/{uuid}/Logs")


def test_it_is_asked_for_all_processes(vbox, host):
    guest = vbox.add("k8s-1")
    assert host.listed(budget()).processes[-1].line.endswith(f"--startvm {guest.id} --vrde config")
    assert vbox.asked() == [list(COMMAND)]


def test_it_is_asked_for_its_boot_and_a_machines_place(vbox, host):
    guest = vbox.add("k8s-1", "poweroff", written_s=WRITTEN_S)
    scene = host.with_place(host.with_boot(Scene(()), budget()), machine(guest.id), budget())
    assert (scene.booted_s, scene.place) == (BOOTED_S, Place("", WRITTEN_S))
    assert vbox.asked()[0] == ["cat", "/proc/stat"]
    assert sorted(vbox.asked()[1]) == sorted(
        [*FIND, machine(guest.id).settings_file, machine(guest.id).log_folder]
    )


@pytest.mark.parametrize("kind", ["nfs4", "nfs", "cifs", "fuse.sshfs", "overlay", "ocfs2", "9p", "unknown"])
@pytest.mark.parametrize("of", ["filesystem", "log_filesystem"])
def test_a_file_system_that_others_may_have_is_named(vbox, host, of, kind):
    guest = vbox.add("k8s-1", "poweroff", **{of: kind})
    place = host.with_place(Scene(()), machine(guest.id), budget()).place
    assert place is not None
    assert place.shared_by == kind


FAILURES = {
    "no ps": ({"code": 127, "stderr": "sh: ps: not found\n"}, "sh: ps: not found"),
    "sudo": ({"code": 1, "stderr": "sudo: a password is required\n"}, "a password is required"),
    "a forced command": ({"stdout": "7.2.22\n"}, "another form"),
    "busybox": ({"code": 1, "stderr": "ps: bad -o argument 'pidns'\n"}, "bad -o argument"),
    "killed": ({"signal": 9}, "exit code -9"),
}


@pytest.mark.parametrize(("trouble", "told"), FAILURES.values(), ids=list(FAILURES))
def test_without_a_list_it_says_why_and_is_not_asked_again_for_a_while(vbox, host, clock, trouble, told):
    """Each refusal of sudo's may be a mail to somebody."""
    vbox.trouble("ps", **trouble)
    for _ in range(2):
        scene = host.listed(budget())
        assert scene.processes is None
        assert told in scene.untold
    assert len(vbox.asked()) == 1
    vbox.recover()
    clock.ahead_s += REST_S
    assert host.listed(budget()).processes


def test_a_list_that_came_too_late_is_asked_for_again(vbox, host):
    """That it is busy now says nothing of the next time."""
    vbox.trouble("ps", hang=True)
    assert "did not answer within" in host.listed(Budget("lab", 60.0, 0.2)).untold
    assert "no time was left" in host.listed(Budget("lab", 0.0, 60.0)).untold
    vbox.recover()
    assert host.listed(budget()).processes


def test_a_host_without_ps_is_said_to_have_none(clock, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    scene = Host("lab", ("VBoxManage",), REST_S, clock.now_s).listed(budget())
    assert scene.untold == "`ps` there failed: lab: cannot run ps: No such file or directory"


def test_without_a_list_it_is_asked_nothing_else(vbox, host):
    without = Scene(untold="no ps")
    assert host.with_place(host.with_boot(without, budget()), machine("a"), budget()) == without
    assert vbox.asked() == []


@pytest.mark.parametrize("on", ["find", "cat"])
@pytest.mark.parametrize(
    "trouble", [{"code": 1}, {"stdout": "garbage"}, {"stdout": ""}], ids=["fails", "odd", "mute"]
)
def test_what_it_does_not_tell_is_left_open(vbox, host, on, trouble):
    guest = vbox.add("k8s-1", "poweroff")
    vbox.trouble(on, **trouble)
    scene = host.with_place(host.with_boot(Scene(()), budget()), machine(guest.id), budget())
    assert (scene.booted_s is None) is (on == "cat")
    assert (scene.place is None) is (on == "find")
    assert on in scene.untold or "btime" in scene.untold


@pytest.mark.parametrize("command", [("VBoxManage",), ("/opt/VirtualBox/VBoxManage",)])
def test_a_bare_program_is_on_this_host(command, clock):
    scene = Host("lab", command, REST_S, clock.now_s).listed(budget())
    assert scene.processes or "container" in scene.untold


def test_a_script_is_not_asked(vbox, clock):
    """Nobody knows what it does with other words than VBoxManage's."""
    scene = Host("lab", vbox.script, REST_S, clock.now_s).listed(budget())
    assert scene == Scene(untold="only a command that ends with VBoxManage can ask its host")
    assert vbox.asked() == vbox.calls() == []


UNFIT = [
    "/vms/$(reboot)",
    "/vms/a;b",
    "/vms/it's",
    '/vms/"a"',
    "/vms/a -delete",
    "/vms/a\nb",
    "/vms/`a`",
    "/vms/a|b",
    "/vms/a&b",
    "/vms/a\\b",
    "/vms/*",
    "C:\\vms",
    "-delete",
]


@pytest.mark.parametrize("folder", UNFIT)
def test_a_folder_that_a_shell_could_take_for_more_is_not_asked_about(vbox, host, folder):
    """Paths are what people like, and go to a shell over ssh."""
    guest = vbox.add("k8s-1", "poweroff")
    scene = host.with_place(Scene(()), machine(guest.id, folder), budget())
    assert scene.place is None
    assert "not safe in a shell" in scene.untold
    assert vbox.asked() == []


def test_a_machine_of_which_no_folder_is_told_has_no_place(vbox, host):
    scene = host.with_place(Scene(()), Machine("a", "a", "m1", "poweroff", ""), budget())
    assert scene.place is None
    assert vbox.asked() == []


@pytest.fixture
def ssh(tmp_path):
    """What ssh does to words: joins them for a shell, and that on as many ways as there are."""
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable} -IS\nimport os, sys\nos.execv('/bin/sh', ['sh', '-c', ' '.join(sys.argv[2:])])\n"
    )
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize("hops", [0, 1, 2])
def test_a_folder_with_a_blank_arrives_over_ssh(vbox, clock, ssh, hops):
    """VirtualBox' own folder has one: "VirtualBox VMs"."""
    guest = vbox.add("k8s-1", "poweroff", written_s=WRITTEN_S)
    command = (*(ssh, "me@box") * hops, *vbox.command)
    host = Host("lab", command, REST_S, clock.now_s)
    scene = host.with_place(host.with_boot(host.listed(budget()), budget()), machine(guest.id), budget())
    assert (scene.booted_s, scene.place) == (BOOTED_S, Place("", WRITTEN_S))
