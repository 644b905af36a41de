"""What is here already: hypervisors of this machine, and an administrator's kubeconfigs."""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fencer.setup import vagrant_index

PLACES = (
    "etc/rancher/k3s/k3s.yaml",
    "etc/rancher/rke2/rke2.yaml",
    "etc/kubernetes/admin.conf",
    "var/lib/k0s/pki/admin.conf",
)
"""Where k3s, RKE2, kubeadm and k0s keep an administrator's kubeconfig, on control-plane nodes; below ``/``.

Source: docs.k3s.io/cluster-access; docs.rke2.io/cluster_access; kubeadm init's own output;
docs.k0sproject.io, "Access cluster".
"""

_LIBVIRT = ("run/libvirt/libvirt-sock", "run/libvirt/virtqemud-sock")
"""Sockets of libvirtd and of its modular successor. Source: libvirt, docs/daemons.rst."""
_VBOXMANAGE = "usr/lib/virtualbox/VBoxManage"
"""The program itself. Source: Debian's virtualbox, and Oracle's packages, which link it there."""


@dataclass(frozen=True, slots=True)
class Found:
    """A hypervisor of this machine.

    Attributes:
        type: As in the configuration.
        shown_by: What shows that it is here.
    """

    type: str
    shown_by: str


def hypervisors(root: Path = Path("/")) -> Iterator[Found]:
    """Find the hypervisors of this machine, the one that nodes probably are under first.

    Args:
        root: The machine's root.
    """
    if (root / "etc/pve/nodes").is_dir():
        yield Found("proxmox", "/etc/pve")
    for socket in _LIBVIRT:
        if (root / socket).exists():
            yield Found("libvirt", f"/{socket}")
            break
    if (root / _VBOXMANAGE).exists() or shutil.which("VBoxManage"):
        yield Found("virtualbox", "VBoxManage")


def vboxmanage(root: Path = Path("/")) -> str:
    """Return how VBoxManage is run here: the script on PATH may remove the socket of a VBoxSVC that runs."""
    program = root / _VBOXMANAGE
    return str(program) if program.exists() else "VBoxManage"


def caller(environment: Mapping[str, str] = os.environ) -> pwd.struct_passwd | None:
    """Return who became root by sudo; None: nobody did."""
    name = environment.get("SUDO_USER", "root")
    if os.geteuid() != 0 or name == "root":
        return None
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


def likely_kubeconfig(environment: Mapping[str, str] = os.environ, home: Path | None = None) -> Path | None:
    """Return a kubeconfig that is probably meant, but that nobody named: a person has to agree.

    Args:
        environment: Of this process.
        home: Of whoever types, who may have become root by sudo; None: it is looked up.
    """
    home = home or home_of_caller(environment)
    places = [home / ".kube" / "config", *vagrant_index.kubeconfigs(environment, home)]
    return next((one for one in places if one.is_file() and os.access(one, os.R_OK)), None)


def home_of_caller(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the home of whoever types, also behind sudo."""
    who = caller(environment)
    return Path(who.pw_dir) if who else Path.home()


def kubeconfigs(
    environment: Mapping[str, str] = os.environ, home: Path | None = None, root: Path = Path("/")
) -> Iterator[Path]:
    """Find an administrator's kubeconfigs on this machine, in the order in which kubectl would take them.

    Args:
        environment: Of this process.
        home: Whose is asked for; None: this user's.
        root: The machine's root.
    """
    named = [Path(one) for one in environment.get("KUBECONFIG", "").split(os.pathsep) if one]
    usual = (home or Path.home()) / ".kube" / "config"
    for path in (*named, usual, *(root / place for place in PLACES)):
        if path.is_file():
            yield path


def reading_there() -> str:
    """Return shell that prints a control-plane node's administrator's kubeconfig, and fails if there is none.

    Root reads it, or somebody whom sudo asks for no password.
    """
    tries = "; ".join(f"look /{place}" for place in PLACES)
    return (
        'look() { if test -r "$1"; then cat "$1" && exit 0; fi; '
        'sudo -n cat "$1" 2>/dev/null && exit 0; return 0; }; '
        f"{tries}; exit 3"
    )
