"""The admission policy and a real API server: fencer's own writes pass, all others are refused by name."""

from __future__ import annotations

import itertools

import pytest
import yaml

from fencer.core import annotations as keys
from fencer.core.model import Binding, Cordon, FenceMark, GuestRef
from fencer.errors import ClusterDenied
from tests.cluster.conftest import ACCOUNT, MANIFESTS, apply, collection_of
from tests.support import wait_until
from tests.support.backstage import MERGE, NODES, PODS, ApiBackstage

POLICY = MANIFESTS / "admission-policy.yaml"
GROUPS = ("system:serviceaccounts", "system:serviceaccounts:fencer")
GUEST = GuestRef("lab", "101", "6f1c0000-0000-4000-8000-0000000000e2", "k8s-4")
MARK = FenceMark("i-1", "2026-11-20T10:41:12Z", "boot-1", GUEST, "fencer@pve2")
CORDON = Cordon("unfence", "boot-2", "2026-11-20T10:55:00Z")
FENCE = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
MARKED = {keys.MARK: "{}"}
DEDICATED = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def guarded(bare_api, token):
    """The API server with the policy in force, as it is for the time of this module."""
    backstage = ApiBackstage(bare_api)
    apply(backstage, POLICY)
    backstage.make_node("probe")
    backstage.make_pod("probe", "probe")
    wait_until(lambda: all(probe(bare_api) for probe in PROBES), "refusal of each policy")
    yield bare_api
    for document in yaml.safe_load_all(POLICY.read_text()):
        backstage.send("DELETE", f"{collection_of(document)}/{document['metadata']['name']}")
    # They are read anew once a second: what other modules write shall not meet them.
    wait_until(lambda: not any(probe(bare_api) for probe in PROBES), "end of the policies")
    backstage.drop_pod("probe")
    backstage.drop_node("probe")


# Until the policies are in force a probe passes, so each is a dry run. For a DELETE it has to be in the body,
# whose options win over the query's; and a deletion that changes nothing of one under way meets no policy.
# Source: apiserver pkg/endpoints/handlers/delete.go, DeleteResource;
# pkg/registry/generic/registry/store.go, Delete.
PROBES = (
    lambda api: refusal(api, "PATCH", f"{NODES}/probe?dryRun=All", {"metadata": {"labels": {"a": "b"}}}),
    lambda api: refusal(api, "PATCH", f"{PODS}/probe/status?dryRun=All", {"status": {"phase": "Unknown"}}),
    lambda api: refusal(api, "DELETE", f"{PODS}/probe", {"dryRun": ["All"]}),
    lambda api: kubelet_refused(api, "probe", {"metadata": {"annotations": MARKED}}, "?dryRun=All"),
)


@pytest.fixture
def node(guarded):
    """A node with a taint, a label and an annotation of others."""
    backstage, name = ApiBackstage(guarded), f"guarded-{next(_numbers)}"
    backstage.make_node(name)
    metadata = {"labels": {"zone": "a"}, "annotations": {"example.com/theirs": "1"}}
    backstage.send("PATCH", f"{NODES}/{name}", {"metadata": metadata, "spec": {"taints": [DEDICATED]}})
    return name


@pytest.fixture
def pod(guarded, node):
    name = f"{node}-pod"
    ApiBackstage(guarded).make_pod(node, name)
    return name


def refusal(api, method, path, body, *, user=ACCOUNT, groups=GROUPS):
    """Send a write, as fencer's account; return the policy's words, or None if it went through."""
    kind = MERGE if method == "PATCH" else "application/json"
    answer = api.request(method, path, body, user=user, groups=groups, content_type=kind)
    if answer.status == 403 and "ValidatingAdmissionPolicy" in answer.body["message"]:
        return answer.body["message"].partition("denied request: ")[2]
    assert answer.status < 300, f"{method} {path}: {answer.status} {answer.body}"
    return None


def kubelet_refused(api, node, body, part=""):
    """Send a change of a Node as its own kubelet. That of others NodeRestriction refuses."""
    groups = ("system:nodes", "system:masters")  # it may do all that admission lets pass
    return refusal(api, "PATCH", f"{NODES}/{node}{part}", body, user=f"system:node:{node}", groups=groups)


# -- what fencer does -------------------------------------------------------------------------------------


def test_every_write_of_a_fence_and_of_a_drain_and_their_ends_passes(guarded, account, node, pod):
    account.bind(account.fact(node).node, Binding(GUEST, ("boot-1",)))
    account.bind(account.fact(node).node, Binding(GUEST, ("boot-1", "boot-2")))
    account.claim(account.fact(node).node, "i-1", "fencer")
    account.taint(account.fact(node).node, MARK)
    (view,) = account.pods(node)
    assert account.clear(view, "guest stopped").gone
    account.untaint(account.fact(node).node, CORDON)
    account.uncordon(account.fact(node).node)
    account.cordon(account.fact(node).node, Cordon("drain", "boot-2", "2026-11-20T10:56:00Z"))
    account.uncordon(account.fact(node).node)
    after = account.fact(node).node
    assert (after.mark, after.cordon, after.unschedulable) == (None, None, False)
    assert [taint.key for taint in after.taints] == ["dedicated"]


def test_a_fence_is_lifted_from_a_node_that_an_admin_had_cordoned(guarded, account, node):
    ApiBackstage(guarded).send("PATCH", f"{NODES}/{node}", {"spec": {"unschedulable": True}})
    account.taint(account.fact(node).node, MARK)
    account.untaint(account.fact(node).node, None)
    assert account.fact(node).node.unschedulable


def test_the_mark_of_a_fence_that_an_operator_took_off_is_forgotten(guarded, account, node):
    account.taint(account.fact(node).node, MARK)
    ApiBackstage(guarded).send("PATCH", f"{NODES}/{node}", {"spec": {"taints": [DEDICATED]}})
    account.forget_mark(account.fact(node).node)
    assert account.fact(node).node.mark is None


def test_an_admins_taint_of_another_effect_stays_in_the_way_of_nothing(guarded, account, node):
    theirs = {**FENCE, "value": "maintenance", "effect": "NoSchedule"}
    ApiBackstage(guarded).send("PATCH", f"{NODES}/{node}", {"spec": {"taints": [theirs]}})
    account.taint(account.fact(node).node, MARK)
    account.untaint(account.fact(node).node, None)
    assert [taint.value for taint in account.fact(node).node.taints] == ["maintenance"]


def test_a_finished_pod_and_one_with_finalizers_are_cleared(guarded, account, node):
    backstage = ApiBackstage(guarded)
    backstage.make_pod(node, f"{node}-done")
    backstage.send("PATCH", f"{PODS}/{node}-done/status", {"status": {"phase": "Succeeded"}})
    backstage.make_pod(node, f"{node}-held", finalizers=["example.com/hold"])
    cleared = {each.pod.name: each for each in (account.clear(pod, "off") for pod in account.pods(node))}
    assert cleared[f"{node}-done"].gone
    assert "example.com/hold" in cleared[f"{node}-held"].note
    backstage.send("PATCH", f"{PODS}/{node}-held", {"metadata": {"finalizers": None}})


def test_other_accounts_are_not_looked_at(guarded, node, pod):
    backstage = ApiBackstage(guarded)
    backstage.send(
        "PATCH", f"{NODES}/{node}", {"metadata": {"labels": {"zone": "b"}}, "spec": {"taints": []}}
    )
    backstage.send("PATCH", f"{PODS}/{pod}/status", {"status": {"phase": "Unknown"}})
    backstage.send("DELETE", f"{PODS}/{pod}", {"gracePeriodSeconds": 0})


# -- what it must not do ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"metadata": {"labels": {"zone": "b"}}}, "may not change metadata.labels"),
        ({"metadata": {"labels": {"zone": None}}}, "may not change metadata.labels"),
        ({"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}, "metadata.labels"),
        ({"metadata": {"finalizers": ["example.com/hold"]}}, "metadata.finalizers"),
        (
            {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}},
            "metadata.ownerReferences",
        ),
        ({"metadata": {"annotations": {"example.com/theirs": "2"}}}, "annotation example.com/theirs"),
        ({"metadata": {"annotations": {"example.com/theirs": None}}}, "annotation example.com/theirs"),
        ({"metadata": {"annotations": {"example.com/new": "1"}}}, "annotation example.com/new"),
        ({"metadata": {"annotations": {"xfencer.dev/mark": "1"}}}, "annotation xfencer.dev/mark"),
        ({"metadata": {"annotations": {keys.EXCLUDE: "true"}}}, "annotation fencer.dev/exclude"),
        ({"spec": {"providerID": "proxmox://home/666"}}, "may not change spec.providerID"),
        ({"spec": {"podCIDR": "10.9.0.0/24", "podCIDRs": ["10.9.0.0/24"]}}, "spec.podCIDR"),
        ({"spec": {"taints": []}}, "any taint but node.kubernetes.io/out-of-service"),
        ({"spec": {"taints": [{**DEDICATED, "value": "web"}]}}, "any taint but"),
        ({"spec": {"taints": [DEDICATED, {"key": "evil", "effect": "NoExecute"}]}}, "any taint but"),
        (
            {"metadata": {"annotations": MARKED}, "spec": {"taints": [FENCE]}},
            "any taint but node.kubernetes.io/out-of-service",
        ),
        (
            {
                "metadata": {"annotations": MARKED},
                "spec": {"taints": [DEDICATED, {**FENCE, "effect": "NoSchedule"}]},
            },
            "any taint but node.kubernetes.io/out-of-service:NoExecute",
        ),
        ({"spec": {"taints": [DEDICATED, FENCE]}}, "without its mark (fencer.dev/mark)"),
        ({"spec": {"unschedulable": True}}, "may not cordon a node without saying so"),
    ],
)
def test_nothing_else_of_a_node_changes(guarded, node, body, words):
    before = ApiBackstage(guarded).send("GET", f"{NODES}/{node}")
    assert words in refusal(guarded, "PATCH", f"{NODES}/{node}", body)
    assert ApiBackstage(guarded).send("GET", f"{NODES}/{node}") == before


def test_a_taint_without_our_mark_is_an_admins(guarded, node):
    ApiBackstage(guarded).send("PATCH", f"{NODES}/{node}", {"spec": {"taints": [DEDICATED, FENCE]}})
    words = refusal(guarded, "PATCH", f"{NODES}/{node}", {"spec": {"taints": [DEDICATED]}})
    assert "does not bear its mark" in words


def test_a_cordon_without_our_annotation_is_an_admins(guarded, node):
    ApiBackstage(guarded).send("PATCH", f"{NODES}/{node}", {"spec": {"unschedulable": True}})
    words = refusal(guarded, "PATCH", f"{NODES}/{node}", {"spec": {"unschedulable": None}})
    assert "a cordon that is not its own" in words


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"status": {"phase": "Succeeded"}}, "to Failed and to nothing else"),
        ({"status": {"message": "a note"}}, "may not change status.message"),
        (
            {"status": {"phase": "Failed", "podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.9"}]}},
            "status.podIP",
        ),
        (
            {"status": {"phase": "Failed", "conditions": [{"type": "Ready", "status": "True"}]}},
            "any condition of a pod but DisruptionTarget",
        ),
        ({"metadata": {"labels": {"app": "stolen"}}, "status": {"phase": "Failed"}}, "metadata.labels"),
        ({"metadata": {"annotations": {"a": "b"}}, "status": {"phase": "Failed"}}, "metadata.annotations"),
    ],
)
def test_nothing_else_of_a_pods_status_changes(guarded, pod, body, words):
    before = ApiBackstage(guarded).send("GET", f"{PODS}/{pod}")
    assert words in refusal(guarded, "PATCH", f"{PODS}/{pod}/status", body)
    assert ApiBackstage(guarded).send("GET", f"{PODS}/{pod}") == before


def test_finalizers_of_a_pod_are_out_of_reach(guarded, node):
    backstage, name = ApiBackstage(guarded), f"{node}-held"
    backstage.make_pod(node, name, finalizers=["example.com/hold"])
    body = {"metadata": {"finalizers": None}, "status": {"phase": "Failed"}}
    assert "metadata.finalizers" in refusal(guarded, "PATCH", f"{PODS}/{name}/status", body)
    assert backstage.send("GET", f"{PODS}/{name}")["metadata"]["finalizers"] == ["example.com/hold"]
    backstage.drop_pod(name)


def test_a_pod_that_waits_for_a_node_cannot_be_failed(guarded):
    backstage, name = ApiBackstage(guarded), f"unbound-{next(_numbers)}"
    spec = {"containers": [{"name": "main", "image": "none"}]}
    backstage.send("POST", PODS, {"metadata": {"name": name}, "spec": spec})
    words = refusal(guarded, "PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Failed"}})
    assert "bound to no node" in words
    backstage.drop_pod(name)


def test_a_living_pod_is_not_deleted(guarded, pod):
    uid = ApiBackstage(guarded).send("GET", f"{PODS}/{pod}")["metadata"]["uid"]
    body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
    assert "before its phase is Failed" in refusal(guarded, "DELETE", f"{PODS}/{pod}", body)


def test_a_pod_that_is_being_deleted_is_not_ended_before_it_was_failed(guarded, pod):
    backstage = ApiBackstage(guarded)
    backstage.send("DELETE", f"{PODS}/{pod}", {"gracePeriodSeconds": 30})
    uid = backstage.send("GET", f"{PODS}/{pod}")["metadata"]["uid"]
    body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
    assert "before its phase is Failed" in refusal(guarded, "DELETE", f"{PODS}/{pod}", body)


def test_a_mirror_pod_is_not_deleted(guarded, node):
    backstage, name = ApiBackstage(guarded), f"{node}-mirror"
    backstage.make_pod(node, name, mirror=True)
    backstage.send("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Failed"}})
    uid = backstage.send("GET", f"{PODS}/{name}")["metadata"]["uid"]
    body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
    assert "a mirror pod" in refusal(guarded, "DELETE", f"{PODS}/{name}", body)
    backstage.drop_pod(name)


def test_a_deletion_that_names_no_uid_is_refused(guarded, node):
    backstage, name = ApiBackstage(guarded), f"{node}-done"
    backstage.make_pod(node, name)
    backstage.send("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Succeeded"}})
    assert "without naming the UID" in refusal(guarded, "DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})


# -- what a kubelet must not do ---------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["", "/status"], ids=["node", "status"])
@pytest.mark.parametrize(
    "key", [keys.BINDING, keys.MARK, keys.DOUBTS, keys.INCIDENT, keys.EXCLUDE, "fencer.dev/later"]
)
def test_a_kubelet_writes_nothing_in_fencers_name(guarded, node, part, key):
    words = f"a kubelet may not change {key}, which is fencer's"
    assert kubelet_refused(guarded, node, {"metadata": {"annotations": {key: "forged"}}}, part) == words
    ApiBackstage(guarded).send("PATCH", f"{NODES}/{node}", {"metadata": {"annotations": {key: "1"}}})
    assert kubelet_refused(guarded, node, {"metadata": {"annotations": {key: None}}}, part) == words


def test_whatever_else_a_kubelet_does_passes(guarded, node):
    """Its status, its own annotations, and the cordon of the part of fencer that works with its rights."""
    notes = {"volumes.kubernetes.io/controller-managed-attach-detach": "true", keys.CORDON: "{}"}
    assert kubelet_refused(guarded, node, {"metadata": {"annotations": notes}}) is None
    seen = {"status": {"nodeInfo": {"bootID": "boot-2"}}}
    assert kubelet_refused(guarded, node, seen, "/status") is None


# -- what fencer says of it -------------------------------------------------------------------------------


def test_fencer_tells_which_policy_refused_and_why(guarded, account, node):
    """An operator who tightened the policy must read so in fencer's own error."""
    ApiBackstage(guarded).send("PATCH", f"{NODES}/{node}", {"spec": {"unschedulable": True}})
    with pytest.raises(ClusterDenied, match=r"'fencer-nodes' .* a cordon that is not its own"):
        account.uncordon(account.fact(node).node)


def test_the_policy_names_the_account_of_the_manifest_in_every_part():
    policies = [each for each in yaml.safe_load_all(POLICY.read_text()) if each["kind"].endswith("Policy")]
    conditions = {
        each["spec"]["matchConditions"][0]["expression"]
        for each in policies
        if each["metadata"]["name"] != "fencer-kubelets"
    }
    assert conditions == {f"request.userInfo.username == '{ACCOUNT}'"}


def test_every_policy_is_bound_and_denies():
    documents = list(yaml.safe_load_all(POLICY.read_text()))
    bound = {
        each["spec"]["policyName"]: each["spec"]["validationActions"]
        for each in documents
        if each["kind"].endswith("Binding")
    }
    names = {each["metadata"]["name"] for each in documents if each["kind"].endswith("Policy")}
    assert bound == {name: ["Deny"] for name in names}
