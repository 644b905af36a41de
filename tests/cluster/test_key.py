"""The key with which fencer signs what it writes on Nodes: who makes it, who may read it, what it is for."""

from __future__ import annotations

import base64
import itertools
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest

from fencer.cluster.client import READ_TRIES
from fencer.cluster.kubernetes import KubernetesCluster
from fencer.cluster.rights import RIGHTS
from fencer.cluster.settings import ClusterSettings
from fencer.core import annotations as keys
from fencer.core.model import Binding, FenceMark, GuestRef, Unreadable
from fencer.errors import ClusterDenied, ClusterError, ClusterNotFound, ClusterProtocol
from tests.cluster.standin import StandIn, answer, in_turn, listing, namespace, node, routes, secret, status
from tests.support import wait_until

NAMESPACE = "/api/v1/namespaces/fencer"
SECRETS = f"{NAMESPACE}/secrets"
SECRET = f"{SECRETS}/fencer-key"
GUEST = GuestRef("lab", "101", "6f1c0000-0000-4000-8000-0000000000e2", "k8s-4")
BINDING = Binding(GUEST, ("boot-1",))
MARK = FenceMark("i-1", "2026-11-20T10:41:12Z", "boot-1", GUEST, "fencer@pve2")
NO_KEY = status(404, reason="NotFound", name="fencer-key")
NO_LEASE = status(404, reason="NotFound", name="k8s-1")

_numbers = itertools.count(1)


@pytest.fixture
def nodes(backstage):
    names = [f"keyed-{next(_numbers)}" for _ in range(2)]
    for name in names:
        backstage.make_node(name)
    return names


def agent(bare_api):
    """An agent that was just started."""
    user = f"agent-{next(_numbers)}"
    return KubernetesCluster(ClusterSettings(kubeconfig=bare_api.kubeconfig(user, ["system:masters"])))


def kept(backstage):
    """The keys that there are: one, or none."""
    return backstage.send("GET", f"{SECRETS}?fieldSelector={quote('metadata.name=fencer-key')}")["items"]


class TestReal:
    def test_what_one_agent_wrote_another_one_recognises(self, bare_api, account, nodes):
        account.bind(account.fact(nodes[0]).node, BINDING)
        account.taint(account.fact(nodes[0]).node, MARK)
        read = agent(bare_api).fact(nodes[0]).node
        assert (read.binding, read.mark) == (BINDING, MARK)

    def test_what_was_written_on_one_node_is_forged_on_another(self, backstage, account, nodes):
        account.bind(account.fact(nodes[0]).node, BINDING)
        text = backstage.node_annotations(nodes[0])[keys.BINDING]
        backstage.annotate_node(nodes[1], keys.BINDING, text)
        forged = account.fact(nodes[1]).node.binding
        assert isinstance(forged, Unreadable)
        assert forged.forged

    def test_what_a_kubelet_makes_up_is_forged(self, backstage, account, nodes):
        seal = keys.Seal(b"a key of my own", account.fact(nodes[0]).node.uid)
        backstage.annotate_node(nodes[0], keys.MARK, keys.write_mark(MARK, seal))
        assert account.fact(nodes[0]).node.mark.forged

    def test_agents_that_begin_at_once_come_to_one_key(self, bare_api, backstage, nodes):
        backstage.send("DELETE", SECRET)
        agents = [agent(bare_api) for _ in range(8)]
        views = [each.fact(nodes[0]).node for each in agents]
        backstage.touch_node(nodes[0])  # so that no write succeeds: it is the key that they all need

        def write(each, view):
            with pytest.raises(Exception, match="409"):
                each.bind(view, BINDING)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(write, agents, views))
        first, *others = agents
        first.bind(first.fact(nodes[0]).node, BINDING)
        assert all(each.fact(nodes[0]).node.binding == BINDING for each in others)

    def test_looking_makes_no_key(self, bare_api, backstage, nodes):
        backstage.send("DELETE", SECRET)
        looking = agent(bare_api)
        looking.list_nodes()
        looking.fact(nodes[0])
        assert kept(backstage) == []
        looking.bind(looking.fact(nodes[0]).node, BINDING)
        made = backstage.send("GET", SECRET)
        assert len(base64.b64decode(made["data"]["key"])) == 32
        assert made["immutable"] is True

    def test_asking_whether_the_key_could_be_made_makes_none(self, backstage, account):
        backstage.send("DELETE", SECRET)
        assert account.missing_rights() == []
        assert kept(backstage) == []

    def test_a_namespace_that_goes_or_is_not_there_is_named_as_a_missing_right(self, bare_api, backstage):
        """No controller is there to empty it: it goes when its finalizer is taken off."""
        if kept(backstage):
            backstage.send("DELETE", SECRET)
        going = backstage.send("DELETE", NAMESPACE)
        try:
            admin = agent(bare_api)
            [why] = wait_until(admin.missing_rights, "refusal of a namespace that goes")
            assert why.startswith("create secrets in fencer (")
            assert "being terminated" in why
            backstage.send("PUT", f"{NAMESPACE}/finalize", {**going, "spec": {"finalizers": []}})
            gone = ["create secrets in fencer (there is no such namespace)"]
            wait_until(lambda: admin.missing_rights() == gone, "refusal of a namespace that is gone")
        finally:
            backstage.send("POST", "/api/v1/namespaces", {"metadata": {"name": "fencer"}})


class TestOdd:
    @pytest.fixture
    def known(self):
        """What a server answers that knows one node, and whose key is a test's business."""
        return {"/nodes/k8s-1": answer(node()), "/leases/k8s-1": NO_LEASE, "/kube-system": namespace()}

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            ({"metadata": {}}, "key is missing"),
            ({"data": {"key": "!"}}, "not base64"),
            (secret(b"short"), "has 5 bytes"),
        ],
    )
    def test_a_secret_that_is_no_key_is_refused_by_name_with_the_way_out(self, lead_to, known, body, words):
        way = "kubectl -n fencer delete secret fencer-key"
        with (
            StandIn(routes({**known, "/fencer-key": answer(body)}), key=None) as server,
            pytest.raises(ClusterProtocol, match=f"{words}.*{way}.*restart"),
        ):
            lead_to(server.url).fact("k8s-1")

    def test_who_may_not_read_it_is_told_which_right_is_missing_and_what_grants_it(self, lead_to, known):
        denied = status(403, message="forbidden")
        words = "get secret fencer/fencer-key: 403: forbidden.*fencer setup kubernetes.*--namespace"
        with (
            StandIn(routes({**known, "/fencer-key": denied}), key=None) as server,
            pytest.raises(ClusterDenied, match=words),
        ):
            lead_to(server.url).fact("k8s-1")

    @pytest.mark.parametrize(
        ("said", "missing"),
        [
            (answer(secret(b"0123456789abcdef"), status=201), None),
            (status(404, reason="NotFound", name="fencer"), "there is no such namespace"),
            (status(403, message="exceeded quota"), "exceeded quota"),
            (status(409, reason="AlreadyExists", name="fencer-key"), None),
            (status(400, message="webhook does not support dry run"), None),
        ],
        ids=["makeable", "no namespace", "refused", "made meanwhile", "no dry runs"],
    )
    def test_where_there_is_no_key_it_is_asked_whether_it_could_be_made(self, lead_to, said, missing):
        allowed = answer({"status": {"allowed": True}})
        table = {"/selfsubjectaccessreviews": allowed, "/fencer-key": NO_KEY, "/secrets": said}
        with StandIn(routes(table), key=None) as server:
            found = lead_to(server.url).missing_rights()
            asked = [request.target for request in server.requests if "/secrets" in request.target]
        assert asked == [SECRET, f"{SECRETS}?dryRun=All"]
        assert len(found) == (missing is not None)
        assert all(one.startswith("create secrets in fencer (") and missing in one for one in found)

    def test_rights_that_were_granted_are_not_asked_for_again(self, lead_to):
        """With a slow API server all of them take longer than a call may: the next try goes on from there."""
        allowed, busy = answer({"status": {"allowed": True}}), status(500, message="no answer within 10 s")
        reviews = "/selfsubjectaccessreviews"
        tries = in_turn(allowed, allowed, allowed, *[busy] * READ_TRIES, allowed)
        table = {reviews: tries, "/fencer-key": answer(secret(b"0123456789abcdef"))}
        with StandIn(routes(table), key=None) as server:
            cluster = lead_to(server.url)
            with pytest.raises(ClusterError):
                cluster.missing_rights()
            before = sum(reviews in request.target for request in server.requests)
            assert cluster.missing_rights() == []
            after = sum(reviews in request.target for request in server.requests)
        assert after - before == len(RIGHTS) - 3

    @pytest.mark.parametrize("body", [secret(b"0123456789abcdef"), secret(b"short")])
    def test_where_there_is_a_key_nobody_asks_for_another(self, lead_to, body):
        table = {"/selfsubjectaccessreviews": answer({"status": {"allowed": True}})}
        with StandIn(routes({**table, "/fencer-key": answer(body)}), key=None) as server:
            assert lead_to(server.url).missing_rights() == []
            assert ("POST", SECRETS) not in server.asked

    def test_it_is_given_to_what_signs_and_created_only_where_that_is_asked_for(self, lead_to, known):
        there = in_turn(NO_KEY, NO_KEY, answer(secret(b"0123456789abcdef")))
        created = answer(secret(b"fedcba9876543210"), status=201)
        with StandIn(routes({**known, "/fencer-key": there, "/secrets": created}), key=None) as server:
            cluster, other = lead_to(server.url), lead_to(server.url)
            with pytest.raises(ClusterNotFound, match="no secret fencer/fencer-key yet: the first agent"):
                cluster.signing_key(create=False)
            assert ("POST", SECRETS) not in server.asked
            assert cluster.signing_key(create=True) == b"fedcba9876543210"
            assert cluster.signing_key(create=False) == b"fedcba9876543210"
            assert other.signing_key(create=False) == b"0123456789abcdef"

    def test_without_the_namespace_nothing_was_set_up(self, lead_to, known):
        with StandIn(routes({**known, "/fencer-key": NO_KEY, "/secrets": NO_KEY}), key=None) as server:
            cluster = lead_to(server.url)
            view = cluster.fact("k8s-1").node
            with pytest.raises(ClusterNotFound, match="fencer setup kubernetes"):
                cluster.bind(view, BINDING)

    def test_it_is_asked_for_once_there_is_one_and_never_again(self, lead_to, known):
        lists = {"/nodes": listing("NodeList", node()), "/leases": listing("LeaseList")}
        there = in_turn(NO_KEY, NO_KEY, answer(secret(b"0123456789abcdef")))
        with StandIn(routes({**known, **lists, "/fencer-key": there}), key=None) as server:
            cluster = lead_to(server.url)
            for _ in range(6):
                cluster.list_nodes()
            assert sum(path.endswith("/fencer-key") for _, path in server.asked) == 3
