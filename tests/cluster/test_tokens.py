"""What a token tells of itself, whoever wrote it: it is read, and never believed to be good."""

import base64
import json
from datetime import UTC, datetime

import pytest

from fencer.cluster import own
from fencer.cluster.settings import ClusterSettings
from fencer.cluster.tokens import claims_of
from tests.cluster.conftest import write_kubeconfig


def token(claims):
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{payload}.c2ln"


def test_its_end_and_its_secret_are_read():
    bound_to = "fencer-token-x7k2p"
    told = {"exp": 1795513272, "kubernetes.io": {"secret": {"name": bound_to, "uid": "u"}}}
    claims = claims_of(token(told))
    assert claims.ends == datetime.fromtimestamp(1795513272, UTC)
    assert claims.secret == bound_to


def test_one_that_does_not_say_ends_nowhere():
    claims = claims_of(token({}))
    assert (claims.ends, claims.secret) == (None, "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "opaque",
        "a.b",
        "a.b.c.d",
        "e30.!!!.x",
        "e30.YQ.x",
        token([]),
        token({"exp": "tomorrow"}),
        token({"exp": 1e300}),
        token({"exp": -(10**30)}),
        token({"exp": None, "kubernetes.io": "x"}),
        token({"exp": 1, "kubernetes.io": {"secret": {"name": 7}}}),
        "e30." + base64.urlsafe_b64encode(b"[" * 100000).decode() + ".x",
        "é.é.é",
    ],
)
def test_what_is_no_token_tells_nothing(text):
    assert claims_of(text) is None


def test_a_token_that_was_replaced_in_the_file_is_the_one_that_counts(tmp_path):
    file = tmp_path / "kubeconfig"
    write_kubeconfig(file, "https://127.0.0.1:1", {"token": token({"exp": 1})})
    account = own.KubernetesAccount(ClusterSettings(str(file)), lambda _seconds: None)
    assert account.token_ends() == datetime.fromtimestamp(1, UTC)
    write_kubeconfig(file, "https://127.0.0.1:1", {"token": token({"exp": 2})})
    assert account.token_ends() == datetime.fromtimestamp(2, UTC)
    assert own.bound_to(ClusterSettings(str(file))) == ""


def test_a_token_in_a_file_of_its_own_is_read_as_well(tmp_path):
    (tmp_path / "token").write_text(token({"exp": 3}))
    file = write_kubeconfig(
        tmp_path / "kubeconfig", "https://127.0.0.1:1", {"tokenFile": str(tmp_path / "token")}
    )
    account = own.KubernetesAccount(ClusterSettings(str(file)), lambda _seconds: None)
    assert account.token_ends() == datetime.fromtimestamp(3, UTC)


def test_who_has_a_certificate_has_no_token_that_ends(tmp_path):
    file = write_kubeconfig(tmp_path / "kubeconfig", "https://127.0.0.1:1")
    assert own.KubernetesAccount(ClusterSettings(str(file)), lambda _seconds: None).token_ends() is None
