"""The container image: built from Debian's archive and the lock alone, and started as the Deployment says.

podman starts it with what ``config/deploy/deployment.yaml`` has: the user, a read-only root, no capability,
no way to new rights, and the default profile of seccomp. A real API server is the fenced cluster. Its
hypervisor is libvirt's test driver, in the container.

On a machine that is a container itself (CI, a lab) rights may be missing; the step then says which.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.benchmarks import fleet
from tests.benchmarks.lab import NODE_INFO, control_plane
from tests.long.site import CHECKOUT, Site
from tests.long.step import LeftOut, StepFailed
from tests.support import wait_until
from tests.support.backstage import NODES, ApiBackstage
from tests.support.caches import cache_folder
from tests.support.controlplane import ControlPlane

DEPLOY = CHECKOUT / "config" / "deploy"
NAME = "localhost/fencer:long-run"
_PROGRAMS = {"debootstrap": "debootstrap", "buildah": "buildah", "podman": "podman"}
_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
NODE = "k8s-1"
UUID = "4dea22b3-1d52-d8f3-2516-782e98ab3fa0"
GUESTS = (
    f"<node><domain type='test'><name>{NODE}</name><uuid>{UUID}</uuid><memory>1024</memory>"
    "<os><type>hvm</type></os></domain></node>"
)
"""For libvirt's test driver: the node's guest."""
_PORT = 19721
_MOST_FILES = 1024
"""Open files: podman would else ask for more than a container's root may give."""
_ENDS_S = 30.0


def image(site: Site) -> str:
    """Build it, look at what it is, and let it check and watch."""
    _look_for_obstacles()
    storage = _storage(site.folder)
    try:
        return _built_and_started(site, storage)
    finally:
        shutil.rmtree(site.folder / "images", ignore_errors=True)  # a copy of all of it for each container


def _built_and_started(site: Site, storage: Path) -> str:
    environment = {**os.environ, "PATH": _PATH, "CONTAINERS_STORAGE_CONF": str(storage), "UV": uv()}
    environment["WORK"] = str(cache_folder("image"))
    Path(environment["WORK"]).mkdir(parents=True, exist_ok=True)
    if site.run(str(DEPLOY / "image" / "build"), NAME, environment=environment):
        raise StepFailed(f"not built: {site.last_line()}")
    container = Container(site.folder, environment)
    container.try_whether_any_starts()
    _is_told(container.ran(["version"], 0), "libvirt library")
    with control_plane(controllers=False) as api:
        _furnish(api, container)
        told = container.ran(["check", "--config", "/etc/fencer/config.yaml"], None)
        for wanted in ("fencer runs outside the cluster that it fences", "for fencer's eyes only"):
            _is_told(told, wanted)
        _is_told(container.ran(["watch", "--once", "--config", "/etc/fencer/config.yaml"], 0), "1 healthy")
        _watches(container)
        _at_home(api)
        _is_told(
            container.ran(["check", "--config", "/etc/fencer/config.yaml"], 1),
            "fencer runs in the cluster that it fences",
        )
    size = container.podman("image", "inspect", "--format", "{{.Size}}", NAME).stdout.strip()
    return (
        f"built ({int(size) / 1e6:.0f} MB), started as the Deployment says: checked, watched, refused at home"
    )


class Container:
    """Starts the image as the Deployment would.

    Args:
        folder: For what is mounted: ``etc`` and ``credentials``.
        environment: With the images' storage.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder, self._environment = folder, environment
        self._runtime = ["--runtime", "runc"] if shutil.which("runc", path=_PATH) else []
        self.configuration, self.credentials = folder / "etc", folder / "credentials"
        self.configuration.mkdir()
        self.credentials.mkdir()

    def podman(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of podman's to its end."""
        return subprocess.run(
            ["podman", *self._runtime, *words],
            env=dict(self._environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def ran(self, words: Sequence[str], code: int | None) -> str:
        """Run one command of fencer's in a container of its own; return all that it said.

        Raises:
            StepFailed: it ended with another exit code.
        """
        done = self.podman("run", "--rm", *self.restrictions(), NAME, *words)
        said = done.stdout + done.stderr
        if code is not None and done.returncode != code:
            raise StepFailed(f"fencer {' '.join(words)}: exit code {done.returncode}, not {code}: {said}")
        return said

    def try_whether_any_starts(self) -> None:
        """Find out whether containers can be started here.

        Raises:
            LeftOut: they cannot.
        """
        done = self.podman("run", "--rm", *self.restrictions(), NAME, "version")
        if done.returncode in {125, 126}:
            raise LeftOut(
                f"built, but podman starts no container here ({done.stderr.strip()}): run it on a machine "
                "with a kernel of its own, or install runc"
            )

    def restrictions(self) -> list[str]:
        """Return what the Deployment says, in podman's words."""
        pod = yaml.safe_load((DEPLOY / "deployment.yaml").read_text())["spec"]["template"]["spec"]
        [container] = pod["containers"]
        user, may = pod["securityContext"], container["securityContext"]
        words = ["--user", f"{user['runAsUser']}:{user['runAsGroup']}", "--group-add", str(user["fsGroup"])]
        words += ["--read-only"] if may["readOnlyRootFilesystem"] else []
        words += ["--read-only-tmpfs=false"]
        words += [word for name in may["capabilities"]["drop"] for word in ("--cap-drop", name)]
        words += [] if may["allowPrivilegeEscalation"] else ["--security-opt", "no-new-privileges"]
        words += ["--memory", container["resources"]["limits"]["memory"].removesuffix("i")]
        words += ["--ulimit", f"nofile={_MOST_FILES}:{_MOST_FILES}", "--ulimit", "nproc=512:512"]
        for mount in container["volumeMounts"]:
            words += self._mounted(mount)
        # The API server is on loopback. What a kubelet sets in each container besides:
        words += ["--network", "host", "--env", "KUBERNETES_SERVICE_HOST=10.96.0.1"]
        return [*words, "--env", "KUBERNETES_SERVICE_PORT=443"]

    def _mounted(self, mount: Mapping[str, Any]) -> list[str]:
        folders = {"configuration": self.configuration, "credentials": self.credentials}
        if mount["name"] in folders:
            return ["--volume", f"{folders[mount['name']]}:{mount['mountPath']}:ro"]
        return ["--mount", f"type=tmpfs,destination={mount['mountPath']},tmpfs-mode=0777"]

    @contextmanager
    def watching(self) -> Iterator[subprocess.Popen[str]]:
        """Run the agent."""
        words = ["run", "--rm", *self.restrictions(), NAME, "watch", "--config", "/etc/fencer/config.yaml"]
        with subprocess.Popen(
            ["podman", *self._runtime, *words],
            env=dict(self._environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as agent:
            try:
                yield agent
            finally:
                agent.send_signal(signal.SIGTERM)  # podman hands it on


def _watches(container: Container) -> None:
    """The agent becomes ready, also without any Lease, and ends within the time that a pod has."""
    with container.watching() as agent:
        wait_until(lambda: _answers("/readyz") or agent.poll() is not None, "agent that is ready")
        if not _answers("/healthz"):
            raise StepFailed(f"the agent is not alive: {agent.communicate()[0]}")
        began_s = time.monotonic()
        agent.send_signal(signal.SIGTERM)
        said, _ = agent.communicate(timeout=2 * _ENDS_S)
    if time.monotonic() - began_s > _ENDS_S or "told to stop: stopped" not in said:
        raise StepFailed(f"it did not end as told within {_ENDS_S:g} s: {said}")


def _answers(path: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{_PORT}{path}", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _furnish(api: ControlPlane, container: Container) -> None:
    """Make one healthy node, its guest, and the files as a kubelet mounts them."""
    make_node(api)
    config = {
        "mode": "observe",
        "kubernetes": {"kubeconfig": "/run/fencer-credentials/kubeconfig"},
        "hypervisors": [{"name": "kvm", "type": "libvirt", "uri": "test:///etc/fencer/guests.xml"}],
        "web": {"listen": f"0.0.0.0:{_PORT}"},
    }
    (container.configuration / "config.yaml").write_text(json.dumps(config))
    (container.configuration / "guests.xml").write_text(GUESTS)
    _mount_secret(container.credentials, {"kubeconfig": inline(api.kubeconfig())})


def make_node(api: ControlPlane) -> None:
    """Make one healthy node."""
    backstage = ApiBackstage(api)
    backstage.send("POST", NODES, {"metadata": {"name": NODE}})
    view = fleet.node_view(1)
    info = {"systemUUID": UUID, "bootID": view.boot_id}
    _set_info(backstage, info)
    backstage.renew_lease(NODE)


def _at_home(api: ControlPlane) -> None:
    """Let the node be the machine that the container is on."""
    _set_info(ApiBackstage(api), {"systemUUID": UUID, "bootID": _BOOT_ID.read_text().strip()})


def _set_info(backstage: ApiBackstage, known: Mapping[str, str]) -> None:
    status = {
        "nodeInfo": {**dict.fromkeys(NODE_INFO, ""), **known},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    backstage.send("PATCH", f"{NODES}/{NODE}/status", {"status": status})


def _mount_secret(folder: Path, files: Mapping[str, str]) -> None:
    """Write files as the kubelet writes a Secret's: root's, readable by fsGroup, behind two links."""
    written = folder / "..2026_01_01_00_00_00.1"
    written.mkdir()
    for name, text in files.items():
        (written / name).write_text(text)
        os.chown(written / name, 0, 64000)
        (written / name).chmod(0o440)
        (folder / name).symlink_to(f"..data/{name}")
    (folder / "..data").symlink_to(written.name)


def inline(kubeconfig: Path) -> str:
    """Return a kubeconfig that needs no other file."""
    content = json.loads(kubeconfig.read_text())
    for part in (content["clusters"][0]["cluster"], content["users"][0]["user"]):
        for name in ("certificate-authority", "client-certificate", "client-key"):
            if name in part:
                part[f"{name}-data"] = base64.b64encode(Path(part.pop(name)).read_bytes()).decode()
    return json.dumps(content)


def _is_told(said: str, wanted: str) -> None:
    if wanted not in said:
        raise StepFailed(f"{wanted!r} is not told: {said}")


def _look_for_obstacles() -> None:
    if os.geteuid() != 0:
        raise LeftOut("debootstrap and containers need root: run it with sudo")
    for program, package in _PROGRAMS.items():
        if shutil.which(program, path=_PATH) is None:
            raise LeftOut(f"no {program} on this machine: apt-get install {package}")


def uv() -> str:
    own = CHECKOUT / ".uv" / "bin" / "uv"
    found = os.environ.get("UV") or shutil.which("uv") or (str(own) if own.exists() else None)
    if found is None:
        raise LeftOut("no uv here, which unpacks the lock: `./dev pythons` and `./dev quick` install it")
    return found


def _storage(folder: Path) -> Path:
    """Keep images away from the machine's own, on any file system."""
    path = folder / "storage.conf"
    there = folder.absolute()
    path.write_text(f'[storage]\ndriver = "vfs"\ngraphroot = "{there}/images"\nrunroot = "{there}/run"\n')
    return path
