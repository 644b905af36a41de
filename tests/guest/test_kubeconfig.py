"""Finding and reading the kubelet's kubeconfig."""

import base64
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fencer.guest import kubeconfig
from fencer.guest.errors import Unusable
from fencer.guest.kubelets import Process, Running
from fencer.guest.system import Ran
from tests.controlplane.certificates import Authority, KeyPair

K3S = "var/lib/rancher/k3s/agent/kubelet.kubeconfig"
KUBEADM = "etc/kubernetes/kubelet.conf"
K3S_TEXT = """\
apiVersion: v1
clusters:
- cluster:
    server: https://127.0.0.1:6444
    certificate-authority: {ca}
  name: local
contexts:
- context:
    cluster: local
    namespace: default
    user: user
  name: Default
current-context: Default
kind: Config
preferences: {{}}
users:
- name: user
  user:
    client-certificate: {crt}
    client-key: {key}
"""
KUBEADM_TEXT = """\
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: {ca}
    server: https://10.0.0.10:6443
  name: kubernetes
contexts:
- context:
    cluster: kubernetes
    user: system:node:k8s-1
  name: system:node:k8s-1@kubernetes
current-context: system:node:k8s-1@kubernetes
kind: Config
preferences: {{}}
users:
- name: system:node:k8s-1
  user:
    client-certificate: {crt}
    client-key: {crt}
"""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"))


@pytest.fixture(scope="module")
def pair(authority: Authority) -> KeyPair:
    return authority.client("system:node:k8s-1", ["system:nodes"])


def _no_kubectl(_: object) -> Ran:
    return Ran(None)


def _content(**changes: Any) -> dict[str, object]:
    """Return a kubeconfig with a token; `cluster` and `user` add to it."""
    cluster = {"server": "https://api:6443", **(changes.get("cluster") or {})}
    user = {"token": "abc", **(changes.get("user") or {})}
    return {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


def _write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def _running(unit: str = "", *options: str) -> Running:
    """A unit that runs, with a kubelet for each option."""
    processes = (Process(812, ("kubelet", option), unit) for option in options)
    return Running((unit,) if unit else (), tuple(processes))


# -- finding ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "file",
    [K3S, "var/lib/rancher/rke2/agent/kubelet.kubeconfig", KUBEADM, "var/lib/k0s/kubelet.conf"],
)
def test_every_installer_is_found_by_itself(tmp_path: Path, file: str) -> None:
    path = _write(tmp_path / file, "x")
    assert kubeconfig.find(tmp_path, _running()) == path


def test_where_its_installer_puts_it_comes_first(tmp_path: Path) -> None:
    """Then what the kubelet was started with, and last what a node that was another's has kept."""
    old = _write(tmp_path / K3S, "x")
    named = _write(tmp_path / "opt/kubelet.kubeconfig", "x")
    kubelet = _running("kubelet.service", "--kubeconfig=/gone", "--kubeconfig=/opt/kubelet.kubeconfig")
    assert kubeconfig.find(tmp_path, kubelet) == named
    assert kubeconfig.find(tmp_path, _running("kubelet.service", "--kubeconfig=/gone")) == old
    usual = _write(tmp_path / KUBEADM, "x")
    assert kubeconfig.find(tmp_path, kubelet) == usual


def test_of_several_the_one_whose_unit_runs(tmp_path: Path) -> None:
    """A node that was kubeadm's before it was k3s's."""
    _write(tmp_path / KUBEADM, "x")
    k3s = _write(tmp_path / K3S, "x")
    assert kubeconfig.find(tmp_path, _running("k3s-agent.service")) == k3s
    with pytest.raises(Unusable, match=r"several.*kubelet\.kubeconfig.*--kubeconfig"):
        kubeconfig.find(tmp_path, _running())


def test_a_name_that_no_file_can_have_is_told(tmp_path: Path) -> None:
    """As is a folder that may not be looked into: the reading says so."""
    odd = f"/{'x' * 300}"
    path = kubeconfig.find(tmp_path, _running("kubelet.service", f"--kubeconfig={odd}"))
    with pytest.raises(Unusable, match="too long"):
        kubeconfig.read(path, _no_kubectl, tmp_path)


def test_none_names_all_places(tmp_path: Path) -> None:
    with pytest.raises(
        Unusable, match=r"k3s/agent/kubelet\.kubeconfig.*kubernetes/kubelet\.conf.*--kubeconfig"
    ):
        kubeconfig.find(tmp_path, _running())


def test_where_none_is_found_a_kubelet_that_is_not_believed_is_named(tmp_path: Path) -> None:
    doubted = Process(812, ("kubelet", "--kubeconfig=/opt/k"), "kubelet.service", doubt="it is doubted")
    running = Running(("kubelet.service",), (), (doubted,))
    _write(tmp_path / "opt/k", "x")
    says = r"no kubelet's kubeconfig here: it is doubted \(looked for .*--kubeconfig FILE"
    with pytest.raises(Unusable, match=says):
        kubeconfig.find(tmp_path, running)
    usual = _write(tmp_path / KUBEADM, "x")
    assert kubeconfig.find(tmp_path, running) == usual


# -- reading ----------------------------------------------------------------------------------------------


def test_k3s_names_files(tmp_path: Path, authority: Authority, pair: KeyPair) -> None:
    text = K3S_TEXT.format(ca=authority.ca_file, crt=pair.cert_file, key=pair.key_file)
    access = kubeconfig.read(_write(tmp_path / "k", text), _no_kubectl)
    assert (access.host, access.port, access.url) == ("127.0.0.1", 6444, "https://127.0.0.1:6444")
    assert access.authority == authority.ca_file.read_text()
    assert access.key == pair.key_file.read_text()


def test_kubeadm_has_the_authority_inside_and_key_and_certificate_in_one(
    tmp_path: Path, authority: Authority, pair: KeyPair
) -> None:
    both = tmp_path / "pki" / "kubelet-client-current.pem"
    _write(both, pair.cert_file.read_text() + pair.key_file.read_text())
    ca = base64.b64encode(authority.ca_file.read_bytes()).decode()
    text = KUBEADM_TEXT.format(ca=ca, crt="pki/kubelet-client-current.pem")
    access = kubeconfig.read(_write(tmp_path / "k", text), _no_kubectl)
    assert access.authority == authority.ca_file.read_text()
    assert kubeconfig.node_name(access.certificate) == "k8s-1"


def test_a_token_may_be_in_a_file_beside_it(tmp_path: Path) -> None:
    _write(tmp_path / "token", "secret-1\n")
    user = {"token": "", "tokenFile": "token"}
    access = kubeconfig.read(_write(tmp_path / "k", _content(user=user)), _no_kubectl)
    assert (access.token, access.certificate) == ("secret-1", "")


def test_all_that_changes_how_the_server_is_reached(tmp_path: Path) -> None:
    cluster = {
        "server": "https://[fd00::1]/k8s/clusters/c-1/",
        "tls-server-name": "kubernetes",
        "insecure-skip-tls-verify": False,
    }
    access = kubeconfig.read(_write(tmp_path / "k", _content(cluster=cluster)), _no_kubectl)
    assert (access.host, access.port, access.prefix) == ("fd00::1", 443, "/k8s/clusters/c-1")
    assert access.server_name == "kubernetes"
    assert access.url == "https://[fd00::1]:443/k8s/clusters/c-1"


def test_secrets_are_not_shown(tmp_path: Path, pair: KeyPair) -> None:
    user = {"token": "secret-1", "client-certificate": str(pair.cert_file), "client-key": str(pair.key_file)}
    access = kubeconfig.read(_write(tmp_path / "k", _content(user=user)), _no_kubectl)
    assert "secret-1" not in repr(access)
    assert "KEY" not in repr(access)


def test_a_servers_name_may_be_in_any_language() -> None:
    assert kubeconfig.address("k", "https://kübe.example:6443/k8s/") == ("kübe.example", 6443, "/k8s")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "no clusters"),
        ("- a\n- b\n", "no clusters"),
        ("{", "line 1 column 2"),
        ("a: &b c\n", "line 1: more of YAML than is read here, and there is no kubectl"),
        ({**_content(), "current-context": "y"}, "no context"),
        ({**_content(), "users": []}, "no user"),
        (_content(cluster={"server": "http://api:8080"}), "no https address"),
        (_content(cluster={"server": "https://api:port"}), "no https address"),
        (_content(cluster={"server": None}), "no https address"),
        (
            _content(cluster={"server": "https://10.0.0.1 :6443"}),
            r"no https address: 'https://10.0.0.1 :6443'",
        ),
        (_content(cluster={"server": "https://a\tpi:6443"}), r"no https address: 'https://a\\tpi:6443'"),
        (_content(cluster={"server": "https://api:6443\n"}), "no https address"),
        (_content(cluster={"server": "https://a\x7fpi:6443"}), "no https address"),
        (_content(cluster={"server": "https://api:6443/k\xe9"}), "no https address"),
        (_content(cluster={"insecure-skip-tls-verify": True}), "insecure-skip-tls-verify"),
        (_content(cluster={"insecure-skip-tls-verify": "yes"}), "insecure-skip-tls-verify"),
        (_content(cluster={"proxy-url": "http://p"}), "proxy-url"),
        (_content(cluster={"certificate-authority": "/nowhere/ca.crt"}), "/nowhere/ca.crt"),
        (_content(cluster={"certificate-authority-data": "%%%"}), "not base64"),
        (_content(user={"exec": {"command": "aws"}}), "exec"),
        (_content(user={"token": ""}), "neither"),
        (_content(user={"token": "a\nb"}), "token"),
        (_content(user={"token": "", "client-certificate-data": "YQ=="}), "neither"),
    ],
)
def test_what_cannot_be_used_is_said(tmp_path: Path, content: object, says: str) -> None:
    path = _write(tmp_path / "k", content)
    with pytest.raises(Unusable, match=says) as refusal:
        kubeconfig.read(path, _no_kubectl)
    assert str(refusal.value).startswith(str(path))


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="No such file"):
        kubeconfig.read(tmp_path / "k", _no_kubectl)


def test_kubectl_reads_what_we_cannot(tmp_path: Path) -> None:
    """The first that can: here k3s's."""
    path = _write(tmp_path / "k", "a: &anchor b\n")
    asked: list[list[str]] = []

    def run(command: Sequence[str]) -> Ran:
        asked.append(list(command))
        return Ran(0, json.dumps(_content())) if asked[-1][0] == "k3s" else Ran(None, error="not found")

    assert kubeconfig.read(path, run).host == "api"
    assert asked[-1] == ["k3s", "kubectl", "config", "view", "--raw", "-o", "json", "--kubeconfig", str(path)]


@pytest.mark.parametrize("answer", [Ran(0, "no json"), Ran(0, "[]"), Ran(1)])
def test_a_kubectl_that_tells_nonsense_is_not_believed(tmp_path: Path, answer: Ran) -> None:
    with pytest.raises(Unusable):
        kubeconfig.read(_write(tmp_path / "k", "a: &anchor b\n"), lambda _: answer)


_keys = st.sampled_from(
    [
        "clusters",
        "cluster",
        "contexts",
        "context",
        "users",
        "user",
        "name",
        "server",
        "token",
        "current-context",
    ]
)
_shapes = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["x", "c", "https://a", "https://[", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=5),
    max_leaves=25,
)
_dump: list[Callable[[object], str]] = [json.dumps, yaml.safe_dump]


@given(_shapes, st.sampled_from(_dump))
def test_no_file_makes_it_stumble(
    tmp_path_factory: pytest.TempPathFactory, shape: object, dump: Callable[[object], str]
) -> None:
    """Whatever the file holds: an access, or a refusal in words."""
    path = tmp_path_factory.getbasetemp() / "fuzzed"
    path.write_text(dump(shape))
    with suppress(Unusable):
        assert kubeconfig.read(path, _no_kubectl).host


@given(st.binary(max_size=200))
def test_no_bytes_make_it_stumble(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed"
    path.write_bytes(content)
    with pytest.raises(Unusable):
        kubeconfig.read(path, _no_kubectl)


# -- who am I ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "node"),
    [
        ("system:node:k8s-1", "k8s-1"),
        ("system:node:worker-7.lab.example.org", "worker-7.lab.example.org"),
        ("kubernetes-admin", None),
        ("system:node:", None),
        ("system:node:K8S", None),
    ],
)
def test_the_certificate_tells_the_nodes_name(authority: Authority, user: str, node: str | None) -> None:
    """Not the host's name, which may be another."""
    assert kubeconfig.node_name(authority.client(user, ["system:nodes"]).cert_file.read_text()) == node


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda raw: base64.b64encode(raw).decode()))
def test_no_certificate_makes_it_stumble(inside: str) -> None:
    text = f"-----BEGIN CERTIFICATE-----\n{inside}\n-----END CERTIFICATE-----\n"
    assert kubeconfig.node_name(text) is None
