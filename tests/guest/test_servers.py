"""Another API server, where the kubeconfig's own one is gone: who is listed, believed, asked."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fencer.evicting.answers import Meaning
from fencer.evicting.lots import Filters
from fencer.guest import servers
from fencer.guest.api import Api
from fencer.guest.connect import connect
from fencer.guest.drain import Plan, drain
from fencer.guest.errors import DONE, REFUSED, UNREACHABLE, Unreachable, Unusable
from fencer.guest.kubeconfig import Access
from fencer.guest.node import NodeClient
from fencer.guest.notes import CORDON, DRAIN, Cordon, write_cordon
from fencer.guest.places import PLACES, Place
from fencer.guest.pods import Pod
from fencer.guest.system import Ran, boot_id
from fencer.guest.uncordon import uncordon
from tests.controlplane.certificates import Authority, KeyPair, kubeconfig
from tests.guest.machine import BOOT, Machine
from tests.guest.serving import send, serving

OWN = Access("/k", "127.0.0.1", 6443, authority="ca", certificate="crt", key="key")
LISTED = ["https://10.0.0.2:6443", "https://10.0.0.3:6443"]
LB = "var/lib/rancher/k3s/agent/etc/k3s-agent-load-balancer.json"
NAMES = ("127.0.0.1", "kubernetes")
WITHIN_S = 6.0
"""Half of it is the first server's."""


def _place(name: str) -> Place:
    return next(place for place in PLACES if place.name == name)


def _load_balancer(*addresses: str) -> str:
    return json.dumps({"ServerURL": "https://10.0.0.9:6443", "ServerAddresses": addresses}, indent=2)


def _kubeconfig(*servers: str) -> str:
    clusters = "".join(
        f"- cluster:\n    certificate-authority-data: YQ==\n    server: {server}\n  name: kubernetes\n"
        for server in servers
    )
    return f"apiVersion: v1\nclusters:\n{clusters}kind: Config\n"


ENVOY = """
resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: apiserver
  connect_timeout: 0.25s
  type: STATIC
  load_assignment:
    cluster_name: apiserver
    endpoints:
    - lb_endpoints:
      - endpoint:
          address:
            socket_address:
              address: "10.0.0.2"
              port_value: 6443
      - endpoint:
          address:
            socket_address:
              address: "fd00::3"
              port_value: 6443
  health_checks:
  # A remark.
  - tcp_health_check: {}
    timeout: 1s
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: konnectivity
  load_assignment:
    endpoints:
    - lb_endpoints:
      - endpoint:
          address:
            socket_address:
              address: "10.0.0.2"
              port_value: 8132
"""
TRAEFIK = """\
tcp:
  routers:
    r:
      rule: HostSNI(`*`)
      service: {service}
      tls:
        passthrough: true
  services:
    {service}:
      loadBalancer:
        servers:
        - address: 10.0.0.2:6443
        - address: 10.0.0.3:6443
    konnectivity:
      loadBalancer:
        servers:
        - address: 10.0.0.2:8132
"""
FILES = {
    "k3s agent": ("k3s", {LB: _load_balancer("10.0.0.2:6443", "10.0.0.3:6443")}),
    "k3s agent, API server elsewhere": (
        "k3s",
        {LB.replace("-agent", "-api-server-agent"): _load_balancer("10.0.0.2:6443", "10.0.0.3:6443")},
    ),
    "k3s server": (
        "k3s",
        {
            "etc/rancher/k3s/config.yaml": "token: t\nserver: https://10.0.0.2:6443\n",
            "etc/rancher/k3s/config.yaml.d/a.yaml": "server: https://10.0.0.3:6443\n",
        },
    ),
    "RKE2 agent": (
        "RKE2",
        {
            "var/lib/rancher/rke2/agent/etc/rke2-api-server-agent-load-balancer.json": _load_balancer(
                "10.0.0.2:6443", "10.0.0.3:6443"
            )
        },
    ),
    "RKE2 server, joined by its supervisor's port": (
        "RKE2",
        {
            "etc/rancher/rke2/config.yaml": "server: https://10.0.0.2:9345\n",
            "etc/rancher/rke2/config.yaml.d/a.yaml": "server: https://10.0.0.3:9345\n",
        },
    ),
    "kubeadm control plane": (
        "kubeadm",
        {"etc/kubernetes/admin.conf": _kubeconfig("https://10.0.0.2:6443", "https://10.0.0.3:6443")},
    ),
    "k0s with Traefik": ("k0s", {"run/k0s/nllb/traefik/routing.yaml": TRAEFIK.format(service="apiserver")}),
    "MicroK8s worker": (
        "MicroK8s",
        {"var/snap/microk8s/current/args/traefik/provider.yaml": TRAEFIK.format(service="kube-apiserver")},
    ),
}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def _others(machine: Machine, place: str = "k3s", command: str = "") -> tuple[list[str], list[str]]:
    found, troubles = servers.others(machine.root, _place(place), OWN, command)
    assert all((it.server_name, it.authority, it.key) == ("kubernetes", "ca", "key") for it in found)
    return [it.url for it in found], troubles


# -- who is listed ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", FILES)
def test_installers_list_other_servers(machine: Machine, case: str) -> None:
    """Each in its own file and form; the certificate has to name `kubernetes`, as all of theirs do."""
    place, files = FILES[case]
    for name, text in files.items():
        machine.write(name, text)
    assert _others(machine, place) == (LISTED, [])


def test_k0s_lists_other_servers_for_envoy_and_its_own_one(machine: Machine) -> None:
    machine.write("run/k0s/nllb/envoy/cds.yaml", ENVOY)
    machine.write("run/k0s/kubelet-direct.conf", _kubeconfig("https://[::1]:6443"))
    found = ["https://10.0.0.2:6443", "https://[fd00::3]:6443", "https://[::1]:6443"]
    assert _others(machine, "k0s") == (found, [])


@pytest.mark.parametrize(
    "words", ["--server https://10.0.0.2:6443", "--server=https://10.0.0.2:6443", "-s https://10.0.0.2:6443"]
)
def test_what_a_server_joined_by_stands_on_its_command_line(machine: Machine, words: str) -> None:
    """As the installation of k3s puts it into the unit."""
    command = f"argv[]=/usr/local/bin/k3s server {words} --token t ; ignore_errors=no"
    assert _others(machine, "k3s", command) == (LISTED[:1], [])
    assert _others(machine, "k3s", "argv[]=/usr/local/bin/k3s server --cluster-init ;") == ([], [])


ENV_FILES = {
    "k3s, as its installation writes it": ("K3S_TOKEN='t'\nK3S_URL='https://10.0.0.2:6443'\n", 1),
    "RKE2, as a person does": ('# RKE2_URL=https://10.0.0.9:9345\nRKE2_URL="https://10.0.0.2:9345"\n', 1),
    "bare": ("K3S_URL=https://10.0.0.2:6443\n", 1),
    "of another program": (
        "MY_K3S_URL=https://10.0.0.2:6443\nK3S_DATASTORE_ENDPOINT=https://10.0.0.3:2379\n",
        0,
    ),
    "empty": ("K3S_URL=\n", 0),
}


@pytest.mark.parametrize("case", ENV_FILES)
@pytest.mark.parametrize("property_", ["EnvironmentFiles", "EnvironmentFile"])
def test_what_a_server_joined_by_stands_in_its_units_files_of_variables(
    machine: Machine, case: str, property_: str
) -> None:
    """One of which an installation leaves out is no trouble: all are `-`, to be there or not."""
    text, listed = ENV_FILES[case]
    machine.write("etc/systemd/system/k3s.service.env", text).chmod(0o600)
    names = ("/etc/default/k3s", "/etc/sysconfig/k3s", "/etc/systemd/system/k3s.service.env")
    command = "".join(f"{property_}={name} (ignore_errors=yes)\n" for name in names)
    assert _others(machine, "k3s", command) == (LISTED[:listed], [])


def test_what_a_server_joined_by_stands_among_its_units_variables(machine: Machine) -> None:
    command = "ExecStart={ k3s server ; }\nEnvironment=HOME=/root K3S_URL=https://10.0.0.2:6443 K3S_TOKEN=t\n"
    assert _others(machine, "k3s", command) == (LISTED[:1], [])


def test_a_file_of_variables_that_others_may_write_is_not_believed(machine: Machine) -> None:
    machine.write("etc/default/k3s", "K3S_URL=https://10.0.0.2:6443\n").chmod(0o666)
    found, (trouble,) = _others(machine, "k3s", "EnvironmentFiles=/etc/default/k3s (ignore_errors=yes)\n")
    assert (found, trouble.split(":")[0]) == ([], "/etc/default/k3s")


@pytest.mark.parametrize("name", [place.name for place in PLACES])
def test_nothing_listed_is_nothing(machine: Machine, name: str) -> None:
    assert _others(machine, name) == ([], [])


@pytest.mark.parametrize(
    "entry",
    [
        "http://10.0.0.9:6443",
        "10.0.0.9:99999",
        "[::1",
        "https://10.0.0.9/k8s",
        "ftp://h:1",
        "",
        7,
        None,
        {},
        [],
    ],
)
def test_what_is_no_https_address_is_left_out(machine: Machine, entry: object) -> None:
    content = {"ServerAddresses": [entry, "10.0.0.2:6443", "10.0.0.2:6443", "10.0.0.3:6443"]}
    machine.write(LB, json.dumps(content))
    assert _others(machine) == (LISTED, [])


def test_of_a_list_without_end_so_many_are_asked(machine: Machine) -> None:
    machine.write(LB, _load_balancer(*(f"10.0.{at >> 8}.{at & 255}:6443" for at in range(50_000))))
    found, troubles = _others(machine)
    assert (len(found), found[0], troubles) == (servers.MOST, "https://10.0.0.0:6443", [])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "line 1"),
        ("a: &b c\n", "line 1"),
        ("[" * 100_000, "line 1"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("\x00", "line 1"),
    ],
)
def test_a_list_that_cannot_be_read_is_said(machine: Machine, text: str, says: str) -> None:
    machine.write(LB, text)
    ((found), (trouble,)) = _others(machine)
    assert not found
    assert trouble.startswith(f"/{LB}: ")
    assert says in trouble


@pytest.mark.parametrize("shape", ["[]", "{}", '{"ServerAddresses": {"a": 1}}', '{"ServerAddresses": "x"}'])
def test_a_list_of_another_shape_lists_nobody(machine: Machine, shape: str) -> None:
    machine.write(LB, shape if shape != "[]" else "- a\n")
    assert _others(machine) == ([], [])


def test_what_others_than_root_may_write_is_not_believed(machine: Machine) -> None:
    """Neither the file, nor what is on the way to it: they would choose who is asked with our certificate."""
    path = machine.write(LB, _load_balancer("10.0.0.2:6443"))
    for step, mode in ((path, 0o666), (path.parent, 0o775)):
        before = step.stat().st_mode
        step.chmod(mode)
        found, (trouble,) = _others(machine)
        assert (found, trouble.split(":")[:2]) == (
            [],
            [f"/{LB}", " others than root may change what is read here"],
        )
        step.chmod(before)
    assert _others(machine) == (LISTED[:1], [])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away; run it as root")
def test_somebody_elses_list_is_not_believed(machine: Machine) -> None:
    os.chown(machine.write(LB, _load_balancer("10.0.0.2:6443")), 65534, -1)
    assert _others(machine)[0] == []


# -- who is asked -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"))


class Server:
    """An API server that knows one node and its pods, and takes evictions.

    Args:
        status: Of its answers to a GET.
        boot: Of its node.
        pods: Names of what runs there; it never goes.
    """

    def __init__(self, status: int = 200, boot: str = BOOT, pods: Sequence[str] = ()) -> None:
        self.status = status
        self.asked: list[str] = []
        self.evicts = 201
        self.body: dict[str, object] = {
            "metadata": {"name": "k8s-1", "uid": "u", "resourceVersion": "1"},
            "status": {"nodeInfo": {"bootID": boot}},
            "items": [_pod(name) for name in pods],
            "message": "so it is",
        }

    def __call__(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer a request."""
        handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        self.asked.append(f"{handler.command} {handler.path.split('?')[0]}")
        status = {"GET": self.status, "POST": self.evicts, "PATCH": 200}[handler.command]
        if handler.command == "PATCH":
            self.body["spec"] = {"unschedulable": True}
        send(handler, status, json.dumps(self.body).encode())


def _pod(name: str) -> dict[str, object]:
    owner = {"controller": True, "kind": "ReplicaSet"}
    return {"metadata": {"name": name, "namespace": "default", "uid": name, "ownerReferences": [owner]}}


NODE, PODS = "GET /api/v1/nodes/k8s-1", "GET /api/v1/pods"
EVICTION = "POST /api/v1/namespaces/default/pods/web/eviction"
POD = Pod("u-1", "default", "web", "ReplicaSet/web-1")


@pytest.fixture
def running(authority: Authority) -> Iterator[Callable[..., int]]:
    """Starts servers; gives the port of each."""
    with ExitStack() as stack:

        def start(server: Server, names: tuple[str, ...] = NAMES, by: Authority = authority) -> int:
            return stack.enter_context(serving(by, server, names))

        yield start


@pytest.fixture
def closed() -> Iterator[int]:
    """A port where nobody listens: bound, so that nobody else takes it."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def _client(authority: Authority, said: list[str], own: int, *others: int) -> NodeClient:
    first = Access("/k", "127.0.0.1", own, authority=authority.ca_file.read_text())
    pair = authority.client("system:node:k8s-1", ["system:nodes"])
    identity = {"certificate": pair.cert_file.read_text(), "key": pair.key_file.read_text()}
    access = Access(first.source, first.host, own, authority=first.authority, **identity)
    listed = [servers.another(access, f"127.0.0.1:{port}") for port in others]
    return NodeClient(Api(access, lambda: ([it for it in listed if it], []), said.append), "k8s-1", BOOT)


def test_where_the_first_is_gone_the_next_is_asked_from_then_on(
    authority: Authority, running: Callable[..., int], closed: int
) -> None:
    said: list[str] = []
    other = Server()
    port = running(other)
    client = _client(authority, said, closed, closed, port)
    assert client.read(WITHIN_S).name == "k8s-1"
    assert client.pods().pods == []
    assert client.evict(POD).meaning is Meaning.GOING
    assert other.asked == [NODE, PODS, EVICTION]
    assert said == [
        f"https://127.0.0.1:{closed}: Connection refused; going on with https://127.0.0.1:{port}, "
        "which this node's installer lists"
    ]


def test_where_the_first_hangs(authority: Authority, running: Callable[..., int]) -> None:
    """The kernel accepts, and nobody shakes hands."""
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        client = _client(authority, [], frozen.getsockname()[1], running(Server()))
        assert client.read(WITHIN_S).name == "k8s-1"


@pytest.mark.parametrize("status", [500, 503, 504])
def test_where_the_first_is_going_down(
    authority: Authority, running: Callable[..., int], status: int
) -> None:
    """Its store has no quorum, or it is no longer ready."""
    own = Server(status)
    client = _client(authority, [], running(own), running(Server()))
    assert client.read(WITHIN_S).name == "k8s-1"
    assert own.asked == [NODE]


@pytest.mark.parametrize("status", [401, 403, 404, 409, 429])
def test_a_refusal_is_an_answer(authority: Authority, running: Callable[..., int], status: int) -> None:
    """Another server would say the same; and to go from one that is overloaded to the next helps nobody."""
    other = Server()
    client = _client(authority, [], running(Server(status)), running(other))
    with pytest.raises(Exception, match="so it is"):
        client.read(WITHIN_S)
    assert other.asked == []


def test_it_moves_in_the_middle_of_a_list(authority: Authority, running: Callable[..., int]) -> None:
    own, other = Server(), Server()
    client = _client(authority, [], running(own), running(other))
    client.read(WITHIN_S)
    own.status = 503
    assert client.pods().pods == []
    assert (own.asked, other.asked) == ([NODE, PODS], [NODE, PODS])


def test_it_comes_back_where_the_other_goes(authority: Authority, running: Callable[..., int]) -> None:
    own, other = Server(503), Server()
    client = _client(authority, [], running(own), running(other))
    client.read(WITHIN_S)
    own.status, other.status = 200, 503
    assert client.read(WITHIN_S).name == "k8s-1"


def test_what_changes_something_is_sent_to_one_server(
    authority: Authority, running: Callable[..., int], closed: int
) -> None:
    """Only a look moves on; the drain asks again after it, with the pod's UID, and so for the same thing."""
    other = Server()
    client = _client(authority, [], closed, running(other))
    assert client.evict(POD).meaning is Meaning.PASSING
    assert other.asked == []
    client.read(WITHIN_S)
    assert client.evict(POD).meaning is Meaning.GOING
    assert other.asked == [NODE, EVICTION]


def test_what_another_thread_has_left_is_not_left_twice(
    authority: Authority, running: Callable[..., int], closed: int
) -> None:
    other = Server()
    client = _client(authority, [], closed, running(other))
    client.read(WITHIN_S)
    first = client.api.first
    answer = client.api.move(first, client.path, "it is gone", WITHIN_S, lambda _: "it is the one")
    assert (answer.status, other.asked) == (200, [NODE, NODE])


@pytest.mark.parametrize("status", [403, 404, 503])
def test_only_who_knows_the_node_is_gone_on_with(
    authority: Authority, running: Callable[..., int], closed: int, status: int
) -> None:
    wrong, right = Server(status), Server()
    client = _client(authority, [], closed, running(wrong), running(right))
    assert client.read(WITHIN_S).name == "k8s-1"
    assert right.asked == [NODE]


class Html(Server):
    """What answers 200 to everything."""

    def __call__(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer a request."""
        send(handler, 200, b"<html>")


@pytest.mark.parametrize(
    "wrong", [Server(boot="another"), Server(boot=""), Html()], ids=["clone", "no boot", "no JSON"]
)
def test_a_wrong_server_that_is_faster_wins_nothing(
    authority: Authority, running: Callable[..., int], closed: int, wrong: Server
) -> None:
    """A clone has its template's credentials, and its node's name: only the boot tells whose node it is."""
    asked = threading.Event()

    class Late(Server):
        def __call__(self, handler: BaseHTTPRequestHandler) -> None:
            asked.wait()
            super().__call__(handler)

    class First(Late):
        def __call__(self, handler: BaseHTTPRequestHandler) -> None:
            wrong(handler)
            asked.set()

    right = Late()
    client = _client(authority, [], closed, running(First()), running(right))
    assert client.read(WITHIN_S).boot_id == BOOT
    assert right.asked == [NODE]


def test_a_drain_that_loses_its_server_touches_no_other_cluster(
    authority: Authority, running: Callable[..., int]
) -> None:
    """The clone of a server's machine, or one put back from a snapshot: its list leads to production."""

    class Dying(Server):
        def __call__(self, handler: BaseHTTPRequestHandler) -> None:
            super().__call__(handler)
            if handler.command == "POST":
                self.status = 503

    said: list[str] = []
    own, production = Dying(pods=["web"]), Server(boot="another", pods=["web", "db"])
    own.evicts = 429
    client = _client(authority, said, running(own), running(production))
    assert drain(client, Plan(BOOT, Filters(), timeout_s=3), said.append) == REFUSED
    assert own.asked[:4] == [NODE, "PATCH /api/v1/nodes/k8s-1", PODS, EVICTION]
    assert set(production.asked) == {NODE}
    assert "0 pods gone, 1 still here" in said[-1]


def test_an_uncordon_goes_by_its_own_cluster_alone(authority: Authority, running: Callable[..., int]) -> None:
    """Own one not up yet: another cluster's node of this name would be judged, and its note taken off."""

    class Other(Server):
        def __call__(self, handler: BaseHTTPRequestHandler) -> None:
            super().__call__(handler)
            own.status = 200

    said: list[str] = []
    own, other = Server(503), Other(boot="another")
    note = {CORDON: write_cordon(Cordon(DRAIN, "before", "2026-01-01T00:00:00Z"))}
    other.body["metadata"] = {"name": "k8s-1", "uid": "v", "annotations": note}
    client = _client(authority, said, running(own), running(other))
    assert uncordon(client, BOOT, 60, said.append) == DONE
    assert (own.asked, other.asked) == ([NODE, NODE], [NODE])
    assert said[-1] == "k8s-1 left as it is: not cordoned"


def test_who_has_no_boot_goes_on_with_nobody(
    authority: Authority, running: Callable[..., int], closed: int
) -> None:
    other = Server(boot="")
    api = _client(authority, [], closed, running(other)).api
    with pytest.raises(Unreachable, match="runs another boot"):
        NodeClient(api, "k8s-1").read(WITHIN_S)


def test_no_list_is_no_node_without_pods(authority: Authority, running: Callable[..., int]) -> None:
    with pytest.raises(Unreachable, match="no list"):
        _client(authority, [], running(Html())).pods()


def test_an_answer_that_comes_late_is_kept(authority: Authority, running: Callable[..., int]) -> None:
    """Own one hangs, the other one takes its time: asked twice, it would be too late."""

    class Once(Server):
        def __call__(self, handler: BaseHTTPRequestHandler) -> None:
            super().__call__(handler)
            self.status = 503

    other = Once()
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        client = _client(authority, [], frozen.getsockname()[1], running(other))
        assert client.read(WITHIN_S).name == "k8s-1"
    assert other.asked == [NODE]


def test_where_nobody_answers_it_is_said_of_each(
    authority: Authority, running: Callable[..., int], closed: int
) -> None:
    """At night that is all that there is to go by; and which list was not believed."""
    down, alien = running(Server(503)), running(Server(boot="another"))
    api = _client(authority, [], closed, down, alien).api
    listed, _ = api.others()
    api.others = lambda: (listed, ["/lb.json: others than root may change what is read here"])
    with pytest.raises(Unreachable) as told:
        NodeClient(api, "k8s-1", BOOT).read(WITHIN_S)
    text = str(told.value)
    assert text.startswith(f"https://127.0.0.1:{closed}: Connection refused; also asked: https://")
    assert f"https://127.0.0.1:{down}: it does not know node k8s-1 (so it is)" in text
    assert f"https://127.0.0.1:{alien}: its node k8s-1 runs another boot (another) than this machine" in text
    assert text.endswith("; not believed: /lb.json: others than root may change what is read here")


def test_who_has_another_authority_hears_nothing(
    authority: Authority, running: Callable[..., int], closed: int, tmp_path: Path
) -> None:
    impostor = Server()
    port = running(impostor, by=Authority(tmp_path / "other"))
    with pytest.raises(Unreachable, match="refused"):
        _client(authority, [], closed, port).read(WITHIN_S)
    assert impostor.asked == []


def test_a_kubelet_at_that_address_is_no_api_server(
    authority: Authority, running: Callable[..., int], closed: int
) -> None:
    """Authorities of k3s and others sign kubelets' certificates too, with their addresses."""
    kubelet = Server()
    with pytest.raises(Unreachable, match="refused"):
        _client(authority, [], closed, running(kubelet, ("127.0.0.1", "k8s-2"))).read(WITHIN_S)
    assert kubelet.asked == []


class Nameless(Authority):
    """Gives servers a certificate whose subject alone names them, as kubelets' clients' are."""

    def server(
        self, name: str, addresses: Sequence[str], valid_for: timedelta = timedelta(days=1)
    ) -> KeyPair:
        """Issue it for the last of the names."""
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, addresses[-1])])
        return self._issue(name, subject, ExtendedKeyUsageOID.SERVER_AUTH, None, valid_for)


def test_a_subjects_name_is_no_servers(tmp_path: Path, running: Callable[..., int], closed: int) -> None:
    """Go's clients, and so a cluster's, take none either; a certificate for a user has any name."""
    authority, impostor = Nameless(tmp_path), Server()
    with pytest.raises(Unreachable, match="certificate is not trusted: Hostname mismatch"):
        _client(authority, [], closed, running(impostor, NAMES, authority)).read(WITHIN_S)
    assert impostor.asked == []


def test_a_name_that_cannot_be_one_is_no_answer(authority: Authority) -> None:
    access = Access("test", "x" * 300, 6443, authority=authority.ca_file.read_text())
    with pytest.raises(Unreachable, match=r"x:6443: .*idna"):
        Api(access).ask("GET", "/", within_s=WITHIN_S)


@pytest.mark.timeout(60)
def test_however_many_do_not_answer_a_shutdown_is_kept_no_longer(authority: Authority) -> None:
    """Not once for each of them; the last two words say by what it ended."""
    said: list[str] = []
    with ExitStack() as stack:
        frozen = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(servers.MOST)]
        client = _client(authority, said, *(it.getsockname()[1] for it in frozen))
        assert drain(client, Plan(BOOT, Filters(), probe_s=3), said.append) == UNREACHABLE
    assert [line[:60] for line in said] == ["not drained: no answer from the API server within 3 s: https"]


def test_who_is_gone_on_with_again_and_again_is_said_once(
    authority: Authority, running: Callable[..., int]
) -> None:
    """Both know the node, and neither lists its pods: a line a second would drown what matters."""

    class Podless(Server):
        def __call__(self, handler: BaseHTTPRequestHandler) -> None:
            if "/pods" in handler.path:
                send(handler, 503, b"")
            else:
                super().__call__(handler)

    said: list[str] = []
    client = _client(authority, said, running(Podless()), running(Podless()))
    for _ in range(4):
        with pytest.raises(Unreachable):
            client.pods()
    assert len(said) == len(set(said)) == 2


def test_time_that_was_over_before_the_drain_counts(
    authority: Authority, running: Callable[..., int]
) -> None:
    """Commands that hang, and systemd's clock runs: a drain that began later would be killed."""
    said: list[str] = []
    client = _client(authority, said, running(Server(pods=["web"])))
    plan = Plan(BOOT, Filters(), timeout_s=1003, began_s=time.monotonic() - 1000)
    assert drain(client, plan, said.append) == REFUSED
    assert said[-1].startswith("gave up after 1003 s: 0 pods gone, 1 still here; ")


def test_the_clock_begins_with_the_command(
    authority: Authority, running: Callable[..., int], tmp_path: Path
) -> None:
    """A systemctl that takes longer than there is: what is left of the time is none."""
    server = Server(boot=boot_id())
    pair = authority.client("system:node:k8s-1", ["system:nodes"])
    file = tmp_path / "kubeconfig"
    url = f"https://127.0.0.1:{running(server)}"
    file.write_text(kubeconfig(url, authority.ca_file, "system:node:k8s-1", pair))
    systemctl = tmp_path / "systemctl"
    systemctl.write_text("#!/bin/sh\nsleep 1.1\necho stopping\n")
    systemctl.chmod(0o755)
    command = [sys.executable, "-m", "fencer.guest", "drain", "--timeout", "1", "--kubeconfig", str(file)]
    environment = {**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "the pods could not be listed: no answer" in done.stdout) == (UNREACHABLE, True)
    assert PODS not in server.asked


def test_volumes_that_could_not_be_read_are_not_passed_over(
    authority: Authority, running: Callable[..., int]
) -> None:
    """All pods gone, and then no word of the node: its volumes may be in use, and elsewhere held back."""

    class Gone(Server):
        def __call__(self, handler: BaseHTTPRequestHandler) -> None:
            super().__call__(handler)
            self.status = 503 if PODS in self.asked else 200

    said: list[str] = []
    client = _client(authority, said, running(Gone()))
    assert drain(client, Plan(BOOT, Filters(), timeout_s=3), said.append) == DONE
    assert said[-2].startswith("whether all volumes are unmounted is not known: so it is")


@pytest.mark.timeout(60)
def test_the_last_look_at_the_volumes_keeps_to_the_time(authority: Authority) -> None:
    """Who hangs then has what is left, and no more."""
    hung = threading.Event()

    class Hanging(Server):
        def __call__(self, handler: BaseHTTPRequestHandler) -> None:
            if self.asked[-1:] == [PODS]:
                hung.wait()
            else:
                super().__call__(handler)

    said: list[str] = []
    with serving(authority, Hanging(), NAMES) as port:
        assert drain(_client(authority, said, port), Plan(BOOT, Filters(), timeout_s=2), said.append) == DONE
        hung.set()
    assert re.fullmatch(
        r"whether all volumes .* not known: https://.*: (no answer within (1|0\.\d+) s|The read .+).*",
        said[-2],
    )


# -- all of it --------------------------------------------------------------------------------------------


def test_a_k3s_server_whose_own_api_server_is_gone(
    machine: Machine, authority: Authority, running: Callable[..., int], closed: int
) -> None:
    """From its kubeconfig, its unit's command line and files, to the other server."""
    said: list[str] = []
    port = running(Server())
    pair = authority.client("system:node:k8s-1", ["system:nodes"])
    agent = "var/lib/rancher/k3s/agent"
    for name, source in (("ca", authority.ca_file), ("crt", pair.cert_file), ("key", pair.key_file)):
        machine.write(f"{agent}/{name}", source.read_text())
    user = {"client-certificate": "crt", "client-key": "key"}
    cluster = {"server": f"https://127.0.0.1:{closed}", "certificate-authority": "ca"}
    content = {
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    machine.write(f"{agent}/kubelet.kubeconfig", json.dumps(content))
    machine.k3s_command = f"argv[]=/usr/local/bin/k3s server --server https://localhost:{port}"
    assert connect(machine.root, machine.run, say=said.append).read(WITHIN_S).name == "k8s-1"
    assert len(said) == 1


class Knowing(Server):
    """An API server that tells who asks it.

    Args:
        user: Their name.
        reviews: The status of that answer.
    """

    def __init__(self, user: str = "system:node:k8s-1", reviews: int = 201) -> None:
        super().__init__()
        self.evicts = reviews
        self.body["status"] = {"userInfo": {"username": user}, "nodeInfo": {"bootID": BOOT}}


REVIEW = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews"


def _with_token(machine: Machine, authority: Authority, own: int, *others: int) -> Machine:
    """Lay out a k3s server whose kubelet has a token, and no certificate that names it."""
    cluster = {"server": f"https://127.0.0.1:{own}", "certificate-authority": "ca"}
    content = {
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    agent = "var/lib/rancher/k3s/agent"
    machine.write(f"{agent}/ca", authority.ca_file.read_text())
    machine.write(f"{agent}/kubelet.kubeconfig", json.dumps(content))
    machine.k3s_command = "".join(f" --server https://127.0.0.1:{port}" for port in others)
    return machine


@pytest.mark.parametrize("first", ["closed", "down"])
def test_who_has_a_token_is_told_their_name_by_whoever_is_there(
    machine: Machine, authority: Authority, running: Callable[..., int], closed: int, first: str
) -> None:
    """One that knows nobody by this token is no answer, however fast it is."""
    stranger, other = Knowing(reviews=401), Knowing()
    stranger.body["status"] = "Failure"
    own = closed if first == "closed" else running(Knowing(reviews=503))
    _with_token(machine, authority, own, running(stranger), running(other))
    client = connect(machine.root, machine.run)
    assert client.name == "k8s-1"
    assert REVIEW in other.asked
    assert client.read(WITHIN_S).boot_id == BOOT


@pytest.mark.parametrize(("status", "user"), [(401, ""), (404, ""), (201, "system:serviceaccount:a:b")])
def test_whom_the_first_server_knows_as_no_kubelet_has_to_name_the_node(
    machine: Machine, authority: Authority, running: Callable[..., int], status: int, user: str
) -> None:
    """It has answered. Without such reviews (Kubernetes before 1.28) that is all it can say."""
    other, ran = Knowing(), list[Sequence[str]]()
    _with_token(machine, authority, running(Knowing(user, status)), running(other))

    def run(command: Sequence[str]) -> Ran:
        ran.append(command)
        return machine.run(command)

    with pytest.raises(Unusable, match="name the node: --node NAME"):
        connect(machine.root, run)
    assert other.asked == []
    assert not [command for command in ran if "--property=ExecStart" in command[-1]], "a list is not needed"


def test_where_nobody_tells_a_name_it_is_said_of_each(
    machine: Machine, authority: Authority, running: Callable[..., int], closed: int
) -> None:
    """Not that its user is no kubelet: that is not known."""
    down = running(Knowing(reviews=503))
    _with_token(machine, authority, closed, down)
    with pytest.raises(Unreachable) as told:
        connect(machine.root, machine.run)
    refused = f"https://127.0.0.1:{closed}: Connection refused"
    assert str(told.value) == f"{refused}; https://127.0.0.1:{down}: so it is"


def test_a_kubeconfig_from_elsewhere_has_no_others(machine: Machine, authority: Authority) -> None:
    """Which list is its cluster's nobody knows."""
    machine.write(LB, _load_balancer("10.0.0.2:6443"))
    content = {
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    path = machine.write("home/me/config", json.dumps(content))
    client = connect(machine.root, lambda _: Ran(None), str(path), "k8s-1")
    assert client.api.others() == ([], [])


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("127.0.0.1", True),
        ("127.0.1.1", True),
        ("localhost", True),
        ("LocalHost", True),
        ("::1", True),
        ("0.0.0.0", True),  # noqa: S104 - nothing is bound there
        ("::", True),
        ("::ffff:127.0.0.1", True),
        ("127.1", True),
        ("api.invalid", False),
        ("x" * 300, False),
        ("198.51.100.1", False),
        ("::ffff:198.51.100.1", False),
    ],
)
def test_whose_address_it_is(host: str, here: bool) -> None:
    """An API server is asked by whatever a person wrote: this machine has many names."""
    assert servers.on_this_machine(host) is here


@pytest.mark.parametrize(
    ("behind", "here"), [(["127.0.1.1"], True), (["127.0.0.1", "198.51.100.1"], False)], ids=["own", "robin"]
)
def test_a_name_is_whatever_is_behind_it(
    monkeypatch: pytest.MonkeyPatch, behind: list[str], here: bool
) -> None:
    """This machine's own, as Debian's /etc/hosts has it; or a round robin: who asks goes on with the next."""
    resolve = socket.getaddrinfo

    def name(_: str, *more: Any, **other: Any) -> list[Any]:
        return [it for host in behind for it in resolve(host, *more, **other)]

    monkeypatch.setattr(socket, "getaddrinfo", name)
    assert servers.on_this_machine("k8s-1") is here
