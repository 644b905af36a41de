"""Evictions on a real API server, whose answers are what the rules were written for."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from fencer.cluster.eviction import KubernetesEvictor, answer_of, eviction
from fencer.cluster.kubernetes import KubernetesCluster
from fencer.cluster.settings import ClusterSettings
from fencer.core.model import PodView
from fencer.errors import ClusterProtocol, ClusterUnreachable
from fencer.evicting.answers import Meaning, understand
from tests.support.backstage import BUDGETS, PODS, ApiBackstage

POD = PodView("default", "db-0", "uid-1", "7", "Running")

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def evictor(bare_api):
    return KubernetesEvictor(ClusterSettings(kubeconfig=bare_api.kubeconfig()))


@pytest.fixture
def pod(bare_api):
    """A Running, Ready pod on a node of its own, as the port shows it."""
    backstage, name = ApiBackstage(bare_api), f"evicted-{next(_numbers)}"
    backstage.make_node(name)
    backstage.make_pod(name, name)
    backstage.send("PATCH", f"{PODS}/{name}", {"metadata": {"labels": {"app": name}}})
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    backstage.send("PATCH", f"{PODS}/{name}/status", {"status": ready})
    cluster = KubernetesCluster(ClusterSettings(kubeconfig=bare_api.kubeconfig()))
    (found,) = cluster.pods(name)
    return found


def make_budget(api, pod, name, *, allowed=0, counted=True):
    """Guard a pod; no controller runs here, so the count is what the test says."""
    backstage = ApiBackstage(api)
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": pod.name}}}
    made = backstage.send("POST", BUDGETS, {"metadata": {"name": name}, "spec": spec})
    made["status"] = {
        "observedGeneration": made["metadata"]["generation"] if counted else 0,
        "disruptionsAllowed": allowed,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
    }
    backstage.send("PUT", f"{BUDGETS}/{name}/status", made)


def phase_of(api, pod):
    """Return the deletion mark and the grace that a pod has now."""
    meta = ApiBackstage(api).send("GET", f"{PODS}/{pod.name}")["metadata"]
    return "deletionTimestamp" in meta, meta.get("deletionGracePeriodSeconds")


def test_an_eviction_marks_the_pod_for_deletion_with_its_own_grace_or_ours(bare_api, evictor, pod):
    assert understand(evictor.evict(pod)).meaning is Meaning.GOING
    assert phase_of(bare_api, pod) == (True, 30)
    assert understand(evictor.evict(pod, 5)).meaning is Meaning.GOING
    assert phase_of(bare_api, pod) == (True, 5)


def test_a_pod_that_is_gone_is_gone(bare_api, evictor, pod):
    ApiBackstage(bare_api).drop_pod(pod.name)
    assert understand(evictor.evict(pod)).meaning is Meaning.GONE


def test_another_pod_of_that_name_is_left_alone(bare_api, evictor, pod):
    reply = understand(evictor.evict(replace(pod, uid="another")))
    assert (reply.meaning, reply.retry_s is not None) == (Meaning.PASSING, True)
    assert phase_of(bare_api, pod) == (False, None)


def test_a_budget_that_allows_nothing_is_named(bare_api, evictor, pod):
    make_budget(bare_api, pod, f"none-{pod.name}")
    reply = understand(evictor.evict(pod))
    assert (reply.meaning, reply.budget) == (Meaning.BUDGET, f"none-{pod.name}")
    assert phase_of(bare_api, pod) == (False, None)


def test_a_budget_that_is_not_counted_yet_says_when_to_ask_again(bare_api, evictor, pod):
    make_budget(bare_api, pod, f"new-{pod.name}", allowed=1, counted=False)
    answer = evictor.evict(pod)
    assert answer.retry_after_s is not None
    reply = understand(answer)
    assert (reply.meaning, reply.budget) == (Meaning.BUDGET, f"new-{pod.name}")
    assert reply.retry_s >= answer.retry_after_s


def test_two_budgets_on_one_pod_never_let_it_go(bare_api, evictor, pod):
    for name in ("one", "two"):
        make_budget(bare_api, pod, f"{name}-{pod.name}", allowed=1)
    assert understand(evictor.evict(pod)).meaning is Meaning.NEVER


def test_a_budget_is_used_up_by_the_pod_that_it_lets_go(bare_api, evictor, pod):
    make_budget(bare_api, pod, f"once-{pod.name}", allowed=1)
    assert understand(evictor.evict(pod)).meaning is Meaning.GOING
    status = ApiBackstage(bare_api).send("GET", f"{BUDGETS}/once-{pod.name}")["status"]
    assert status["disruptionsAllowed"] == 0


def test_a_namespace_that_is_being_deleted_is_told_from_a_missing_right(bare_api, evictor):
    """The API refuses both with 403."""
    nobody = KubernetesEvictor(ClusterSettings(kubeconfig=bare_api.kubeconfig("nobody", [])))
    reply = understand(nobody.evict(POD))
    assert (reply.meaning, "pods/eviction" in reply.text) == (Meaning.NEVER, True)
    assert nobody.missing_drain_rights() == ["create pods/eviction"]
    assert evictor.missing_drain_rights() == []


def test_pods_of_a_namespace(evictor, pod):
    found = {one.name: one for one in evictor.pods_in("default")}
    assert found[pod.name].ready
    assert evictor.pods_in("kube-node-lease") == []


# -- without a server ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["..", "a/b", "", "A"])
def test_odd_names_are_not_sent(evictor, name):
    for namespace, pod_name in ((name, "db-0"), ("default", name)):
        with pytest.raises(ClusterProtocol):
            evictor.evict(PodView(namespace, pod_name, "u", "1", "Running"))
    with pytest.raises(ClusterProtocol):
        evictor.pods_in(name)


def test_nobody_there_is_no_answer_and_not_a_refusal(tmp_path, bare_api):
    text = bare_api.kubeconfig().read_text().replace(bare_api.url, "https://127.0.0.1:1")
    (tmp_path / "kubeconfig").write_text(text)
    evictor = KubernetesEvictor(ClusterSettings(kubeconfig=tmp_path / "kubeconfig"))
    with pytest.raises(ClusterUnreachable):
        evictor.evict(POD)


def test_grace_is_only_named_where_it_was_asked_for():
    assert eviction(POD, None)["deleteOptions"] == {"preconditions": {"uid": "uid-1"}}
    assert eviction(POD, 0.0)["deleteOptions"]["gracePeriodSeconds"] == 0


@pytest.mark.parametrize("body", [None, b"<html>", b"", "[1]", {"message": 7}, {"details": {"causes": [1]}}])
@pytest.mark.parametrize("header", [None, "soon", "nan", "inf", "-1", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_whatever_the_body_the_status_is_read(body, header):
    answer = answer_of(503, body, header)
    assert (answer.status, answer.retry_after_s) == (503, None)
