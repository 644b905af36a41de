"""Settings and kubeconfig: what cannot be used is said at once, and nothing is taken silently."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from fencer.cluster.kubernetes import KubernetesCluster
from fencer.cluster.settings import ClusterSettings
from fencer.errors import ConfigError
from tests.cluster.conftest import write_kubeconfig


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "{",
            "just words",
            "[]",
            "clusters: 5",
            "a: b",
            "current-context: x\ncontexts: [1]\n",
            "\x00",
            "{}",
        ),
        *("[" * 2000, "- " * 2000),
    ],
)
def test_a_broken_kubeconfig_is_named(tmp_path, text):
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        KubernetesCluster(ClusterSettings(kubeconfig=file))
    assert str(file) in str(caught.value)


def test_a_missing_kubeconfig_is_named(tmp_path):
    with pytest.raises(ConfigError, match="nowhere: cannot be read: No such file"):
        KubernetesCluster(ClusterSettings(kubeconfig=tmp_path / "nowhere"))


def test_a_context_that_is_not_in_the_file(tmp_path):
    config = write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1")
    with pytest.raises(ConfigError, match="other"):
        KubernetesCluster(ClusterSettings(kubeconfig=config, context="other"))


@pytest.mark.parametrize("current", [None, ""])
def test_a_kubeconfig_that_says_no_context_to_begin_with_is_told_with_those_there_are(tmp_path, current):
    config = write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1")
    config.write_text(json.dumps({**json.loads(config.read_text()), "current-context": current}))
    with pytest.raises(ConfigError, match=r"kubeconfig: has no current-context.* Contexts: 'test'$"):
        KubernetesCluster(ClusterSettings(kubeconfig=config))


def test_a_kubeconfig_without_contexts_is_said_to_have_none(tmp_path):
    config = write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1")
    config.write_text(json.dumps({**json.loads(config.read_text()), "contexts": []}))
    with pytest.raises(ConfigError, match="kubeconfig: no kubeconfig: there is no context in it"):
        KubernetesCluster(ClusterSettings(kubeconfig=config))


def test_a_missing_file_with_the_token_is_told_with_the_kubeconfig_that_names_it(tmp_path):
    config = write_kubeconfig(tmp_path / "kubeconfig", "https://127.0.0.1:1", {"tokenFile": "gone"})
    with pytest.raises(ConfigError) as caught:
        KubernetesCluster(ClusterSettings(kubeconfig=config))
    names = f"{config}: names a file that cannot be used: {tmp_path}/gone: cannot be read: No such file"
    assert str(caught.value).startswith(names)


@pytest.mark.parametrize(
    "server", ["", "ftp://10.0.0.10", "10.0.0.10:6443", "https://", "https://[::1", "https://10.0.0.10:99999"]
)
def test_a_server_that_is_no_url_is_named(tmp_path, server):
    path = write_kubeconfig(tmp_path / "kubeconfig", server)
    with pytest.raises(ConfigError) as caught:
        KubernetesCluster(ClusterSettings(path))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("server", ["https://me:t0psecret@10.0.0.10:6443", "me:t0psecret@10.0.0.10"])
def test_a_password_in_a_server_is_refused_and_not_repeated(tmp_path, server):
    path = write_kubeconfig(tmp_path / "kubeconfig", server)
    with pytest.raises(ConfigError, match="must not carry a user or password") as caught:
        KubernetesCluster(ClusterSettings(path))
    assert "t0psecret" not in str(caught.value)


def test_no_server_is_asked_in_the_clear_when_the_kubeconfigs_is_not(tmp_path):
    config = write_kubeconfig(tmp_path / "kubeconfig", "https://127.0.0.1:1")
    with pytest.raises(ConfigError, match="must begin with https"):
        KubernetesCluster(ClusterSettings(kubeconfig=config, servers=("http://127.0.0.1:2",)))


def test_speaking_of_a_cluster_does_not_load_the_client():
    """`fencer --help` must not pay for it."""
    code = (
        "import sys; import fencer.cluster; from fencer.cluster.settings import ClusterSettings;"
        "print([name for name in ('kubernetes', 'urllib3', 'tenacity') if name in sys.modules])"
    )
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "[]"


# -- who answers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "cluster", "seen"),
    [
        ("http://127.0.0.1:1", {}, "the server 'http://127.0.0.1:1' is asked in the clear"),
        ("https://127.0.0.1:1", {"insecure-skip-tls-verify": True}, "insecure-skip-tls-verify is set"),
        ("HTTP://127.0.0.1:1", {}, "asked in the clear"),
    ],
)
def test_a_server_in_whose_place_anybody_may_answer_is_refused(tmp_path, server, cluster, seen):
    path = write_kubeconfig(tmp_path / "kubeconfig", server)
    content = json.loads(path.read_text())
    content["clusters"][0]["cluster"].update(cluster)
    path.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=seen) as caught:
        KubernetesCluster(ClusterSettings(path))
    assert str(path) in str(caught.value)
    assert "`unauthenticated: true` under `kubernetes:`" in str(caught.value)
    KubernetesCluster(ClusterSettings(path, unauthenticated=True))
