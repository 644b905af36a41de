"""An adapter that leads to a stand-in instead of an API server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from fencer.cluster.kubernetes import KubernetesCluster
from fencer.cluster.rights import (
    ATTACHMENT_RIGHTS,
    BUDGETS,
    CLUSTER_LEASE_RIGHTS,
    DRAIN_RIGHTS,
    LESSER_RIGHTS,
    REMEDIATION_RIGHTS,
    RIGHTS,
)
from fencer.cluster.settings import ClusterSettings
from tests.cluster.standin import Behaviour, StandIn
from tests.support.backstage import REMEDIATIONS, ApiBackstage
from tests.support.controlplane import ControlPlane

MANIFESTS = Path(__file__).parents[2] / "config" / "kubernetes"
RBAC = MANIFESTS / "rbac.yaml"
REMEDIATION = MANIFESTS / "remediation.yaml"
ROLES = (MANIFESTS / "drain.yaml", MANIFESTS / "attachments.yaml", REMEDIATION)
ACCOUNT = "system:serviceaccount:fencer:fencer"


def write_kubeconfig(
    path: Path, server: str, user: dict[str, str] | None = None, *, ca_file: Path | None = None
) -> Path:
    """Write a kubeconfig with one context, ``test``."""
    cluster = (
        {"server": server} if ca_file is None else {"server": server, "certificate-authority": str(ca_file)}
    )
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": user or {}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }
    path.write_text(json.dumps(content))  # YAML has room for JSON
    return path


@pytest.fixture
def pauses() -> list[float]:
    """The pauses that the adapter wanted to make, in seconds; none of them was made."""
    return []


@pytest.fixture
def stand_in() -> Iterator[Callable[[Behaviour], StandIn]]:
    """Start stand-ins that end with the test."""
    with ExitStack() as running:
        yield lambda behave: running.enter_context(StandIn(behave))


@pytest.fixture
def lead_to(tmp_path, pauses) -> Callable[..., KubernetesCluster]:
    """Build an adapter whose kubeconfig names a server; further ones, and a user, as wanted."""

    def build(
        server: str,
        *further: str,
        user: dict[str, str] | None = None,
        page: int = 500,
        patience_s: float = 30.0,  # no stand-in is late that is to answer, however busy the machine is
        folder: Path = tmp_path,
    ) -> KubernetesCluster:
        settings = ClusterSettings(
            kubeconfig=write_kubeconfig(folder / "kubeconfig", server, user),
            servers=further,
            unauthenticated=True,  # stand-ins speak no TLS
            connect_timeout_s=patience_s,
            read_timeout_s=patience_s,
        )
        return KubernetesCluster(settings, sleep=pauses.append, page=page)

    return build


@pytest.fixture
def backstage(bare_api) -> ApiBackstage:
    return ApiBackstage(bare_api)


@pytest.fixture(scope="session")
def token(bare_api: ControlPlane) -> str:
    """The token of the service account, as an administrator would make it from the manifest."""
    backstage = ApiBackstage(bare_api)
    for manifest in (RBAC, *ROLES):
        apply(backstage, manifest)
    rights = (*RIGHTS, *LESSER_RIGHTS, *CLUSTER_LEASE_RIGHTS, *DRAIN_RIGHTS, BUDGETS, *ATTACHMENT_RIGHTS)
    backstage.wait_for_rights((*rights, *REMEDIATION_RIGHTS), ACCOUNT)
    backstage.wait_for_kind(REMEDIATIONS)
    backstage.define_machines()
    made = backstage.send(
        "POST",
        "/api/v1/namespaces/fencer/serviceaccounts/fencer/token",
        {"spec": {"expirationSeconds": 3600}},
    )
    return made["status"]["token"]


@pytest.fixture(scope="session")
def account(bare_api: ControlPlane, token: str, tmp_path_factory) -> KubernetesCluster:
    """The adapter as the service account, by its token."""
    path = tmp_path_factory.mktemp("account") / "kubeconfig"
    write_kubeconfig(path, bare_api.url, {"token": token}, ca_file=bare_api.ca_file)
    return KubernetesCluster(ClusterSettings(kubeconfig=path))


@pytest.fixture
def patient_account(bare_api: ControlPlane, token: str, tmp_path) -> KubernetesCluster:
    """The same, and it waits a minute for each answer: for a test that compares how long they take."""
    path = write_kubeconfig(tmp_path / "kubeconfig", bare_api.url, {"token": token}, ca_file=bare_api.ca_file)
    return KubernetesCluster(ClusterSettings(kubeconfig=path, read_timeout_s=60.0))


def apply(backstage: ApiBackstage, manifest: Path) -> None:
    """Make every object of a manifest."""
    for document in yaml.safe_load_all(manifest.read_text()):
        path, name = collection_of(document), document["metadata"]["name"]
        known = backstage.send("GET", f"{path}?fieldSelector=metadata.name%3D{name}")["items"]
        if document["kind"] != "Namespace" or not known:  # other tests need it, too
            backstage.send("POST", path, document)


def collection_of(document: dict[str, Any]) -> str:
    """Return the path under which objects of the document's kind and namespace are made."""
    version, kind, namespace = document["apiVersion"], document["kind"], document["metadata"].get("namespace")
    root = f"/api/{version}" if version == "v1" else f"/apis/{version}"
    place = f"/namespaces/{namespace}" if namespace else ""
    plural = kind.lower().removesuffix("y") + ("ies" if kind.endswith("y") else "s")
    return f"{root}{place}/{plural}"
