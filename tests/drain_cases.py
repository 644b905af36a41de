"""One table of what a drain does, for both of its implementations: the guest's and the agent's.

Plain data. `PODS`: which pods are evicted, kept or waited for. `LATER`: what becomes of those that come after
a drain has begun. `ANSWERS`: what the API server's answers to an eviction mean. Bodies are as kube-apiserver
1.36 sends them, shortened.
"""

from typing import Any, NamedTuple

Json = dict[str, Any]

_REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": True}
_STATEFUL_SET = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "controller": True}
_DAEMON_SET = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "cni", "controller": True}
_JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "batch", "controller": True}
_NODE = {"apiVersion": "v1", "kind": "Node", "name": "k8s-1", "controller": True}
_MIRROR = {"kubernetes.io/config.mirror": "5e0b", "kubernetes.io/config.source": "file"}
_DELETED = {"deletionTimestamp": "2026-11-20T10:00:00Z", "deletionGracePeriodSeconds": 30}
_EMPTY_DIR = {"volumes": [{"name": "scratch", "emptyDir": {}}]}
_CLAIM = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]}
_TOKEN = {"volumes": [{"name": "token", "projected": {"sources": []}}]}


class PodCase(NamedTuple):
    """A pod and what becomes of it.

    Attributes:
        name: Why this case is here.
        lot: `evict`, `leaving` (deleted already: waited for), or why it is kept: `mirror`, `daemonset`,
            `finished`, `unmanaged`, `emptydir`.
        meta: More of its metadata.
        spec: Its spec.
        phase: Its phase.
        force: kubectl's option: evict pods without a controller.
        delete_emptydir_data: kubectl's option: evict pods that use an emptyDir.
    """

    name: str
    lot: str
    meta: Json
    spec: Json = {}  # noqa: RUF012 - never changed
    phase: str = "Running"
    force: bool = False
    delete_emptydir_data: bool = False

    def pod(self) -> Json:
        """Return the pod as the API server would."""
        meta = {"uid": "u-1", "namespace": "shop", "name": "web-1", **self.meta}
        return {"metadata": meta, "spec": self.spec, "status": {"phase": self.phase}}


def _owned(by: Json) -> Json:
    return {"ownerReferences": [by]}


PODS = (
    PodCase("of a Deployment", "evict", _owned(_REPLICA_SET)),
    PodCase("of a StatefulSet, with a volume", "evict", _owned(_STATEFUL_SET), _CLAIM),
    PodCase("of a Job", "evict", _owned(_JOB)),
    PodCase("with a projected token only", "evict", _owned(_REPLICA_SET), _TOKEN),
    PodCase("pending: no budget counts it", "evict", _owned(_REPLICA_SET), phase="Pending"),
    PodCase("phase unknown", "evict", _owned(_REPLICA_SET), phase="Unknown"),
    PodCase("deleted already", "leaving", {**_owned(_REPLICA_SET), **_DELETED}),
    PodCase("deleted already, without a controller", "leaving", _DELETED),
    PodCase("deleted already, with an emptyDir", "leaving", {**_owned(_REPLICA_SET), **_DELETED}, _EMPTY_DIR),
    PodCase("of a DaemonSet", "daemonset", _owned(_DAEMON_SET)),
    PodCase("of a DaemonSet, with an emptyDir", "daemonset", _owned(_DAEMON_SET), _EMPTY_DIR),
    PodCase(
        "of a DaemonSet, forced", "daemonset", _owned(_DAEMON_SET), force=True, delete_emptydir_data=True
    ),
    PodCase("of a DaemonSet, deleted: not waited for", "daemonset", {**_owned(_DAEMON_SET), **_DELETED}),
    PodCase("static", "mirror", {"annotations": _MIRROR, **_owned(_NODE)}),
    PodCase("static, forced", "mirror", {"annotations": _MIRROR, **_owned(_NODE)}, force=True),
    PodCase("static, of old kubelets without an owner", "mirror", {"annotations": _MIRROR}),
    PodCase("static, deleted: not waited for", "mirror", {"annotations": _MIRROR, **_DELETED}),
    PodCase("succeeded", "finished", _owned(_JOB), phase="Succeeded"),
    PodCase("failed", "finished", _owned(_REPLICA_SET), phase="Failed"),
    PodCase("finished, without a controller", "finished", {}, phase="Succeeded"),
    PodCase("finished, with an emptyDir", "finished", _owned(_JOB), _EMPTY_DIR, phase="Failed"),
    PodCase("finished and deleted: not waited for", "finished", {**_owned(_JOB), **_DELETED}, phase="Failed"),
    PodCase("without an owner", "unmanaged", {}),
    PodCase("without an owner, forced", "evict", {}, force=True),
    PodCase(
        "owned, but by no controller",
        "unmanaged",
        {"ownerReferences": [{**_REPLICA_SET, "controller": False}]},
    ),
    PodCase("without an owner and with an emptyDir", "unmanaged", {}, _EMPTY_DIR, delete_emptydir_data=True),
    PodCase("forced, with an emptyDir", "emptydir", {}, _EMPTY_DIR, force=True),
    PodCase("with an emptyDir", "emptydir", _owned(_REPLICA_SET), _EMPTY_DIR),
    PodCase(
        "with an emptyDir to be lost", "evict", _owned(_REPLICA_SET), _EMPTY_DIR, delete_emptydir_data=True
    ),
)


class LaterCase(NamedTuple):
    """A pod that is bound to the node after a drain has fixed whom it moves, and what becomes of it.

    Attributes:
        name: Why this case is here.
        returns: It is named and left: what tolerates the cordon would only come back again.
        tolerations: Its `spec.tolerations`.
        meta: More of its metadata; None: of a Deployment.
    """

    name: str
    returns: bool
    tolerations: list[Json]
    meta: Json | None = None

    def pod(self) -> Json:
        """Return the pod as the API server would."""
        meta = _owned(_REPLICA_SET) if self.meta is None else self.meta
        return PodCase(self.name, "", meta, {"tolerations": self.tolerations}).pod()


_CORDON = {"key": "node.kubernetes.io/unschedulable"}
_EXISTS = {"operator": "Exists"}
_BY_ADMISSION = [
    {"key": f"node.kubernetes.io/{what}", **_EXISTS, "effect": "NoExecute", "tolerationSeconds": 300}
    for what in ("not-ready", "unreachable")
]

LATER = (
    LaterCase("tolerates everything", True, [_EXISTS]),
    LaterCase("tolerates everything, by its last word", True, [*_BY_ADMISSION, _EXISTS]),
    LaterCase("tolerates the cordon", True, [{**_CORDON, **_EXISTS, "effect": "NoSchedule"}]),
    LaterCase("tolerates the cordon, whatever it does", True, [{**_CORDON, **_EXISTS}]),
    LaterCase("tolerates a cordon without a value, as it is", True, [{**_CORDON, "operator": "Equal"}]),
    LaterCase("tolerates a cordon by the default operator", True, [{**_CORDON, "effect": "NoSchedule"}]),
    LaterCase("tolerates whatever keeps pods off", True, [{**_EXISTS, "effect": "NoSchedule"}]),
    LaterCase("tolerates everything, deleted by now", True, [_EXISTS], {**_owned(_REPLICA_SET), **_DELETED}),
    LaterCase("tolerates everything, without a controller", True, [_EXISTS], {}),
    LaterCase("tolerates nothing", False, []),
    LaterCase("tolerates what admission gives to all", False, _BY_ADMISSION),
    LaterCase("tolerates another value", False, [{**_CORDON, "operator": "Equal", "value": "true"}]),
    LaterCase(
        "tolerates to be evicted by it, not to be kept off", False, [{**_EXISTS, "effect": "NoExecute"}]
    ),
    LaterCase("tolerates another taint", False, [{"key": "node.kubernetes.io/not-ready", **_EXISTS}]),
    LaterCase("tolerates by numbers", False, [{**_CORDON, "operator": "Gt", "value": "1"}]),
)
"""Source: k8s.io/api core/v1 toleration.go, ToleratesTaint; the cordon is the taint
node.kubernetes.io/unschedulable:NoSchedule without a value (kubernetes pkg/scheduler, NodeUnschedulable)."""


class AnswerCase(NamedTuple):
    """An answer to an eviction and what it means.

    Attributes:
        name: Why this case is here.
        meaning: `going` (accepted), `gone`, `budget` (ask again later), `namespace` (it is deleted with its
            namespace), `passing` (look, and ask again), `never` (asking again changes nothing).
        status: The HTTP status.
        body: The Status object.
        retry_after_s: The header Retry-After.
        waits_s: How long to wait at least before asking again, where the server says so; else None.
        says: What a person must be told, somewhere in the text.
    """

    name: str
    meaning: str
    status: int
    body: Json
    retry_after_s: float | None = None
    waits_s: float | None = None
    says: str = ""


def _status(message: str, code: int, *causes: Json, **details: Any) -> Json:
    found = {**details, **({"causes": list(causes)} if causes else {})}
    return {"kind": "Status", "status": "Failure", "message": message, "details": found, "code": code}


def _budget(text: str) -> Json:
    return {"reason": "DisruptionBudget", "message": text}


_VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
_NEEDS_3 = "The disruption budget web needs 3 healthy pods and has 3 currently"
_IN_WORK = "The disruption budget web is still being processed by the server."
_TWO = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_ENDING = {
    "reason": "NamespaceTerminating",
    "message": "namespace shop is being terminated",
    "field": "metadata.namespace",
}

_NOT_SEEN = "can only evict pods with spec.nodeName set to itself"

ANSWERS = (
    AnswerCase("accepted", "going", 201, {"kind": "Status", "status": "Success", "code": 201}),
    AnswerCase("accepted, as older servers say it", "going", 200, {"kind": "Status", "status": "Success"}),
    AnswerCase("gone", "gone", 404, _status('pods "web-1" not found', 404), waits_s=1),
    AnswerCase(
        "a budget, without Retry-After",
        "budget",
        429,
        _status(_VIOLATES, 429, _budget(_NEEDS_3)),
        says=_NEEDS_3,
    ),
    AnswerCase(
        "a budget that is not computed yet",
        "budget",
        429,
        _status(_VIOLATES, 429, _budget(_IN_WORK), retryAfterSeconds=10),
        retry_after_s=10,
        waits_s=10,
        says=_IN_WORK,
    ),
    AnswerCase(
        "a budget, by its message alone", "budget", 429, _status(_VIOLATES, 429), says="disruption budget"
    ),
    AnswerCase(
        "the server is busy",
        "passing",
        429,
        _status("too many requests", 429),
        retry_after_s=1,
        waits_s=1,
        says="too many requests",
    ),
    AnswerCase("busy, and no JSON", "passing", 429, {}, says="429"),
    AnswerCase("two budgets", "never", 500, _status(_TWO, 500), says="more than one"),
    AnswerCase(
        "the server stumbles",
        "passing",
        500,
        _status("etcdserver: leader changed", 500),
        says="leader changed",
    ),
    AnswerCase("no JSON behind a proxy", "passing", 502, {}, says="502"),
    AnswerCase(
        "the server tried for 10 s",
        "passing",
        504,
        _status("couldn't update PodDisruptionBudget due to conflicts", 504, retryAfterSeconds=10),
        retry_after_s=10,
        waits_s=10,
        says="conflicts",
    ),
    AnswerCase(
        "another pod of that name by now",
        "passing",
        409,
        _status("Precondition failed: UID", 409),
        says="UID",
    ),
    AnswerCase(
        "its namespace is being deleted",
        "namespace",
        403,
        _status("forbidden", 403, _ENDING),
        says="namespace",
    ),
    AnswerCase(
        "not allowed", "never", 403, _status("User cannot create resource pods/eviction", 403), says="cannot"
    ),
    AnswerCase(
        "a binding that the server's admission has not seen yet",
        "passing",
        403,
        _status(f'pods "web-1" is forbidden: node k8s-1 {_NOT_SEEN}', 403),
        waits_s=1,
        says="spec.nodeName",
    ),
    AnswerCase("not who we thought", "never", 401, _status("Unauthorized", 401), says="Unauthorized"),
    AnswerCase("not understood", "never", 400, _status("bad request", 400), says="bad request"),
)
