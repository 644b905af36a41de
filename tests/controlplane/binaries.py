"""Where the control plane's binaries come from: `$KUBE_BIN`, or one build that is kept outside the checkout.

Run as a program (`python -m tests.controlplane.binaries`) it builds ahead of the tests and says where.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.caches import cache_folder, locked

ETCD = "etcd"
API_SERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
KUBECTL = "kubectl"
"""Of the same version; no part of a control plane, and not needed to run one."""
COMPONENTS = (ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER)

_MODULE = Path(__file__).parent
_SOURCES = ("go.mod", "go.sum", "main.go")
_BINARY = "fencer-controlplane"
# Kubernetes 1.36.2 built by Go 1.27 (encoding/json v2) serves a broken /openapi/v2.
_GO_VERSION = "go1.26"
_HOW_TO_GET = (
    "to have it, install Go 1.26 (https://go.dev/dl), or set KUBE_BIN to a folder with the released"
    " etcd, kube-apiserver, kube-controller-manager and kube-scheduler"
)


class MissingBinariesError(Exception):
    """There is no control plane to run here; the message is one line and says how to get one."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"real control plane left out: {reason}; {_HOW_TO_GET}")


@dataclass(frozen=True, slots=True)
class Binaries:
    """Either a folder with one binary per component, or one binary that is all of them."""

    path: Path

    def command(self, component: str) -> list[str]:
        """Return the start of the command line that runs a component of `COMPONENTS`."""
        if self.path.is_dir():
            return [str(self.path / component)]
        return [str(self.path), component]


def find_or_build() -> Binaries:
    """Return the binaries to test with; the first call on a machine may build for five to ten minutes.

    Raises:
        MissingBinariesError: `$KUBE_BIN` is not complete, or unset and Go is not there or fails.
    """
    folder = os.environ.get("KUBE_BIN")
    if folder:
        return _official(Path(folder))
    go, version = _find_go()
    target = cache_folder("controlplane") / _digest(version) / _BINARY
    if not target.exists():
        with locked(target.parent, MissingBinariesError):
            if not target.exists():  # another test process may have built it while we waited
                _build(go, target)
    return Binaries(target)


def _official(folder: Path) -> Binaries:
    absent = [name for name in COMPONENTS if not os.access(folder / name, os.X_OK)]
    if absent:
        raise MissingBinariesError(f"KUBE_BIN={folder} has no executable {', '.join(absent)}")
    return Binaries(folder.absolute())


def _find_go() -> tuple[str, str]:
    """Return Go's path and the version that this module gets (Go may switch to a newer one by itself)."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin:/usr/lib/go/bin")
    if go is None:
        raise MissingBinariesError("KUBE_BIN is not set and there is no Go")
    told = subprocess.run([go, "env", "GOVERSION"], cwd=_MODULE, capture_output=True, text=True, check=False)
    version = told.stdout.strip()
    if told.returncode or not version.startswith(_GO_VERSION):
        seen = version or _last_line(told.stderr)
        raise MissingBinariesError(f"KUBE_BIN is not set and {go} is not {_GO_VERSION} but: {seen}")
    return go, version


def _build_flags() -> list[str]:
    """Return the flags for `go build`: small, and with the version that `/version` is to answer."""
    pin = re.search(r"k8s\.io/kubernetes v(\d+)\.(\d+)\.(\d+)", (_MODULE / "go.mod").read_text())
    if pin is None:
        raise ValueError(f"{_MODULE / 'go.mod'} names no version of k8s.io/kubernetes")
    names = {"gitMajor": pin[1], "gitMinor": pin[2], "gitVersion": f"v{pin[1]}.{pin[2]}.{pin[3]}"}
    stamps = [f"-X k8s.io/component-base/version.{name}={value}" for name, value in names.items()]
    return ["-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags", " ".join(["-s", "-w", *stamps])]


def _digest(go_version: str) -> str:
    """Name a build by all that goes into it."""
    digest = hashlib.sha256()
    for name in _SOURCES:
        digest.update((_MODULE / name).read_bytes())
    digest.update("\n".join([go_version, *_build_flags()]).encode())
    return digest.hexdigest()[:16]


def _build(go: str, target: Path) -> None:
    """Build beside the target and rename, so that a half-written binary is never found."""
    sys.stderr.write(f"\nbuilding the test control plane, once (5 to 10 minutes on two cores): {target}\n")
    sys.stderr.flush()
    # A build that was killed leaves its file, and perhaps somebody who still writes there.
    for left in target.parent.glob("*.unfinished"):
        left.unlink()
    unfinished = target.with_suffix(f".{os.getpid()}.unfinished")
    built = subprocess.run(
        [go, "build", *_build_flags(), "-o", str(unfinished), "."],
        cwd=_MODULE,
        env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode:
        (target.parent / "build.log").write_text(built.stderr)
        reason = f"go build failed ({_last_line(built.stderr)}; all of it: {target.parent / 'build.log'})"
        raise MissingBinariesError(reason)
    unfinished.replace(target)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no word"


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{find_or_build().path}\n")
    except MissingBinariesError as missing:
        sys.exit(str(missing))
