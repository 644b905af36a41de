"""A watch of the nodes for a moment: does it work, before an agent needs it."""

from __future__ import annotations

import pytest

from fencer.cluster.own import KubernetesAccount
from fencer.cluster.settings import ClusterSettings
from fencer.errors import ClusterDenied, ClusterProtocol, ClusterUnreachable
from tests.cluster.conftest import write_kubeconfig
from tests.cluster.standin import event, hang_up, namespace, node, routes, silent, status, stream

SHORT_S = 0.5


@pytest.fixture
def account(stand_in, tmp_path):
    """Return who watches nodes at a server that does as it is told."""

    def build(watched, *, first=None):
        server = stand_in(routes({"/kube-system": namespace(), "/nodes": watched}))
        file = write_kubeconfig(tmp_path / "kubeconfig", first or server.url)
        settings = ClusterSettings(file, servers=(server.url,), unauthenticated=True, read_timeout_s=SHORT_S)
        return KubernetesAccount(settings, lambda _s: None)

    return build


def test_the_first_node_that_is_told_of_is_enough(account):
    """The server says no more, and does not end either."""
    account(stream(event("ADDED", node("k8s-1", resourceVersion="90")), then=silent)).try_watch()


def test_a_server_that_is_down_is_passed_over_as_an_agent_would(account):
    watched = stream(event("ADDED", node("k8s-1", resourceVersion="90")), then=silent)
    account(watched, first="http://127.0.0.1:1").try_watch()


@pytest.mark.parametrize(
    ("watched", "error"),
    [
        (status(403), ClusterDenied),
        (status(503), ClusterUnreachable),
        (stream(), ClusterUnreachable),  # a proxy that ends it
        (stream(then=silent), ClusterUnreachable),  # one that holds it back
        (hang_up, ClusterUnreachable),
        (stream(b"<html>\n"), ClusterProtocol),
    ],
    ids=["refused", "busy", "ended", "held back", "cut", "a page"],
)
def test_a_watch_that_does_not_work_says_why(account, watched, error):
    with pytest.raises(error, match="watch nodes"):
        account(watched).try_watch()


def test_a_real_api_server_tells_of_a_node_at_once(bare_api, backstage):
    backstage.make_node("to-watch")
    try:
        KubernetesAccount(ClusterSettings(bare_api.kubeconfig()), lambda _s: None).try_watch()
    finally:
        backstage.drop_node("to-watch")
