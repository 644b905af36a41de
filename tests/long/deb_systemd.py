"""The package under a real systemd: an agent of Debian 12 lives through all that happens to a service.

systemd is process 1 of namespaces of its own over a clean root, with this machine's network. A real API
server is the fenced cluster, libvirt's test driver the hypervisor. In the end Debian becomes 13 around the
agent.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.benchmarks.lab import control_plane
from tests.debian.image import MIRROR
from tests.long.clean_debian import (
    BOOKWORM,
    TRIXIE,
    copied,
    find_or_build,
    furnish,
    look_for_obstacles,
    run_in,
)
from tests.long.deb import built
from tests.long.image import GUESTS, inline, make_node
from tests.long.site import Site
from tests.long.step import LeftOut, StepFailed
from tests.support import LateError, wait_until
from tests.support.controlplane import ControlPlane
from tests.support.nested import NestedSystem, nested_root

_SYSTEM = "systemd systemd-sysv dbus python3-libvirt"
_APT = (
    "DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends -o Dpkg::Options::=--force-confold"
)
_CONFIG = "/etc/fencer/config.yaml"
_PORT = 19722
_SOON_S = 30.0
_STOPS_S = 10.0
"""It gives back its Leases and ends; the unit would wait for 30 s."""


def deb_systemd(site: Site) -> str:
    """Install it, start it, disturb it, upgrade all around it, and purge it."""
    look_for_obstacles(site)
    package = next(file for file in built(site, site.folder / "built") if file.suffix == ".deb")
    with copied(find_or_build(BOOKWORM, site), site) as root, control_plane(controllers=False) as api:
        furnish(root, site)
        if run_in(root, site, "sh", "-c", f"apt-get -qq update && {_APT} install {_SYSTEM}"):
            raise StepFailed(f"Debian 12 could not be furnished: {site.last_line()}")
        (root / "usr/sbin/policy-rc.d").unlink()  # here services start
        (root / "root" / package.name).write_bytes(package.read_bytes())
        make_node(api)
        try:
            with nested_root(site.folder, root) as system:
                host = Host(system, site)
                host.run("systemctl start systemd-journald.socket systemd-journald")
                return _lives(host, api, package)
        except LateError as late:
            raise LeftOut(f"no systemd in namespaces of its own here: {late}") from late


class Host:
    """The Debian that runs.

    Args:
        system: It.
        site: Keeps what was said.
    """

    def __init__(self, system: NestedSystem, site: Site) -> None:
        self._system, self._log = system, site.log

    def run(self, command: str, code: int | None = 0) -> str:
        """Run a command of a shell as root; return what it said.

        Args:
            command: It.
            code: What its exit code has to be; None: any.

        Raises:
            StepFailed: it ended with another one.
        """
        told = self._system.run("sh", "-c", f"({command}); echo $?", check=False)
        said, _, ended = told.rstrip().rpartition("\n")
        with self._log.open("a") as log:
            log.write(f"\n# {command}\n{told}")
        if code is not None and ended != str(code):
            raise StepFailed(
                f"{command}: exit code {ended}, not {code}: {said[-500:]}; {self.journal()[-500:]}"
            )
        return said

    def write(self, path: str, text: str) -> None:
        """Write a file for the agent's eyes only."""
        self._system.write(path, text, 0o600)
        self.run(f"chown fencer: {path}")

    def shown(self, key: str, unit: str = "fencer") -> str:
        """Return a property of a unit."""
        return self.run(f"systemctl show --value -p {key} {unit}").strip()

    def pid(self, unit: str = "fencer") -> int:
        """Return the agent's process; 0: none."""
        return int(self.shown("MainPID", unit))

    def wait(self, condition: Callable[[], object], what: str) -> None:
        """Wait until something is so.

        Raises:
            StepFailed: it is not within half a minute.
        """
        try:
            wait_until(condition, what, timeout_s=_SOON_S, every_s=0.3)
        except LateError as late:
            raise StepFailed(f"{late}: {self.journal()[-1500:]}") from late

    def journal(self) -> str:
        """Return what the agent's units have said."""
        return self.run("journalctl --no-pager -o cat -u fencer -u 'fencer@*'", None)

    def wait_told(self, text: str, times: int = 1) -> None:
        """Wait until the journal has a text so often."""
        self.wait(lambda: self.journal().count(text) >= times, f"{text!r} in the journal")

    def wait_active(self, unit: str = "fencer") -> None:
        """Wait until the agent has said that it is ready."""
        self.wait(lambda: self.shown("ActiveState", unit) == "active" and self.pid(unit), f"active {unit}")


def _lives(host: Host, api: ControlPlane, package: Path) -> str:
    host.run(f"{_APT} install /root/{package.name}")
    _is(host.run("systemctl is-active fencer; systemctl is-enabled fencer", None), "inactive\ndisabled")
    _configure(host, api)
    host.run("fencer config check")
    host.run("systemctl enable --now fencer fencer@home")
    host.wait_active()
    host.wait_active("fencer@home")
    _is(host.shown("WatchdogUSec"), "2min")
    _is(host.shown("User"), "fencer")
    host.wait_told("watching https://", 2)
    host.wait(lambda: _answers(host, "/readyz"), "readiness")
    _reloads(host, api)
    _crashes(host)
    stop_s = _stops(host)
    _is_upgraded(host, f"{_APT} install --reinstall /root/{package.name}")
    host.run("fencer history >/dev/null")
    python = _is_upgraded(host, _to(TRIXIE.suite))
    _is(host.run("cut -d. -f1 /etc/debian_version"), str(TRIXIE.number))
    host.run("fencer demo >/dev/null && fencer version")
    host.wait(lambda: _answers(host, "/readyz"), "readiness on Debian 13")
    _is_purged(host)
    return (
        f"ready, reloaded, crashed, stopped in {stop_s:.1f} s, upgraded; Debian 12 became 13 and the agent"
        f" goes on with {python}"
    )


def _configuration(api: ControlPlane) -> dict[str, Any]:
    return {
        "mode": "observe",
        "kubernetes": {"kubeconfig": "/etc/fencer/kubeconfig"},
        "hypervisors": [{"name": "kvm", "type": "libvirt", "uri": "test:///etc/fencer/guests.xml"}],
        "web": {"listen": f"127.0.0.1:{_PORT}"},
    }


def _configure(host: Host, api: ControlPlane) -> None:
    config = _configuration(api)
    host.write(_CONFIG, json.dumps(config))
    host.write("/etc/fencer/home.yaml", json.dumps({**config, "web": {"listen": f"127.0.0.1:{_PORT + 1}"}}))
    host.write("/etc/fencer/kubeconfig", inline(api.kubeconfig()))
    host.write("/etc/fencer/guests.xml", GUESTS)


def _reloads(host: Host, api: ControlPlane) -> None:
    """A right configuration is taken over by the same process; a wrong one changes nothing."""
    pid = host.pid()
    good = _configuration(api)
    host.write(_CONFIG, json.dumps({**good, "policy": {"poll_s": 1}}))
    host.run("systemctl reload fencer")
    host.wait_told("begins again, with the configuration as it is now")
    host.wait_told("watching https://", 3)
    host.wait_active()
    _is((host.pid(), host.shown("NRestarts")), (pid, "0"))
    host.write(_CONFIG, json.dumps({**good, "nonsense": True}))
    host.run("systemctl reload fencer", 1)
    host.wait_told("nonsense")
    _is((host.shown("ActiveState"), host.pid()), ("active", pid))
    host.run(f"kill -HUP {pid}")  # somebody who does not ask the unit
    host.wait_told("the one from before stays in force")
    _is((host.shown("ActiveState"), host.pid(), host.shown("NRestarts")), ("active", pid, "0"))
    host.write(_CONFIG, json.dumps(good))


def _crashes(host: Host) -> None:
    """Killed it comes back; ended as the watchdog ends it, it tells where it was."""
    for signal, told in (("KILL", ""), ("ABRT", "Fatal Python error: Aborted")):
        before = host.pid()
        host.run(f"kill -{signal} {before}")
        _wait_another(host, before)
        host.wait_active()
        host.wait_told(told)
    _is(host.shown("NRestarts"), "2")


def _wait_another(host: Host, pid: int) -> None:
    host.wait(lambda: host.pid() not in {0, pid}, "another process")


def _stops(host: Host) -> float:
    """Return the seconds that it took to stop."""
    host.wait(lambda: _answers(host, "/readyz"), "readiness")
    began_s = time.monotonic()
    host.run("systemctl stop fencer")
    took_s = time.monotonic() - began_s
    _is(host.shown("Result"), "success")
    host.wait_told("told to stop")
    if took_s > _STOPS_S:
        raise StepFailed(f"it took {took_s:.0f} s to stop")
    host.run("systemctl start fencer")
    return took_s


def _to(suite: str) -> str:
    line = f"deb {MIRROR} {suite} main"
    return f"echo '{line}' >/etc/apt/sources.list && apt-get -qq update && {_APT} full-upgrade"


def _is_upgraded(host: Host, command: str) -> str:
    """Run an upgrade; both agents run again afterwards. Return by which Python."""
    before = {unit: host.pid(unit) for unit in ("fencer", "fencer@home")}
    host.run(command)
    for unit, pid in before.items():
        host.wait_active(unit)
        if host.pid(unit) == pid:
            raise StepFailed(f"{unit}: goes on as it was before the upgrade")
    python = host.run("basename $(readlink -f /usr/bin/python3)")
    _is(host.run(f"basename $(readlink /proc/{host.pid()}/exe)"), python)
    return python


def _is_purged(host: Host) -> None:
    host.run(f"{_APT} purge fencer")
    for unit in ("fencer", "fencer@home"):
        _is(host.shown("ActiveState", unit), "inactive")
    left = "find / -xdev -iname '*fencer*' -not -path '/proc/*' -not -path '/sys/*' -not -path '/root/*'"
    left += " -not -path '/var/log/*' -not -path '/var/cache/*' -not -path '/tmp/*'"
    _is(host.run(f"{left}; getent passwd fencer; getent group fencer; ls /run | grep fencer", None), "")


def _answers(host: Host, path: str) -> bool:
    ask = f"import urllib.request as u; u.urlopen('http://127.0.0.1:{_PORT}{path}', timeout=5)"
    return host.run(f'python3 -c "{ask}" >/dev/null 2>&1 && echo yes', None) == "yes"


def _is(seen: object, wanted: object) -> None:
    if seen != wanted:
        raise StepFailed(f"{seen!r}, not {wanted!r}")
