"""The `Requests` port over FencerRemediations in memory, and the controllers that make them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fencer.core.requests import Asked, Progress, Request, Strategy
from fencer.errors import ClusterConflict, ClusterNotFound, ClusterUnreachable
from fencer.simulation.objects import Api, ApiNode
from fencer.simulation.timeline import Timeline

NAMESPACE = "remediation"
STEP_S = 1.0
"""How often the controller looks at the nodes."""


class SimulatedRequests:
    """All FencerRemediations of a simulated cluster, and the Leases of medik8s.

    Args:
        api: The cluster's objects: for versions, and whether the API answers.

    Attributes:
        known: The cluster knows the kind at all.
        reservations: Who works on a node, by its name.
        reserved_s: Since when.
        given_up_s: When the request about a node was given up, by its name.
        missing: The rights to it that fencer's account does not have.
        on_answer: Called with each answer, after it was written.
    """

    def __init__(self, api: Api) -> None:
        self.known = False
        self.missing: list[str] = []
        self.reservations: dict[str, str] = {}
        self.reserved_s: dict[str, float] = {}
        self.given_up_s: dict[str, float] = {}
        self.on_answer: list[Callable[[Request, Progress], object]] = []
        self._api = api
        self._requests: dict[str, Request] = {}

    def reserve(self, node: str, by: str) -> None:
        """Work on a node, as medik8s' controllers tell each other by a Lease."""
        self.reservations[node] = by
        self.reserved_s.setdefault(node, self._api.clock.now_s())

    def leave(self, node: str) -> None:
        """Work on it no longer."""
        self.reservations.pop(node, None)
        self.reserved_s.pop(node, None)

    def about(self, node: str) -> Request | None:
        """Return what is asked about a node; None: nothing."""
        return next((one for one in self._requests.values() if one.node == node), None)

    def all(self) -> tuple[Request, ...]:
        """Return every request that is there."""
        return tuple(self._requests.values())

    def make(self, node: str, strategy: Strategy, by: str) -> Request:
        """Ask for a node."""
        uid = self._api.new_uid()
        self._requests[uid] = Request(NAMESPACE, node, uid, self._next(), node, strategy, by)
        return self._requests[uid]

    def give_up(self, request: Request) -> None:
        """Want nothing of it any more."""
        self._put(request.uid, given_up=True)
        self.given_up_s[request.node] = self._api.clock.now_s()

    def delete(self, request: Request) -> None:
        """Delete it: it stays as long as it has fencer's finalizer."""
        self.given_up_s.pop(request.node, None)
        found = self._requests.get(request.uid)
        if found is not None and found.adopted:
            self._put(request.uid, deleting=True)
        else:
            self._requests.pop(request.uid, None)

    def asked(self) -> Asked | None:
        """See `fencer.ports.Requests.asked`."""
        self._answers()
        return Asked(tuple(self._requests.values()), dict(self.reservations)) if self.known else None

    def adopt(self, request: Request) -> None:
        """See `fencer.ports.Requests.adopt`."""
        self._written(request)
        self._put(request.uid, adopted=True)

    def answer(self, request: Request, progress: Progress, utc: str) -> None:  # noqa: ARG002 - as the port has it
        """See `fencer.ports.Requests.answer`."""
        self._written(request)
        self._put(request.uid, told=progress)
        for heard in self.on_answer:
            heard(self._requests[request.uid], progress)

    def release(self, request: Request) -> None:
        """See `fencer.ports.Requests.release`."""
        self._written(request)
        if request.deleting:
            del self._requests[request.uid]
        else:
            self._put(request.uid, adopted=False)

    def missing_rights(self) -> Sequence[str]:
        """See `fencer.ports.Requests.missing_rights`."""
        return list(self.missing)

    def _answers(self) -> None:
        if self._api.down_why is not None:
            raise ClusterUnreachable(self._api.down_why)

    def _written(self, request: Request) -> None:
        """Make sure that a write may be done.

        Raises:
            ClusterConflict, ClusterNotFound, ClusterUnreachable: it may not.
        """
        self._answers()
        found = self._requests.get(request.uid)
        if found is None:
            raise ClusterNotFound(f"no {request}")
        if found.version != request.version:
            raise ClusterConflict(f"{request} changed since it was read")

    def _put(self, uid: str, **changes: object) -> None:
        self._requests[uid] = replace(self._requests[uid], **changes, version=self._next())  # type: ignore[arg-type]  # names of its fields

    def _next(self) -> str:
        self._api.version += 1
        return str(self._api.version)


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """How a NodeHealthCheck is set.

    Attributes:
        after_s: A node that is not Ready for so long is sick.
        strategy: What its template asks for.
        patience_s: It gives a request up after so long.
        escalates: It has another remedy after this one, and turns to it as soon as it is told no.
        asks: Its template is fencer's. False: another remediator's, which here does nothing.
    """

    after_s: float = 300.0
    strategy: Strategy = Strategy.PROVE
    patience_s: float = 300.0
    escalates: bool = False
    asks: bool = True


class NodeHealthChecks:
    """medik8s' controller: asks for sick nodes, waits, gives up, and takes it back once they are well.

    Source: github.com/medik8s/node-healthcheck-operator, controllers/nodehealthcheck_controller.go and
    controllers/resources/lease.go.

    Args:
        api: The nodes.
        requests: Where it asks.
        check: How it is set.
        timeline: Where its doings are told.
    """

    NAME = "NodeHealthCheck workers"

    def __init__(self, api: Api, requests: SimulatedRequests, check: HealthCheck, timeline: Timeline) -> None:
        self._api, self._requests, self._check, self._timeline = api, requests, check, timeline
        self._sick_since_s: dict[str, float] = {}
        self._asked_s: dict[str, float] = {}
        requests.known = True
        api.clock.after(STEP_S, self._again)

    def _again(self) -> None:
        self._api.clock.after(STEP_S, self._again)
        if self._api.down_why is None:
            for node in tuple(self._api.nodes.values()):
                self._reconcile(node)
            for name in self._requests.reservations.keys() - self._api.nodes.keys():
                self._take_back(name)

    def _reconcile(self, node: ApiNode) -> None:
        name, now_s = node.name, self._api.clock.now_s()
        if node.ready is True:
            self._sick_since_s.pop(name, None)
            self._take_back(name)
            return
        if now_s - self._sick_since_s.setdefault(name, now_s) < self._check.after_s:
            return
        request = self._requests.about(name)
        if request is None or not request.given_up or self._check.escalates:
            self._requests.reserve(name, self.NAME)
        if not self._check.asks or (request is not None and request.deleting):
            return
        if request is None:
            self._requests.make(name, self._check.strategy, self.NAME)
            self._asked_s[name] = now_s
            self._timeline.tell("world", name, "asked", f"{self.NAME} asks fencer: {self._check.strategy}")
        elif not request.given_up and self._turns_away(request, now_s - self._asked_s[name]):
            self._requests.give_up(request)
            if not self._check.escalates:  # with one remedy its Lease ends with its patience
                self._requests.leave(name)
            self._timeline.tell("world", name, "given-up", f"{self.NAME} waits no longer")

    def _turns_away(self, request: Request, waited_s: float) -> bool:
        """Whether it gives a request up now: never one that is done."""
        if request.told is not None and request.told.succeeded:
            return False
        return waited_s >= self._check.patience_s or (self._check.escalates and request.refused)

    def _take_back(self, name: str) -> None:
        request = self._requests.about(name)
        if request is None:
            self._requests.leave(name)
        elif not request.deleting:
            self._requests.delete(request)
            self._timeline.tell("world", name, "no-longer-asked", f"{self.NAME} takes its request back")
