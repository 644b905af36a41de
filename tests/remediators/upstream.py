"""What comes from upstream: the NodeHealthCheck controller's program, and manifests as they were released.

Run as a program (`python -m tests.remediators.upstream`) it builds ahead of the tests and says where.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.support.go_programs import GoError, Program, module_folder

_HERE = Path(__file__).parent
_NHC = "github.com/medik8s/node-healthcheck-operator"
_CLUSTER_API = "sigs.k8s.io/cluster-api"
_HOW_TO_GET = "to have it, install Go 1.26 (https://go.dev/dl)"
_CONTROLLER = Program(
    module=_HERE,
    sources=("go.mod", "go.sum"),
    package=f"{_NHC}/cmd",
    flags=("-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w"),
    kind="node-healthcheck",
    name="node-healthcheck-controller",
    called="the NodeHealthCheck controller, once (2 to 4 minutes on two cores)",
)


class MissingUpstreamError(Exception):
    """There is none of it here; the message is one line and says how to get it."""

    def __init__(self, reason: object) -> None:
        super().__init__(f"real NodeHealthCheck and Cluster API left out: {reason}; {_HOW_TO_GET}")


def find_or_build() -> Path:
    """Return the NodeHealthCheck controller's program; the first call on a machine builds it.

    Raises:
        MissingUpstreamError: Go is not there, or fails.
    """
    try:
        return _CONTROLLER.find_or_build()
    except GoError as error:
        raise MissingUpstreamError(error) from error


def node_health_check_definitions() -> list[dict[str, Any]]:
    """Return the CustomResourceDefinition of NodeHealthCheck."""
    return list(_objects(_HERE, _NHC, ["config/crd/bases/remediation.medik8s.io_nodehealthchecks.yaml"]))


def node_health_check_rules() -> list[dict[str, Any]]:
    """Return the rules that its controller gets from its own manifests, for all namespaces, as OLM does."""
    files = ["config/rbac/role.yaml", "config/rbac/leader_election_role.yaml"]
    return [rule for role in _objects(_HERE, _NHC, files) for rule in role["rules"]]


def cluster_api_definitions() -> list[dict[str, Any]]:
    """Return the CustomResourceDefinitions of Cluster, Machine and MachineHealthCheck."""
    kinds = ("clusters", "machines", "machinehealthchecks")
    files = [f"config/crd/bases/cluster.x-k8s.io_{kind}.yaml" for kind in kinds]
    return list(_objects(_HERE / "clusterapi", _CLUSTER_API, files))


def _objects(pins: Path, module: str, files: Sequence[str]) -> Iterator[dict[str, Any]]:
    try:
        folder = module_folder(pins, module)
    except GoError as error:
        raise MissingUpstreamError(error) from error
    for file in files:
        yield from yaml.safe_load_all((folder / file).read_text())


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{find_or_build()}\n")
    except MissingUpstreamError as missing:
        sys.exit(str(missing))
