"""What libvirt's errors mean: code and origin together, as the real ones were recorded."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.errors import (
    GuestNotFound,
    HypervisorDenied,
    HypervisorError,
    HypervisorProtocol,
    HypervisorUnreachable,
)
from fencer.hypervisors.libvirt.errors import kind_of, translate

TEST, QEMU, RPC, STORAGE, DOMAIN, ESX, URI, POLKIT = 12, 10, 7, 18, 20, 28, 45, 60


class LibvirtError(Exception):
    """An error with the four methods of libvirt's own that are asked."""

    def __init__(self, code, origin, text, number=-1):
        super().__init__(text)
        self._said = code, origin, text, number

    def get_error_code(self):
        return self._said[0]

    def get_error_domain(self):
        return self._said[1]

    def get_error_message(self):
        return self._said[2]

    def get_int1(self):
        return self._said[3]


IN_A_CALL = {
    "no such domain": (GuestNotFound, 42, QEMU, "Domain not found", -1),
    "no such domain, test driver": (GuestNotFound, 42, TEST, "Domain not found", -1),
    "keepalive timeout": (HypervisorUnreachable, 1, RPC, "connection closed due to keepalive timeout", -1),
    "daemon died": (HypervisorUnreachable, 1, RPC, "client socket is closed", -1),
    "reset": (HypervisorUnreachable, 38, RPC, "Cannot recv data: Connection reset by peer", errno.ECONNRESET),
    "cut, after noise at login": (
        HypervisorUnreachable,
        38,
        RPC,
        "End of file while reading data: bash: /etc/profile.d/site.sh: line 3: /var/log/logins: "
        "Permission denied: Input/output error",
        errno.EIO,
    ),
    "cut, after a refused key and a password": (
        HypervisorUnreachable,
        38,
        RPC,
        "Cannot recv data: fencer@lab1: Permission denied (publickey): Connection reset by peer",
        errno.ECONNRESET,
    ),
    "cut by a firewall of this host": (HypervisorUnreachable, 38, RPC, "Cannot write data", errno.EPERM),
    "monitor stuck": (HypervisorUnreachable, 68, 0, "cannot acquire state change lock", -1),
    "read-only connection": (HypervisorDenied, 29, DOMAIN, "operation forbidden: read only access", -1),
    "access control": (HypervisorDenied, 88, 55, "access denied", -1),
    "not running": (HypervisorProtocol, 55, DOMAIN, "domain is not running", -1),
    "disk missing": (HypervisorProtocol, 38, STORAGE, "Cannot access storage file", errno.ENOENT),
    "disk forbidden": (HypervisorProtocol, 38, STORAGE, "Permission denied", errno.EACCES),
    "QEMU gone": (HypervisorProtocol, 38, QEMU, "Unable to read from monitor: Connection reset by peer", 104),
    "QEMU failed to start": (HypervisorProtocol, 1, QEMU, "process exited while connecting to monitor", -1),
    "bad UUID": (HypervisorProtocol, 8, DOMAIN, "Invalid UUID", 0),
}
AT_OPENING = {
    "refused": (
        HypervisorUnreachable,
        38,
        RPC,
        "Failed to connect socket: Connection refused",
        errno.ECONNREFUSED,
    ),
    "no socket": (HypervisorUnreachable, 38, RPC, "Failed to connect socket: No such file", errno.ENOENT),
    "no right to the socket": (HypervisorDenied, 38, RPC, "Failed to connect socket", errno.EACCES),
    "ssh refuses the key": (
        HypervisorDenied,
        38,
        RPC,
        "Cannot recv data: fencer@lab1: Permission denied (publickey): Connection reset by peer",
        errno.ECONNRESET,
    ),
    "ssh knows another host key": (
        HypervisorDenied,
        38,
        RPC,
        "Cannot recv data: Host key verification failed.: Connection reset by peer",
        errno.ECONNRESET,
    ),
    "no right to the socket at the other end": (
        HypervisorDenied,
        38,
        RPC,
        "End of file while reading data: virt-ssh-helper: cannot connect to '/run/libvirt-sock-ro': "
        "Failed to connect socket to '/run/libvirt-sock-ro': Permission denied: Input/output error",
        errno.EIO,
    ),
    "no libvirtd at the other end": (
        HypervisorUnreachable,
        38,
        RPC,
        "End of file while reading data: virt-ssh-helper: cannot connect to '/run/libvirt-sock-ro': "
        "Failed to connect socket to '/run/libvirt-sock-ro': Connection refused: Input/output error",
        errno.EIO,
    ),
    "no host, and a control socket that is not ours": (
        HypervisorUnreachable,
        38,
        RPC,
        "Cannot recv data: Control socket connect(/run/x): Permission denied ssh: connect to host lab1 "
        "port 22: No route to host: Connection reset by peer",
        errno.ECONNRESET,
    ),
    "no host, and a jump host that refuses": (
        HypervisorUnreachable,
        38,
        RPC,
        "Cannot recv data: jump: Permission denied (publickey). ssh: connect to host lab1 port 22: "
        "Connection timed out: Connection reset by peer",
        errno.ECONNRESET,
    ),
    "no libvirtd at the other end, after noise at login": (
        HypervisorUnreachable,
        38,
        RPC,
        "End of file while reading data: /etc/profile.d/site.sh: line 3: /var/log/logins: Permission denied "
        "virt-ssh-helper: cannot connect to '/run/libvirt-sock-ro': Failed to connect socket to "
        "'/run/libvirt-sock-ro': Connection refused: Input/output error",
        errno.EIO,
    ),
    "ssh refuses the key, as of old": (
        HypervisorDenied,
        38,
        RPC,
        "Cannot recv data: Permission denied (publickey,gssapi-keyex,password).: Connection reset by peer",
        errno.ECONNRESET,
    ),
    "no such host": (HypervisorUnreachable, 38, RPC, "Unable to resolve address", -1),
    "no such host, ESX": (HypervisorUnreachable, 1, ESX, "IP address lookup failed", -1),
    "polkit": (HypervisorDenied, 45, POLKIT, "authentication unavailable: no polkit agent", -1),
    "no URI": (HypervisorProtocol, 1, URI, "Unable to parse URI", -1),
    "no such driver": (HypervisorProtocol, 5, 0, "no connection driver available", -1),
}


@pytest.mark.parametrize(
    ("kind", "code", "origin", "text", "number"), IN_A_CALL.values(), ids=list(IN_A_CALL)
)
def test_errors_of_calls(kind, code, origin, text, number):
    assert kind_of(code, origin, number, text, opening=False) is kind


@pytest.mark.parametrize(
    ("kind", "code", "origin", "text", "number"), AT_OPENING.values(), ids=list(AT_OPENING)
)
def test_errors_of_opening(kind, code, origin, text, number):
    assert kind_of(code, origin, number, text, opening=True) is kind


@given(st.integers(0, 200), st.integers(0, 100), st.integers(-1, 133), st.text(), st.booleans())
def test_only_code_42_says_that_a_guest_is_not_there(code, origin, number, text, opening):
    assert (kind_of(code, origin, number, text, opening=opening) is GuestNotFound) == (code == 42)


@pytest.mark.parametrize("case", [*IN_A_CALL.values(), *AT_OPENING.values()], ids=[*IN_A_CALL, *AT_OPENING])
def test_messages_name_endpoint_uri_deed_and_what_libvirt_said(case):
    _, code, origin, text, number = case
    error = translate(
        LibvirtError(code, origin, text, number),
        "cannot stop lab/k8s-4",
        "lab",
        "qemu:///system",
        guest="6f1c-e2",
    )
    assert isinstance(error, HypervisorError)
    message = str(error)
    for part in ("lab (qemu:///system)", "cannot stop lab/k8s-4", text, f"error {code}", "virsh"):
        assert part in message or (part == "virsh" and isinstance(error, GuestNotFound))


def test_a_guest_that_is_not_found_is_named_and_not_called_off():
    error = translate(
        LibvirtError(42, QEMU, "Domain not found"), "cannot read", "lab", "uri", guest="6f1c-e2"
    )
    assert "6f1c-e2" in str(error)
    assert "does not prove" in str(error)


def test_a_guest_held_by_another_operation_says_how_to_look_at_it():
    error = translate(
        LibvirtError(68, 0, "cannot acquire lock"), "cannot stop", "lab", "uri", guest="6f1c-e2"
    )
    assert "domcontrol 6f1c-e2" in str(error)


CHANGED = (
    "Cannot recv data: @@@@@@@@@@\r\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\n"
    "@@@@@@@@@@@@@@@@@@@@\r\nIT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\r\n"
    "Host key verification failed.: Connection reset by peer"
)


def test_a_host_key_that_changed_is_told_in_one_line_with_the_way_out():
    uri = "qemu+ssh://fencer@lab1:2222/system"
    error = translate(LibvirtError(38, RPC, CHANGED, 104), "cannot connect", "lab", uri, opening=True)
    assert isinstance(error, HypervisorDenied)
    told = str(error)
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in told
    assert "`ssh-keygen -R '[lab1]:2222'`" in told
    assert "`ssh -p 2222 fencer@lab1 true`" in told
    assert "\n" not in told
    assert "@@" not in told


@given(st.text())
def test_what_the_other_end_of_ssh_says_harms_no_terminal_and_no_log(text):
    told = str(translate(LibvirtError(38, RPC, text), "cannot connect", "lab", "uri", opening=True))
    assert told.isprintable()
    assert len(told) < 2000
