"""Puts the admission policies in force on a real API server, and writes there as fencer's account."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import yaml

from tests.cluster.conftest import ACCOUNT, MANIFESTS, apply, collection_of
from tests.support import wait_until
from tests.support.backstage import MERGE, NODES, OUR_LEASES, PODS, REMEDIATIONS, ApiBackstage
from tests.support.controlplane import ControlPlane, Response

POLICY = MANIFESTS / "admission-policy.yaml"
GROUPS = ("system:serviceaccounts", "system:serviceaccounts:fencer", "system:authenticated")
SECRETS = "/api/v1/namespaces/fencer/secrets"
FAILED = {"status": {"phase": "Failed"}}

# Until a policy is in force its probe passes, so each is a dry run. For a DELETE it has to be in the body,
# whose options win over the query's; and a deletion that changes nothing of one under way meets no policy.
# Source: apiserver pkg/endpoints/handlers/delete.go, DeleteResource;
# pkg/registry/generic/registry/store.go, Delete.
PROBES = {
    "fencer-nodes": ("PATCH", f"{NODES}/probe?dryRun=All", {"metadata": {"labels": {"a": "b"}}}),
    "fencer-pod-status": ("PATCH", f"{PODS}/probe/status?dryRun=All", {"status": {"phase": "Unknown"}}),
    "fencer-pods": ("DELETE", f"{PODS}/probe", {"dryRun": ["All"]}),
    "fencer-evictions": ("POST", f"{PODS}/probe/eviction?dryRun=All", {"metadata": {"name": "probe"}}),
    "fencer-leases": (
        "PATCH",
        f"{OUR_LEASES}/fencer-cluster?dryRun=All",
        {"metadata": {"labels": {"a": "b"}}},
    ),
    "fencer-remediations": (
        "PATCH",
        f"{REMEDIATIONS}/probe?dryRun=All",
        {"metadata": {"labels": {"a": "b"}}},
    ),
    "fencer-secrets": ("POST", f"{SECRETS}?dryRun=All", {"metadata": {"name": "probe"}}),
}


def send(
    api: ControlPlane,
    method: str,
    path: str,
    body: Any = None,
    *,
    user: str = ACCOUNT,
    groups: Sequence[str] = GROUPS,
    kind: str = MERGE,
) -> Response:
    """Ask the API server, as fencer's account."""
    kind = kind if method == "PATCH" else "application/json"
    return api.request(method, path, body, user=user, groups=groups, content_type=kind)


def refusal(answer: Response) -> str | None:
    """Return the words of the policy that refused; None: the request went through."""
    if answer.status in {403, 422} and "ValidatingAdmissionPolicy" in answer.body["message"]:
        return str(answer.body["message"])
    assert answer.status < 300, f"{answer.status} {answer.body}"
    return None


def kubelet_sends(api: ControlPlane, node: str, body: Any, part: str = "") -> Response:
    """Send a change of a Node as its own kubelet. That of others NodeRestriction refuses."""
    groups = ("system:nodes", "system:masters")  # it may do all that admission lets pass
    return send(api, "PATCH", f"{NODES}/{node}{part}", body, user=f"system:node:{node}", groups=groups)


@contextmanager
def policies_in_force(api: ControlPlane) -> Iterator[None]:
    """Have every admission policy refuse what it should, for a while."""
    backstage = ApiBackstage(api)
    apply(backstage, POLICY)
    backstage.make_node("probe")
    backstage.make_pod("probe", "probe")
    backstage.make_request("probe")
    wait_until(lambda: _refusing(api) == {*PROBES, "fencer-kubelets"}, "refusal of each policy")
    yield
    for document in yaml.safe_load_all(POLICY.read_text()):
        backstage.send("DELETE", f"{collection_of(document)}/{document['metadata']['name']}")
    # They are read again once a second: what other modules write shall not meet them.
    wait_until(lambda: not _refusing(api), "end of the policies")
    backstage.drop_request("probe")
    backstage.drop_pod("probe")
    backstage.drop_node("probe")


def _refusing(api: ControlPlane) -> set[str]:
    """Return the policies that are in force."""
    answers = {name: refusal(send(api, *probe)) for name, probe in PROBES.items()}
    note = {"metadata": {"annotations": {"fencer.dev/mark": "{}"}}}
    answers["fencer-kubelets"] = refusal(kubelet_sends(api, "probe", note, "?dryRun=All"))
    return {name for name, words in answers.items() if words is not None and f"'{name}'" in words}
