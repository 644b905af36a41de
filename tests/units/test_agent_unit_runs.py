"""The agent under its own units, on a real systemd and a real libvirtd: what confines it must let it work."""

import json

import pytest

from tests.support import wait_until
from tests.support.nested import CHECKOUT, ENVIRONMENT, PYTHON, nested_system

pytestmark = pytest.mark.libvirt

UNITS = {"fencer": "fencer.service", "fencer@home": "fencer@.service"}
FENCER = f"""#!/bin/sh
exec env {ENVIRONMENT} {PYTHON} -c 'from fencer.cli.main import main; main()' "$@"
"""
CONFIG = """
mode: observe
kubernetes: {kubeconfig: /etc/fencer/kubeconfig}
hypervisors:
  - {name: lab, type: libvirt, uri: "qemu:///system"}
"""
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: lab
contexts: [{name: lab, context: {cluster: lab, user: fencer}}]
clusters: [{name: lab, cluster: {server: "https://127.0.0.1:6443"}}]
users: [{name: fencer, user: {token: secret}}]
"""
LIBVIRTD = """
[Service]
ExecStart=/usr/sbin/libvirtd --config /etc/libvirt/own.conf
"""
LIBVIRTD_CONF = """
unix_sock_group = "libvirt"
unix_sock_ro_perms = "0770"
unix_sock_rw_perms = "0770"
auth_unix_ro = "none"
auth_unix_rw = "none"
host_uuid = "1f0fa4f5-6e3c-4b0c-9f8c-2b7a3a5d9e11"
"""
SSH = """#!/bin/sh
# For ssh to this very machine: the last word is what the other end is to run.
for command; do :; done
exec sh -c "$command"
"""
INSTEAD = """
[Service]
Type=oneshot
WatchdogSec=0
Restart=no
StandardOutput=append:/run/said
StandardError=append:/run/said
ExecStart=
ExecStart={}
"""
OPEN = "import libvirt, sys; print('guests:', len(libvirt.open(sys.argv[1]).listAllDomains()))"


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    """A host as in docs/libvirt.md: the user fencer, in the group libvirt. No API server answers."""
    with nested_system(tmp_path_factory.mktemp("nested")) as system:
        system.run("groupadd", "--force", "--system", "libvirt")
        system.run("useradd", "--system", "--home-dir", "/var/lib/fencer", "-G", "libvirt", "fencer")
        system.write("/usr/bin/fencer", FENCER, 0o755)
        system.write("/opt/ssh", SSH, 0o755)
        system.write("/etc/libvirt/own.conf", LIBVIRTD_CONF)
        system.write("/etc/systemd/system/libvirtd.service", LIBVIRTD)
        for unit in UNITS.values():
            system.write(f"/etc/systemd/system/{unit}", (CHECKOUT / "systemd" / unit).read_text())
        for name, text in {"config.yaml": CONFIG, "home.yaml": CONFIG, "kubeconfig": KUBECONFIG}.items():
            system.write(f"/etc/fencer/{name}", text, 0o600)
        system.run("chown", "-R", "fencer:", "/etc/fencer")
        system.run("systemctl", "daemon-reload")
        system.run("systemctl", "start", "libvirtd")
        try:
            wait_until(
                lambda: "srw" in system.run("sh", "-c", "ls -l /run/libvirt/libvirt-sock || true"), "libvirtd"
            )
        except AssertionError as late:
            raise AssertionError(system.run("systemctl", "status", "libvirtd", check=False)) from late
        yield system


@pytest.fixture(params=UNITS)
def unit(request, system):
    yield request.param
    system.run("systemctl", "stop", request.param)
    system.run("systemctl", "revert", request.param)


def shown(system, unit, key):
    return system.run("systemctl", "show", "--value", f"-p{key}", unit).strip()


def instead(system, unit, command):
    """Run a command as the unit's, once; return what it said and how it ended."""
    system.write(f"/etc/systemd/system/{unit}.service.d/instead.conf", INSTEAD.format(command))
    system.write("/run/said", "")
    system.run("systemctl", "daemon-reload")
    system.run("systemctl", "start", unit, check=False)
    return system.read("/run/said"), shown(system, unit, "Result")


def test_the_agent_starts_with_an_endpoint_of_libvirt(system, unit):
    """libnuma, which libvirt's client brings along, sets a memory policy at its load: SIGSYS killed it."""
    system.run("systemctl", "start", unit, check=False)
    assert (shown(system, unit, "ActiveState"), shown(system, unit, "Result")) == ("active", "success")


@pytest.mark.parametrize(
    "uri", ["qemu:///system", "qemu+ssh://lab/system?command=/opt/ssh"], ids=["group's socket", "over ssh"]
)
def test_libvirt_answers_it(system, unit, uri):
    """By a socket that only a group may open; and over ssh, from which libvirt takes all capabilities."""
    command = f"/usr/bin/env {ENVIRONMENT} {PYTHON} -c \"{OPEN}\" '{uri}'"
    assert instead(system, unit, command) == ("guests: 0\n", "success")


def test_ssh_runs_as_a_command_of_it(system, unit):
    said, result = instead(system, unit, "/usr/bin/ssh -G -o BatchMode=yes vagrant@localhost")
    assert result == "success"
    assert "user vagrant" in said


def test_it_may_not_make_code_out_of_data(system, unit):
    """What the unit says is in force: a program gets no memory to write and to execute."""
    code = "import mmap; mmap.mmap(-1, 4096, prot=7)"
    said, result = instead(system, unit, f'/usr/bin/env {ENVIRONMENT} {PYTHON} -c "{code}"')
    assert result == "exit-code"
    assert "Operation not permitted" in said


def test_apprise_can_confine_itself_there(system, unit):
    """The unit forbids @resources, and hides most of /proc."""
    code = (
        "import resource; from pathlib import Path; from fencer.notify.apprise_child import _confine; "
        "_confine(9); print(resource.getrlimit(resource.RLIMIT_DATA)[1] >> 20, "
        "Path('/proc/self/oom_score_adj').read_text())"
    )
    said, result = instead(system, unit, f'/usr/bin/env {ENVIRONMENT} {PYTHON} -c "{code}"')
    assert (said.split(), result) == (["192", "1000"], "success")


def test_the_journal_takes_its_records_as_they_are(system, unit):
    """By the journal's own socket, which the unit has to let it reach: with fields, and as the unit's."""
    system.run("systemctl", "start", "systemd-journald.socket", "systemd-journald")
    system.run("systemctl", "start", unit, check=False)
    match = (f"_SYSTEMD_UNIT={unit}.service", "_TRANSPORT=journal", "SYSLOG_IDENTIFIER=fencer", "PRIORITY=4")

    def records():
        printed = system.run("journalctl", "-o", "json", *match, check=False)
        return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]

    [first, *_] = wait_until(records, "record in the journal")
    assert first["MESSAGE"].startswith("kubernetes: no usable answer: https://127.0.0.1:6443")


def test_its_journal_is_its_own_and_root_can_read_it(system, unit):
    system.run("systemctl", "start", unit, check=False)
    name = unit.partition("@")[2]
    folder, config = f"/var/lib/fencer/{name}".rstrip("/"), f"/etc/fencer/{name or 'config'}.yaml"
    wait_until(lambda: "journal.db-wal" in system.run("ls", folder, check=False), "journal")
    assert "each as it was written" in system.run("/usr/bin/fencer", "journal", "verify", "-c", config)
    kept = system.run("sh", "-c", f"stat -c '%n %U %a' {folder}/journal.db*").splitlines()
    assert kept == [f"{folder}/journal.db{side} fencer 600" for side in ("", "-shm", "-wal")]
