"""VBoxManage itself: gone, hanging, refused, or cut short."""

import sys

import pytest

from fencer.core.model import (
    PowerState,
)
from fencer.errors import (
    HypervisorDenied,
    HypervisorProtocol,
    HypervisorUnreachable,
)
from fencer.hypervisors.virtualbox.client import VirtualBoxHypervisor
from fencer.hypervisors.virtualbox.settings import VirtualBoxSettings
from tests.hypervisors.virtualbox.looks import (
    LONG_S,
    SOON_S,
    states,
)
from tests.support.vbox import NO_SERVER

pytestmark = pytest.mark.slow  # each call of VBoxManage is a process, and some hang


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
        assert "That also ends all their running machines" in str(caught.value)


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
    assert [words[0] for words in vbox.asked() if "machine-id" not in words[-1]] == ["cat", "ps", "cat"]
    vbox.trouble("ps", code=1)
    assert "`ps` there failed" in hypervisor.describe().remarks[0]
