"""Where the control plane's binaries come from: `$KUBE_BIN`, or one build that is kept outside the checkout.

Run as a program (`python -m tests.controlplane.binaries`) it builds ahead of the tests and says where.
"""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.go_programs import GoError, Program

ETCD = "etcd"
API_SERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
KUBECTL = "kubectl"
"""Of the same version; no part of a control plane, and not needed to run one."""
COMPONENTS = (ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER)

_MODULE = Path(__file__).parent
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
    try:
        return Binaries(_program().find_or_build())
    except GoError as error:
        raise MissingBinariesError(f"KUBE_BIN is not set and {error}") from error


def _official(folder: Path) -> Binaries:
    absent = [name for name in COMPONENTS if not os.access(folder / name, os.X_OK)]
    if absent:
        raise MissingBinariesError(f"KUBE_BIN={folder} has no executable {', '.join(absent)}")
    return Binaries(folder.absolute())


def _program() -> Program:
    return Program(
        module=_MODULE,
        sources=("go.mod", "go.sum", "main.go"),
        package=".",
        flags=_build_flags(),
        kind="controlplane",
        name="fencer-controlplane",
        called="the test control plane, once (5 to 10 minutes on two cores)",
    )


def _build_flags() -> list[str]:
    """Return the flags for `go build`: small, and with the version that `/version` is to answer."""
    pin = re.search(r"k8s\.io/kubernetes v(\d+)\.(\d+)\.(\d+)", (_MODULE / "go.mod").read_text())
    if pin is None:
        raise ValueError(f"{_MODULE / 'go.mod'} names no version of k8s.io/kubernetes")
    names = {"gitMajor": pin[1], "gitMinor": pin[2], "gitVersion": f"v{pin[1]}.{pin[2]}.{pin[3]}"}
    stamps = [f"-X k8s.io/component-base/version.{name}={value}" for name, value in names.items()]
    return ["-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags", " ".join(["-s", "-w", *stamps])]


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{find_or_build().path}\n")
    except MissingBinariesError as missing:
        sys.exit(str(missing))
