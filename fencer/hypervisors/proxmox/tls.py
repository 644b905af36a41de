"""Whose certificate is believed, and what a person is told of one that is not.

Proxmox hosts sign their certificates with a CA of their cluster's own, which lasts ten years. Those made
before pve-cluster 9.1.2 (spring 2026) do not say what their key may be used for, and Python 3.13 calls that
invalid (`ssl.VERIFY_X509_STRICT`). Where a CA was named on purpose, the signature, names and dates count.

Source: pve-cluster, PVE/Cluster/Setup.pm: gen_pveca_cert, gen_pve_ssl_cert; its changelog, #6701.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from requests.adapters import HTTPAdapter
from urllib3.util import create_urllib3_context

from fencer.bounded import bound_answers
from fencer.hypervisors.proxmox.errors import shown

ROOT_CA = "/etc/pve/pve-root-ca.pem"
_ANEW = "`pvecm updatecerts --force && systemctl restart pveproxy` there makes a new one"
_OF_PROXMOX = "PVE Cluster Manager CA"
_PORT = 443
_ALSO_OVER = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME, for which `ssl` has no name: what is over can be read, too."""
_OVER, _NOT_YET = 10, 9
_OTHER_NAME, _OTHER_ADDRESS = 62, 64
"""X509_V_ERR_*. Source of these numbers: OpenSSL, x509_vfy.h."""


class BoundedAdapter(HTTPAdapter):
    """Believes what Python does, and gives an answer whole, within bounds; see `fencer/bounded.py`."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Have every answer bounded in size and time."""
        super().init_poolmanager(*args, **kwargs)
        bound_answers(self.poolmanager)


class PinnedAdapter(BoundedAdapter):
    """Trusts one certificate, with any signer and any name."""

    def __init__(self, fingerprint: str) -> None:
        self._fingerprint = fingerprint
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Have every connection hold its certificate against the fingerprint."""
        super().init_poolmanager(*args, assert_fingerprint=self._fingerprint, **kwargs)


class NamedCaAdapter(BoundedAdapter):
    """Trusts what the named CA signed, for the asked name, if it is valid today; no other formalities."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Have every connection use a context of its own; requests loads the file into it."""
        context = create_urllib3_context(verify_flags=ssl.VERIFY_X509_PARTIAL_CHAIN)
        super().init_poolmanager(*args, ssl_context=context, **kwargs)


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a server shows.

    Attributes:
        names: For which it is good, addresses too.
        issuer: Who signed it.
        ends: When it is over, as OpenSSL writes it.
    """

    names: tuple[str, ...]
    issuer: str
    ends: str

    @property
    def of_proxmox(self) -> bool:
        """Whether the CA of a Proxmox cluster signed it."""
        return _OF_PROXMOX in self.issuer


def served_at(url: str, within_s: float) -> Certificate | None:
    """Read the certificate that a server shows, whether it can be believed or not. Nothing is sent there.

    Args:
        url: Of the server.
        within_s: Longest wait for each of two connections.

    Returns:
        None: it showed none that can be read.
    """
    parts = urlsplit(url)
    address = (parts.hostname or "", parts.port or _PORT)
    try:
        pem = ssl.get_server_certificate(address, timeout=within_s)
        context = create_urllib3_context(verify_flags=ssl.VERIFY_X509_PARTIAL_CHAIN | _ALSO_OVER)
        context.check_hostname = False
        context.load_verify_locations(cadata=pem)  # `ssl` takes apart only what it has verified
        with (
            socket.create_connection(address, within_s) as plain,
            context.wrap_socket(plain, server_hostname=address[0]) as secure,
        ):
            fields: dict[str, Any] = secure.getpeercert() or {}
    except (OSError, ValueError):
        return None
    names = tuple(str(value) for _, value in fields.get("subjectAltName", ()))
    return Certificate(names, _name(fields.get("issuer", ())), str(fields.get("notAfter", "")))


def untrusted(
    error: ssl.SSLCertVerificationError, url: str, seen: Certificate | None, ca_file: Path | None
) -> str:
    """Say why a certificate is not believed, and what would change that.

    Args:
        error: What OpenSSL made of it.
        url: Of the server.
        seen: What the server shows; None: not known.
        ca_file: The CA that was named; None: the public ones were meant.
    """
    if error.verify_code in {_OTHER_NAME, _OTHER_ADDRESS}:
        return _for_others(url, seen)
    if error.verify_code in {_OVER, _NOT_YET}:
        return _out_of_date(error.verify_message, seen)
    return f"its certificate is not trusted: {error.verify_message}. {_by_whom(seen, ca_file)}"


def _for_others(url: str, seen: Certificate | None) -> str:
    text = f"its certificate does not name {urlsplit(url).hostname}"
    if seen is None or not seen.names:
        return f"{text}: write a name or address in servers that it names"
    text += f", but {shown(', '.join(seen.names))}: write one of these in servers"
    if not seen.of_proxmox:
        return text
    return f"{text}; if its address has changed, {_ANEW}"


def _out_of_date(why: str, seen: Certificate | None) -> str:
    if seen is None:
        return f"{why}: look there with `pvenode cert info`, and at the clock of this machine"
    remedy = _ANEW if seen.of_proxmox else "`pvenode acme cert renew` there, or upload a new one"
    return f"{why} (its own last day: {seen.ends}): {remedy}; or the clock of this machine is wrong"


def _by_whom(seen: Certificate | None, ca_file: Path | None) -> str:
    signer = "an unknown CA" if seen is None else seen.issuer
    of_proxmox = seen is None or seen.of_proxmox
    if ca_file is None:
        own = f"a copy of its cluster's {ROOT_CA}" if of_proxmox else "that CA's certificate"
        return f"It is signed by {signer}, and no ca_file is given: {own} would do"
    text = f"It is signed by {signer}, and ca_file {ca_file} holds {_held(ca_file)}"
    if of_proxmox:
        text += f". That is another cluster's, or an old one: copy {ROOT_CA} from that server again"
    else:
        text += (
            ". What is shown is a certificate of the host's own instead of Proxmox' (pveproxy-ssl.pem: "
            "ACME, or uploaded): if a public CA signed it, leave ca_file out, else name that CA's certificate"
        )
    return text


def _held(ca_file: Path) -> str:
    """Name the CAs in a file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(ca_file)
    except OSError as error:
        return f"none ({error.strerror or error})"
    held = [_name(fields["subject"]) for fields in context.get_ca_certs()]
    return "; ".join(held) or "none"


def _name(fields: Any) -> str:
    """Write the name of a CA, as `ssl` takes it apart, so that a person may recognise it."""
    return shown(", ".join(value for parts in fields for _, value in parts)) or "nobody"
