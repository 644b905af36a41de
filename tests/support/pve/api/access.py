"""Who may do what: API tokens and the rights of each, path by path.

Source: pve-access-control's PVE/RPCEnvironment.pm; replies as recorded with four tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import uuid4

_ALWAYS_SHOWN = ("/", "/access", "/access/groups", "/nodes", "/pool", "/sdn", "/storage", "/vms")


@dataclass(slots=True)
class Token:
    """An API token.

    Attributes:
        id: ``USER@REALM!NAME``.
        secret: Its UUID.
        rights: Privileges by path; each holds for the paths beneath, until one of those has its own.
        expired: Refused from now on.
    """

    id: str
    secret: str
    rights: dict[str, frozenset[str]] = field(default_factory=dict)
    expired: bool = False

    def on(self, path: str) -> frozenset[str]:
        """Return what it may do on a path."""
        while path not in self.rights:
            if path == "/":
                return frozenset()
            path = path.rpartition("/")[0] or "/"
        return self.rights[path]


class Access:
    """All tokens of a cluster."""

    def __init__(self) -> None:
        self._tokens: dict[str, Token] = {}

    def add_token(self, name: str, secret: str, rights: Mapping[str, Iterable[str]]) -> Token:
        """``pveum user token add`` with its rights."""
        token = Token(name, secret, {path: frozenset(privileges) for path, privileges in rights.items()})
        self._tokens[name] = token
        return token

    def grant(self, name: str, path: str, privileges: Iterable[str]) -> None:
        """Set what a token may do on a path and beneath."""
        self._tokens[name].rights[path] = frozenset(privileges)

    def revoke(self, name: str, path: str) -> None:
        """Take the entry of a path away."""
        del self._tokens[name].rights[path]

    def rotate(self, name: str) -> str:
        """Give a token a new secret, and return it."""
        self._tokens[name].secret = str(uuid4())
        return self._tokens[name].secret

    def expire(self, name: str) -> None:
        """Let a token run out."""
        self._tokens[name].expired = True

    def recognise(self, header: str | None) -> Token | str:
        """Return the token of an Authorization header, or why there is none."""
        scheme, _, claim = (header or "").partition("=")
        if scheme != "PVEAPIToken":
            return "No ticket"
        name, _, secret = claim.partition("=")
        token = self._tokens.get(name)
        if token is None or token.expired or token.secret != secret:
            return "Authentication failed!"
        return token

    def permissions(self, token: Token) -> dict[str, dict[str, int]]:
        """Return what ``GET /access/permissions`` says."""
        paths = {path for other in self._tokens.values() for path in other.rights}
        shown = {path: token.on(path) for path in sorted(paths.union(_ALWAYS_SHOWN))}
        return {path: dict.fromkeys(sorted(rights), 1) for path, rights in shown.items() if rights}
