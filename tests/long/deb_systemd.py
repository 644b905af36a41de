"""The package under a real systemd: an agent of Debian 12 lives through all that happens to a service.

systemd is process 1 of namespaces of its own over a clean root, with this machine's network. A real API
server is the fenced cluster, libvirt's test driver the hypervisor. In the end Debian becomes 13 around the
agent.
"""

from __future__ import annotations

import json
from functools import partial
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
from tests.long.deb_host import CONFIG, Host, crashes, expect, reloads, stops
from tests.long.image import GUESTS, inline, make_node
from tests.long.site import Site
from tests.long.step import LeftOut, StepFailed
from tests.support import LateError
from tests.support.controlplane import ControlPlane
from tests.support.nested import NestedSystem, nested_root

_SYSTEM = "systemd systemd-sysv dbus python3-libvirt"
_APT = (
    "DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends -o Dpkg::Options::=--force-confold"
)
_GUESTS = "test:///etc/fencer/guests.xml"
_PORT = 19722
_PATIENCE_S = 60.0
_CRASHED = "Main process exited"
"""systemd's words. The agents have to guard their clusters until they are told to stop."""


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
                host = Host(partial(_shell, system), site, _PATIENCE_S)
                host.run("systemctl start systemd-journald.socket systemd-journald")
                return _lives(host, api, package)
        except LateError as late:
            raise LeftOut(f"no systemd in namespaces of its own here: {late}") from late


def _shell(system: NestedSystem, command: str) -> str:
    return system.run("sh", "-c", command, check=False)


def _lives(host: Host, api: ControlPlane, package: Path) -> str:
    host.run(f"{_APT} install /root/{package.name}")
    expect(host.run("systemctl is-active fencer; systemctl is-enabled fencer", None), "inactive\ndisabled")
    _is_set_up(host, api)
    _configure(host, api)
    host.run("fencer config check")
    host.run("systemctl enable --now fencer fencer@home")
    host.wait_active()
    host.wait_active("fencer@home")
    expect(host.shown("WatchdogUSec"), "2min")
    expect(host.shown("User"), "fencer")
    host.wait_told("watching https://", 2)
    host.wait(lambda: _answers(host, "/readyz"), "readiness")
    reloads(host, _configuration(api))
    back_s = crashes(host)
    host.wait(lambda: _answers(host, "/readyz"), "readiness")
    stop_s = stops(host)
    _is_upgraded(host, f"{_APT} install --reinstall /root/{package.name}")
    host.run("fencer history >/dev/null")
    python = _is_upgraded(host, _to(TRIXIE.suite))
    expect(host.run("cut -d. -f1 /etc/debian_version"), str(TRIXIE.number))
    host.run("fencer demo >/dev/null && fencer version")
    host.wait(lambda: _answers(host, "/readyz"), "readiness on Debian 13")
    _is_purged(host)
    return (
        f"ready, reloaded, back {back_s:.0f} s after a crash, stopped in {stop_s:.1f} s, upgraded;"
        f" Debian 12 became 13 and the agent goes on with {python}"
    )


def _is_set_up(host: Host, api: ControlPlane) -> None:
    """`fencer init`, as typed: it observes; again: nothing changes; armed by one word. Then it is undone."""
    host.write("/etc/fencer/guests.xml", GUESTS)
    host.write("/root/admins.yaml", inline(api.kubeconfig()))
    init = f"fencer init --uri {_GUESTS} --kubeconfig /root/admins.yaml --yes"
    for told in ("/etc/fencer/config.yaml: written", "/etc/fencer/kubeconfig: is there already, and good"):
        said = host.run(init)
        if told not in said or "0 failures" not in said:
            raise StepFailed(f"{init}: {said[-2000:]}")
    expect(host.run("stat -c '%U %a' /etc/fencer/kubeconfig"), "fencer 600")
    expect(host.run("grep -rl 'client-key-data' /etc/fencer /tmp /run /dev/shm 2>/dev/null", None), "")
    host.wait_active()
    host.wait_told("mode observe")
    host.run("sed -i 's/^mode: observe/mode: armed/' /etc/fencer/config.yaml && systemctl reload fencer")
    host.wait_told("mode armed")
    host.run("systemctl disable --now fencer")
    host.run("rm /etc/fencer/config.yaml /etc/fencer/kubeconfig /root/admins.yaml")


def _configuration(api: ControlPlane) -> dict[str, Any]:
    return {
        "mode": "observe",
        "kubernetes": {"kubeconfig": "/etc/fencer/kubeconfig"},
        "hypervisors": [{"name": "kvm", "type": "libvirt", "uri": _GUESTS}],
        "web": {"listen": f"127.0.0.1:{_PORT}"},
    }


def _configure(host: Host, api: ControlPlane) -> None:
    config = _configuration(api)
    host.write(CONFIG, json.dumps(config))
    host.write("/etc/fencer/home.yaml", json.dumps({**config, "web": {"listen": f"127.0.0.1:{_PORT + 1}"}}))
    host.write("/etc/fencer/kubeconfig", inline(api.kubeconfig()))
    host.write("/etc/fencer/guests.xml", GUESTS)


def _to(suite: str) -> str:
    line = f"deb {MIRROR} {suite} main"
    return f"echo '{line}' >/etc/apt/sources.list && apt-get -qq update && {_APT} full-upgrade"


def _is_upgraded(host: Host, command: str) -> str:
    """Run an upgrade; both agents run again afterwards. Return by which Python."""
    before = {unit: host.pid(unit) for unit in ("fencer", "fencer@home")}
    ended = host.journal().count(_CRASHED)
    host.run(command)
    for unit, pid in before.items():
        host.wait_active(unit)
        if host.pid(unit) == pid:
            raise StepFailed(f"{unit}: goes on as it was before the upgrade")
    expect(host.journal().count(_CRASHED), ended)
    python = host.run("basename $(readlink -f /usr/bin/python3)")
    expect(host.run(f"basename $(readlink /proc/{host.pid()}/exe)"), python)
    return python


def _is_purged(host: Host) -> None:
    host.run(f"{_APT} purge fencer")
    for unit in ("fencer", "fencer@home"):
        expect(host.shown("ActiveState", unit), "inactive")
    left = "find / -xdev -iname '*fencer*' -not -path '/proc/*' -not -path '/sys/*' -not -path '/root/*'"
    left += " -not -path '/var/log/*' -not -path '/var/cache/*' -not -path '/tmp/*'"
    expect(host.run(f"{left}; getent passwd fencer; getent group fencer; ls /run | grep fencer", None), "")


def _answers(host: Host, path: str) -> bool:
    ask = f"import urllib.request as u; u.urlopen('http://127.0.0.1:{_PORT}{path}', timeout=5)"
    return host.run(f'python3 -c "{ask}" >/dev/null 2>&1 && echo yes', None) == "yes"
