"""What a token or a certificate tells of itself, whoever wrote it: read, and never believed to be good."""

import base64
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509

from fencer.cluster import own
from fencer.cluster.settings import ClusterSettings
from fencer.cluster.tokens import claims_of
from fencer.errors import ConfigError
from tests.cluster.conftest import write_kubeconfig
from tests.controlplane.certificates import Authority

EPOCH_1 = datetime.fromtimestamp(1, UTC)


def token(claims):
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{payload}.c2ln"


def held(folder, user, server="https://127.0.0.1:1"):
    file = write_kubeconfig(folder / "kubeconfig", server, user)
    settings = ClusterSettings(file, unauthenticated=True)
    return own.KubernetesAccount(settings, lambda _seconds: None).credentials()


def ends_of(account):
    (one,) = account.credentials()
    assert one.what == "token"
    return one.ends


def encoded(file):
    return base64.b64encode(file.read_bytes()).decode()


def test_its_end_and_its_secret_are_read():
    bound_to = "fencer-token-x7k2p"
    told = {"exp": 1795513272, "iat": 1, "kubernetes.io": {"secret": {"name": bound_to, "uid": "u"}}}
    claims = claims_of(token(told))
    assert claims.ends == datetime.fromtimestamp(1795513272, UTC)
    assert (claims.secret, claims.begins) == (bound_to, EPOCH_1)


def test_one_that_does_not_say_ends_nowhere():
    claims = claims_of(token({}))
    assert (claims.ends, claims.secret, claims.begins) == (None, "", None)


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
        token({"exp": 1, "iat": "today"}),
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
    account = own.KubernetesAccount(ClusterSettings(file), lambda _seconds: None)
    assert ends_of(account) == datetime.fromtimestamp(1, UTC)
    write_kubeconfig(file, "https://127.0.0.1:1", {"token": token({"exp": 2})})
    assert ends_of(account) == datetime.fromtimestamp(2, UTC)
    assert own.bound_to(ClusterSettings(file)) == ""


def test_a_token_in_a_file_of_its_own_is_read_as_well(tmp_path):
    (tmp_path / "token").write_text(token({"exp": 3}))
    file = write_kubeconfig(
        tmp_path / "kubeconfig", "https://127.0.0.1:1", {"tokenFile": str(tmp_path / "token")}
    )
    account = own.KubernetesAccount(ClusterSettings(file), lambda _seconds: None)
    assert ends_of(account) == datetime.fromtimestamp(3, UTC)


@pytest.mark.parametrize("inline", [True, False])
def test_a_client_certificate_ends_as_well(tmp_path, inline):
    pair = Authority(tmp_path).client("fencer")
    user = {"client-certificate": str(pair.cert_file), "client-key": str(pair.key_file)}
    if inline:
        user = {f"{name}-data": encoded(Path(file)) for name, file in user.items()}
    ends = x509.load_pem_x509_certificate(pair.cert_file.read_bytes()).not_valid_after_utc
    assert [(one.what, one.ends) for one in held(tmp_path, user)] == [("certificate", ends)]
    both = held(tmp_path, {**user, "token": token({"exp": 1})})
    assert [(one.what, one.ends) for one in both] == [("token", EPOCH_1), ("certificate", ends)]


def test_who_has_neither_is_told_of_none(tmp_path):
    assert held(tmp_path, {}) == ()
    assert held(tmp_path, {"token": "opaque"}) == ()


def test_a_certificate_that_went_away_is_named(tmp_path):
    pair = Authority(tmp_path).client("fencer")
    user = {"client-certificate": str(pair.cert_file), "client-key": str(pair.key_file)}
    pair.cert_file.unlink()
    with pytest.raises(ConfigError, match=str(pair.cert_file)):
        held(tmp_path, user)


@pytest.mark.parametrize(
    ("user", "server", "more"),
    [
        ("system:serviceaccount:fencer:fencer", "http://127.0.0.1:1", ""),
        ("system:serviceaccount:ops:fencer", "http://127.0.0.1:1", " --namespace ops"),
        ("system:serviceaccount:ops:other", "https://10.0.0.1:6443", " --server https://10.0.0.1:6443"),
        ("somebody", "https://[::1]:6443", " --server 'https://[::1]:6443'"),
    ],
)
def test_another_is_made_for_the_same_account_at_the_same_server(tmp_path, user, server, more):
    """Not that of the administrator's kubeconfig: k3s' leads to its own machine."""
    (one,) = held(tmp_path, {"token": token({"sub": user})}, server)
    file = tmp_path / "kubeconfig"
    command = f"fencer setup kubernetes --kubeconfig ADMINS --output {file} --replace{more}"
    assert one.renewal == command
