"""Which files with secrets a kubeconfig names: those of the user that is meant, and of nobody else."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from fencer.cluster import temporary
from fencer.cluster.client import Connection
from fencer.cluster.credentials import files_with_secrets, load_credentials
from fencer.cluster.requests import get
from fencer.cluster.settings import ClusterSettings
from fencer.errors import ClusterDenied, ConfigError

OTHER = {"client-key": "/others.key"}


def named(folder, user, *, context=None, current="here", users=None):
    """What is found of a user, in a kubeconfig that has another one as well."""
    content = {
        "users": [{"name": "me", "user": user}, {"name": "other", "user": OTHER}] if users is None else users,
        "contexts": [
            {"name": "here", "context": {"user": "me"}},
            {"name": "there", "context": {"user": "other"}},
            {"name": "nobody's", "context": {}},
        ],
        "current-context": current,
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(content))
    return files_with_secrets(ClusterSettings(file, context))


def test_a_key_and_a_token_in_files_of_their_own_are_named_from_where_the_kubeconfig_is(tmp_path):
    user = {"client-certificate": "me.crt", "client-key": "keys/me.key", "tokenFile": "/run/token"}
    assert named(tmp_path, user) == (tmp_path / "keys/me.key", Path("/run/token"))


def test_what_stands_in_the_kubeconfig_itself_is_taken_before_a_file(tmp_path):
    user = {"client-key": "me.key", "client-key-data": "a2V5", "tokenFile": "/run/token", "token": "t"}
    assert named(tmp_path, user) == ()


def test_the_users_of_other_contexts_are_not_ours(tmp_path):
    assert named(tmp_path, {}) == ()
    assert named(tmp_path, {}, context="there") == (Path("/others.key"),)
    assert named(tmp_path, OTHER, context="nobody's") == ()


@pytest.mark.parametrize(
    "odd",
    [
        {"user": None},
        {"user": {"client-key": 7}},
        {"user": {"client-key": ""}},
        {"user": {}, "current": "gone"},
        {"user": {}, "users": 7},
        {"user": {}, "users": [7]},
        {"user": {}, "users": [{"name": "me"}]},
        {"user": []},
    ],
)
def test_what_is_odd_names_nothing_and_its_reader_says_why(tmp_path, odd):
    assert named(tmp_path, **odd) == ()


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"7", b"\x00", pytest.param(b"[" * 2000, marks=pytest.mark.slow, id="deep")]
)
def test_what_is_no_kubeconfig_names_nothing(tmp_path, text):
    file = tmp_path / "kubeconfig"
    file.write_bytes(text)
    assert files_with_secrets(ClusterSettings(file)) == ()


@pytest.mark.parametrize("make", [lambda _path: None, os.mkfifo, Path.mkdir], ids=["gone", "pipe", "folder"])
def test_what_is_no_file_is_not_read(tmp_path, make):
    make(tmp_path / "odd")
    assert files_with_secrets(ClusterSettings(tmp_path / "odd")) == ()


@pytest.mark.parametrize("key", ["exec", "auth-provider"])
def test_root_runs_no_program_that_another_users_kubeconfig_names(tmp_path, key):
    """The agent's own belongs to the user that it runs as, and root types commands with it, too."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user: run it with sudo")
    named(
        tmp_path, {key: {"name": "gcp", "command": "false", "apiVersion": "client.authentication.k8s.io/v1"}}
    )
    file = tmp_path / "kubeconfig"
    os.chown(file, 65534, 65534)
    with pytest.raises(ConfigError, match=rf"names a program to run \({key}\), and belongs to user 65534"):
        load_credentials(ClusterSettings(file), SimpleNamespace())


def test_a_token_that_cannot_be_sent_is_refused_and_never_shown(tmp_path):
    """A file of a token that ends in a line break; the HTTP library's own error would show all of it."""
    (tmp_path / "token").write_text("se\ncret")
    (tmp_path / "kubeconfig").write_text(
        json.dumps(
            {
                "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
                "users": [{"name": "u", "user": {"tokenFile": str(tmp_path / "token")}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    settings = ClusterSettings(tmp_path / "kubeconfig", unauthenticated=True)
    with pytest.raises(ClusterDenied, match="the token has a line break") as told:
        Connection(settings, lambda _s: None).read("get nodes", get("/api/v1/nodes"))
    assert "cret" not in str(told.value)


def test_what_the_client_wrote_down_is_gone_before_a_process_becomes_another(tmp_path, monkeypatch):
    from kubernetes.config import kube_config  # noqa: PLC0415 - heavy

    file = tmp_path / "key"
    file.write_text("a private key")
    monkeypatch.setattr(kube_config, "_temp_files", {"content": str(file)})
    temporary.remove_all()
    assert not file.exists()
