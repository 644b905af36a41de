"""A throw-away certificate authority, as a cluster has one: server certificates and client identities.

Certificates say all that RFC 5280 asks for, unless they are made bare, as many clusters have them: clients
that do as Python 3.13 does by itself refuse those without a key identifier, or a CA's key usage. Source:
`ssl.VERIFY_X509_STRICT`.
"""

import hashlib
import ipaddress
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID_FOR = timedelta(days=7)  # longer than any run, short enough to be worthless afterwards
_SIGNS_CERTIFICATES = x509.KeyUsage(
    key_cert_sign=True,
    crl_sign=True,
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Two PEM files: a certificate and its private key."""

    cert_file: Path
    key_file: Path


class Authority:
    """Issues certificates into a folder. Keys are P-256: made in under a millisecond.

    Args:
        folder: Made if need be; `ca.crt` and all key pairs are written there.
        complete: With key identifiers and the CA's key usage.
    """

    def __init__(self, folder: Path, *, complete: bool = True) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._complete = folder, complete
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fencer-test-ca")])
        self.ca_file = folder / "ca.crt"
        builder = self._certificate(self._name, self._key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        if complete:
            builder = builder.add_extension(_SIGNS_CERTIFICATES, critical=True)
        certificate = builder.sign(self._key, hashes.SHA256())
        self.ca_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def server(self, name: str, addresses: Sequence[str], valid_for: timedelta = _VALID_FOR) -> KeyPair:
        """Issue a server certificate for IP addresses and DNS names; how long it is good counts from now."""
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = x509.SubjectAlternativeName([_general_name(address) for address in addresses])
        return self._issue(name, subject, ExtendedKeyUsageOID.SERVER_AUTH, names, valid_for)

    def client(self, user: str, groups: Sequence[str] = ()) -> KeyPair:
        """Issue a client certificate: the API server reads the name as user, organisations as groups."""
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, user))
        identity = hashlib.sha256("\n".join([user, *groups]).encode()).hexdigest()[:8]
        file_name = f"client-{re.sub(r'[^a-z0-9.-]', '-', user.lower())}-{identity}"
        return self._issue(file_name, x509.Name(attributes), ExtendedKeyUsageOID.CLIENT_AUTH)

    def signing_key(self, name: str) -> Path:
        """Write a private key alone (for service account tokens)."""
        return self._write_key(name, ec.generate_private_key(ec.SECP256R1()))

    def _issue(
        self,
        file_name: str,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None = None,
        valid_for: timedelta = _VALID_FOR,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._certificate(subject, key.public_key(), valid_for).add_extension(
            x509.ExtendedKeyUsage([usage]), critical=False
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        cert_file = self._folder / f"{file_name}.crt"
        pem = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        cert_file.write_bytes(pem)
        return KeyPair(cert_file, self._write_key(file_name, key))

    def _certificate(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, valid_for: timedelta = _VALID_FOR
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=2))
            .not_valid_after(now + valid_for)
        )
        if not self._complete:
            return builder
        ours = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return builder.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(key), critical=False
        ).add_extension(ours, critical=False)

    def _write_key(self, name: str, key: ec.EllipticCurvePrivateKey) -> Path:
        path = self._folder / f"{name}.key"
        path.touch(mode=0o600)
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,  # "EC PRIVATE KEY", which Kubernetes reads
                serialization.NoEncryption(),
            )
        )
        return path


def kubeconfig(server: str, ca_file: Path, user: str, pair: KeyPair) -> str:
    """Return the text of a kubeconfig (JSON, which is YAML too) for one server and one client certificate."""
    access = {"client-certificate": str(pair.cert_file), "client-key": str(pair.key_file)}
    cluster = {"server": server, "certificate-authority": str(ca_file)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": user, "user": access}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
        "current-context": "test",
    }
    return json.dumps(content)


def _general_name(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)
