"""The package in a whole machine: a Debian 13 with a kernel, an init and a network of its own.

It is the guest of the end-to-end tests, emulated. The fenced cluster is a real API server on this machine.
Its hypervisor, a Proxmox VE, does not answer; an agent has to live with that.
"""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

from tests.benchmarks.lab import control_plane
from tests.debian.image import MissingImageError, find_or_build
from tests.long.clean_debian import look_for_obstacles
from tests.long.deb import built
from tests.long.deb_host import CONFIG, Host, crashes, expect, reloads, stops
from tests.long.image import inline, make_node
from tests.long.site import Site
from tests.long.step import LeftOut
from tests.support.controlplane import ControlPlane
from tests.support.debian import HOST, define_debian
from tests.support.guests import running_guest_host

_PATIENCE_S = 240.0
_TOKEN = "/etc/fencer/proxmox-token"  # noqa: S105 - a path
_GOOD = {
    "mode": "observe",
    "kubernetes": {"kubeconfig": "/etc/fencer/kubeconfig"},
    "hypervisors": [
        {
            "name": "pve",
            "type": "proxmox",
            "cluster": "home",
            "servers": [f"https://{HOST}:1"],
            "token_id": "fencer@pve!agent",
            "token_file": _TOKEN,
        },
    ],
}


def deb_guest(site: Site) -> str:
    """Install it, start it, reload, kill and stop it."""
    look_for_obstacles(site)
    try:
        find_or_build()
    except MissingImageError as missing:
        raise LeftOut(str(missing)) from missing
    package = next(file for file in built(site, site.folder / "built") if file.suffix == ".deb")
    seed = _seed(site.folder / "seed.tar", package)
    with running_guest_host() as guests, control_plane(controllers=False) as api:
        make_node(api)
        guest = define_debian(guests, "fencer", seed)
        guest.start()
        host = Host(lambda command: guest.run(command, check=False).text, site, _PATIENCE_S)
        return _lives(host, api)


def _seed(path: Path, package: Path) -> Path:
    """Write a tar with the package, which the guest unpacks over its root."""
    with tarfile.open(path, "w") as tar:
        entry = tarfile.TarInfo("opt/fencer.deb")
        content = package.read_bytes()
        entry.size, entry.mode = len(content), 0o644
        tar.addfile(entry, io.BytesIO(content))
    return path


def _lives(host: Host, api: ControlPlane) -> str:
    host.run("DEBIAN_FRONTEND=noninteractive dpkg --install /opt/fencer.deb")
    expect(host.run("systemctl is-active fencer; systemctl is-enabled fencer", None), "inactive\ndisabled")
    host.write(CONFIG, json.dumps(_GOOD))
    host.write("/etc/fencer/kubeconfig", inline(api.kubeconfig()).replace("127.0.0.1", HOST))
    host.write(_TOKEN, "00000000-0000-4000-8000-000000000000\n")
    host.run("systemctl enable --now fencer")
    host.wait_active()
    expect((host.shown("WatchdogUSec"), host.shown("Type")), ("2min", "notify"))
    host.wait_told("watching https://")
    reloads(host, _GOOD)
    back_s = crashes(host)
    stop_s = stops(host)
    host.run("dpkg --purge fencer")
    expect(host.run("ls -d /etc/fencer /var/lib/fencer /usr/lib/fencer /run/fencer 2>/dev/null", None), "")
    return f"ready, reloaded, back {back_s:.0f} s after a crash, stopped in {stop_s:.0f} s, purged"
