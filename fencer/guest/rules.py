"""The rules of a drain: which pods are evicted, what the API server's answers mean, who uncordons. Pure.

The agent has its own version for drains from outside; one table of cases runs against both.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Any, Sequence

from fencer.guest.fields import items, mapping, seconds_at
from fencer.guest.notes import AGENT, DRAIN, PASSING, Cordon, OwnNode, Unreadable

MIRROR = "kubernetes.io/config.mirror"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
"""The taint that a cordon is to the scheduler: without a value, and against new pods (NoSchedule)."""
BUDGET_RETRY_S = 3.0
"""After a refusal by a budget without Retry-After: replacements elsewhere need seconds to be Ready, and a
shutdown has little time. (kubectl waits 5 s.)"""
PASSING_RETRY_S = 2.0
"""After what should pass by itself: a conflict, an overloaded server, a lost answer."""
NAMESPACE_RETRY_S = 5.0
"""While a namespace is being deleted its controller deletes the pods; we only look again."""
RETRY_AT_MOST_S = 15.0
"""However long a server asks to wait: a drain at shutdown has about two minutes in all."""


class Lot(str, Enum):
    """What a drain does with a pod."""

    EVICT = "evict"
    LEAVING = "leaving"
    """Deleted already: waited for."""
    MIRROR = "mirror"
    """A static pod: the kubelet runs it from a file, whatever the API says."""
    DAEMON = "daemonset"
    """Its controller would make it anew on this very node."""
    FINISHED = "finished"
    UNMANAGED = "unmanaged"
    """No controller would make it anew: evicted only with `force`. A reboot alone brings it back."""
    LOCAL_DATA = "emptydir"
    """It would lose its emptyDir: evicted only with `delete_emptydir_data`. A reboot alone keeps it."""


_TWO_BUDGETS = "more than one budget selects it, and then the API never evicts"
_TIME = "%Y-%m-%dT%H:%M:%SZ"
"""Source: apimachinery pkg/apis/meta/v1, Time: RFC 3339 in whole seconds of UTC."""
_PASSING = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT)
_CACHE_LAGS = "can only evict pods with spec.nodeName set to itself"
"""The API server has listed the pod as bound to this node, and its admission's cache has not seen that yet.

Source: kubernetes plugin/pkg/admission/noderestriction/admission.go, admitPodEviction; a pod that the cache
does not have at all is "not found" there."""
STAYING = (Lot.MIRROR, Lot.DAEMON, Lot.FINISHED)
"""Whatever the options."""
KEPT = (*STAYING, Lot.UNMANAGED, Lot.LOCAL_DATA)


@dataclass(frozen=True)
class Filters:
    """Options of a drain, with kubectl's names and defaults.

    Attributes:
        force: Evict pods that no controller makes anew.
        delete_emptydir_data: Evict pods that lose an emptyDir.
    """

    force: bool = False
    delete_emptydir_data: bool = False


@dataclass(frozen=True)
class Pod:
    """A pod on this node.

    Attributes:
        uid: Its UID.
        namespace: Its namespace.
        name: Its name.
        lot: What a drain does with it.
        claims: How many volume claims it uses.
        controller: Who would make it anew; empty: nobody.
        tolerates: A cordon does not keep it off.
        at_once: Its own grace period is none.
        created_s: When it was created, by the API server's clock: seconds since 1970; None: not known.
    """

    uid: str
    namespace: str
    name: str
    lot: Lot
    claims: int = 0
    controller: str = ""
    tolerates: bool = False
    at_once: bool = False
    created_s: int | None = None

    def __str__(self) -> str:
        """As people and kubectl write it."""
        return f"{self.namespace}/{self.name}"


def pod_of(body: Any, filters: Filters) -> Pod | None:
    """Read a pod from its JSON; None where it is no pod that can be told apart."""
    meta, spec, status = (mapping(mapping(body).get(key)) for key in ("metadata", "spec", "status"))
    uid, namespace, name = (meta.get(key) for key in ("uid", "namespace", "name"))
    if not (isinstance(uid, str) and isinstance(namespace, str) and isinstance(name, str) and uid and name):
        return None
    volumes = [mapping(volume) for volume in items(spec.get("volumes"))]
    owners = [mapping(owner) for owner in items(meta.get("ownerReferences"))]
    controller = next((owner for owner in owners if owner.get("controller") is True), None)
    return Pod(
        uid,
        namespace,
        name,
        _lot(meta, controller, volumes, str(status.get("phase")), filters),
        claims=sum("persistentVolumeClaim" in volume or "ephemeral" in volume for volume in volumes),
        controller=f"{namespace}/{controller.get('kind')}/{controller.get('name')}" if controller else "",
        tolerates=any(_tolerates_cordon(mapping(one)) for one in items(spec.get("tolerations"))),
        at_once=spec.get("terminationGracePeriodSeconds") == 0,
        created_s=seconds_at(meta.get("creationTimestamp"), _TIME),
    )


def _tolerates_cordon(toleration: dict[str, Any]) -> bool:
    """Whether the scheduler passes over a cordon for its sake.

    Source: k8s.io/api core/v1 toleration.go, ToleratesTaint.
    """
    key, operator, value, effect = (
        str(toleration.get(name) or "") for name in ("key", "operator", "value", "effect")
    )
    matches = operator == "Exists" or (operator in ("", "Equal") and not value)
    return matches and key in ("", UNSCHEDULABLE) and effect in ("", "NoSchedule")


def _lot(
    meta: dict[str, Any],
    controller: dict[str, Any] | None,
    volumes: Sequence[dict[str, Any]],
    phase: str,
    filters: Filters,
) -> Lot:
    local_data = any("emptyDir" in volume for volume in volumes)
    lots = (
        (MIRROR in mapping(meta.get("annotations")), Lot.MIRROR),
        (phase in ("Succeeded", "Failed"), Lot.FINISHED),
        (controller is not None and controller.get("kind") == "DaemonSet", Lot.DAEMON),
        (bool(meta.get("deletionTimestamp")), Lot.LEAVING),
        (controller is None and not filters.force, Lot.UNMANAGED),
        (local_data and not filters.delete_emptydir_data, Lot.LOCAL_DATA),
    )
    return next((lot for applies, lot in lots if applies), Lot.EVICT)


class Meaning(str, Enum):
    """What an answer to an eviction means."""

    GOING = "going"
    """Accepted: its grace period runs."""
    GONE = "gone"
    """Not found. A cache may say so of a pod that is quite new: while it is listed, it is asked for again."""
    BUDGET = "budget"
    """A budget does not allow it now."""
    NAMESPACE = "namespace"
    """Its namespace is being deleted, and it with it."""
    PASSING = "passing"
    """Not this time; whether it was done may not be known. Look, and ask again."""
    NEVER = "never"
    """Asking again changes nothing."""


@dataclass(frozen=True)
class Reply:
    """An answer to an eviction, understood.

    Attributes:
        meaning: What it means.
        retry_s: Seconds to wait before the next try; None: there is none.
        text: For people: what stands in the way.
    """

    meaning: Meaning
    retry_s: float | None = None
    text: str = ""


def read_reply(status: int, body: dict[str, Any], retry_after_s: float | None = None) -> Reply:
    """Understand an answer to an eviction.

    Args:
        status: The HTTP status.
        body: The Status object that came with it.
        retry_after_s: The header Retry-After.

    Source: kubernetes pkg/registry/core/pod/storage/eviction.go: 429 with the cause DisruptionBudget and
    mostly no Retry-After; 500 for a pod in two budgets; conflicts are tried again there for up to 10 s.
    """
    message = " ".join(str(body.get("message") or f"HTTP {status}").split())
    causes = [mapping(cause) for cause in items(mapping(body.get("details")).get("causes"))]
    ending = any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
    two_budgets = "more than one PodDisruptionBudget" in message
    replies = (
        (HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES, Reply(Meaning.GOING)),
        (status == HTTPStatus.NOT_FOUND, Reply(Meaning.GONE, PASSING_RETRY_S)),
        (status == HTTPStatus.TOO_MANY_REQUESTS, _too_many(causes, message, retry_after_s)),
        (
            status == HTTPStatus.FORBIDDEN and ending,
            Reply(Meaning.NAMESPACE, NAMESPACE_RETRY_S, "its namespace is being deleted"),
        ),
        (status >= HTTPStatus.INTERNAL_SERVER_ERROR and two_budgets, Reply(Meaning.NEVER, text=_TWO_BUDGETS)),
        (
            status >= HTTPStatus.INTERNAL_SERVER_ERROR
            or status in _PASSING
            or (status == HTTPStatus.FORBIDDEN and _CACHE_LAGS in message),
            Reply(Meaning.PASSING, _bounded(retry_after_s, PASSING_RETRY_S), message),
        ),
    )
    return next((reply for applies, reply in replies if applies), Reply(Meaning.NEVER, text=message))


def _too_many(causes: Sequence[dict[str, Any]], message: str, retry_after_s: float | None) -> Reply:
    budgets = [cause for cause in causes if cause.get("reason") == "DisruptionBudget"]
    if not budgets and "disruption budget" not in message:
        return Reply(Meaning.PASSING, _bounded(retry_after_s, PASSING_RETRY_S), message)
    text = str(budgets[0].get("message") or message) if budgets else message
    return Reply(Meaning.BUDGET, _bounded(retry_after_s, BUDGET_RETRY_S), " ".join(text.split()))


def _bounded(asked_s: float | None, default_s: float) -> float:
    return min(max(asked_s, default_s), RETRY_AT_MOST_S) if asked_s is not None else default_s


class Step(str, Enum):
    """What to do about a cordon after boot."""

    UNCORDON = "uncordon"
    UNLESS_DOWN = "unless down"
    """Uncordon, unless the machine is going down now, or may be."""
    FORGET = "forget"
    """Somebody uncordoned the node; our note about it goes."""
    WAIT = "wait"
    LEAVE = "leave"


def after_boot(node: OwnNode, boot_id: str, manager: str, start: str = "") -> tuple[Step, str]:
    """Decide about the cordon of a node that has booted; the text says why.

    Only a cordon that a drain in this guest set is taken off: in an earlier run of the system, or for a
    shutdown of this one that was called off. And only if nobody has cordoned since: the note alone does not
    tell, because `kubectl uncordon` and `kubectl cordon` leave it standing.

    Not gated on Ready: what makes a node Ready may be a pod that waits for a place on it.

    Args:
        node: The node.
        boot_id: This boot's id.
        manager: The field manager of our own drains.
        start: When this system was started, as `system.started` tells; empty: not known.
    """
    if not node.unschedulable:
        noted = isinstance(node.cordon, Cordon) and node.cordon.by == DRAIN
        return (Step.FORGET, "uncordoned by somebody else") if noted else (Step.LEAVE, "not cordoned")
    cordon = _ours(node, manager)
    if isinstance(cordon, str):
        return Step.LEAVE, cordon
    step, why = _over(cordon, boot_id, start)
    if step is Step.LEAVE:
        return step, why
    if node.boot_id != boot_id:
        return Step.WAIT, "the kubelet has not reported this boot yet"
    if node.fenced:
        return Step.WAIT, f"fenced: {node.fenced} stands"
    return step, why


def cordon_is_ours(node: OwnNode, manager: str) -> bool:
    """Whether a cordon stands that `after_boot` would take off now or after a later boot.

    Args:
        node: The node.
        manager: The field manager of our own drains.
    """
    return node.unschedulable and isinstance(_ours(node, manager), Cordon)


def cordon_passes(node: OwnNode) -> bool:
    """Whether a cordon of the agent's stands that it takes off by itself, be it amid a drain."""
    noted = isinstance(node.cordon, Cordon) and node.cordon.by in PASSING
    return node.unschedulable and noted and node.cordoner == AGENT


def _over(cordon: Cordon, boot_id: str, start: str) -> tuple[Step, str]:
    """Whether what our drain was for is over."""
    if cordon.boot_id != boot_id:
        return Step.UNCORDON, "it was cordoned by the drain of an earlier boot"
    if cordon.start and start and cordon.start != start:
        return Step.UNCORDON, "it was cordoned by a drain, and the system was started anew since"
    if cordon.shutdown:
        return Step.UNLESS_DOWN, "the shutdown was called off"
    return Step.LEAVE, "cordoned by a drain in this very boot"


def _ours(node: OwnNode, manager: str) -> Cordon | str:
    """Return the note on a cordon that a drain in this guest set, or say whose the cordon is."""
    cordon = node.cordon
    if isinstance(cordon, Unreadable):
        return f"cordoned by another version of fencer ({cordon.why})"
    if cordon is None:
        return "cordoned by somebody else"
    if cordon.by != DRAIN:
        return f"cordoned by the agent ({cordon.by}), which takes it off itself"
    # One that a drain in here took over from the agent stays the agent's by the API server's record, as its
    # value does not change; but the agent, when it cordons, notes neither a start nor a shutdown.
    taken_over = node.cordoner == AGENT and bool(cordon.start or cordon.shutdown)
    if node.cordoner != manager and not taken_over:
        return f"cordoned by {node.cordoner or 'somebody'}, not by the drain in this guest"
    return cordon
