"""A cluster that does not know the kinds to call fencer by: nobody asks, and no right is missing."""

from __future__ import annotations

import pytest
import yaml

from fencer.cluster.remediations import UNKNOWN_S, KubernetesRequests
from fencer.cluster.settings import ClusterSettings
from fencer.simulation.clock import VirtualClock
from tests.cluster.conftest import REMEDIATION, write_kubeconfig
from tests.support import wait_until
from tests.support.backstage import DEFINITIONS, REMEDIATIONS


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def requests(bare_api, token, tmp_path, clock):
    path = write_kubeconfig(tmp_path / "kubeconfig", bare_api.url, {"token": token}, ca_file=bare_api.ca_file)
    requests = KubernetesRequests(ClusterSettings(path), now_s=clock.now_s)
    assert requests.asked() is not None
    return requests


@pytest.fixture
def without_kinds(bare_api, backstage, requests):
    """Take both kinds away, for a while; return what brings them back."""
    definitions = [
        document
        for document in yaml.safe_load_all(REMEDIATION.read_text())
        if document["kind"] == "CustomResourceDefinition"
    ]
    paths = [f"{DEFINITIONS}/{document['metadata']['name']}" for document in definitions]
    for each in backstage.send("GET", REMEDIATIONS)["items"]:
        backstage.drop_request(each["metadata"]["name"])
    for path in paths:
        backstage.send("DELETE", path)
    wait_until(lambda: all(bare_api.request("GET", path).status == 404 for path in paths), "end of the kinds")

    def back():
        for document in definitions:
            if bare_api.request("GET", f"{DEFINITIONS}/{document['metadata']['name']}").status == 404:
                backstage.send("POST", DEFINITIONS, document)
        backstage.wait_for_kind(REMEDIATIONS)

    yield back
    back()


def test_nobody_asks_and_no_right_is_missing_until_somebody_installs_them(
    bare_api, requests, without_kinds, clock
):
    assert requests.asked() is None
    nobody = KubernetesRequests(ClusterSettings(kubeconfig=bare_api.kubeconfig("nobody", [])))
    assert nobody.missing_rights() == []
    assert nobody.asked() is None
    without_kinds()
    assert requests.asked() is None  # a no is believed for a while
    clock.advance(UNKNOWN_S + 1)
    assert requests.asked() is not None
