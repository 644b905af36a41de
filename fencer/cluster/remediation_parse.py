"""From a FencerRemediation, a Machine and a Lease of medik8s to small records, and back to patches: pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fencer.cluster.fields import expect, number, required, sequence, shown, text, texts
from fencer.cluster.names import NAME
from fencer.core.requests import Progress, Request, Strategy
from fencer.core.times import parse_utc
from fencer.errors import ClusterProtocol

FINALIZER = "remediation.fencer.dev/unfence"
"""While a request has it, it stays in the API until fencer has undone what it did for it."""

NODE_NAME = "remediation.medik8s.io/node-name"
TIMED_OUT = "remediation.medik8s.io/nhc-timed-out"
"""Annotations of NodeHealthCheck. Source: github.com/medik8s/common pkg/annotations/annotations.go."""
_HEALTH_CHECKS = "remediation.medik8s.io"
_MACHINES = "cluster.x-k8s.io"

_RESERVED = "node-"
"""How the name of a node's Lease begins. Source: github.com/medik8s/common pkg/lease/manager.go."""
_LONGEST_HOLDER = 500

_PROCESSING, _SUCCEEDED = "Processing", "Succeeded"
_SAYS: Mapping[tuple[str, str], bool | None] = {
    ("True", "Unknown"): None,
    ("False", "True"): True,
    ("False", "False"): False,
}
"""What both conditions say together. Any other pair says nothing."""
LONGEST_MESSAGE = 32_768
"""Characters. Source: k8s.io/apimachinery meta/v1 types.go, Condition."""


@dataclass(frozen=True, slots=True)
class Owner:
    """An ownerReference."""

    version: str
    kind: str
    name: str
    uid: str

    @property
    def group(self) -> str:
        """The API group of its kind; empty: core."""
        return self.version.rpartition("/")[0]

    def __str__(self) -> str:
        """``NodeHealthCheck workers``; what cannot be a name in Kubernetes is quoted."""
        kind = self.kind if self.kind.isascii() and self.kind.isalnum() else shown(self.kind)
        return f"{kind} {self.name if NAME.fullmatch(self.name) else shown(self.name)}"


@dataclass(frozen=True, slots=True)
class Remediation:
    """A request as it is written.

    Attributes:
        request: What can be said without asking further.
        machine: The Machine whose node is meant; None: nobody has to be asked.
    """

    request: Request
    machine: Owner | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """Which machine a Machine or a Node is: by its provider, and by its firmware. Empty: not told."""

    provider_id: str
    system_uuid: str

    def same(self, other: Identity) -> bool:
        """Whether both are certainly one machine."""
        return bool(
            (self.provider_id and self.provider_id == other.provider_id)
            or (self.system_uuid and self.system_uuid.lower() == other.system_uuid.lower())
        )


def remediation(data: Any) -> Remediation:
    """Read a FencerRemediation."""
    notes = texts(data, "metadata", "annotations")
    owners = [_owner(item) for item in sequence(data, "metadata", "ownerReferences")]
    asked_by = [one for one in owners if _is_health_check(one) or _is_machine(one)] or owners
    strategy, odd = _strategy(text(data, "spec", "strategy"))
    request = Request(
        namespace=required(data, "metadata", "namespace"),
        name=required(data, "metadata", "name"),
        uid=required(data, "metadata", "uid"),
        version=required(data, "metadata", "resourceVersion"),
        node="",
        strategy=strategy,
        asked_by=str(asked_by[0]) if asked_by else "",
        problem=odd,
        deleting=text(data, "metadata", "deletionTimestamp") != "",
        given_up=TIMED_OUT in notes,
        adopted=FINALIZER in finalizers(data),
        told=_told(data),
    )
    if named := notes.get(NODE_NAME, ""):
        if NAME.fullmatch(named):
            return Remediation(replace(request, node=named))
        return Remediation(with_problem(request, f"{NODE_NAME}: {shown(named)} cannot be the name of a node"))
    if machine := next(filter(_is_machine, owners), None):
        return Remediation(request, machine)
    if not owners or any(map(_is_health_check, owners)):
        return Remediation(replace(request, node=request.name))
    why = f"it belongs to {owners[0]}, and does not say which node is meant (annotation {NODE_NAME})"
    return Remediation(with_problem(request, why))


def with_problem(request: Request, problem: str, *, waits: bool = False) -> Request:
    """Return the request with one more thing that is wrong with it; only what all may pass, may pass."""
    waits = waits and (request.waits or not request.problem)
    return replace(request, problem="; ".join(filter(None, (request.problem, problem))), waits=waits)


def node_of(machine: Any) -> str:
    """Return the node that a Machine has become; empty: none yet."""
    return text(machine, "status", "nodeRef", "name")


def identity_of_machine(machine: Any) -> Identity:
    """Read who a Machine is. Source: sigs.k8s.io/cluster-api api/core/v1beta2 machine_types.go."""
    uuid = text(machine, "status", "nodeInfo", "systemUUID")
    return Identity(text(machine, "spec", "providerID"), uuid)


def identity_of_node(node: Any) -> Identity:
    """Read who a Node is."""
    return Identity(text(node, "spec", "providerID"), text(node, "status", "nodeInfo", "systemUUID"))


def reservation(lease: Any, utc: str) -> tuple[str, str] | None:
    """Read a Lease of medik8s: which node, and who works on it; None: nobody does.

    Args:
        lease: The object.
        utc: The slower of the API server's clock and this machine's, RFC 3339.

    Source: github.com/medik8s/common pkg/lease/manager.go, `isValidLease`. That one believes no renewal of
    the future; it may be a clock that is ahead, so here it counts.
    """
    name = required(lease, "metadata", "name")
    holder = text(lease, "spec", "holderIdentity")
    renewed = text(lease, "spec", "renewTime") or text(lease, "spec", "acquireTime")
    lasts_s = number(lease, "spec", "leaseDurationSeconds")
    if not (name.startswith(_RESERVED) and holder and renewed and lasts_s is not None):
        return None
    if (parse_utc(utc) - parse_utc(renewed)).total_seconds() > lasts_s:
        return None
    return name.removeprefix(_RESERVED), holder[:_LONGEST_HOLDER]


def finalizers(data: Any) -> list[str]:
    """Return the finalizers of an object."""
    found = sequence(data, "metadata", "finalizers")
    return [expect(item, str, "metadata.finalizers[]") for item in found]


def adopted(live: Any) -> dict[str, Any]:
    """Build the patch that adds fencer's finalizer to those that are there."""
    return _guarded(live, finalizers=[*finalizers(live), FINALIZER])


def released(live: Any) -> dict[str, Any]:
    """Build the patch that takes fencer's finalizer off, and leaves the others."""
    return _guarded(live, finalizers=[one for one in finalizers(live) if one != FINALIZER])


def answered(live: Any, progress: Progress, utc: str) -> dict[str, Any]:
    """Build the patch of the status that tells this; conditions of other types stay.

    Args:
        live: The request as it is now.
        progress: What to tell.
        utc: Since when, where a condition's status changes.
    """
    succeeded = {True: "True", False: "False", None: "Unknown"}[progress.succeeded]
    ours = {_PROCESSING: "False" if progress.final else "True", _SUCCEEDED: succeeded}
    before = sequence(live, "status", "conditions")
    said = {
        "observedGeneration": number(live, "metadata", "generation") or 0,
        "reason": progress.reason,
        "message": _shortened(progress.message),
    }
    conditions = [one for one in before if text(one, "type") not in ours]
    for kind, status in ours.items():
        since = next((_since(one) for one in before if _is(one, kind, status)), "") or utc
        conditions.append({"type": kind, "status": status, "lastTransitionTime": since, **said})
    return {**_guarded(live), "status": {"conditions": conditions}}


def _guarded(live: Any, **metadata: Any) -> dict[str, Any]:
    guard = {
        "uid": required(live, "metadata", "uid"),
        "resourceVersion": required(live, "metadata", "resourceVersion"),
    }
    return {"metadata": {**guard, **metadata}}


def _owner(item: Any) -> Owner:
    return Owner(
        required(item, "apiVersion"), required(item, "kind"), required(item, "name"), text(item, "uid")
    )


def _is_machine(owner: Owner) -> bool:
    return (owner.group, owner.kind) == (_MACHINES, "Machine")


def _is_health_check(owner: Owner) -> bool:
    return (owner.group, owner.kind) == (_HEALTH_CHECKS, "NodeHealthCheck")


def _strategy(written: str) -> tuple[Strategy, str]:
    try:
        return (Strategy(written) if written else Strategy.PROVE), ""
    except ValueError:
        known = " or ".join(Strategy)
        return Strategy.PROVE, f"spec.strategy: {shown(written)} is not {known}"


def _told(data: Any) -> Progress | None:
    conditions = {text(one, "type"): one for one in sequence(data, "status", "conditions")}
    if not conditions.keys() >= {_PROCESSING, _SUCCEEDED}:
        return None
    word = conditions[_SUCCEEDED]
    pair = text(conditions[_PROCESSING], "status"), text(word, "status")
    if pair not in _SAYS:
        return None
    return Progress(_SAYS[pair], text(word, "reason"), text(word, "message"))


def _is(condition: Any, kind: str, status: str) -> bool:
    return (text(condition, "type"), text(condition, "status")) == (kind, status)


def _since(condition: Any) -> str:
    return text(condition, "lastTransitionTime")


def _shortened(message: str) -> str:
    return message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 1] + "…"


def require(kind: str, namespace: str, name: str, data: Any) -> None:
    """Make sure that an object is the one that was asked for.

    Raises:
        ClusterProtocol: it is another one.
    """
    seen = text(data, "kind"), text(data, "metadata", "namespace"), text(data, "metadata", "name")
    if seen != (kind, namespace, name):
        raise ClusterProtocol(f"expected it, not {' '.join(map(shown, seen))}")
