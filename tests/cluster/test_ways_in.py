"""Which API servers a machine outside is to ask, and in which order."""

import pytest

from fencer.cluster.doors import Doors
from fencer.cluster.ways_in import candidates

NODES = frozenset({"cp-1", "10.0.0.21", "cp-2", "10.0.0.22", "w-1", "10.0.0.31"})
K3S = Doors(
    servers=("10.0.0.21", "10.0.0.22"),
    port=6443,
    nodes=NODES,
    inside=frozenset({"10.43.0.1"}),
    certified=(
        *("kubernetes", "kubernetes.default.svc.cluster.local", "localhost", "cp-1", "127.0.0.1", "::1"),
        *("10.43.0.1", "10.0.0.21", "0.0.0.0"),  # noqa: S104 - as k3s writes it
    ),
)


def test_each_control_plane_node_is_named_as_each_goes_with_its_guest():
    found = candidates("https://10.0.0.21:6443", K3S)
    assert found == ("https://10.0.0.21:6443", "https://10.0.0.22:6443")


def test_what_leads_only_to_the_machine_itself_comes_last():
    found = candidates("https://127.0.0.1:6443", K3S)
    assert found == ("https://10.0.0.21:6443", "https://10.0.0.22:6443", "https://127.0.0.1:6443")


@pytest.mark.parametrize("name", ["10.0.0.9", "k8s.example.org", "fd00::9"])
def test_an_address_that_is_on_no_node_comes_first(name):
    doors = Doors(K3S.servers, 6443, NODES, K3S.inside, (*K3S.certified, name))
    first, *others = candidates("https://10.0.0.21:6443", doors)
    assert first == f"https://{f'[{name}]' if ':' in name else name}:6443"
    assert others == ["https://10.0.0.21:6443", "https://10.0.0.22:6443"]


def test_an_administrators_own_way_through_a_balancer_stays_the_first():
    doors = Doors(K3S.servers, 6443, NODES, K3S.inside, (*K3S.certified, "10.0.0.9"))
    first, second, *_ = candidates("https://balancer.example.org:443", doors)
    assert (first, second) == ("https://balancer.example.org:443", "https://10.0.0.9:443")


@pytest.mark.parametrize(
    "name",
    ["*.example.org", "cp-1.example.org", "kubernetes.default.svc", "rke2", "localhost", "0.0.0.0"],  # noqa: S104 - is in certificates
)
def test_names_that_lead_to_one_node_or_from_within_alone_are_none(name):
    doors = Doors(K3S.servers, 6443, NODES, K3S.inside, (name,))
    assert candidates("https://10.0.0.21:6443", doors) == ("https://10.0.0.21:6443", "https://10.0.0.22:6443")


def test_servers_listen_where_they_say_and_not_where_the_balancer_does():
    doors = Doors(("10.0.0.21",), 6443, NODES)
    found = candidates("https://balancer.example.org", doors)
    assert found == ("https://balancer.example.org", "https://10.0.0.21:6443")
