"""The libvirt adapter over ``qemu+ssh://``: what ssh does when it is cut, hangs, or is refused."""

import os
import shlex
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from fencer.core.model import GuestRef, PowerState
from fencer.errors import HypervisorDenied, HypervisorUnreachable
from fencer.hypervisors.libvirt.client import LibvirtHypervisor
from fencer.hypervisors.libvirt.settings import LibvirtSettings
from fencer.hypervisors.libvirt.ssh import way_of
from tests.support import wait_until
from tests.support.processes import freeze
from tests.support.sshd import running_ssh_server

pytestmark = pytest.mark.libvirt

PATIENCE_S = 60.0
"""How long a call may take before it counts as hanging: far more than keepalive's 7 s."""


@pytest.fixture(scope="module")
def server(guest_host):
    with running_ssh_server(guest_host) as server:
        yield server


@pytest.fixture(scope="module")
def machine(guest_host):
    machine = guest_host.define()
    machine.start()
    yield machine
    machine.remove()


@pytest.fixture
def guest(machine):
    return GuestRef("lab", machine.uuid, machine.uuid, machine.name)


@pytest.fixture
def hypervisor(server):
    hypervisor = LibvirtHypervisor(LibvirtSettings("lab", server.uri))
    yield hypervisor
    hypervisor.close()


@pytest.fixture
def hanging(hypervisor, guest):
    """Gives the error of a reading that hangs until keepalive ends it."""

    def error():
        with ThreadPoolExecutor(max_workers=1) as executor:
            return executor.submit(hypervisor.read, guest).exception(PATIENCE_S)

    return error


def test_a_killed_ssh_wakes_and_the_next_reading_has_another(hypervisor, server, guest):
    woken = []
    before = hypervisor.read(guest)
    hypervisor.subscribe(lambda: woken.append("lost"))
    (ssh,) = server.clients
    os.kill(ssh, signal.SIGKILL)
    wait_until(lambda: woken, "wake by the loss of the connection")
    after = hypervisor.read(guest)
    assert (after.power_state, after.incarnation) == (PowerState.RUNNING, before.incarnation)
    assert after.guest.shares_host(before.guest)
    assert server.clients.isdisjoint({ssh})


def test_an_ssh_that_hangs_is_noticed_and_ended(hypervisor, server, guest, hanging):
    hypervisor.read(guest)
    (ssh,) = server.clients
    freeze(ssh)
    assert isinstance(error := hanging(), HypervisorUnreachable)
    assert "keepalive" in str(error)
    assert hypervisor.read(guest).power_state is PowerState.RUNNING
    wait_until(lambda: ssh not in server.clients, f"end of the frozen ssh {ssh}")


def test_a_libvirtd_that_hangs_at_the_other_end_is_noticed(hypervisor, guest_host, guest, hanging):
    hypervisor.read(guest)
    guest_host.freeze_libvirtd()
    try:
        error = hanging()
    finally:
        guest_host.restore_libvirtd()
    assert isinstance(error, HypervisorUnreachable)
    assert "keepalive" in str(error)
    assert hypervisor.read(guest).power_state is PowerState.RUNNING


def test_no_ssh_is_left_when_it_is_closed(hypervisor, server, guest):
    hypervisor.read(guest)
    hypervisor.describe()  # opens one with full rights besides
    hypervisor.close()
    wait_until(lambda: not server.clients, "end of every ssh")


@pytest.fixture
def another_host(server):
    """What answers has another host key than the one that is known."""
    server.cut()
    server.make_key("host")
    server.start()
    yield
    server.know_host()


def test_a_host_with_another_key_is_refused_in_one_line_without_a_question(hypervisor, another_host):
    """Not "unreachable": a host that does not answer may be called off by its power, this one does."""
    for call in (hypervisor.sweep, hypervisor.describe):
        with pytest.raises(
            HypervisorDenied, match=r"IDENTIFICATION HAS CHANGED.*ssh-keygen -R '\[127"
        ) as raised:
            call()
        assert str(raised.value).isprintable()


def test_a_host_whose_key_is_not_known_is_refused(hypervisor, server):
    (server.folder / "known_hosts").write_text("")
    try:
        with pytest.raises(HypervisorDenied, match=r"Host key verification failed.*ssh -p .* true"):
            hypervisor.sweep()
    finally:
        server.know_host()


def test_a_key_that_is_not_let_in_is_refused(hypervisor, server):
    admitted = server.folder / "user.pub"
    key = admitted.read_text()
    admitted.write_text("")
    try:
        with pytest.raises(HypervisorDenied, match=r"Permission denied \(publickey\)"):
            hypervisor.sweep()
    finally:
        admitted.write_text(key)


def test_a_user_without_a_right_to_the_socket_at_the_other_end_is_refused(hypervisor, guest_host):
    """As one that is not in the group libvirt there."""
    socket = guest_host.folder / "r" / "libvirt" / "libvirt-sock"
    mode = socket.stat().st_mode
    socket.chmod(0)
    try:
        with pytest.raises(HypervisorDenied, match="libvirt-sock': Permission denied"):
            hypervisor.sweep()
    finally:
        socket.chmod(mode)


def test_an_ended_libvirtd_behind_a_live_sshd_is_unreachable(hypervisor, guest_host, guest):
    guest_host.kill_libvirtd()
    try:
        with pytest.raises(HypervisorUnreachable, match="Connection refused"):
            hypervisor.sweep()
    finally:
        guest_host.start_libvirtd()
    assert hypervisor.read(guest).power_state is PowerState.RUNNING


def test_a_session_daemon_elsewhere_is_told_what_to_do_there(hypervisor, server):
    [remark] = hypervisor.describe().remarks
    assert "`loginctl enable-linger USER` on that host" in remark
    assert remark.endswith(f"better use {server.uri.partition('/session')[0]}/system")


def test_what_a_person_is_told_to_type_gets_in(server):
    done = subprocess.run(
        shlex.split(way_of(server.uri).command), check=False, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
