"""Whose certificate is believed, Proxmox' own CAs, old and new, among them; and what is told of others."""

from __future__ import annotations

import shutil
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from fencer.errors import ConfigError, HypervisorUnreachable
from fencer.hypervisors.proxmox.tls import Certificate, NamedCaAdapter, untrusted
from tests.controlplane.certificates import KeyPair
from tests.hypervisors.proxmox.conftest import Home
from tests.support import real_parts_required
from tests.support.pve import PveCluster, PveServers
from tests.support.pve.https.certificates import PveAuthority

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None and not real_parts_required(),
    reason="no openssl here, which Proxmox calls",
)

Shown = Callable[[KeyPair], Home]


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> PveAuthority:
    """A cluster's CA from before spring 2026."""
    return PveAuthority(tmp_path_factory.mktemp("old"), identity="0a0a0a0a", says_usage=False)


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> PveAuthority:
    return PveAuthority(tmp_path_factory.mktemp("new"), identity="4f2c1d7a")


@pytest.fixture
def showing(tmp_path: Path) -> Iterator[Shown]:
    """Serve a standalone host that shows a certificate."""
    with ExitStack() as ending:
        yield lambda pair: ending.enter_context(_host(tmp_path, pair))


@contextmanager
def _host(folder: Path, pair: KeyPair) -> Iterator[Home]:
    pve = PveCluster(name=None, hosts=("pve1",))
    with PveServers(pve, folder, certify=lambda _host: pair) as api:
        home = Home(pve, api, folder)
        yield home
        home.close()


def refusal(home: Home, **changes: object) -> str:
    """Return what is told when a server is not believed; nothing may have been sent to it."""
    with pytest.raises(HypervisorUnreachable) as caught:
        home.agent(**changes).sweep()
    assert home.asked() == []
    return str(caught.value)


# -- believed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", ["old", "new"])
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_hosts_own_certificate_is_believed_by_the_clusters_ca(showing, request, made, name):
    """Whether its CA says what its key is for, or not; the certificate names loopback."""
    authority = request.getfixturevalue(made)
    home = showing(authority.server("pve1", ["IP:192.0.2.11"]))
    servers = (f"https://{name}:{home.api.port('pve1')}",)
    assert home.agent(servers=servers, ca_file=authority.ca_file).describe().problems == ()


def test_one_file_may_hold_several_cas(showing, old, new, tmp_path):
    """As where one host of a cluster shows a certificate of its own."""
    both = tmp_path / "both.pem"
    both.write_bytes(new.ca_file.read_bytes() + old.ca_file.read_bytes())
    home = showing(old.server("pve1"))
    assert home.agent(ca_file=both).describe().problems == ()


def test_a_named_ca_is_held_to_names_dates_and_tls_1_2():
    context = NamedCaAdapter().poolmanager.connection_pool_kw["ssl_context"]
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT


# -- not believed -----------------------------------------------------------------------------------------


def test_another_clusters_ca_is_refused_and_both_are_named(showing, old, new):
    text = refusal(showing(old.server("pve1")), ca_file=new.ca_file)
    assert "signed by Proxmox Virtual Environment, 0a0a0a0a, PVE Cluster Manager CA" in text
    assert (
        f"ca_file {new.ca_file} holds Proxmox Virtual Environment, 4f2c1d7a, PVE Cluster Manager CA" in text
    )
    assert "copy /etc/pve/pve-root-ca.pem from that server again" in text


def test_a_certificate_of_the_hosts_own_is_told_from_proxmox_one(tmp_path, new):
    """With ACME the CA in /etc/pve is of no use, and copying it once more would not help."""
    public = PveAuthority(tmp_path / "public", organisation="Let's Encrypt")
    with _host(tmp_path, public.custom("pve1.example.com")) as home:
        text = refusal(home, ca_file=new.ca_file)
    assert "signed by Proxmox Virtual Environment, 4f2c1d7a, Let's Encrypt" in text
    assert "pveproxy-ssl.pem" in text
    assert "if a public CA signed it, leave ca_file out" in text
    assert "copy" not in text


def test_without_a_ca_file_the_clusters_ca_is_what_is_missing(showing, new):
    text = refusal(showing(new.server("pve1")), ca_file=None)
    assert "4f2c1d7a, PVE Cluster Manager CA, and no ca_file is given" in text
    assert "a copy of its cluster's /etc/pve/pve-root-ca.pem would do" in text


def test_a_name_that_the_certificate_does_not_bear_is_refused_and_those_it_bears_are_named(showing, new):
    home = showing(new.custom("pve1.example.com"))
    text = refusal(home, ca_file=new.ca_file)
    assert "does not name 127.0.0.1, but pve1.example.com: write one of these in servers" in text


def test_a_certificate_that_is_over_is_refused_and_how_to_make_a_new_one_is_told(tmp_path):
    over = PveAuthority(tmp_path / "over", days=0)
    with _host(tmp_path, over.server("pve1")) as home:
        text = refusal(home, ca_file=over.ca_file)
    assert "certificate has expired (its own last day: " in text
    assert "`pvecm updatecerts --force && systemctl restart pveproxy`" in text


def test_a_certificate_that_cannot_be_read_again_is_still_refused_in_words():
    error = ssl.SSLCertVerificationError()
    error.verify_code, error.verify_message = 20, "unable to get local issuer certificate"
    text = untrusted(error, "https://192.0.2.11:8006", None, None)
    assert "signed by an unknown CA, and no ca_file is given" in text
    assert Certificate((), "Proxmox Virtual Environment, x, PVE Cluster Manager CA", "").of_proxmox


def test_a_ca_file_without_a_certificate_is_refused_at_once(showing, new, tmp_path):
    """The key beside it, most likely."""
    home = showing(new.server("pve1"))
    key = tmp_path / "pve-root-ca.key"
    key.write_text("-----BEGIN PRIVATE KEY-----\n")
    with pytest.raises(ConfigError, match=r"pve-root-ca\.key: holds no certificate"):
        home.agent(ca_file=key)
