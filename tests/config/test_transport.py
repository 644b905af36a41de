"""Ways on which anybody in between may answer: refused, unless the file says that they are taken."""

import pytest

from fencer.config.transport import of_command, of_uri, of_url, unseen
from tests.config.samples import VALID

AUTHENTIC = [
    "qemu:///system",
    "qemu:///session?socket=/run/libvirt/libvirt-sock",
    "qemu+unix:///system",
    "qemu+ssh://fencer@lab1/system?keyfile=/etc/fencer/key&no_tty=1",
    "qemu+ssh://lab1/system?no_verify=0",
    "qemu+libssh2://lab1/system?known_hosts=/etc/fencer/known_hosts&known_hosts_verify=normal",
    "qemu+libssh://lab1/system?sshauth=privkey",
    "qemu+tls://lab1/system?pkipath=/etc/fencer/pki",
    "qemu://lab1/system",
    "qemu+ssh://lab1/system?command=/opt/openssh/bin/ssh&netcat=/usr/bin/nc&socket=/run/libvirt/libvirt-sock",
    "qemu+libssh://lab1/system?command=/ignored/by/libvirt",
]
OPEN = {
    "qemu+tcp://lab1/system": "qemu+tcp:// is neither encrypted nor authenticated",
    "qemu+tcp:///system": "neither encrypted nor authenticated",
    "qemu+ext://lab1/system?command=/usr/bin/anything": "leads wherever its command does",
    "qemu+tls://lab1/system?no_verify=1": "no_verify=1 verifies no certificate",
    "qemu://lab1/system?pkipath=/pki&NO_VERIFY=2": "no_verify=2",
    "qemu+ssh://lab1/system?keyfile=/k;no_verify=1": "no_verify=1",
    "qemu+ssh://lab1/system?no%5Fverify=1": "no_verify=1",
    "qemu+ssh://lab1/system?no_verify": "no_verify=",
    "qemu+libssh://lab1/system?known_hosts_verify=ignore": "known_hosts_verify=ignore takes any host",
    "qemu+libssh2://lab1/system?known_hosts_verify=auto": "known_hosts_verify=auto takes whoever",
    "qemu+libssh2://lab1/system?known_hosts_verify=Ignore": "known_hosts_verify=Ignore",
    "qemu+ssh://lab1/system?command=/usr/local/bin/anything": "command=/usr/local/bin/anything runs in ssh's",
    "qemu+ssh://lab1/system?Command=%2Fbin%2Fa%6Eything": "command=/bin/anything",
}
BOX = VALID.replace("libvirt\n    uri: qemu:///system\n", "virtualbox\n    command: {}\n")
TRUSTING = [
    "[ssh, -o, StrictHostKeyChecking=no, me@box, VBoxManage]",
    '[/usr/bin/ssh, "-oStrictHostKeyChecking off", me@box, VBoxManage]',
    "[ssh, -o, stricthostkeychecking=accept-new, me@box, VBoxManage]",
    "[ssh, -o, UserKnownHostsFile=/dev/null, me@box, VBoxManage]",
    "[ssh, -o, UserKnownHostsFile=none, me@box, VBoxManage]",
    "[ssh, -o, UserKnownHostsFile=none /dev/null, me@box, VBoxManage]",
    "[ssh, -o, StrictHostKeyChecking=ask, -o, StrictHostKeyChecking=yes, -o, UserKnownHostsFile=none, b, V]",
    "[ssh, -o, StrictHostKeyChecking=false, me@box, VBoxManage]",
    "[ssh, -o, StrictHostKeyChecking=OFF, me@box, VBoxManage]",
    """[ssh, -o, 'StrictHostKeyChecking="no"', me@box, VBoxManage]""",
    """[ssh, -o, 'StrictHostKeyChecking=n"o"', me@box, VBoxManage]""",
    """[ssh, -o, '"StrictHostKeyChecking" no', me@box, VBoxManage]""",
    "[ssh, -o, ' StrictHostKeyChecking = no', me@box, VBoxManage]",
    "[ssh, -o, '=StrictHostKeyChecking no', me@box, VBoxManage]",
    "[ssh, -o, 'StrictHostKeyChecking=no # for now', me@box, VBoxManage]",
    "[ssh, -o, StrictHostKeyChecking=whatever-comes-next, me@box, VBoxManage]",
    "[ssh, -o, NoHostAuthenticationForLocalhost=yes, me@localhost, VBoxManage]",
    "[ssh, -Tv, -p, '22', -ToStrictHostKeyChecking=no, me@box, VBoxManage]",
    "[ssh, -To, StrictHostKeyChecking=no, me@box, VBoxManage]",
    "[ssh, me@box, -o, StrictHostKeyChecking=no, VBoxManage]",
    "[sshpass, -f, /etc/p, ssh, -o, StrictHostKeyChecking=no, me@box, VBoxManage]",
    "[sudo, -u, me, timeout, '5', /usr/bin/ssh, -o, StrictHostKeyChecking=no, me@box, VBoxManage]",
    "[env, LC_ALL=C, ssh, -o, StrictHostKeyChecking=no, me@box, VBoxManage]",
    """[sh, -c, 'exec ssh -o StrictHostKeyChecking=no me@box VBoxManage "$@"', --]""",
    "[ssh, me@hop, ssh, -o, StrictHostKeyChecking=no, me@box, VBoxManage]",
    "[ssh, me@hop, 'ssh -o StrictHostKeyChecking=no me@box VBoxManage']",
]
STRICT = [
    "[ssh, -o, StrictHostKeyChecking=yes, me@box, VBoxManage]",
    """[ssh, -o, 'StrictHostKeyChecking "TRUE"', me@box, VBoxManage]""",
    "[ssh, -o, StrictHostKeyChecking=ask, me@box, VBoxManage]",
    "[ssh, -oStrictHostKeyChecking=yes, -o, UserKnownHostsFile=/dev/null, me@box, VBoxManage]",
    "[ssh, -o, UserKnownHostsFile=/etc/fencer/known_hosts, me@box, VBoxManage]",
    "[ssh, -o, GlobalKnownHostsFile=/dev/null, -o, CheckHostIP=no, -o, HostKeyAlias=box, me@b, VBoxManage]",
    "[ssh, -o, NoHostAuthenticationForLocalhost=no, me@localhost, VBoxManage]",
    "[ssh, -o, 'ProxyCommand=ssh -o StrictHostKeyChecking=no hop -W %h:%p', me@box, VBoxManage]",
    "[ssh, -F, /etc/fencer/ssh_config, -i, /etc/fencer/key, me@box, VBoxManage]",
    "[ssh, me@no, VBoxManage]",
    "[ssh, me@box, echo, -o, StrictHostKeyChecking=no]",
    "[ssh, -, VBoxManage, -o]",
    "[ssh, --, me@box, -o, StrictHostKeyChecking=no]",
    "[/usr/lib/virtualbox/VBoxManage]",
]


@pytest.mark.parametrize("uri", AUTHENTIC)
def test_an_authentic_uri_needs_no_word(load_text, uri):
    assert of_uri(uri) is None
    assert load_text(VALID.replace("qemu:///system", uri)).unauthenticated == {}


@pytest.mark.parametrize(("uri", "why"), OPEN.items())
def test_a_uri_on_which_anybody_may_answer_is_refused_with_line_value_and_ways_out(problems_of, uri, why):
    (problem,) = problems_of(VALID.replace("qemu:///system", f'"{uri}"'))
    assert problem.startswith("config.yaml:7: hypervisors[0].uri: ")
    assert why in problem
    assert "use qemu+ssh:// or qemu+tls://" in problem
    assert "`unauthenticated: true`" in problem


@pytest.mark.parametrize(("uri", "why"), OPEN.items())
def test_taken_on_purpose_it_works_and_is_known(load_text, uri, why):
    config = load_text(VALID.replace("qemu:///system", f'"{uri}"') + "    unauthenticated: true\n")
    assert why in config.unauthenticated["lab"]
    assert config.endpoints[0].uri == uri


@pytest.mark.parametrize("command", TRUSTING)
def test_ssh_that_takes_any_host_is_refused(problems_of, load_text, command):
    (problem,) = problems_of(BOX.format(command))
    assert problem.startswith("config.yaml:7: hypervisors[0].command: ")
    assert "takes whoever answers" in problem
    assert set(load_text(BOX.format(command) + "    unauthenticated: true\n").unauthenticated) == {"lab"}


@pytest.mark.parametrize("command", STRICT)
def test_ssh_that_verifies_its_host_is_not(load_text, command):
    assert load_text(BOX.format(command)).unauthenticated == {}


@pytest.mark.parametrize("separator", ["=", " ", "\t", " = ", "\t=\t"])
def test_any_separator_will_do(separator):
    """A tab gets no further than the schema in a file; ssh takes it."""
    words = ["ssh", "-o", f"StrictHostKeyChecking{separator}no", "me@box", "VBoxManage"]
    assert of_command(words) == "StrictHostKeyChecking=no takes whoever answers"


@pytest.mark.parametrize("odd", ["", "=", '"', '""', "x", "StrictHostKeyChecking"])
def test_what_ssh_makes_no_sense_of_breaks_nothing(odd):
    assert (of_command(["ssh", "-o", odd, "me@box"]) is None) == (odd != "StrictHostKeyChecking")
    assert of_command(["ssh", "-o"]) is None


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["ssh", "-F", "/etc/ssh_lab", "me@box"], "-F /etc/ssh_lab"),
        (["sudo", "ssh", "-TF/etc/ssh_lab", "me@box"], "-F /etc/ssh_lab"),
        (["ssh", "-o", "KnownHostsCommand=/bin/keys %H", "me@box"], "-o KnownHostsCommand=/bin/keys %H"),
        (["ssh", "-F", "none", "me@box"], None),
        (["ssh", "-F", "/dev/null", "me@box", "VBoxManage", "-F", "x"], None),
    ],
)
def test_what_is_not_looked_into_is_named(words, named):
    assert unseen(words) == named


@pytest.mark.parametrize("scheme", ["qemu+TCP", "QEMU+Tcp"])
def test_libvirt_takes_a_transport_in_any_case(scheme):
    """The schema refuses capitals today; this is not to rest on that."""
    assert of_uri(f"{scheme}://lab1/system") == f"{scheme}:// is neither encrypted nor authenticated"
    assert "leads wherever" in str(of_uri("qemu+Ext://lab1/system?command=/x"))


def test_a_command_that_is_not_ssh_is_not_looked_into():
    assert of_command(["VBoxManage", "StrictHostKeyChecking=no"]) is None


def test_the_key_is_not_kept_where_it_is_not_needed(problems_of):
    """Else it would let in, unseen, what somebody writes there later."""
    assert problems_of(VALID + "    unauthenticated: true\n") == [
        "config.yaml:8: hypervisors[0].unauthenticated: true, but the way there is authentic: "
        "leave this key out"
    ]


def test_proxmox_has_no_such_key(problems_of):
    """Its certificates are verified, or pinned; there is no way not to."""
    text = VALID.replace("libvirt\n    uri: qemu:///system\n", "proxmox\n    unauthenticated: true\n")
    assert any("hypervisors[0].unauthenticated: unknown key" in problem for problem in problems_of(text))


def test_a_kubeconfig_may_be_taken_that_verifies_nothing(load_text):
    text = VALID.replace("/etc/fencer/kubeconfig\n", "/etc/fencer/kubeconfig\n  unauthenticated: true\n")
    config = load_text(text)
    assert config.kubernetes.unauthenticated
    assert set(config.unauthenticated) == {"kubernetes"}


@pytest.mark.parametrize(
    ("url", "is_open"),
    [
        ("https://ntfy.lan", False),
        ("http://ntfy.lan", True),
        ("HTTP://ntfy.lan", True),
        ("http://127.0.0.1:80/x", False),
        ("http://127.8.8.8", False),
        ("http://[::1]:80", False),
        ("http://localhost", False),
        ("http://a.localhost:80", False),
        ("http://localhost.lan", True),
        ("http://127.0.0.1.nip.io", True),
        ("http://0.0.0.0:80", True),
        ("http://192.168.1.5", True),
        ("http://[fd00::1]", True),
    ],
)
def test_a_server_of_http_is_in_the_clear_unless_it_is_on_this_machine(url, is_open):
    assert of_url(url) == ("http:// is neither encrypted nor authenticated" if is_open else None)
