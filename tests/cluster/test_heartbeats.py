"""Leases that are read live: which requests are made for whom, and what is made of their answers."""

from __future__ import annotations

import pytest

from fencer.cluster.heartbeats import FEW
from fencer.errors import ClusterProtocol, ClusterUnreachable
from fencer.ports import Lease
from tests.cluster.standin import DATE_UTC, answer, in_turn, listing, namespace, routes, status

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
KUBE_SYSTEM = "/api/v1/namespaces/kube-system"
NO_LEASE = status(404, reason="NotFound", name="somebody")


def lease(name, version=90, renewed="2026-11-20T10:00:00.000001Z"):
    metadata = {"name": name, "resourceVersion": str(version)}
    return {"kind": "Lease", "metadata": metadata, "spec": {"renewTime": renewed}}


SOME = listing("LeaseList", lease("k8s-1"), lease("k8s-2", 91), version=100, more="there are others")


@pytest.fixture
def server(stand_in):
    return stand_in(
        routes(
            {
                "/kube-system": namespace(),
                "/leases": SOME,
                "/k8s-7": answer(lease("k8s-7", 101)),
                "/k8s-8": NO_LEASE,
            }
        )
    )


def asked(server):
    """Return paths and limits."""
    targets = [request.target for request in server.requests]
    return [(target.partition("?")[0], target.partition("limit=")[2]) for target in targets]


def test_a_few_are_listed_and_who_is_asked_for_besides_is_read_one_by_one(server, lead_to):
    found = lead_to(server.url).heartbeats(["k8s-2", "k8s-7", "k8s-8"])
    assert set(found.leases) == {"k8s-1", "k8s-2", "k8s-7"}
    assert found.leases["k8s-7"] == Lease("2026-11-20T10:00:00.000001Z", 101)
    assert (found.version, found.utc, found.malformed) == (100, DATE_UTC, ())
    assert asked(server) == [
        (LEASES, str(FEW)),
        (f"{LEASES}/k8s-7", ""),
        (f"{LEASES}/k8s-8", ""),
        (KUBE_SYSTEM, ""),
    ]


def test_for_nobody_in_particular_one_page_is_enough(server, lead_to):
    assert set(lead_to(server.url).heartbeats([]).leases) == {"k8s-1", "k8s-2"}
    assert asked(server) == [(LEASES, str(FEW)), (KUBE_SYSTEM, "")]


@pytest.mark.parametrize("nodes", [None, [f"k8s-{number}" for number in range(FEW + 1)]], ids=["all", "many"])
def test_many_are_read_in_one_list_whose_first_page_dates_it(stand_in, lead_to, nodes):
    pages = in_turn(SOME, listing("LeaseList", lease("k8s-3", 99), version=120))
    server = stand_in(routes({"/kube-system": namespace(), "/leases": pages}))
    found = lead_to(server.url, page=2).heartbeats(nodes)
    assert set(found.leases) == {"k8s-1", "k8s-2", "k8s-3"}
    assert found.version == 100
    assert [path for path, _ in asked(server)] == [LEASES, LEASES, KUBE_SYSTEM]


def test_a_list_that_was_begun_again_is_dated_by_the_second_one(stand_in, lead_to):
    pages = in_turn(SOME, status(410), listing("LeaseList", lease("k8s-1"), version=120))
    server = stand_in(routes({"/kube-system": namespace(), "/leases": pages}))
    assert lead_to(server.url).heartbeats(None).version == 120


@pytest.mark.parametrize("version", ["", "latest", "9" * 5000, "-5"])
def test_a_version_that_is_no_number_is_not_known(stand_in, lead_to, version):
    page = answer({"kind": "LeaseList", "metadata": {"resourceVersion": version}, "items": []})
    server = stand_in(routes({"/kube-system": namespace(), "/leases": page}))
    for nodes in ([], None):
        assert lead_to(server.url).heartbeats(nodes).version == 0


def test_a_malformed_lease_is_named_and_hides_no_other(stand_in, lead_to):
    broken = lease("k8s-1", renewed=5)
    table = {"/leases": listing("LeaseList", broken, lease("k8s-2"), "odd"), "/k8s-1": answer(broken)}
    server = stand_in(routes({"/kube-system": namespace(), **table}))
    for nodes in (["k8s-1"], None):
        found = lead_to(server.url).heartbeats(nodes)
        assert set(found.leases) == {"k8s-2"}
        assert found.malformed == (
            "lease k8s-1: spec.renewTime: expected text, not 5",
            "lease (no name): the object: expected an object, not 'odd'",
        )


def test_a_lease_that_was_never_renewed_is_there(stand_in, lead_to):
    page = listing("LeaseList", {"metadata": {"name": "k8s-1", "resourceVersion": "7"}})
    server = stand_in(routes({"/kube-system": namespace(), "/leases": page}))
    assert lead_to(server.url).heartbeats([]).leases == {"k8s-1": Lease(None, 7)}


def test_names_that_would_lead_elsewhere_are_nobodys(server, lead_to):
    assert set(lead_to(server.url).heartbeats(["..", "a/b", "K8S"]).leases) == {"k8s-1", "k8s-2"}
    assert asked(server) == [(LEASES, str(FEW)), (KUBE_SYSTEM, "")]


@pytest.mark.parametrize(
    ("gone", "error"),
    [(answer("404 page not found", status=404), ClusterProtocol), (status(503), ClusterUnreachable)],
)
def test_only_the_apis_own_word_says_that_there_is_no_lease(stand_in, lead_to, gone, error):
    server = stand_in(routes({"/kube-system": namespace(), "/leases": SOME, "/k8s-8": gone}))
    with pytest.raises(error):
        lead_to(server.url).heartbeats(["k8s-8"])


def test_an_answer_about_another_lease_is_refused(stand_in, lead_to):
    server = stand_in(
        routes({"/kube-system": namespace(), "/leases": SOME, "/k8s-8": answer(lease("k8s-9"))})
    )
    with pytest.raises(ClusterProtocol, match="asked for the lease of k8s-8, got 'k8s-9'"):
        lead_to(server.url).heartbeats(["k8s-8"])


def test_the_pause_is_read_with_them(stand_in, lead_to):
    space = namespace(**{"fencer.dev/pause": "until noon"})
    server = stand_in(routes({"/kube-system": space, "/leases": SOME}))
    assert lead_to(server.url).heartbeats([]).paused_why == "until noon"
