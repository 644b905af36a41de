"""What is on a machine before its quick start: a hypervisor with two guests, and the nodes that they are."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from fencer.core.identity import swapped
from tests.long.deb_host import Host
from tests.setup.test_pveum_lines import PVEUM, SECRET
from tests.support import wait_until
from tests.support.backstage import LEASES, NODES, ApiBackstage
from tests.support.controlplane import ControlPlane
from tests.support.pve.clock import Clock
from tests.support.pve.cluster import RIGHTS, PveCluster
from tests.support.pve.https.server import PveServers
from tests.support.vbox import SCRIPT, FakeVBox

NAMES = ("k8s-1", "k8s-2")
TOKEN = "fencer@pve!agent"  # noqa: S105 - a name
_PVE_PORT = 8006
_BEAT_S = 5.0
_SSHD = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
StrictModes no
UsePAM no
PidFile none
PermitRootLogin prohibit-password
ForceCommand exec unshare --mount sh {folder}/node
"""
_NODE = """
mount -t tmpfs tmpfs /etc && install -D -m 0600 {folder}/admins.yaml {place} || exit 9
exec sh -c "$SSH_ORIGINAL_COMMAND"
"""
"""A control-plane node: this machine, but for what lies in /etc."""
_SSH = """
Host localhost
    Port {port}
    IdentityFile ~/.ssh/id
"""
_ALONE = [{"type": "node", "name": "pve", "ip": "127.0.0.1", "online": 1, "local": 1}]
_PVESH = """#!/bin/sh
case "$2" in /cluster/status) echo '{status}' ;; *) echo '[]' ;; esac
"""
"""A stock Proxmox VE: no storage holds snippets."""
_DRAFT = "/root/domain.xml"
_DOMAIN = (
    "<domain type='qemu'><name>{name}</name><uuid>{uuid}</uuid><memory unit='MiB'>4</memory><vcpu>1</vcpu>"
    "<os><type arch='x86_64' machine='pc'>hvm</type></os><devices>"
    "<controller type='usb' model='none'/><memballoon model='none'/></devices></domain>"
)


@contextmanager
def beating(api: ControlPlane, guests: Mapping[str, str]) -> Iterator[None]:
    """Have a node for each guest, whose kubelet beats: name → the UUID that its guest sees."""
    backstage = ApiBackstage(api)
    for name, uuid in guests.items():
        backstage.make_node(name)
        node = backstage.send("GET", f"{NODES}/{name}")
        node["status"]["nodeInfo"]["systemUUID"] = uuid
        backstage.send("PUT", f"{NODES}/{name}/status", node)
    over = threading.Event()

    def beat() -> None:
        while True:
            for name in guests:
                _renew(api, backstage, name)
            if over.wait(_BEAT_S):
                return

    kubelets = threading.Thread(target=beat, daemon=True)
    kubelets.start()
    try:
        yield
    finally:
        over.set()
        kubelets.join()


def _renew(api: ControlPlane, backstage: ApiBackstage, name: str) -> None:
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now}
    lease = {"metadata": {"name": name}, "spec": spec}
    if api.request("GET", f"{LEASES}/{name}").status == 404:
        backstage.send("POST", LEASES, lease)
    else:
        backstage.send("PATCH", f"{LEASES}/{name}", lease)


@contextmanager
def proxmox_host(folder: Path, root: Path) -> Iterator[dict[str, str]]:
    """Have a stock Proxmox host alone, without a subscription: one of apt's repositories is closed to it."""
    (root / "etc/apt/sources.list.d/pve-enterprise.list").write_text("deb file:/closed pve-enterprise main\n")
    pve = PveCluster(None, ("pve",), clock=Clock(1.0))
    pve.access.add_token(TOKEN, SECRET, {"/": RIGHTS})
    guests = {name: pve.add_guest(name, "pve").uuid for name in NAMES}
    servers = PveServers(pve, folder)
    servers.listen("pve", _PVE_PORT)
    (root / "etc/pve/nodes/pve").mkdir(parents=True)
    shutil.copy(servers.ca_file, root / "etc/pve/pve-root-ca.pem")
    books = root / "var/lib/books"
    books.write_text(json.dumps({"calls": [], "role": {}, "user": {}, "token": {}, "acl": {}}))
    counted, known = '[:-2] + "%02d" % len(books["calls"])', 'os.environ["BOOKS"]'
    for name, text in (
        ("pveum", PVEUM.replace(counted, "").replace(known, '"/var/lib/books"')),
        ("pvesh", _PVESH.replace("{status}", json.dumps(_ALONE))),
        ("pveversion", "#!/bin/sh\necho 'pve-manager/9.0.3/abc (running kernel: 6.14)'\n"),
    ):
        _program(root / "usr/bin" / name, text)
    _first_line(root / "usr/bin/pveum", "#!/usr/bin/python3 -IS")
    with servers:
        yield guests


@contextmanager
def control_plane_node(folder: Path, home: Path, place: str, kubeconfig: str) -> Iterator[None]:
    """Have a control-plane node that somebody may enter by ssh as root@localhost, and never has.

    Args:
        folder: For its files.
        home: Of who may.
        place: Where the node has its administrator's kubeconfig.
        kubeconfig: That.
    """
    folder = folder / home.name
    folder.mkdir()
    for name in ("host", "user"):
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name))
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    (folder / "admins.yaml").write_text(kubeconfig)
    (folder / "node").write_text(_NODE.format(folder=folder, place=place))
    (folder / "sshd_config").write_text(_SSHD.format(port=port, folder=folder))
    ours = home / ".ssh"
    ours.mkdir(mode=0o700, exist_ok=True)
    shutil.copy(folder / "user", ours / "id")
    (ours / "config").write_text(_SSH.format(port=port))
    _run("chown", "-R", f"{home.stat().st_uid}:{home.stat().st_gid}", str(ours))
    Path("/run/sshd").mkdir(exist_ok=True)  # systemd makes it where sshd is a service
    words = ["/usr/sbin/sshd", "-D", "-f", str(folder / "sshd_config"), "-E", str(folder / "sshd.log")]
    daemon = subprocess.Popen(words)
    try:
        wait_until(lambda: _listens(port), "sshd")
        yield
    finally:
        daemon.terminate()
        daemon.wait()


def _listens(port: int) -> bool:
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def kvm_host(host: Host) -> Iterator[dict[str, str]]:
    """Have real guests of a real libvirtd, emulated where there is no KVM; its cgroups are this machine's."""
    settings = 'cgroup_controllers = []\nnamespaces = []\nsecurity_driver = "none"\n'
    host.run(f"printf '%s' '{settings}' >>/etc/libvirt/qemu.conf && systemctl start libvirtd virtlogd")
    guests = {name: str(uuid4()) for name in NAMES}
    for name, uuid in guests.items():
        host.write(_DRAFT, _DOMAIN.format(name=name, uuid=uuid), "root")
        host.run(f"virsh -q define {_DRAFT} && virsh -q start {name}")
    try:
        yield guests
    finally:
        for name in guests:
            host.run(f"virsh -q destroy {name}", None)


def virtualbox_host(root: Path, project: str) -> dict[str, str]:
    """Put a stand-in for VirtualBox in place, with the machines of a Vagrant project of the user `me`."""
    folder, home = root / "opt/vbox", root / "home/me"
    folder.mkdir()
    vbox = FakeVBox(folder)
    shutil.copy(SCRIPT, folder / SCRIPT.name)
    (root / "usr/lib/virtualbox").mkdir(parents=True)
    words = f"/usr/bin/python3 -IS /opt/vbox/{SCRIPT.name} /opt/vbox/vbox.json VBoxManage"
    _program(root / "usr/lib/virtualbox/VBoxManage", f'#!/bin/sh\nexec {words} "$@"\n')
    place, guests, index = f"/{project}", {}, {}
    for name in NAMES:
        guest = vbox.add(f"kubespray_{name}_1700000000000_12345")
        guests[name] = swapped(guest.uuid)
        record = root / project / ".vagrant/machines" / name / "virtualbox/id"
        record.parent.mkdir(parents=True)
        record.write_text(guest.id)
        (home / "VirtualBox VMs" / guest.id / "Logs").mkdir(parents=True)
        index[guest.id.replace("-", "")] = {
            "name": name,
            "provider": "virtualbox",
            "local_data_path": f"{place}/.vagrant",
            "vagrantfile_path": place,
            "state": "running",
        }
    file = home / ".vagrant.d/data/machine-index/index"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"version": 1, "machines": index}))
    _run("chown", "-R", f"{home.stat().st_uid}:{home.stat().st_gid}", str(home), str(folder))
    return guests


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _first_line(path: Path, line: str) -> None:
    path.write_text("\n".join([line, *path.read_text().splitlines()[1:]]) + "\n")


def _run(*words: str) -> None:
    subprocess.run(words, check=True)
