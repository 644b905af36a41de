"""Certificates as Proxmox VE makes them, by the `openssl` program that it calls.

Source: pve-cluster, PVE/Cluster/Setup.pm: gen_pveca_cert and gen_pve_ssl_cert. Root CAs say what their key
may be used for since 9.1.2 (spring 2026) only; they last ten years, and no upgrade recreates them. Keys are
shorter here.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from tests.controlplane.certificates import KeyPair

_EVERY_NODE = ("IP:127.0.0.1", "IP:::1", "DNS:localhost")
_BITS = "2048"


class PveAuthority:
    """The root CA of one cluster.

    Args:
        folder: Made if need be; all keys and certificates are written there.
        identity: Tells it from other clusters' CAs: a UUID, in the real one.
        organisation: Another one: it is not Proxmox' own, but what ACME or an upload brings.
        says_usage: It has a keyUsage, as since pve-cluster 9.1.2.
        days: How long the certificates of its hosts last; 0: they are over as soon as they are made.
    """

    def __init__(
        self,
        folder: Path,
        *,
        identity: str = "4f2c1d7a",
        organisation: str = "PVE Cluster Manager CA",
        says_usage: bool = True,
        days: int = 730,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._says_usage, self._days = folder, says_usage, days
        self._subject = f"/CN=Proxmox Virtual Environment/OU={identity}/O={organisation}"
        self._key = folder / "pve-root-ca.key"

    @cached_property
    def ca_file(self) -> Path:
        """``/etc/pve/pve-root-ca.pem``."""
        certificate = self._folder / "pve-root-ca.pem"
        usage = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"] if self._says_usage else []
        self._new_key(self._key)
        _openssl(
            *("req", "-batch", "-new", "-x509", "-days", "3650"),
            *("-key", str(self._key), "-out", str(certificate), "-subj", self._subject),
            *usage,
        )
        return certificate

    def server(self, host: str, names: Sequence[str] = ()) -> KeyPair:
        """Return ``pve-ssl.pem`` and its key, for a host and whatever else it is called.

        Args:
            host: Its name; the certificate is for HOST.home.arpa as well, and for loopback.
            names: Further ones, as openssl writes them: ``IP:192.0.2.11``.
        """
        names = (*_EVERY_NODE, *names, f"DNS:{host}", f"DNS:{host}.home.arpa")
        subject = f"/OU=PVE Cluster Node/O=Proxmox Virtual Environment/CN={host}.home.arpa"
        return self._issue(host, subject, names)

    def custom(self, name: str) -> KeyPair:
        """Return ``pveproxy-ssl.pem`` and its key, as ACME has them: for one public name alone."""
        return self._issue(name, f"/CN={name}", (f"DNS:{name}",))

    def _issue(self, file_name: str, subject: str, names: Sequence[str]) -> KeyPair:
        folder = self._folder
        pair = KeyPair(folder / f"{file_name}.pem", folder / f"{file_name}.key")
        request = folder / f"{file_name}.csr"
        self._new_key(pair.key_file)
        _openssl(
            *("req", "-batch", "-new", "-key", str(pair.key_file), "-out", str(request), "-subj", subject),
            *("-addext", "basicConstraints=CA:FALSE", "-addext", "extendedKeyUsage=serverAuth"),
            *("-addext", f"subjectAltName={','.join(names)}"),
        )
        _openssl(
            *("x509", "-req", "-in", str(request), "-out", str(pair.cert_file), "-days", str(self._days)),
            *("-CA", str(self.ca_file), "-CAkey", str(self._key), "-CAcreateserial"),
            *("-copy_extensions", "copyall"),
        )
        return pair

    def _new_key(self, file: Path) -> None:
        _openssl("genrsa", "-out", str(file), _BITS)


def _openssl(*words: str) -> None:
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"openssl {' '.join(words)}: {done.stderr}"
