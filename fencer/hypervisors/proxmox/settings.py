"""Where a Proxmox endpoint is, our account there, and how long its calls may take."""

from __future__ import annotations

import os
import re
import ssl
import string
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from fencer.core.identity import Admission
from fencer.errors import ConfigError

_TOKEN_ID = re.compile(r"[^\s!@/:]+@[^\s!@/:]+![A-Za-z][A-Za-z0-9._-]*")
_SHA256_BYTES = 32


@dataclass(frozen=True, slots=True)
class ProxmoxSettings:
    """A Proxmox cluster, or a single host, as an endpoint. TLS is always verified; there is no way not to.

    Attributes:
        name: What fencer calls the endpoint; unique.
        servers: API hosts of the same cluster as ``https://HOST:8006``, tried in turn.
        cluster: The cluster's name, as ``pvecm status`` prints it. None: a standalone host. Every look
            compares it with the answer, because a broken cluster file system makes a member look standalone.
        token_id: ``USER@REALM!ID``.
        token_file: File with the token's secret and nothing else; read again when it is refused.
        ca_file: CAs that signed the servers' certificates, such as ``/etc/pve/pve-root-ca.pem``. None: the
            usual public ones, where no fingerprints are given.
        fingerprints: Instead of a CA: the SHA-256 of each server's certificate, in the order of `servers`.
        quorum_device: The cluster has a quorum device, even if its API shows none.
        power: Which of its guests power actions may touch; `describe` then misses the rights for it.
        connect_timeout_s: Longest wait for a connection, TLS included.
        call_timeout_s: For calls that the asked server answers by itself.
        proof_timeout_s: For calls that it passes on to the guest's host: longer than its own 30 s, so that
            what it says of that host is heard. Source: pve-http-server, src/PVE/APIServer/AnyEvent.pm,
            proxy_request.
        task_wait_s: How long a power action waits for its task to end, before it is left to itself.
    """

    name: str
    servers: tuple[str, ...]
    cluster: str | None
    token_id: str
    token_file: Path
    ca_file: Path | None = None
    fingerprints: tuple[str, ...] = ()
    quorum_device: bool = False
    power: Admission = field(default_factory=Admission)
    _: KW_ONLY
    connect_timeout_s: float = 3.0
    call_timeout_s: float = 8.0
    proof_timeout_s: float = 35.0
    task_wait_s: float = 10.0


def wrong_token_id(text: str) -> str | None:
    """Say what is wrong with a token's id; None: nothing.

    Nothing of it is told: Proxmox writes ``USER@REALM!ID=SECRET`` in its header, and so do people.
    """
    if _TOKEN_ID.fullmatch(text):
        return None
    return "must be USER@REALM!ID like fencer@pve!agent, and nothing else: the secret goes into token_file"


def require_usable(settings: ProxmoxSettings) -> None:
    """Refuse settings that could never work, before anything is asked.

    Raises:
        ConfigError: with what is wrong.
    """
    _refuse_no_server(settings.servers, f"{settings.name}: servers")
    if wrong := wrong_token_id(settings.token_id):
        raise ConfigError(f"{settings.name}: token_id: {wrong}")
    pins = settings.fingerprints
    if pins and settings.ca_file is not None:
        raise ConfigError(f"{settings.name}: ca_file or fingerprints, one of the two")
    if pins and len(pins) != len(settings.servers):
        raise ConfigError(
            f"{settings.name}: fingerprints: {len(pins)} for {len(settings.servers)} servers; "
            "each server has a certificate of its own"
        )
    for fingerprint in pins:
        digits = fingerprint.replace(":", "")
        if len(digits) != 2 * _SHA256_BYTES or not set(digits) <= set(string.hexdigits):
            raise ConfigError(
                f"{settings.name}: fingerprints: {fingerprint!r} is no SHA-256: 32 bytes like 87:9D:…"
            )
    if settings.ca_file is not None:
        _refuse_no_ca(settings.ca_file, f"{settings.name}: ca_file {settings.ca_file}")


def _refuse_no_server(servers: tuple[str, ...], where: str) -> None:
    like = "like https://pve1:8006"
    if not servers:
        raise ConfigError(f"{where}: name at least one, {like}")
    for server in servers:
        if "@" in server:  # not shown: what stands before it may be a password
            raise ConfigError(f"{where}: must not carry a user or password, but be {like}")
        if not _is_server(server):
            raise ConfigError(f"{where}: {server!r} is not {like}")


def _refuse_no_ca(file: Path, where: str) -> None:
    if not os.access(file, os.R_OK):
        raise ConfigError(
            f"{where}: is not there, or cannot be read. It has to be a copy of a host's "
            "/etc/pve/pve-root-ca.pem that fencer's user may read"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(file)
    except OSError as error:
        raise ConfigError(f"{where}: holds no certificate (-----BEGIN CERTIFICATE-----)") from error
    if not context.get_ca_certs():
        raise ConfigError(
            f"{where}: holds no CA certificate, but a host's own. That one will be renewed, and does not "
            "fit the other hosts. The CA's is /etc/pve/pve-root-ca.pem"
        )


def _is_server(url: str) -> bool:
    try:
        parts = urlsplit(url)
        whole = parts.scheme == "https" and parts.hostname and parts.port != 0
    except ValueError:  # half a bracket, or an IPv6 address without any
        return False
    return bool(whole) and not parts.path.strip("/")


class Token:
    """The API token's secret, from its file. Never shown.

    Args:
        settings: For the file's name.

    Raises:
        ConfigError: the file cannot be read, or holds something else.
    """

    def __init__(self, settings: ProxmoxSettings) -> None:
        self._settings = settings
        self.user, _, self.name = settings.token_id.partition("!")
        self.secret = self._read()

    def reread(self) -> bool:
        """Read the file again; whether there is another secret in it now.

        Raises:
            ConfigError: as at first.
        """
        before, self.secret = self.secret, self._read()
        return self.secret != before

    def __repr__(self) -> str:
        """Name the token, not its secret."""
        return f"Token({self._settings.token_id})"

    def _read(self) -> str:
        path = self._settings.token_file
        where = f"{self._settings.name}: token_file {path}"
        try:
            text = path.read_text(encoding="ascii").strip()
        except OSError as error:
            raise ConfigError(f"{where}: cannot be read: {error.strerror or error}") from error
        except ValueError as error:
            raise ConfigError(f"{where}: is no text in ASCII") from error
        secret = text.removeprefix(f"{self._settings.token_id}=")
        if not secret or not secret.isprintable() or " " in secret:
            raise ConfigError(f"{where}: must hold the token's secret, one line, and nothing else")
        return secret
