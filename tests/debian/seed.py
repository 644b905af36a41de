"""What a test brings into its Debian guest: a stand-in k3s with a kubelet's rights, and `fencer-guest`."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from zipfile import ZipFile

from fencer.guest.build import build
from tests.support.controlplane import ControlPlane
from tests.support.debian import HOST

_HERE = Path(__file__).parent
_K3S = "usr/local/lib/k3s"
_VPN = {
    "usr/local/sbin/outside": "outside.sh",
    "usr/local/sbin/wireguard": "wireguard.sh",
    "usr/local/sbin/tun_vpn": "tun_vpn.py",
}
"""Programs for tests of the network; none of them runs by itself."""
_AGENT = "var/lib/rancher/k3s/agent"
_KUBECONFIG = """\
apiVersion: v1
clusters:
- cluster:
    server: {server}
    certificate-authority: /{agent}/server-ca.crt
  name: local
contexts:
- context:
    cluster: local
    namespace: default
    user: user
  name: Default
current-context: Default
kind: Config
preferences: {{}}
users:
- name: user
  user:
    client-certificate: /{agent}/client-kubelet.crt
    client-key: /{agent}/client-kubelet.key
"""


def write_seed(path: Path, cluster: ControlPlane, node: str) -> Path:
    """Write a tar for a node of a cluster. `fencer-guest` lies in `/opt`, copied there and not installed.

    Args:
        path: Where to.
        cluster: Whose node.
        node: Its name.
    """
    program = build()
    pair = cluster.client_certificate(f"system:node:{node}", ["system:nodes"])
    server = cluster.url.replace("127.0.0.1", HOST)
    files = {
        "etc/hostname": f"{node}\n".encode(),
        "etc/systemd/system/k3s.service": (_HERE / "k3s.service").read_bytes(),
        "opt/fencer-guest": program,
        f"{_K3S}/standin_kubelet.py": (_HERE / "standin_kubelet.py").read_bytes(),
        **{name: (_HERE / source).read_bytes() for name, source in _VPN.items()},
        **_unpacked(program),
        f"{_AGENT}/kubelet.kubeconfig": _KUBECONFIG.format(server=server, agent=_AGENT).encode(),
        f"{_AGENT}/server-ca.crt": cluster.ca_file.read_bytes(),
        f"{_AGENT}/client-kubelet.crt": pair.cert_file.read_bytes(),
        f"{_AGENT}/client-kubelet.key": pair.key_file.read_bytes(),
    }
    _pack(path, files, {"etc/systemd/system/multi-user.target.wants/k3s.service": "../k3s.service"})
    return path


def _unpacked(program: bytes) -> dict[str, bytes]:
    """Return the modules of `fencer-guest` for the stand-in; as files, which Python compiles once."""
    with ZipFile(io.BytesIO(program)) as archive:
        modules = [name for name in archive.namelist() if name.endswith(".py")]
        return {f"{_K3S}/{name}": archive.read(name) for name in modules}


def _pack(path: Path, files: Mapping[str, bytes], links: Mapping[str, str]) -> None:
    with tarfile.open(path, "w") as tar:
        # Files only: the guest's folders keep their modes.
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o700
            tar.addfile(entry, io.BytesIO(content))
        for name, target in links.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
