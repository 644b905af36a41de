"""The README's quick starts, pasted as they stand into a terminal of a clean Debian.

Each machine has what such a machine has before fencer: systemd, and its hypervisor. Real are apt, sudo, ssh,
the package, the service, libvirt and its guests, and the API server. Stand-ins are a Proxmox host's tools and
API, VBoxManage, and the kubelets. Control-plane nodes are this machine's sshd with a kubeconfig in its place.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.benchmarks.lab import control_plane
from tests.docs import quick_starts
from tests.long.clean_debian import (
    BOOKWORM,
    TRIXIE,
    Debian,
    copied,
    find_or_build,
    furnish,
    look_for_obstacles,
    must,
    run_in,
    ways,
)
from tests.long.deb_host import Host
from tests.long.image import inline
from tests.long.quick_machines import (
    beating,
    control_plane_node,
    kvm_host,
    proxmox_host,
    virtualbox_host,
)
from tests.long.site import CHECKOUT, Site
from tests.long.step import LeftOut, StepFailed
from tests.long.terminal import PROMPT, Terminal
from tests.support import LateError
from tests.support.controlplane import ControlPlane
from tests.support.nested import NestedSystem, nested_root

_APT = "DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends"
_SYSTEM = "systemd systemd-sysv dbus sudo openssh-client procps"
_KVM = "libvirt-daemon-system libvirt-clients libvirt-daemon-driver-qemu qemu-system-x86 seabios"
_PASTED_S = 900.0
"""It builds a package, and fetches what builds it."""
_ARMING = re.compile(r"(?m)^To arm it.*?: ((?:sudo )?sed .*)$")
_ENDED = "ended with "
_SOON_S = 60.0
_ROOT, _ME = "root", "me"
_NODE = {"or its file: ": "root@localhost", "(yes/no/[fingerprint])? ": "yes"}
_SET_UP, _START = "Set this up? [Y/n]: ", "changes nothing. [Y/n]: "
_POWER = {"and may fencer stop and start them? [y/N]: ": "y"}


def quickstart(site: Site) -> str:
    """Type all three."""
    look_for_obstacles(site)
    return "; ".join(f"{name}: {typed(site)}" for name, typed in ALL.items())


def _proxmox(site: Site) -> str:
    with ExitStack() as stack:
        root, api, system = _booted(site, TRIXIE, stack)
        guests = stack.enter_context(proxmox_host(site.folder, root))
        node = ("/etc/rancher/k3s/k3s.yaml", inline(api.kubeconfig()))
        stack.enter_context(control_plane_node(site.folder, root / "root", *node))
        stack.enter_context(beating(api, guests))
        shell = stack.enter_context(_shell(site, system, _ROOT))
        answers = {
            **_NODE,
            **_POWER,
            _SET_UP: "",
            _START: "",
        }
        return _observes_then_armed(_host(site, system), shell, quick_starts.PROXMOX, answers, guests)


def _kvm(site: Site) -> str:
    with ExitStack() as stack:
        root, api, system = _booted(site, BOOKWORM, stack, _KVM)
        guests = stack.enter_context(kvm_host(_host(site, system)))
        node = ("/etc/kubernetes/admin.conf", inline(api.kubeconfig()))
        stack.enter_context(control_plane_node(site.folder, root / "home" / _ME, *node))
        stack.enter_context(beating(api, guests))
        shell = stack.enter_context(_shell(site, system, _ME))
        answers = {
            **_NODE,
            **_POWER,
            _SET_UP: "",
            "the moment a guest ends? [Y/n]: ": "",
            _START: "",
        }
        return _observes_then_armed(_host(site, system), shell, quick_starts.KVM, answers, guests)


def _vagrant(site: Site) -> str:
    """A lab on a laptop: no service, so the last command of the block stays until somebody presses Ctrl-C."""
    with ExitStack() as stack:
        root, api, system = _booted(site, BOOKWORM, stack)
        guests = virtualbox_host(root, "home/me/kubespray")
        _leave(
            site, root, "home/me/kubespray/inventory/sample/artifacts/admin.conf", inline(api.kubeconfig())
        )
        stack.enter_context(beating(api, guests))
        shell = stack.enter_context(_shell(site, system, _ME))
        answers = {"inventory/sample/artifacts/admin.conf]: ": "", _SET_UP: "", **_POWER}
        shown, told = _pasted(shell, quick_starts.VAGRANT, answers, "mode observe; hypervisors: box")
        _all_shown(shown, guests, "observe")
        shell.interrupt()
        shell.wait(PROMPT, _SOON_S)
        _type(shell, _arming(shown))
        shell.type("./dev fencer watch")
        shell.wait("mode armed; hypervisors: box", _SOON_S)
        shell.wait("box: this agent gives its orders", _SOON_S)
        shell.interrupt()
        shell.wait(PROMPT, _SOON_S)
        return told


ALL: Mapping[str, Callable[[Site], str]] = {
    quick_starts.PROXMOX: _proxmox,
    quick_starts.KVM: _kvm,
    quick_starts.VAGRANT: _vagrant,
}
"""What types each, by its heading."""


def _observes_then_armed(
    host: Host, shell: Terminal, name: str, answers: Mapping[str, str], guests: Mapping[str, str]
) -> str:
    """Paste the block, answer, and arm it by the line that is shown; return what was seen."""
    root = "sudo " if "sudo fencer" in quick_starts.block(name) else ""
    shown, told = _pasted(shell, name, answers, PROMPT)
    _all_shown(shown, guests, "observe")
    _type(shell, _arming(shown))
    host.wait_told(": this agent gives its orders")
    _all_shown(_type(shell, f"{root}fencer status"), guests, "armed")
    checked = _type(shell, f"{root}fencer check", code=None)
    if "0 failures" not in checked:
        raise StepFailed(f"{name}: {checked[-2000:]}")
    return told


def _pasted(shell: Terminal, name: str, answers: Mapping[str, str], until: str) -> tuple[str, str]:
    """Paste a block and answer; return what is shown, and how long that took, for people."""
    began_s = time.monotonic()
    shell.type(quick_starts.block(name))
    shown = shell.wait(until, _PASTED_S, answers)
    return shown, f"{time.monotonic() - began_s:.0f} s from the paste to its table, then armed"


def _all_shown(shown: str, guests: Mapping[str, str], mode: str) -> None:
    rows = [line.split() for line in shown.splitlines()]
    healthy = {row[0] for row in rows if row[1:2] == ["yes"] and row[-1] == "healthy"}
    if healthy != set(guests) or f"mode {mode} " not in shown:
        raise StepFailed(f"{sorted(healthy)} healthy, of {sorted(guests)}, mode {mode}: {shown[-2000:]}")


def _arming(shown: str) -> str:
    told = _ARMING.search(shown)
    if told is None:
        raise StepFailed(f"it does not say how to arm it: {shown[-2000:]}")
    return told[1]


def _type(shell: Terminal, command: str, code: int | None = 0) -> str:
    """Type one command; return what it shows.

    Raises:
        StepFailed: it does not end with the code.
    """
    shell.type(f"{command}; echo {_ENDED}$?")
    shown = shell.wait(f"\n{_ENDED}", 120.0)
    ended = shell.wait(PROMPT, 60.0).strip()
    if code is not None and ended != str(code):
        raise StepFailed(f"{command}: exit code {ended}: {shown[-2000:]}")
    return shown


def _booted(
    site: Site, release: Debian, stack: ExitStack, *packages: str
) -> tuple[Path, ControlPlane, NestedSystem]:
    """Have a clean Debian with an init, and beside it a cluster; return its root, the cluster, and itself."""
    root = stack.enter_context(_machine(site, release, packages))
    api = stack.enter_context(control_plane(controllers=False))
    try:
        system = stack.enter_context(nested_root(site.folder, root))
    except LateError as late:
        raise LeftOut(f"no systemd in namespaces of its own here: {late}") from late
    _host(site, system).run("systemctl start systemd-journald.socket systemd-journald dbus.socket")
    return root, api, system


@contextmanager
def _machine(site: Site, release: Debian, packages: Sequence[str]) -> Iterator[Path]:
    """Have the files of one: with somebody who may use sudo, and a checkout for him and for root."""
    with copied(find_or_build(release, site), site) as root:
        furnish(root, site)
        wanted = " ".join([_SYSTEM, *packages])
        user = f"useradd -m -s /bin/bash {_ME} && echo '{_ME} ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/{_ME}"
        if run_in(root, site, "sh", "-c", f"apt-get -qq update && {_APT} install {wanted} && {user}"):
            raise StepFailed(f"Debian {release.number} could not be furnished: {site.last_line()}")
        (root / "usr/sbin/policy-rc.d").unlink()  # here services start
        for home in ("root", f"home/{_ME}"):
            must(
                site, "git", "clone", "--quiet", "--no-hardlinks", str(CHECKOUT), str(root / home / "fencer")
            )
        _give(site, root / "home" / _ME)
        yield root


def _host(site: Site, system: NestedSystem) -> Host:
    return Host(lambda command: system.run("sh", "-c", command, check=False), site, 60.0)


def _shell(site: Site, system: NestedSystem, user: str) -> Terminal:
    home = "/root" if user == _ROOT else f"/home/{user}"
    known = {
        **ways(),
        "HOME": home,
        "USER": user,
        "LC_ALL": "C.UTF-8",
        "PS1": PROMPT,
        "PS2": "",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "TERM": "dumb",
    }
    variables = [f"{name}={value}" for name, value in known.items()]
    as_user = ("setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups")
    words = (*as_user, "env", "-i", "-C", f"{home}/fencer", *variables, "bash", "--noprofile", "--norc", "-i")
    return Terminal(system.words(*words), site.log)


def _leave(site: Site, root: Path, place: str, text: str) -> None:
    """Put a file into somebody's home, whose it is then."""
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    _give(site, root / "home" / _ME)


def _give(site: Site, home: Path) -> None:
    must(site, "chown", "-R", f"{home.stat().st_uid}:{home.stat().st_gid}", str(home))
