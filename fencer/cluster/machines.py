"""Which node a Machine of Cluster API is: asked once for each request, and remembered."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import inf

from fencer.cluster.client import Connection
from fencer.cluster.fields import shown, text
from fencer.cluster.names import NAME
from fencer.cluster.remediation_parse import (
    Identity,
    Owner,
    identity_of_machine,
    identity_of_node,
    node_of,
    require,
)
from fencer.cluster.requests import NODE, get
from fencer.core.requests import Request
from fencer.errors import ClusterError, ClusterNotFound, ClusterProtocol, ClusterUnreachable

AGAIN_S = 30.0
"""A Machine that has no node yet, or cannot be read, is asked for again after this."""
MOST_AT_ONCE = 16
"""So many Machines are asked for in one look; each costs two requests. The others' turn comes later."""

BUDGET_S = 1.0
"""For so long Machines are asked for in one look: whoever needs none waits for the answer, too."""

_VERSION = re.compile(r"v[0-9]{1,3}((alpha|beta)[0-9]{1,3})?")


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of a Machine's node.

    Attributes:
        node: Its name; empty: not known.
        problem: Why not.
        waits: That may pass by itself.
        again_s: When to ask again, on the own clock; None: never.
    """

    node: str = ""
    problem: str = ""
    waits: bool = False
    again_s: float | None = None


class Machines:
    """Finds the nodes of Machines, and makes sure that they are machines of this cluster.

    What was found counts for as long as the request is there: a Machine never becomes another node.

    Args:
        api: The way to the API.
        now_s: The own clock, in seconds.
    """

    def __init__(self, api: Connection, now_s: Callable[[], float]) -> None:
        self._api, self._now_s = api, now_s
        self._found: dict[tuple[str, Owner], Found] = {}
        self._left, self._until_s = MOST_AT_ONCE, inf
        self._turns = 1
        self._rests_until_s = -inf
        """Until then no Machine is asked for: one came too late, and each other may take as long."""

    def begin(self, uids: Collection[str]) -> None:
        """Begin another look, at requests with these UIDs; what was known of others is forgotten."""
        self._left, self._turns = MOST_AT_ONCE, 1 + len(uids)
        self._until_s = self._now_s() + BUDGET_S
        self._found = {key: found for key, found in self._found.items() if key[0] in uids}

    def node_of(self, request: Request, machine: Owner) -> Found:
        """Return which node is meant by a request that belongs to a Machine.

        Args:
            request: The request, which is in the Machine's namespace.
            machine: As the request names it.
        """
        key, now_s = (request.uid, machine), self._now_s()
        known = self._found.get(key)
        if known is not None and (known.again_s is None or now_s < known.again_s):
            return known
        if self._left <= 0 or now_s > self._until_s or now_s < self._rests_until_s:
            return known or Found(problem=f"{machine} was not asked for yet", waits=True)
        self._left -= 1
        # Noted before: whoever waits for this may give it up, and nobody would know how it ended.
        self._rests_until_s = now_s + AGAIN_S
        again_s = self._rests_until_s + AGAIN_S * self._turns
        self._found[key] = Found(problem=f"{machine} does not answer", waits=True, again_s=again_s)
        found = self._found[key] = self._look(request.namespace, machine, now_s + AGAIN_S)
        return found

    def _look(self, namespace: str, machine: Owner, again_s: float) -> Found:
        """Ask; a Machine that cannot be read is no reason to leave other requests unread.

        One that does not answer in time is asked for again when all others have had their turn.
        """
        try:
            found = self._ask(namespace, machine, again_s)
        except ClusterUnreachable as error:
            again_s += AGAIN_S * self._turns
            return Found(problem=f"{machine} cannot be read: {error}", waits=True, again_s=again_s)
        except ClusterError as error:
            found = Found(problem=f"{machine} cannot be read: {error}", waits=True, again_s=again_s)
        self._rests_until_s = -inf
        return found

    def _ask(self, namespace: str, machine: Owner, again_s: float) -> Found:
        """Read the Machine, and then its node."""
        body = self._machine(namespace, machine)
        node = node_of(body)
        if not node:
            return Found(problem=f"{machine} has no node yet (status.nodeRef)", waits=True, again_s=again_s)
        seen = self._node(node)
        if seen is None:
            problem = f"{machine} is node {shown(node)}, which this cluster does not have"
            return Found(problem=problem, again_s=again_s)
        if not identity_of_machine(body).same(seen):
            problem = (
                f"{machine} calls node {node} its own, and they have neither spec.providerID nor systemUUID "
                "in common: it may be a machine of another cluster"
            )
            return Found(problem=problem, again_s=again_s)
        return Found(node=node)

    def _machine(self, namespace: str, machine: Owner) -> dict[str, object]:
        version = machine.version.rpartition("/")[2]
        if not (_VERSION.fullmatch(version) and NAME.fullmatch(machine.name) and NAME.fullmatch(namespace)):
            raise ClusterProtocol(f"{shown(machine.version)} {shown(machine.name)} cannot be asked for")
        path = f"/apis/{machine.group}/{version}/namespaces/{{}}/machines/{{}}"
        answer = self._api.read(f"get machine {namespace}/{machine.name}", get(path, namespace, machine.name))
        answer.read(lambda body: require("Machine", namespace, machine.name, body))
        if machine.uid and answer.required("metadata", "uid") != machine.uid:
            raise ClusterProtocol(f"{answer.place}: another Machine has that name now")
        return answer.body

    def _node(self, name: str) -> Identity | None:
        """Read who a node is; None: there is none of that name."""
        if not NAME.fullmatch(name):
            return None
        try:
            answer = self._api.read(f"get node {name}", get(NODE, name))
        except ClusterNotFound:
            return None
        if (seen := answer.read(lambda body: text(body, "metadata", "name"))) != name:
            raise ClusterProtocol(f"{answer.place}: got {shown(seen)}")
        return answer.read(identity_of_node)
