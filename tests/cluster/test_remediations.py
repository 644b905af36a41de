"""Requests of other controllers: what is read of odd ones, and what is asked how often."""

from __future__ import annotations

from copy import deepcopy
from datetime import timedelta

import pytest

from fencer.cluster.machines import AGAIN_S, MOST_AT_ONCE
from fencer.cluster.remediation_parse import (
    FINALIZER,
    LONGEST_MESSAGE,
    Identity,
    adopted,
    answered,
    released,
    remediation,
    reservation,
)
from fencer.cluster.remediations import UNKNOWN_S, KubernetesRequests
from fencer.cluster.settings import ClusterSettings
from fencer.core.requests import Progress, Strategy
from fencer.core.times import parse_utc, write_utc
from fencer.errors import ClusterDenied, ClusterError, ClusterProtocol, ClusterUnreachable
from fencer.simulation.clock import VirtualClock
from tests.cluster.conftest import write_kubeconfig
from tests.cluster.standin import DATE_UTC, answer, hang_up, in_turn, routes, status

NODE_NAME = "remediation.medik8s.io/node-name"
HEALTH_CHECK = {
    "apiVersion": "remediation.medik8s.io/v1alpha1",
    "kind": "NodeHealthCheck",
    "name": "workers",
    "uid": "u-nhc",
    "controller": False,
}
MACHINE = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "m-1", "uid": "u-m"}
REQUEST = {
    "apiVersion": "remediation.fencer.dev/v1alpha1",
    "kind": "FencerRemediation",
    "metadata": {
        "name": "k8s-3-abcde",
        "namespace": "medik8s",
        "uid": "u-1",
        "resourceVersion": "7",
        "generation": 2,
        "annotations": {NODE_NAME: "k8s-3", "remediation.medik8s.io/template-name": "prove"},
        "labels": {"app.kubernetes.io/part-of": "node-healthcheck-controller"},
        "ownerReferences": [HEALTH_CHECK],
    },
    "spec": {"strategy": "prove"},
}
"""As NodeHealthCheck 0.12 makes one."""
UTC = "2026-11-20T10:41:12Z"


def changed(**metadata):
    """That request with other metadata."""
    return {**REQUEST, "metadata": {**REQUEST["metadata"], **metadata}}


# -- what is read -----------------------------------------------------------------------------------------


def test_a_request_of_a_health_check():
    read = remediation(REQUEST)
    request = read.request
    assert (request.namespace, request.name, request.uid, request.version) == (
        "medik8s",
        "k8s-3-abcde",
        "u-1",
        "7",
    )
    assert (request.node, request.strategy, request.asked_by) == (
        "k8s-3",
        Strategy.PROVE,
        "NodeHealthCheck workers",
    )
    assert read.machine is None
    assert request.live


@pytest.mark.parametrize(
    ("metadata", "node", "machine", "problem"),
    [
        ({"annotations": {NODE_NAME: "k8s-9"}, "ownerReferences": [MACHINE]}, "k8s-9", None, ""),
        ({"annotations": None}, "k8s-3-abcde", None, ""),
        ({"annotations": {NODE_NAME: ""}}, "k8s-3-abcde", None, ""),
        ({"annotations": None, "ownerReferences": None}, "k8s-3-abcde", None, ""),
        ({"annotations": None, "ownerReferences": [MACHINE]}, "", "m-1", ""),
        ({"annotations": None, "ownerReferences": [HEALTH_CHECK, MACHINE]}, "", "m-1", ""),
        (
            {"annotations": {NODE_NAME: "../namespaces"}},
            "",
            None,
            "remediation.medik8s.io/node-name: '../namespaces' cannot be the name of a node",
        ),
        (
            {
                "annotations": None,
                "ownerReferences": [{**MACHINE, "apiVersion": "machine.openshift.io/v1beta1"}],
            },
            "",
            None,
            "it belongs to Machine m-1, and does not say which node is meant",
        ),
        (
            {"annotations": None, "ownerReferences": [{**HEALTH_CHECK, "apiVersion": "v1"}]},
            "",
            None,
            "it belongs to NodeHealthCheck workers, and does not say",
        ),
        (
            {"annotations": None, "ownerReferences": [{**MACHINE, "kind": "\x1b[0m", "name": "a\nb" * 999}]},
            "",
            None,
            "it belongs to '\\x1b[0m' 'a\\nba",
        ),
    ],
    ids=range(10),
)
def test_which_node_is_meant(metadata, node, machine, problem):
    read = remediation(changed(**metadata))
    assert read.request.node == node
    assert (read.machine and read.machine.name) == machine
    assert read.request.problem.startswith(problem)
    assert bool(read.request.problem) is bool(problem)
    assert not read.request.waits
    assert len(read.request.problem) < 400
    assert f"{read.request.problem}{read.request.asked_by}".isprintable()


def test_what_a_request_may_not_ask_for_is_told_with_its_node():
    request = remediation({**REQUEST, "spec": {"strategy": "reboot"}}).request
    assert (request.node, request.live) == ("k8s-3", False)
    assert request.problem == "spec.strategy: 'reboot' is not prove or stop"
    both = remediation({**changed(annotations={NODE_NAME: "A b"}), "spec": {"strategy": "x"}}).request
    assert both.problem.count("; ") == 1


@pytest.mark.parametrize(
    ("spec", "strategy"), [({"strategy": "stop"}, "stop"), ({}, "prove"), (None, "prove")], ids=str
)
def test_how_far_it_goes(spec, strategy):
    assert remediation({**REQUEST, "spec": spec}).request.strategy == strategy


def test_what_its_owner_and_fencer_have_noted():
    noted = changed(
        annotations={NODE_NAME: "k8s-3", "remediation.medik8s.io/nhc-timed-out": ""},
        deletionTimestamp=UTC,
        finalizers=["a.b/c", FINALIZER],
    )
    request = remediation(noted).request
    assert (request.given_up, request.deleting, request.adopted) == (True, True, True)


def condition(kind, status, reason="R"):
    return {"type": kind, "status": status, "reason": reason, "message": "m", "lastTransitionTime": UTC}


@pytest.mark.parametrize(
    ("processing", "succeeded", "told"),
    [
        ("True", "Unknown", Progress(None, "Why")),
        ("False", "True", Progress(True, "Why")),
        ("False", "False", Progress(False, "Why")),
        ("True", "True", None),
        ("True", "False", None),
        ("False", "Unknown", None),
        ("Unknown", "Unknown", None),
        ("True", "", None),
    ],
)
def test_both_conditions_together_say_what_became_of_it(processing, succeeded, told):
    conditions = [condition("Processing", processing), condition("Succeeded", succeeded, "Why")]
    assert remediation({**REQUEST, "status": {"conditions": conditions}}).request.told == told
    for alone in conditions:
        assert remediation({**REQUEST, "status": {"conditions": [alone]}}).request.told is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"metadata": None}, "metadata.namespace is missing"),
        ({"metadata": "x"}, "metadata: expected an object"),
        ({"metadata": {**REQUEST["metadata"], "uid": ""}}, "metadata.uid is missing"),
        ({"metadata": {**REQUEST["metadata"], "resourceVersion": 7}}, "resourceVersion: expected text"),
        ({"metadata": {**REQUEST["metadata"], "annotations": [1]}}, "annotations: expected an object"),
        ({"metadata": {**REQUEST["metadata"], "annotations": {"a": 1}}}, "expected text, not 1"),
        ({"metadata": {**REQUEST["metadata"], "finalizers": [1]}}, r"finalizers\[\]: expected text"),
        ({"metadata": {**REQUEST["metadata"], "finalizers": "x"}}, "finalizers: expected a list"),
        ({"metadata": {**REQUEST["metadata"], "ownerReferences": {}}}, "ownerReferences: expected a list"),
        ({"metadata": {**REQUEST["metadata"], "ownerReferences": ["x"]}}, "expected an object"),
        ({"metadata": {**REQUEST["metadata"], "ownerReferences": [{}]}}, "apiVersion is missing"),
        ({"spec": ["x"]}, "spec: expected an object"),
        ({"spec": {"strategy": 1}}, "spec.strategy: expected text"),
        ({"status": {"conditions": {}}}, "status.conditions: expected a list"),
        ({"status": {"conditions": [7]}}, "expected an object"),
        ({"status": {"conditions": [{"type": {}}]}}, "type: expected text"),
        ({"status": True}, "status: expected an object"),
    ],
    ids=range(17),
)
def test_what_is_odd_is_refused_by_the_field(change, words):
    with pytest.raises(ClusterProtocol, match=words) as caught:
        remediation({**REQUEST, **change})
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("data", [None, 7, "x", [], [REQUEST], {}, True])
def test_any_json_is_a_request_or_an_error_of_ours(data):
    with pytest.raises(ClusterProtocol):
        remediation(data)


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        (("proxmox://1", ""), ("proxmox://1", "x"), True),
        (("proxmox://1", "AB"), ("proxmox://2", "ab"), True),
        (("proxmox://1", "ab"), ("proxmox://2", "cd"), False),
        (("Proxmox://1", ""), ("proxmox://1", ""), False),
        (("", ""), ("", ""), False),
    ],
)
def test_one_machine_has_one_of_two_names_in_common(ours, theirs, same):
    assert Identity(*ours).same(Identity(*theirs)) is same
    assert Identity(*theirs).same(Identity(*ours)) is same


LEASE = {
    "holderIdentity": "NodeHealthCheck-workers",
    "leaseDurationSeconds": 600,
    "renewTime": "2026-11-20T10:40:00.000000Z",
}


@pytest.mark.parametrize(
    ("name", "spec", "held"),
    [
        ("node-k8s-3", {}, True),
        ("node-k8s-3", {"renewTime": "2026-11-20T10:31:12.000000Z"}, True),
        ("node-k8s-3", {"renewTime": "2026-11-20T10:31:11.900000Z"}, False),
        ("node-k8s-3", {"renewTime": "2026-11-20T10:31:11.900000Z", "acquireTime": UTC}, False),
        ("node-k8s-3", {"renewTime": None, "acquireTime": UTC}, True),
        ("node-k8s-3", {"renewTime": None}, False),
        ("node-k8s-3", {"renewTime": "nonsense"}, False),
        ("node-k8s-3", {"renewTime": "2027-01-01T00:00:00.000000Z"}, True),
        ("node-k8s-3", {"leaseDurationSeconds": None}, False),
        ("node-k8s-3", {"holderIdentity": ""}, False),
        ("machine-k8s-3", {}, False),
    ],
)
def test_a_lease_is_held_while_it_lasts(name, spec, held):
    lease = {"metadata": {"name": name}, "spec": {**LEASE, **spec}}
    assert reservation(lease, UTC) == (("k8s-3", "NodeHealthCheck-workers") if held else None)


# -- what is written --------------------------------------------------------------------------------------


def test_other_finalizers_stay_in_their_order():
    live = changed(finalizers=["a.b/c", "d.e/f"])
    guard = {"uid": "u-1", "resourceVersion": "7"}
    assert adopted(live) == {"metadata": {**guard, "finalizers": ["a.b/c", "d.e/f", FINALIZER]}}
    kept = changed(finalizers=["a.b/c", FINALIZER, "d.e/f"])
    assert released(kept) == {"metadata": {**guard, "finalizers": ["a.b/c", "d.e/f"]}}


def test_a_time_of_a_condition_is_that_of_its_last_change():
    before = [condition("Theirs", "True"), condition("Processing", "True"), condition("Succeeded", "Unknown")]
    live = {**deepcopy(REQUEST), "status": {"conditions": before}}
    body = answered(live, Progress(False, "GuestRunning", "é" * 40_000), "2026-11-20T11:00:00Z")
    theirs, processing, succeeded = body["status"]["conditions"]
    assert theirs == before[0]
    assert (processing["status"], processing["lastTransitionTime"]) == ("False", "2026-11-20T11:00:00Z")
    assert (succeeded["status"], succeeded["observedGeneration"]) == ("False", 2)
    assert len(succeeded["message"]) == LONGEST_MESSAGE
    again = answered(live, Progress(None, "Waits"), "2026-11-20T11:00:00Z")["status"]["conditions"]
    assert [each["lastTransitionTime"] for each in again] == [UTC] * 3


# -- over the wire ----------------------------------------------------------------------------------------

KINDS = {"kind": "APIResourceList", "resources": [{"name": "x", "kind": "FencerRemediation"}]}
NOTHING = {"kind": "FencerRemediationList", "items": []}
NO_LEASES = answer({"kind": "LeaseList", "items": []})


def listed(*items):
    return {"kind": "FencerRemediationList", "metadata": {"resourceVersion": "9"}, "items": list(items)}


def of_machine(number):
    owner = {**MACHINE, "name": f"m-{number}", "uid": f"u-m-{number}"}
    return changed(name=f"m-{number}", uid=f"u-{number}", annotations=None, ownerReferences=[owner])


def machine(number, **more):
    metadata = {"name": f"m-{number}", "namespace": "medik8s", "uid": f"u-m-{number}"}
    status = {"nodeRef": {"name": f"k8s-{number}"}}
    return {
        "kind": "Machine",
        "metadata": metadata,
        "spec": {"providerID": "p://1"},
        "status": status,
        **more,
    }


def node(number, provider_id="p://1"):
    return {"kind": "Node", "metadata": {"name": f"k8s-{number}"}, "spec": {"providerID": provider_id}}


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def asks(stand_in, tmp_path, clock):
    """Build the adapter before a server that answers so; return both."""

    def build(found=NOTHING, leases=NO_LEASES, **others):
        server = stand_in(
            routes(
                {
                    "/v1alpha1": answer(KINDS),
                    "/fencerremediations": found if callable(found) else answer(found),
                    "/leases": leases,
                    **{f"/{path.replace('_', '-')}": each for path, each in others.items()},
                }
            )
        )
        kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", server.url)
        settings = ClusterSettings(kubeconfig, unauthenticated=True)
        return KubernetesRequests(settings, sleep=lambda _s: None, now_s=clock.now_s), server

    return build


def count(server, ending):
    return sum(path.endswith(ending) for _, path in server.asked)


def test_one_that_cannot_be_read_hides_no_other(asks):
    odd = {**REQUEST, "spec": {"strategy": 7}}
    requests, _ = asks(listed(odd, REQUEST, None))
    asked = requests.asked()
    assert [each.node for each in asked.requests] == ["k8s-3"]
    first, second = asked.malformed
    assert first == "remediation medik8s/k8s-3-abcde: spec.strategy: expected text, not 7"
    assert "(no name)" in second


def test_a_lease_that_cannot_be_read_hides_no_other(asks):
    held = {"metadata": {"name": "node-k8s-3"}, "spec": {**LEASE, "renewTime": DATE_UTC}}
    odd = {"metadata": {"name": "node-k8s-4"}, "spec": {"holderIdentity": 7}}
    requests, _ = asks(leases=answer({"kind": "LeaseList", "items": [odd, held]}))
    asked = requests.asked()
    assert asked.reservations == {"k8s-3": "NodeHealthCheck-workers"}
    assert asked.malformed == ("lease node-k8s-4: spec.holderIdentity: expected text, not 7",)


@pytest.mark.parametrize(("own_s", "held"), [(0, False), (600, False), (-60, True), (-59, False)], ids=str)
def test_a_lease_is_over_only_by_the_slower_of_both_clocks(asks, own_s, held):
    """Of an API server whose clock is ahead, or a machine's own (docs/design.md, E26)."""
    renewed = write_utc(parse_utc(DATE_UTC) - timedelta(seconds=660))
    lease = {"metadata": {"name": "node-k8s-3"}, "spec": {**LEASE, "renewTime": renewed}}
    requests, _ = asks(leases=answer({"kind": "LeaseList", "items": [lease]}))
    requests._own_utc = lambda: write_utc(parse_utc(DATE_UTC) + timedelta(seconds=own_s))
    assert requests.asked().reservations == ({"k8s-3": "NodeHealthCheck-workers"} if held else {})


def test_leases_that_may_not_be_read_are_held_by_nobody(asks):
    requests, _ = asks(listed(REQUEST), leases=status(403, reason="Forbidden"))
    asked = requests.asked()
    assert (len(asked.requests), asked.reservations) == (1, {})
    [told] = asked.malformed
    assert told.startswith("who else works on nodes cannot be read, so nobody counts: ")


@pytest.mark.parametrize(
    ("answered", "error"),
    [
        (status(403, reason="Forbidden"), ClusterDenied),
        (status(500), ClusterUnreachable),
        (hang_up, ClusterUnreachable),
        (answer({"kind": "PodList", "items": []}), ClusterProtocol),
        (answer({"kind": "FencerRemediationList", "items": {}}), ClusterProtocol),
        (answer("<html>"), ClusterProtocol),
    ],
)
def test_a_list_that_cannot_be_had_is_no_empty_list(asks, answered, error):
    requests, _ = asks(answered)
    with pytest.raises(error):
        requests.asked()


def test_the_kind_is_asked_for_once_and_a_no_is_believed_for_a_while(stand_in, asks, clock):
    requests, server = asks()
    for _ in range(3):
        assert requests.asked() is not None
    assert count(server, "/v1alpha1") == 1
    for gone in (answer("404 page not found", status=404), answer({**KINDS, "resources": []})):
        requests, server = asks()
        server.behave = gone
        for _ in range(3):
            assert requests.asked() is None
            assert requests.missing_rights() == []
        assert len(server.asked) == 1
        clock.advance(UNKNOWN_S + 1)
        assert requests.asked() is None
        assert len(server.asked) == 2


def test_a_server_that_does_not_say_which_kinds_it_knows_is_no_server_without_them(asks):
    requests, server = asks()
    server.behave = status(503)
    with pytest.raises(ClusterUnreachable):
        requests.asked()
    server.behave = answer({"kind": "APIResourceList", "resources": "x"})
    with pytest.raises(ClusterProtocol):
        requests.asked()


def test_a_machine_is_asked_for_once(asks):
    requests, server = asks(listed(of_machine(1)), m_1=answer(machine(1)), k8s_1=answer(node(1)))
    for _ in range(3):
        (request,) = requests.asked().requests
        assert (request.node, request.problem) == ("k8s-1", "")
    assert ("GET", "/apis/cluster.x-k8s.io/v1beta2/namespaces/medik8s/machines/m-1") in server.asked
    assert (count(server, "/m-1"), count(server, "/k8s-1")) == (1, 1)


@pytest.mark.parametrize(
    ("found", "words", "waits"),
    [
        (answer(machine(1, status={})), "has no node yet", True),
        (answer(machine(1, status=None)), "has no node yet", True),
        (
            answer(machine(1, status={"nodeRef": {"name": "k8s-2"}})),
            "which this cluster does not have",
            False,
        ),
        (answer(machine(1, status={"nodeRef": {"name": "a/b"}})), "which this cluster does not have", False),
        (answer(machine(1, spec={"providerID": "p://2"})), "may be a machine of another cluster", False),
        (answer(machine(1, spec={})), "may be a machine of another cluster", False),
        (answer(machine(1, spec=[])), "spec: expected an object", True),
        (answer(machine(1, status={"nodeRef": "x"})), "status.nodeRef: expected an object", True),
        (answer(machine(1, metadata={"name": "m-1", "namespace": "medik8s", "uid": "x"})), "another", True),
        (answer(machine(2)), "expected it, not", True),
        (answer({}), "expected it, not", True),
        (answer("[]"), "not a JSON object", True),
        (status(404, reason="NotFound", name="m-1"), "cannot be read", True),
        (answer("404 page not found", status=404), "cannot be read", True),
        (status(403, reason="Forbidden"), "cannot be read", True),
        (status(500), "cannot be read", True),
    ],
    ids=range(16),
)
def test_a_machine_whose_node_is_not_known_keeps_no_other_request_waiting(asks, clock, found, words, waits):
    gone = status(404, reason="NotFound", name="k8s-2")
    requests, server = asks(listed(of_machine(1), REQUEST), m_1=found, k8s_1=answer(node(1)), k8s_2=gone)
    for _ in range(2):
        theirs, other = requests.asked().requests
        assert (theirs.node, theirs.waits, theirs.live) == ("", waits, False)
        assert words in theirs.problem
        assert theirs.problem.isprintable()
        assert other.live
    tried = count(server, "/m-1")
    clock.advance(4 * AGAIN_S + 1)  # one that did not answer is asked for again after the others
    server.behave = routes(
        {
            "/fencerremediations": answer(listed(of_machine(1))),
            "/leases": NO_LEASES,
            "/m-1": answer(machine(1)),
            "/k8s-1": answer(node(1)),
        }
    )
    (theirs,) = requests.asked().requests
    assert (theirs.node, theirs.problem) == ("k8s-1", "")
    assert count(server, "/m-1") == tried + 1


@pytest.mark.parametrize("version", ["cluster.x-k8s.io/../v1", "cluster.x-k8s.io/v1?x", "cluster.x-k8s.io/"])
def test_a_version_that_leads_elsewhere_is_not_asked_for(asks, version):
    owner = {**MACHINE, "apiVersion": version}
    requests, server = asks(listed(changed(annotations=None, ownerReferences=[owner])))
    (request,) = requests.asked().requests
    assert not request.live
    assert [path for _, path in server.asked if "machines" in path] == []


def test_many_machines_are_asked_for_a_few_at_a_time_and_all_have_their_turn(asks):
    found = listed(*map(of_machine, range(MOST_AT_ONCE + 5)))
    known = {f"m_{number}": answer(machine(number)) for number in range(MOST_AT_ONCE + 5)}
    nodes = {f"k8s_{number}": answer(node(number)) for number in range(MOST_AT_ONCE + 5)}
    requests, _ = asks(found, **known, **nodes)
    waiting = [each for each in requests.asked().requests if not each.node]
    assert [(each.waits, each.live) for each in waiting] == [(True, False)] * 5
    assert all(each.node for each in requests.asked().requests)


def test_after_a_machine_that_does_not_answer_no_other_is_asked_for_a_while(asks, clock):
    """A conversion webhook that hangs would use up the time of every look."""
    found = listed(*map(of_machine, (1, 2, 3)), REQUEST)
    requests, server = asks(found, m_1=hang_up, m_2=hang_up, m_3=answer(machine(3)), k8s_3=answer(node(3)))
    seen = []
    for _ in range(3):
        seen += [[each.node for each in requests.asked().requests] for _ in range(2)]
        clock.advance(AGAIN_S + 1)
    assert seen == [["", "", "", "k8s-3"]] * 4 + [["", "", "k8s-3", "k8s-3"]] * 2
    assert count(server, "/m-1") == count(server, "/m-2")  # its tries of one read
    server.behave = routes({"/m-1": answer(machine(1)), "/k8s-1": answer(node(1))}, server.behave)
    clock.advance(4 * AGAIN_S)
    assert requests.asked().requests[0].node == "k8s-1"


def test_what_was_known_of_a_request_goes_with_it(asks):
    first = answer(listed(of_machine(1)))
    requests, server = asks(
        in_turn(first, answer(listed()), first), m_1=answer(machine(1)), k8s_1=answer(node(1))
    )
    for _ in range(3):
        requests.asked()
    assert count(server, "/m-1") == 2


@pytest.mark.parametrize(
    "live", [{}, {**REQUEST, "kind": "Pod"}, changed(name="other"), changed(finalizers=7)], ids=range(4)
)
def test_nothing_is_written_to_what_is_not_the_request(asks, live):
    requests, server = asks(listed(REQUEST), k8s_3_abcde=answer(live))
    (request,) = requests.asked().requests
    for write in (requests.adopt, requests.release):
        with pytest.raises(ClusterError):
            write(request)
    assert {method for method, _ in server.asked} == {"GET"}


def test_a_write_is_a_merge_patch_and_is_not_tried_again(asks):
    """Custom resources take no strategic one."""
    requests, server = asks(
        listed(REQUEST), k8s_3_abcde=in_turn(answer(REQUEST), status(503), answer(REQUEST))
    )
    (request,) = requests.asked().requests
    with pytest.raises(ClusterUnreachable):
        requests.adopt(request)
    (patch,) = [each for each in server.requests if each.method == "PATCH"]
    assert patch.headers["content-type"] == "application/merge-patch+json"
