"""How a host comes to an answer: who asks, may they, which host answers for which, and what becomes of it.

The order of checks is the real one's: file system, identity, path, rights, way to the host, its daemon,
parameters. So a caller without rights cannot tell a guest that is missing from one that is hidden.

Source: pve-manager's PVE/HTTPServer.pm and pve-http-server's AnyEvent.pm; statuses, reasons and seconds as
recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.support.pve.api.call import Call
from tests.support.pve.api.routes import AGENT, ROUTES, Route
from tests.support.pve.model import Daemon, Host, Pmxcfs
from tests.support.pve.refused import BAD_PARAMETER, Refused

if TYPE_CHECKING:
    from tests.support.pve.cluster import PveCluster

UNAUTHORISED_S = 3.0
REFUSED_S = 0.03
NO_ROUTE_S = 3.1
NO_ROUTE_AT_FIRST_S = 20.2
PROXY_TIMEOUT_S = 30.0
NO_FILES_S = 3.0
_ARP_S = 30.0
_NOT_IMPLEMENTED, _CONNECT, _REQUEST = 501, 595, 596
_UNKNOWN_PARAMETER = "property is not defined in schema and the schema does not allow additional properties"


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes back.

    Attributes:
        reason: In the status line.
        body: JSON; None: nothing at all.
        delay_s: How long the real one would have taken.
    """

    status: int
    reason: str
    body: dict[str, Any] | None = None
    delay_s: float = 0.0


class Silence(Exception):
    """No answer at all, as long as the cluster file system is frozen."""


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked.

    Attributes:
        path: Without ``/api2/json``.
        params: Of query and body.
        authorization: The header.
    """

    method: str
    path: str
    params: dict[str, str]
    authorization: str | None


@dataclass(slots=True)
class Api:
    """Answers requests as the hosts of a cluster would."""

    pve: PveCluster

    def answer(self, host: str, request: Request) -> Reply:
        """Answer a request that came in at a host.

        Raises:
            Silence: It does not.
        """
        with self.pve.clock.lock:
            self.pve.clock.now_s()
            return self._answer(self.pve.hosts[host], request)

    def _answer(self, host: Host, request: Request) -> Reply:
        try:
            return self._carry_out(host, request)
        except Refused as refusal:
            body: dict[str, Any] = {"data": None}
            if self.pve.release >= (9, 0):
                body["message"] = refusal.reason + ("" if refusal.status == _NOT_IMPLEMENTED else "\n")
            if refusal.errors:
                body["errors"] = refusal.errors
            return Reply(refusal.status, refusal.reason, None if refusal.empty else body, refusal.delay_s)

    def _carry_out(self, host: Host, request: Request) -> Reply:
        _check_files(host)
        token = self.pve.access.recognise(request.authorization)
        if isinstance(token, str):
            raise Refused(401, token, empty=True, delay_s=UNAUTHORISED_S)
        route, names = _find(request)
        call = Call(self.pve, host, token, request.params, names)
        if route.right is not None:
            path, privileges = route.right
            old_agent = route.right is AGENT and self.pve.release < (9, 0)
            call.require(path.format(**names), *(("VM.Monitor",) if old_agent else privileges))
        elsewhere = names.get("node", "localhost")
        if elsewhere not in {"localhost", host.name}:
            return self._ask_elsewhere(host, elsewhere, request)
        if route.protected:
            _check_daemon(host.pvedaemon)
        unknown = dict.fromkeys(set(request.params).difference(route.params), _UNKNOWN_PARAMETER)
        if unknown:
            raise Refused(400, BAD_PARAMETER, unknown)
        return Reply(200, "OK", {"data": route.handler(call)}, call.delay_s)

    def _ask_elsewhere(self, here: Host, name: str, request: Request) -> Reply:
        """Ask another host's pveproxy, as this one's would."""
        if name not in self.pve.hosts:
            why = f"failed to get address info for: {name}: Temporary failure in name resolution"
            raise Refused(500, f"hostname lookup '{name}' failed - {why}")
        there = self.pve.hosts[name]
        if frozenset({here.name, name}) in self.pve.cut_ways:
            raise Refused(_CONNECT, "No route to host", empty=True, delay_s=NO_ROUTE_S)
        if not there.up:
            early = self.pve.clock.now_s() - there.died_s < _ARP_S
            after_s = NO_ROUTE_AT_FIRST_S if early else NO_ROUTE_S
            raise Refused(_CONNECT, "No route to host", empty=True, delay_s=after_s)
        if not there.link:
            raise Refused(_CONNECT, "Connection timed out", empty=True, delay_s=PROXY_TIMEOUT_S)
        _check_daemon(there.pveproxy)
        try:
            return self._answer(there, request)
        except Silence:
            raise _timed_out() from None


def _find(request: Request) -> tuple[Route, dict[str, str]]:
    for route in ROUTES:
        names = route.match(request.method, request.path)
        if names is not None:
            return route, names
    raise Refused(501, f"Method '{request.method} {request.path}' not implemented")


def _check_files(host: Host) -> None:
    if host.pmxcfs is Pmxcfs.FROZEN:
        raise Silence
    if host.pmxcfs is Pmxcfs.STOPPED:
        text = "RPCEnvironment init request failed: Unable to load access control list: Connection refused"
        raise Refused(500, text, empty=True, delay_s=NO_FILES_S)


def _check_daemon(daemon: Daemon) -> None:
    if daemon is Daemon.DEAD:
        raise Refused(_CONNECT, "Connection refused", empty=True, delay_s=REFUSED_S)
    if daemon is Daemon.FROZEN:
        raise _timed_out()


def _timed_out() -> Refused:
    return Refused(_REQUEST, "Connection timed out", empty=True, delay_s=PROXY_TIMEOUT_S)
