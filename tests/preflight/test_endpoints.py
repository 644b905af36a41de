"""Endpoints: those that fail say what to try, and hide no other."""

import json
from types import SimpleNamespace

import pytest

from fencer.errors import HypervisorUnreachable
from fencer.ports import EndpointInfo
from tests.cli.lab import Lab
from tests.preflight.lab import Foreign, broken_hypervisor, findings


def test_an_address_that_nobody_can_read_is_told_as_any_that_fails():
    lab = Lab()
    lab.uri = "qemu+ssh://[::1/system"
    broken_hypervisor(lab)
    rows, told = findings(lab)
    assert (rows["lab"]["level"], told["ready"]) == ("fail", False)
    assert rows["lab"]["try"] == [], "there is no command that tries it"


@pytest.mark.parametrize(
    ("place", "command"),
    [
        ("fencer@127.0.0.1:22022/system", "ssh -p 22022 fencer@127.0.0.1 true"),
        (
            "fencer@lab1:22022/system?keyfile=/etc/fencer/ssh%20key&no_tty=1",
            "ssh -p 22022 -i '/etc/fencer/ssh key' fencer@lab1 true",
        ),
        ("[2001:db8::1]:22022/system", "ssh -p 22022 2001:db8::1 true"),
        ("lab1/system?command=/opt/bin/ssh", "/opt/bin/ssh lab1 true"),
    ],
)
def test_where_ssh_may_be_in_the_way_the_command_that_tries_it_is_one(place, command):
    lab = Lab()
    lab.uri = f"qemu+ssh://{place}"
    broken_hypervisor(lab)
    rows, _ = findings(lab)
    assert rows["lab"]["try"] == [f"{command}   (as fencer's user; it must not ask anything)"]


class Answering(Lab):
    """A lab whose hypervisor describes itself in another way."""

    def __init__(self, describe) -> None:
        super().__init__()
        self.sweep = None
        self._describe = describe

    def hypervisor(self, endpoint, clock):
        port = super().hypervisor(endpoint, clock)
        rest = {name: getattr(port, name) for name in dir(port) if not name.startswith("_")}
        return SimpleNamespace(**{**rest, "describe": self._describe, "sweep": self.sweep or port.sweep})


def no_socket_there():
    raise HypervisorUnreachable(
        "lab: cannot connect: End of file while reading data: virt-ssh-helper: cannot connect to "
        "'/run/libvirt-sock-ro': Failed to connect socket to '/run/libvirt-sock-ro': No such file"
    )


@pytest.mark.parametrize(
    "describe",
    [no_socket_there, lambda: EndpointInfo("libvirt", "QEMU 9", "here", can_power=True, remarks=("linger",))],
)
def test_where_ssh_got_in_nobody_is_sent_to_try_it(describe):
    rows, _ = findings(Answering(describe))
    assert rows["lab"]["level"] in {"fail", "warn"}
    assert rows["lab"]["try"] == []


def test_one_endpoint_that_cannot_be_built_does_not_hide_the_others():
    lab = Lab()
    lab.broken["far"] = "far: libvirt's binding is not installed: uv tool install '.[libvirt]'"
    rows, told = findings(lab)
    assert told["ready"] is False
    assert (rows["far"]["level"], rows["lab"]["level"]) == ("fail", "ok")
    assert "uv tool install" in rows["far"]["note"]
    assert rows["guests"]["level"] == "ok"


def cannot_list():
    raise HypervisorUnreachable("the list of guests timed out")


@pytest.mark.parametrize(
    ("sweep", "why"),
    [
        (cannot_list, "lab: the list of guests timed out"),
        (lambda: None, "lab: its adapter gave an answer that cannot be understood (sweep): "),
    ],
    ids=["raises", "returns None"],
)
def test_an_endpoint_that_describes_itself_and_tells_of_no_guest_fails_with_its_error(sweep, why):
    lab = Foreign(sweep=sweep)
    rows, told = findings(lab)
    assert (rows["lab"]["level"], told["ready"]) == ("fail", False)
    assert rows["lab"]["points"][0].startswith(f"Its guests could not be listed: {why}")
    assert rows["guests"]["note"] == "the rest cannot be known before lab is in order"
    assert "nodes: {NODE" not in json.dumps(rows), "no guest has to be named"
    assert told["verdict"].endswith("Not ready to be armed: lab.")
    explained = lab.run("explain", "k8s-2").output
    assert why in " ".join(explained.split())
    assert f"fencer: {why}" in lab.run("fence", "k8s-2", "--yes").stderr
    assert why in json.loads(lab.run("explain", "k8s-2", "-o", "json").stdout)["unanswered"]["lab"]


@pytest.mark.parametrize(
    ("uri", "tries"),
    [
        ("qemu:///system", ["systemctl restart libvirtd   (or virtqemud; on this host, if it hangs"]),
        ("qemu+ssh://lab1/system", ["ssh lab1 true", "systemctl restart libvirtd   (or virtqemud; there"]),
        ("qemu:///session", []),
    ],
)
@pytest.mark.parametrize("what", ["describe", "sweep"])
def test_a_libvirtd_that_hangs_is_told_to_be_restarted(uri, tries, what):
    def hangs():
        raise HypervisorUnreachable("lab: no answer within 10 s")

    lab = Answering(hangs) if what == "describe" else Answering(Lab().simulation.hypervisor.describe)
    lab.uri = uri
    if what == "sweep":
        lab.sweep = hangs
    told = findings(lab)[0]["lab"]["try"]
    assert [one.startswith(begin) for one, begin in zip(told, tries, strict=True)] == [True] * len(tries)
