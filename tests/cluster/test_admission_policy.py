"""The admission policy and a real API server: fencer's own writes pass. What is refused: test_account.py."""

from __future__ import annotations

import itertools
import time

import pytest
import yaml

from fencer.core import annotations as keys
from fencer.core.model import Binding, Cordon, FenceMark, GuestRef
from fencer.errors import ClusterDenied
from tests.cluster.conftest import ACCOUNT
from tests.cluster.guard import POLICY, PROBES, kubelet_sends, policies_in_force, refusal
from tests.support.backstage import NODES, PODS, ApiBackstage

GUEST = GuestRef("lab", "101", "6f1c0000-0000-4000-8000-0000000000e2", "k8s-4")
MARK = FenceMark("i-1", "2026-11-20T10:41:12Z", "boot-1", GUEST, "fencer@pve2")
CORDON = Cordon("unfence", "boot-2", "2026-11-20T10:55:00Z")
FENCE = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
DEDICATED = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def guarded(bare_api, token):
    """The API server with the policies in force, as they are for the time of this module."""
    with policies_in_force(bare_api):
        yield bare_api


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


def kubelet_refused(api, node, body, part=""):
    words = refusal(kubelet_sends(api, node, body, part))
    return words and words.partition("denied request: ")[2]


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
    account.taint(account.fact(node).node, MARK)
    cleared = {each.pod.name: each for each in (account.clear(pod, "off") for pod in account.pods(node))}
    assert cleared[f"{node}-done"].gone
    assert "example.com/hold" in cleared[f"{node}-held"].note
    backstage.send("PATCH", f"{PODS}/{node}-held", {"metadata": {"finalizers": None}})


def test_a_fence_goes_through_on_a_node_that_more_have_written_than_are_recorded(guarded, account, node):
    """Beyond ten the API server makes the oldest records into one, which nobody but itself may do.

    Those of the same second go by name: all of these before fencer.
    """
    for number in range(10):
        body = {"metadata": {"annotations": {f"example.com/{number}": "1"}}}
        ApiBackstage(guarded).send("PATCH", f"{NODES}/{node}?fieldManager=early-{number}", body)
    account.taint(account.fact(node).node, MARK)
    record = ApiBackstage(guarded).send("GET", f"{NODES}/{node}")["metadata"]["managedFields"]
    assert {"fencer", "ancient-changes"} <= {entry["manager"] for entry in record}
    account.untaint(account.fact(node).node, CORDON)
    account.uncordon(account.fact(node).node)
    assert not account.fact(node).node.unschedulable


def test_a_fence_takes_the_fields_over_that_it_writes(guarded, account, node):
    """From whoever applied or wrote them: their record loses them, and that is no forgery."""
    notes = dict.fromkeys([keys.BINDING, keys.MARK, keys.CORDON], "of another's")
    body = {"metadata": {"annotations": notes}, "spec": {"unschedulable": True, "taints": [DEDICATED]}}
    whole = {"apiVersion": "v1", "kind": "Node", **body}
    whole["metadata"] = {**body["metadata"], "name": node}
    path = f"{NODES}/{node}?fieldManager=gitops&force=true"
    assert guarded.request("PATCH", path, whole, content_type="application/apply-patch+yaml").status == 200
    ApiBackstage(guarded).send("PATCH", f"{NODES}/{node}", {"spec": {"unschedulable": None}})
    account.bind(account.fact(node).node, Binding(GUEST, ("boot-1",)))
    account.taint(account.fact(node).node, MARK)
    account.untaint(account.fact(node).node, CORDON)
    account.uncordon(account.fact(node).node)
    assert not account.fact(node).node.unschedulable


def test_fencer_lifts_its_own_cordon_from_a_node_without_any_record(guarded, account, node):
    ApiBackstage(guarded).forget_writers(node)
    account.taint(account.fact(node).node, MARK)
    account.untaint(account.fact(node).node, CORDON)
    cordoned = account.fact(node).node
    assert (cordoned.recorded, cordoned.cordoner) == (False, "")
    account.cordon(cordoned, CORDON)  # as a drain does that takes it over
    account.uncordon(account.fact(node).node)
    assert not account.fact(node).node.unschedulable


def test_other_accounts_are_not_looked_at(guarded, node, pod):
    backstage = ApiBackstage(guarded)
    backstage.send(
        "PATCH", f"{NODES}/{node}", {"metadata": {"labels": {"zone": "b"}}, "spec": {"taints": []}}
    )
    backstage.send("PATCH", f"{PODS}/{pod}/status", {"status": {"phase": "Unknown"}})
    backstage.send("DELETE", f"{PODS}/{pod}", {"gracePeriodSeconds": 0})


# -- what a kubelet must not do ---------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["", "/status"], ids=["node", "status"])
@pytest.mark.parametrize(
    "key",
    [
        *(keys.BINDING, keys.MARK, keys.DOUBTS, keys.INCIDENT, keys.APPROVED, keys.EXCLUDE, keys.PAUSE),
        "fencer.dev/later",
    ],
)
def test_a_kubelet_writes_nothing_in_fencers_name(guarded, node, part, key):
    words = f"a kubelet may not change {key}: that is for fencer and its operators"
    assert kubelet_refused(guarded, node, {"metadata": {"annotations": {key: "forged"}}}, part) == words
    ApiBackstage(guarded).send("PATCH", f"{NODES}/{node}", {"metadata": {"annotations": {key: "1"}}})
    assert kubelet_refused(guarded, node, {"metadata": {"annotations": {key: None}}}, part) == words


@pytest.mark.parametrize("part", ["", "/status"], ids=["node", "status"])
def test_a_kubelet_neither_excludes_its_node_by_medik8s_label_nor_includes_it(guarded, node, part):
    words = f"a kubelet may not change the label {keys.EXCLUDE_LABEL}: that is for operators"
    for value in ("true", None):
        labels = {"metadata": {"labels": {keys.EXCLUDE_LABEL: value}}}
        before = {"metadata": {"labels": {keys.EXCLUDE_LABEL: None if value else "true"}}}
        ApiBackstage(guarded).send("PATCH", f"{NODES}/{node}", before)
        assert kubelet_refused(guarded, node, labels, part) == words


def test_a_kubelet_makes_no_node_that_is_excluded(guarded):
    name = "excluded-by-its-kubelet"
    made = {"metadata": {"name": name, "labels": {keys.EXCLUDE_LABEL: "true"}}}
    groups = ("system:nodes", "system:authenticated")
    answer = guarded.request("POST", NODES, made, user=f"system:node:{name}", groups=groups)
    assert f"a kubelet may not change the label {keys.EXCLUDE_LABEL}" in answer.body["message"]


def test_a_fence_goes_through_where_a_kubelet_forged_a_long_record(guarded, patient_account, node):
    """The policy adds little to what such a record costs anyhow. Field by field it took ninefold."""
    backstage = ApiBackstage(guarded)
    keys_of = {**{f"f:{number}": {} for number in range(60_000)}, f"f:{keys.BINDING}": {}}
    entry = {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": "2020-01-01T00:00:00Z"}
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:annotations": keys_of}}}
    record = [*backstage.send("GET", f"{NODES}/{node}")["metadata"]["managedFields"], entry]
    forged, written = [], []
    for boot in ("boot-1", "boot-2", "boot-3"):
        began_s = time.monotonic()
        assert kubelet_refused(guarded, node, {"metadata": {"managedFields": record}}) is None
        forged.append(time.monotonic() - began_s)
        view = patient_account.fact(node).node
        began_s = time.monotonic()
        patient_account.bind(view, Binding(GUEST, (boot,)))
        written.append(time.monotonic() - began_s)
        assert patient_account.fact(node).node.binding is not None
    assert min(written) < 4 * min(forged)


@pytest.mark.parametrize("key", [keys.PAUSE, keys.EXCLUDE, keys.BINDING])
def test_a_kubelet_makes_no_node_with_fencers_words_on_it(guarded, key):
    """A kubelet registers its own Node, when there is none: after somebody has deleted it."""
    name = "made-by-its-kubelet"
    user = f"system:node:{name}"
    made = {"metadata": {"name": name, "annotations": {key: "forged"}}}
    groups = ("system:nodes", "system:authenticated")
    answer = guarded.request("POST", NODES, made, user=user, groups=groups)
    assert f"a kubelet may not change {key}" in answer.body["message"]
    del made["metadata"]["annotations"][key]
    answer = guarded.request("POST", f"{NODES}?dryRun=All", made, user=user, groups=groups)
    assert answer.status == 201, answer.body


@pytest.mark.parametrize("part", ["", "/status"], ids=["node", "status"])
@pytest.mark.parametrize(
    "notes",
    [
        {"example.com/a": "x" * 196_608},
        {"example.com/a": "\U0001f600" * 50_000},
        {f"example.com/{number}": "" for number in range(1000)},
    ],
    ids=["bytes", "wide characters", "number"],
)
def test_a_kubelet_leaves_room_for_a_fence(guarded, account, node, part, notes):
    """Beyond 262,144 bytes of annotations a Node takes no mark; thousands keep each write waiting."""
    words = kubelet_refused(guarded, node, {"metadata": {"annotations": notes}}, part)
    assert words is not None
    assert "may not fill the annotations of its node" in words
    fewer = {**dict(list(notes.items())[:900]), "example.com/a": "x" * 180_000}
    assert kubelet_refused(guarded, node, {"metadata": {"annotations": fewer}}, part) is None
    account.bind(account.fact(node).node, Binding(GUEST, ("boot-1",)))
    account.taint(account.fact(node).node, MARK)
    account.untaint(account.fact(node).node, None)


def test_a_kubelet_goes_on_where_others_filled_its_node(guarded, node):
    """It reports, and leaves the annotations as they are, or makes them fewer."""
    notes = {"example.com/a": "x" * 200_000}
    ApiBackstage(guarded).send("PATCH", f"{NODES}/{node}", {"metadata": {"annotations": notes}})
    seen = {"status": {"nodeInfo": {"bootID": "boot-2"}}}
    assert kubelet_refused(guarded, node, seen, "/status") is None
    for value, passes in (("x" * 199_999, True), ("x" * 200_000, False)):
        change = {"metadata": {"annotations": {"example.com/a": value}}}
        assert (kubelet_refused(guarded, node, change) is None) is passes


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
    conditions = {
        each["spec"]["matchConditions"][0]["expression"]
        for each in policies("ValidatingAdmissionPolicy")
        if each["metadata"]["name"] != "fencer-kubelets"
    }
    assert conditions == {f"request.userInfo.username == '{ACCOUNT}'"}


def test_every_policy_is_bound_and_denies_and_fails_closed():
    bound = {
        each["spec"]["policyName"]: each["spec"]["validationActions"]
        for each in policies("ValidatingAdmissionPolicyBinding")
    }
    closed = {
        each["metadata"]["name"]: each["spec"]["failurePolicy"]
        for each in policies("ValidatingAdmissionPolicy")
    }
    assert bound == {name: ["Deny"] for name in {*PROBES, "fencer-kubelets"}}
    assert closed == dict.fromkeys(bound, "Fail")


def policies(kind):
    return [one for one in yaml.safe_load_all(POLICY.read_text()) if one["kind"] == kind]
