"""Requests of other controllers on a real API server: the kinds, and fencer's account that answers them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import yaml

from fencer.cluster.remediations import KubernetesRequests
from fencer.cluster.rights import REMEDIATION_RIGHTS
from fencer.cluster.settings import ClusterSettings
from fencer.core.requests import Progress, Strategy
from fencer.errors import ClusterConflict, ClusterDenied, ClusterNotFound
from fencer.simulation.clock import VirtualClock
from tests.cluster.conftest import REMEDIATION, write_kubeconfig
from tests.cluster.guard import policies_in_force
from tests.support.backstage import DEFINITIONS, MEDIK8S_LEASES, NODES, REMEDIATIONS

UTC = "2026-11-20T10:41:12Z"
LATER = "2026-11-20T10:42:00Z"
TEMPLATES = f"{REMEDIATIONS.removesuffix('s')}templates"
API = "remediation.fencer.dev/v1alpha1"
AT_WORK = Progress(None, "GuestRunning", "its guest runs")

_numbers = itertools.count(1)


def requests_of(api, token, folder, **options):
    path = write_kubeconfig(folder / "kubeconfig", api.url, {"token": token}, ca_file=api.ca_file)
    return KubernetesRequests(ClusterSettings(path), **options)


@pytest.fixture(scope="module")
def guarded(bare_api, token):
    """The API server with the admission policies in force."""
    with policies_in_force(bare_api):
        yield bare_api


@pytest.fixture(scope="module")
def requests(guarded, token, tmp_path_factory):
    """The adapter as fencer's account: with the rights of the manifest alone, and under the policies."""
    return requests_of(guarded, token, tmp_path_factory.mktemp("account"))


@pytest.fixture
def name():
    return f"asked-{next(_numbers)}"


def one(requests, name):
    found = [request for request in requests.asked().requests if request.name == name]
    return found[0] if found else None


def owner(kind, name, uid="u-1", version="remediation.medik8s.io/v1alpha1"):
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid}


def conditions(backstage, name):
    status = backstage.send("GET", f"{REMEDIATIONS}/{name}")["status"]
    return {each["type"]: each for each in status["conditions"]}


# -- the kinds --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["prove", "stop"])
def test_a_request_has_one_of_two_strategies(backstage, token, name, strategy):
    body = {"apiVersion": API, "kind": "FencerRemediation", "metadata": {"name": name}}
    assert backstage.send("POST", REMEDIATIONS, body)["spec"] == {"strategy": "prove"}
    written = {**body, "metadata": {"name": f"{name}-b"}, "spec": {"strategy": strategy}}
    assert backstage.send("POST", REMEDIATIONS, written)["spec"] == {"strategy": strategy}


@pytest.mark.parametrize(
    ("path", "kind", "spec"),
    [
        (REMEDIATIONS, "FencerRemediation", {"strategy": "reboot"}),
        (REMEDIATIONS, "FencerRemediation", {"strategy": 1}),
        (TEMPLATES, "FencerRemediationTemplate", {"template": {"spec": {"strategy": "reboot"}}}),
        (TEMPLATES, "FencerRemediationTemplate", {"template": "stop"}),
    ],
)
def test_the_schema_refuses_all_else(bare_api, token, name, path, kind, spec):
    body = {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}
    answer = bare_api.request("POST", path, body)
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")


def test_a_template_without_a_word_asks_for_a_proof(backstage, token, name):
    body = {"apiVersion": API, "kind": "FencerRemediationTemplate", "metadata": {"name": name}}
    made = backstage.send("POST", TEMPLATES, body)
    assert made["spec"] == {"template": {"spec": {"strategy": "prove"}}}


def test_both_kinds_are_accepted_as_they_are_written(backstage, token):
    """A schema that is not structural would be told here, as a third condition."""
    for document in yaml.safe_load_all(REMEDIATION.read_text()):
        if document["kind"] == "CustomResourceDefinition":
            status = backstage.send("GET", f"{DEFINITIONS}/{document['metadata']['name']}")["status"]
            told = {each["type"]: each["status"] for each in status["conditions"]}
            assert told == {"NamesAccepted": "True", "Established": "True"}


# -- what is asked ----------------------------------------------------------------------------------------


def test_a_request_of_a_health_check_names_its_node(backstage, requests, name):
    notes = {"remediation.medik8s.io/node-name": "k8s-7"}
    backstage.make_request(
        name, annotations=notes, ownerReferences=[owner("NodeHealthCheck", "workers")], finalizers=["x.y/z"]
    )
    request = one(requests, name)
    assert (request.node, request.asked_by, request.strategy) == (
        "k8s-7",
        "NodeHealthCheck workers",
        Strategy.PROVE,
    )
    assert (request.live, request.adopted, request.told, request.problem) == (True, False, None, "")
    notes = {"annotations": {"remediation.medik8s.io/nhc-timed-out": UTC}}
    backstage.send("PATCH", f"{REMEDIATIONS}/{name}", {"metadata": notes})
    assert one(requests, name).given_up


def test_a_long_list_is_read_page_by_page(guarded, token, backstage, tmp_path):
    for number in range(5):
        backstage.make_request(f"paged-{number}")
    short = requests_of(guarded, token, tmp_path, page=2)
    assert {f"paged-{number}" for number in range(5)} <= {each.name for each in short.asked().requests}


def test_a_machines_request_is_about_its_node(backstage, guarded, token, tmp_path, name):
    clock = VirtualClock()
    requests = requests_of(guarded, token, tmp_path, now_s=clock.now_s)
    backstage.make_node(f"{name}-node")
    uid = backstage.make_machine(name)
    machine = owner("Machine", name, uid, "cluster.x-k8s.io/v1beta2")
    backstage.make_request(name, ownerReferences=[machine])
    request = one(requests, name)
    assert (request.node, request.asked_by, request.waits) == ("", f"Machine {name}", True)
    assert "has no node yet" in request.problem
    backstage.set_machine(
        name,
        {"nodeRef": {"name": f"{name}-node"}, "nodeInfo": {"systemUUID": f"UUID-OF-{name}-NODE".upper()}},
    )
    assert one(requests, name).node == ""
    clock.advance(31)
    request = one(requests, name)
    assert (request.node, request.problem, request.waits) == (f"{name}-node", "", False)


def test_a_machine_of_another_cluster_is_nobody_here(backstage, guarded, token, tmp_path, name):
    requests = requests_of(guarded, token, tmp_path)
    backstage.make_node(f"{name}-node")
    backstage.send("PATCH", f"{NODES}/{name}-node", {"spec": {"providerID": "proxmox://ours"}})
    uid = backstage.make_machine(name, "proxmox://theirs", {"nodeRef": {"name": f"{name}-node"}})
    machine = owner("Machine", name, uid, "cluster.x-k8s.io/v1beta2")
    backstage.make_request(name, ownerReferences=[machine])
    request = one(requests, name)
    assert (request.node, request.waits, request.live) == ("", False, False)
    assert "may be a machine of another cluster" in request.problem


def test_leases_of_medik8s_count_while_they_last(backstage, requests, name):
    utc = backstage_utc(requests, backstage)
    for node, renewed, holder in (
        (f"{name}-a", utc, "NodeHealthCheck-workers"),
        (f"{name}-b", "2020-01-01T00:00:00.000000Z", "NodeHealthCheck-workers"),
        (f"{name}-c", utc, ""),
    ):
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 600, "renewTime": renewed}
        backstage.send("POST", MEDIK8S_LEASES, {"metadata": {"name": f"node-{node}"}, "spec": spec})
    held = requests.asked().reservations
    assert {node: by for node, by in held.items() if node.startswith(f"{name}-")} == {
        f"{name}-a": "NodeHealthCheck-workers"
    }


def backstage_utc(requests, backstage):
    """The API server's clock, as a Lease has it."""
    made = backstage.send("POST", MEDIK8S_LEASES, {"metadata": {"generateName": "clock-"}})
    return made["metadata"]["creationTimestamp"].replace("Z", ".000000Z")


# -- answers ----------------------------------------------------------------------------------------------


def test_a_request_is_adopted_answered_and_let_go_and_other_finalizers_stay(backstage, requests, name):
    path = backstage.make_request(name, finalizers=["example.com/hold"])
    requests.adopt(one(requests, name))
    assert one(requests, name).adopted
    requests.answer(one(requests, name), AT_WORK, UTC)
    assert one(requests, name).told == AT_WORK
    told = conditions(backstage, name)
    assert {kind: each["status"] for kind, each in told.items()} == {
        "Processing": "True",
        "Succeeded": "Unknown",
    }
    assert told["Succeeded"]["message"] == "its guest runs"
    backstage.send("DELETE", path)
    assert one(requests, name).deleting
    requests.release(one(requests, name))
    left = backstage.send("GET", path)["metadata"]
    assert left["finalizers"] == ["example.com/hold"]
    backstage.send("PATCH", path, {"metadata": {"finalizers": None}})
    assert one(requests, name) is None


def test_with_the_last_finalizer_the_request_is_gone(backstage, requests, name):
    path = backstage.make_request(name)
    requests.adopt(one(requests, name))
    backstage.send("DELETE", path)
    last = one(requests, name)
    requests.release(last)
    assert one(requests, name) is None
    with pytest.raises(ClusterNotFound):
        requests.release(last)


def test_a_condition_keeps_its_time_until_its_status_changes_and_those_of_others_stay(
    backstage, requests, name
):
    path = backstage.make_request(name)
    theirs = {"type": "Theirs", "status": "True", "reason": "R", "message": "", "lastTransitionTime": UTC}
    backstage.send("PATCH", f"{path}/status", {"status": {"conditions": [theirs]}})
    requests.answer(one(requests, name), AT_WORK, UTC)
    requests.answer(one(requests, name), Progress(None, "HypervisorSilent"), LATER)
    told = conditions(backstage, name)
    assert (told["Succeeded"]["reason"], told["Succeeded"]["lastTransitionTime"]) == ("HypervisorSilent", UTC)
    requests.answer(one(requests, name), Progress(True, "Fenced"), LATER)
    told = conditions(backstage, name)
    times = {kind: (each["status"], each["lastTransitionTime"]) for kind, each in told.items()}
    assert times == {"Theirs": ("True", UTC), "Processing": ("False", LATER), "Succeeded": ("True", LATER)}
    assert one(requests, name).told == Progress(True, "Fenced")


def test_a_message_of_any_length_is_told(backstage, requests, name):
    backstage.make_request(name)
    requests.answer(one(requests, name), Progress(False, "GuestRunning", "é" * 40_000), UTC)
    assert len(conditions(backstage, name)["Succeeded"]["message"]) == 32_768


@pytest.mark.parametrize("write", ["adopt", "answer", "release"])
def test_what_has_changed_is_not_written_over(backstage, requests, name, write):
    path = backstage.make_request(name)
    if write == "release":
        requests.adopt(one(requests, name))
    before = one(requests, name)
    backstage.send("PATCH", path, {"metadata": {"annotations": {"example.com/theirs": "1"}}})
    deeds = {
        "adopt": requests.adopt,
        "answer": lambda request: requests.answer(request, AT_WORK, UTC),
        "release": requests.release,
    }
    with pytest.raises(ClusterConflict):
        deeds[write](before)
    with pytest.raises(ClusterConflict):
        deeds[write](replace(one(requests, name), uid="another"))
    deeds[write](one(requests, name))


def test_the_guard_is_in_the_write_itself(guarded, backstage, requests, name):
    """Between the look before a write and the write another may come."""
    path = backstage.make_request(name)
    metadata = backstage.send("GET", path)["metadata"]
    backstage.send("PATCH", path, {"metadata": {"labels": {"a": "b"}}})
    for changed in ({}, {"uid": "11111111-1111-4111-8111-111111111111", "resourceVersion": None}):
        guard = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]} | changed
        body = {"metadata": {**guard, "finalizers": ["a.b/c"]}}
        answer = guarded.request("PATCH", path, body, content_type="application/merge-patch+json")
        assert answer.status in {409, 422}


def test_one_that_is_being_deleted_is_not_adopted_any_more(backstage, requests, name):
    path = backstage.make_request(name, finalizers=["example.com/hold"])
    backstage.send("DELETE", path)
    with pytest.raises(ClusterConflict, match="is being deleted"):
        requests.adopt(one(requests, name))
    backstage.send("PATCH", path, {"metadata": {"finalizers": None}})


# -- rights --------------------------------------------------------------


def test_the_manifest_grants_all_that_is_needed_and_what_is_missing_is_named(bare_api, requests):
    assert requests.missing_rights() == []
    nobody = KubernetesRequests(ClusterSettings(kubeconfig=bare_api.kubeconfig("nobody", [])))
    assert nobody.missing_rights() == [str(right) for right in REMEDIATION_RIGHTS]
    with pytest.raises(ClusterDenied):
        nobody.asked()
