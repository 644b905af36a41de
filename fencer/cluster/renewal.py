"""When our credentials end, and the command that makes new ones. Asks nobody."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from fencer.cluster.certificates import LARGEST_BYTES, end_of
from fencer.cluster.parse import moment
from fencer.cluster.settings import ClusterSettings
from fencer.cluster.tokens import Claims, claims_of
from fencer.core.text import printable
from fencer.core.times import parse_utc
from fencer.errors import ClusterProtocol, ConfigError, unreadable
from fencer.ports import Credential

TOKEN, CERTIFICATE = "token", "certificate"

_BEARER = "Bearer "
_ACCOUNT = re.compile(r"system:serviceaccount:([a-z0-9-]+):fencer")
_NAMESPACE = "fencer"


def credentials(settings: ClusterSettings, configuration: Any) -> tuple[Credential, ...]:
    """Return what the client sends to prove who we are; what does not tell its end is among it.

    Args:
        settings: Where it was read.
        configuration: The client's, with what was read.

    Raises:
        ConfigError: the file with the certificate cannot be read.
    """
    return tuple(_held(settings, configuration))


def _held(settings: ClusterSettings, configuration: Any) -> Iterator[Credential]:
    claims = sent_claims(configuration)
    renewal = renewing(settings, configuration.host, claims.user if claims else "")
    if claims is not None:
        yield Credential(TOKEN, claims.ends, renewal, claims.begins)
    if configuration.cert_file:
        yield Credential(CERTIFICATE, end_of(_read(configuration.cert_file)), renewal)


def sent_claims(configuration: Any) -> Claims | None:
    """Return what the token that a client sends says of itself; None: it sends none that does."""
    # Under which name it is kept depends on the client's version. Its own reader would fetch it again.
    kept = configuration.api_key
    header = kept.get("BearerToken") or kept.get("authorization") or ""
    return claims_of(header.removeprefix(_BEARER))


def renewing(settings: ClusterSettings, server: str, user: str) -> str:
    """Return the command that makes another token for the same account, and leads to the same server.

    Args:
        settings: The kubeconfig. For a borrowed one there is no command.
        server: URL of the API server in it. It need not be the one in the administrator's.
        user: Whose token it is; empty: not known.
    """
    if settings.borrowed:
        return ""
    file = shlex.quote(printable(str(settings.kubeconfig)))
    words = [f"fencer setup kubernetes --kubeconfig ADMINS --output {file} --replace"]
    if server.startswith("https://"):  # setup takes no other
        words.append(f"--server {shlex.quote(printable(server))}")
    account = _ACCOUNT.fullmatch(user)
    if account and account[1] != _NAMESPACE:
        words.append(f"--namespace {account[1]}")
    return " ".join(words)


def why_refused(settings: ClusterSettings, configuration: Any, renewed: Any, date: str | None) -> str:
    """Say why an API server may have called us nobody (401), and what helps.

    Args:
        settings: Where the credentials were read.
        configuration: The client's, with those that were refused.
        renewed: The same, with those that were read since.
        date: The answer's header Date: the server's clock judges. Without one it is ours.

    Raises:
        ConfigError: the file with the certificate cannot be read.
    """
    if renewed.api_key != configuration.api_key:
        return "The kubeconfig has another token by now, which is sent from the next request on"
    held = credentials(settings, configuration)
    renewal = renewing(settings, configuration.host, "")
    if not held:
        another = f" Another token: `{renewal}`" if renewal else ""
        return f"Are the kubeconfig's credentials expired, or of another cluster?{another}"
    now = _clock(date)
    ended = [one for one in held if one.ends is not None and one.ends <= now]
    another = f". Another token: `{held[0].renewal}`" if renewal else ""
    return f"{_ended(ended[0]) if ended else _doubted(held)}{another}"


def _ended(one: Credential) -> str:
    return f"The {one.what} ended at {_local(one.ends)}"


def _doubted(held: Sequence[Credential]) -> str:
    until = [f"{one.what} (good until {_local(one.ends)})" if one.ends else one.what for one in held]
    return f"The {' or the '.join(until)} may have been revoked, or be of another cluster"


def _local(moment: datetime | None) -> str:
    """Write a time for people here. No age: whoever tells each error once would tell it again each minute."""
    try:
        return f"{moment.astimezone():%Y-%m-%d %H:%M %Z}" if moment else ""
    except OverflowError:  # what has no end, ends in the year 9999
        return f"{moment:%Y-%m-%d %H:%M %Z}"


def _clock(date: str | None) -> datetime:
    try:
        return parse_utc(moment(date))
    except ClusterProtocol:
        return datetime.now(UTC)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as the client has it
            return file.read(LARGEST_BYTES)
    except OSError as error:
        raise ConfigError(unreadable(path, error)) from error
