"""Whose API server is believed: what the kubeconfig's own CA signed, whatever else that CA says of itself."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import urllib3
from urllib3.exceptions import InsecureRequestWarning

from fencer.cluster.client import Connection
from fencer.cluster.requests import get
from fencer.cluster.settings import ClusterSettings
from fencer.errors import ClusterUnreachable
from fencer.guest.api import Api
from fencer.guest.errors import Unreachable
from fencer.guest.kubeconfig import read
from tests.cluster.conftest import write_kubeconfig
from tests.controlplane.certificates import Authority, KeyPair

AS_SOMEBODY = {"token": "abc"}
Ask = Callable[[Path], object]


class _Version(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'{"gitVersion": "v1.34.1"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def _serving(pair: KeyPair, clients_ca: Path | None = None) -> Iterator[str]:
    """Serve by TLS; to nobody without a certificate by a CA, where one is given."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.cert_file, pair.key_file)
    if clients_ca is not None:
        tls.verify_mode = ssl.CERT_REQUIRED
        tls.load_verify_locations(clients_ca)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Version) as server:
        server.daemon_threads = True
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"https://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _as_fencer(kubeconfig: Path) -> object:
    connection = Connection(ClusterSettings(kubeconfig), sleep=lambda _: None)
    return connection.read("version", get("/version")).required("gitVersion")


def _as_the_guest(kubeconfig: Path) -> object:
    return Api(read(kubeconfig, run=None)).ask("GET", "/version", within_s=10).body["gitVersion"]


@pytest.fixture
def serving() -> Iterator[Callable[..., str]]:
    with ExitStack() as ending:
        yield lambda pair, clients_ca=None: ending.enter_context(_serving(pair, clients_ca))


BOTH = pytest.mark.parametrize("ask", [_as_fencer, _as_the_guest], ids=["fencer", "fencer-guest"])


@BOTH
@pytest.mark.parametrize("complete", [True, False], ids=["RFC 5280", "bare"])
def test_the_kubeconfigs_own_ca_is_believed(serving, tmp_path, ask: Ask, complete):
    """A bare one has neither key identifiers nor a key usage."""
    authority = Authority(tmp_path, complete=complete)
    url = serving(authority.server("api", ["127.0.0.1"]))
    path = write_kubeconfig(tmp_path / "kubeconfig", url, AS_SOMEBODY, ca_file=authority.ca_file)
    assert ask(path) == "v1.34.1"


@BOTH
@pytest.mark.parametrize(
    ("shown", "why"),
    [
        (
            lambda _own, other: other.server("api", ["127.0.0.1"]),
            "self-signed certificate|local issuer|signature",
        ),
        (lambda own, _other: own.server("api", ["192.0.2.1"]), "not valid for '127.0.0.1'"),
        (lambda own, _other: own.server("api", ["127.0.0.1"], timedelta(hours=-1)), "expired"),
    ],
    ids=["another CA", "another name", "over"],
)
def test_what_is_wrong_with_a_certificate_itself_is_refused(serving, tmp_path, ask: Ask, shown, why):
    own, other = Authority(tmp_path / "own", complete=False), Authority(tmp_path / "other", complete=False)
    url = serving(shown(own, other))
    path = write_kubeconfig(tmp_path / "kubeconfig", url, AS_SOMEBODY, ca_file=own.ca_file)
    with pytest.raises(
        (ClusterUnreachable, Unreachable), match=f"its certificate is not trusted: .*({why})"
    ) as told:
        ask(path)
    assert "_ssl.c" not in str(told.value)


def test_a_server_that_is_not_there_is_told_without_the_clients_own_words(tmp_path):
    authority = Authority(tmp_path)
    path = write_kubeconfig(
        tmp_path / "kubeconfig", "https://127.0.0.1:1", AS_SOMEBODY, ca_file=authority.ca_file
    )
    with pytest.raises(
        ClusterUnreachable, match=r"^https://127.0.0.1:1 does not answer: Connection refused \(asked: "
    ):
        _as_fencer(path)


def test_a_server_that_hangs_is_told_without_the_names_of_python_classes(tmp_path):
    authority = Authority(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as hung:  # connects, and answers nothing
        url = f"https://127.0.0.1:{hung.getsockname()[1]}"
        path = write_kubeconfig(tmp_path / "kubeconfig", url, AS_SOMEBODY, ca_file=authority.ca_file)
        settings = ClusterSettings(path, connect_timeout_s=0.2, read_timeout_s=0.2)
        with pytest.raises(ClusterUnreachable, match="timed out") as told:
            Connection(settings, sleep=lambda _: None).read("version", get("/version"))
    assert "host=" not in str(told.value)


def test_a_ca_that_was_replaced_in_its_file_is_believed_without_a_restart(serving, tmp_path):
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    url = serving(new.server("api", ["127.0.0.1"]))
    path = write_kubeconfig(tmp_path / "kubeconfig", url, AS_SOMEBODY, ca_file=old.ca_file)
    connection = Connection(ClusterSettings(path), sleep=lambda _: None)
    with pytest.raises(ClusterUnreachable):
        connection.read("version", get("/version"))
    old.ca_file.write_bytes(new.ca_file.read_bytes())
    assert connection.read("version", get("/version")).required("gitVersion") == "v1.34.1"


def test_who_was_told_to_verify_nothing_is_not_warned_at_each_request(serving, tmp_path):
    """`fencer check` says it once, and so does the log. Other servers are still warned of."""
    url = serving(Authority(tmp_path).server("api", ["127.0.0.1"]))
    path = write_kubeconfig(tmp_path / "kubeconfig", url, AS_SOMEBODY)
    content = json.loads(path.read_text())
    content["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    path.write_text(json.dumps(content))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        connection = Connection(ClusterSettings(path, unauthenticated=True), sleep=lambda _: None)
        assert connection.read("version", get("/version")).required("gitVersion") == "v1.34.1"
        assert warned == []
        urllib3.PoolManager(cert_reqs="CERT_NONE").request("GET", url.replace("127.0.0.1", "localhost"))
    assert [warning.category for warning in warned] == [InsecureRequestWarning]


# -- who we are, by a certificate ---------------------------------------------------------------------------


def _in_files(pair: KeyPair) -> dict[str, str]:
    return {"client-certificate": str(pair.cert_file), "client-key": str(pair.key_file)}


def _inline(pair: KeyPair) -> dict[str, str]:
    held = {"client-certificate-data": pair.cert_file, "client-key-data": pair.key_file}
    return {name: base64.b64encode(file.read_bytes()).decode() for name, file in held.items()}


@BOTH
@pytest.mark.parametrize("written", [_in_files, _inline])
def test_a_client_certificate_leads_in(serving, tmp_path, ask: Ask, written):
    authority = Authority(tmp_path)
    url = serving(authority.server("api", ["127.0.0.1"]), authority.ca_file)
    user = written(authority.client("fencer"))
    path = write_kubeconfig(tmp_path / "kubeconfig", url, user, ca_file=authority.ca_file)
    assert ask(path) == "v1.34.1"


def test_a_client_certificate_that_the_server_does_not_take_is_told_in_one_line(serving, tmp_path):
    authority, other = Authority(tmp_path / "own"), Authority(tmp_path / "other")
    url = serving(authority.server("api", ["127.0.0.1"]), authority.ca_file)
    user = _inline(other.client("fencer"))
    path = write_kubeconfig(tmp_path / "kubeconfig", url, user, ca_file=authority.ca_file)
    with pytest.raises(ClusterUnreachable, match=f"{url} does not answer: .* .asked: version.") as told:
        _as_fencer(path)
    assert str(told.value).isprintable()
