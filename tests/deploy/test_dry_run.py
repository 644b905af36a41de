"""A real API server takes the manifests in config/deploy/ as they are."""

import copy

import pytest

from tests.deploy.kit import EXAMPLE, KUSTOMIZATION, documents, only, pod

PLURALS = {
    "Namespace": "/api/v1/namespaces",
    "ConfigMap": "/api/v1/namespaces/fencer/configmaps",
    "Secret": "/api/v1/namespaces/fencer/secrets",
    "Deployment": "/apis/apps/v1/namespaces/fencer/deployments",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/fencer/poddisruptionbudgets",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/fencer/networkpolicies",
}
OBJECTS = [(file, one) for file in (*KUSTOMIZATION["resources"], EXAMPLE) for one in documents(file)]


@pytest.mark.parametrize(
    ("file", "body"), OBJECTS, ids=lambda one: one if isinstance(one, str) else one["kind"]
)
def test_a_real_api_server_takes_it_as_it_is(bare_api, file, body):
    """Server-side dry run; a field that the API does not know is an error."""
    strictly = f"{PLURALS[body['kind']]}?dryRun=All&fieldValidation=Strict"
    if body["kind"] == "Namespace":  # it is there, made for the tests
        content, method = "application/merge-patch+json", "PATCH"
        strictly = strictly.replace("?", "/fencer?")
    else:
        content, method = "application/json", "POST"
    answer = bare_api.request(method, strictly, body, content_type=content)
    assert answer.status in {200, 201}, f"{file}: {answer.body}"


def test_a_field_that_is_misspelt_would_be_refused(bare_api):
    body = only("deployment.yaml")
    body["spec"]["template"]["spec"]["automountServiceAcountToken"] = False
    where = f"{PLURALS['Deployment']}?dryRun=All&fieldValidation=Strict"
    assert bare_api.request("POST", where, body).status == 400


@pytest.mark.parametrize("level", ["restricted"])
def test_its_namespace_admits_its_pod_by_the_strictest_standard(bare_api, level):
    """Asked of the API server's own admission, which would name what is not so."""
    name = "held-to-standards"
    labels = {"pod-security.kubernetes.io/enforce": level}
    made = bare_api.request("POST", PLURALS["Namespace"], {"metadata": {"name": name, "labels": labels}})
    assert made.status == 201
    bare_api.request("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
    where = f"/api/v1/namespaces/{name}/pods?dryRun=All"
    good = {"metadata": {"name": "fencer"}, "spec": pod()}
    assert bare_api.request("POST", where, good).status == 201
    bad = copy.deepcopy(good)
    bad["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    refused = bare_api.request("POST", where, bad)
    assert (refused.status, "allowPrivilegeEscalation" in refused.body["message"]) == (403, True)
    assert only("namespace.yaml")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == level
