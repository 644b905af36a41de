"""One request as a handler sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.support.pve.api.access import Token
from tests.support.pve.model import Conf, Files, Host
from tests.support.pve.refused import Refused, bad_parameter

if TYPE_CHECKING:
    from tests.support.pve.cluster import PveCluster

Json = Any
"""What a handler answers: it becomes JSON as it is."""

_TRUE = {"1", "true", "yes", "on"}


@dataclass(slots=True)
class Call:
    """A request that passed the checks of identity and rights.

    Attributes:
        host: On which host it is carried out.
        params: Of query and body.
        names: What the placeholders of the path stand for.
        delay_s: How long the real one would take, beyond the usual.
    """

    pve: PveCluster
    host: Host
    token: Token
    params: dict[str, str]
    names: dict[str, str]
    delay_s: float = 0.0

    @property
    def files(self) -> Files:
        """The cluster's files as this host has them."""
        return self.pve.files_of(self.host)

    @property
    def vmid(self) -> int:
        """The guest that it is about."""
        return self.integer("vmid", self.names["vmid"])

    def conf(self) -> Conf:
        """Return that guest's configuration, if it is on this host."""
        found = self.files.confs.get(self.vmid)
        if found is None or found.host != self.host.name or found.kind != "qemu":
            path = f"nodes/{self.host.name}/qemu-server/{self.vmid}.conf"
            raise Refused(500, f"Configuration file '{path}' does not exist")
        return found

    def may(self, path: str, *privileges: str) -> bool:
        """Whether the caller has one of these privileges, on the path or by the pool that a guest is in."""
        return not (self.token.on(path) | self._by_pool(path)).isdisjoint(privileges)

    def _by_pool(self, path: str) -> frozenset[str]:
        """Source: pve-access-control, PVE/RPCEnvironment.pm, compile_acl_path: roles of both are joined."""
        kind, _, number = path.strip("/").partition("/")
        conf = self.files.confs.get(int(number)) if kind == "vms" and number.isdigit() else None
        return self.token.on(f"/pool/{conf.pool}") if conf is not None and conf.pool else frozenset()

    def require(self, path: str, *privileges: str) -> None:
        """Refuse a caller who has none of these privileges."""
        if not self.may(path, *privileges):
            raise Refused(403, f"Permission check failed ({path}, {'|'.join(privileges)})")

    def flag(self, name: str) -> bool:
        """Return a boolean parameter."""
        return self.params.get(name, "0").lower() in _TRUE

    def require_one_of(self, name: str, *allowed: str) -> None:
        """Refuse a value that is not in a parameter's enumeration."""
        if name in self.params and self.params[name] not in allowed:
            value = self.params[name]
            text = f"value '{value}' does not have a value in the enumeration '{', '.join(allowed)}'"
            bad_parameter(name, text)

    def number(self, name: str, default: int) -> int:
        """Return an integer parameter."""
        return self.integer(name, self.params[name]) if name in self.params else default

    def integer(self, name: str, text: str) -> int:
        """Return what a text means as an integer."""
        if not text.removeprefix("-").isdigit():
            bad_parameter(name, f"type check ('integer') failed - got '{text}'")
        return int(text)
