"""Everything that fencer's account may try, and what becomes of it: the table of docs/security.md.

Each row is tried against a real API server.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fencer.cluster.kubernetes import KubernetesCluster
from fencer.cluster.leases import read_record, written
from fencer.cluster.remediation_parse import FINALIZER, NODE_NAME
from fencer.core import annotations as keys
from fencer.core.model import Binding, Cordon, FenceMark, GuestRef
from tests.cluster.guard import FAILED, SECRETS, send
from tests.support.backstage import (
    ATTACHMENTS,
    BUDGETS,
    CLAIMS,
    LEASES,
    MACHINES,
    MEDIK8S_LEASES,
    MERGE,
    NODES,
    OUR_LEASES,
    PODS,
    REMEDIATIONS,
    ApiBackstage,
)
from tests.support.controlplane import ControlPlane, Response

EVENTS = "/api/v1/namespaces/default/events"
LEASE = f"{OUR_LEASES}/fencer-cluster"
GUEST = GuestRef("lab", "101", "6f1c0000-0000-4000-8000-0000000000e2", "k8s-4")
MARK = FenceMark("i-1", "2026-11-20T10:41:12Z", "boot-1", GUEST, "fencer@pve2")
CORDON = Cordon("drain", "boot-1", "2026-11-20T10:55:00Z")
DEDICATED = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
OURS = {
    "key": "node.kubernetes.io/out-of-service",
    "value": "nodeshutdown",
    "effect": "NoExecute",
    "timeAdded": MARK.fenced_at_utc,
}
"""The taint of a fence at the time of `MARK`."""
ADMINS = {name: value for name, value in OURS.items() if name != "timeAdded"}
"""The same taint as `kubectl taint` sets it."""
FORGED = '{"fencedAt":"2026-11-20T10:41:12Z"}'
"""A mark that names that time, and says nothing else."""
CORDONED = {"f:spec": {"f:unschedulable": {}}}
"""What is recorded of whoever set a cordon."""
CONDITION = {
    "status": "True",
    "reason": "R",
    "message": "",
    "lastTransitionTime": "2026-11-20T10:41:12Z",
}
"""A condition of a request, but for its type."""
NO_GRACE = {"gracePeriodSeconds": 0}
RESET = {"metadata": {"managedFields": [{}]}}
"""Empties the record of who wrote what.

Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/, "Clearing managedFields".
"""

_numbers = itertools.count(1)


class Scene:
    """A node of its own with a pod and others' taint, label and annotation; and fencer's account.

    Args:
        api: A real API server with the policies in force.
        account: The adapter as fencer's account: what fencer itself would write.
    """

    def __init__(self, api: ControlPlane, account: KubernetesCluster) -> None:
        self.api, self.account, self.admin = api, account, ApiBackstage(api)
        self.node = f"attacked-{next(_numbers)}"
        self.pod = f"{self.node}-pod"
        self.before: dict[str, Any] = {}
        self.admin.make_node(self.node)
        notes = {"labels": {"zone": "a"}, "annotations": {"example.com/theirs": "1"}}
        self.set({"metadata": notes, "spec": {"taints": [DEDICATED]}})
        self.admin.make_pod(self.node, self.pod)

    # -- the scene, set by others --------------------------------------------------------------------------

    def set(self, body: Mapping[str, Any]) -> None:
        """Change the node as an administrator."""
        self.admin.send("PATCH", f"{NODES}/{self.node}", body)

    def set_pod(self, body: Mapping[str, Any]) -> None:
        """Change the pod's status as its kubelet."""
        self.admin.send("PATCH", f"{PODS}/{self.pod}/status", body)

    def fenced(self) -> None:
        """Let fencer fence the node."""
        self.account.taint(self.account.fact(self.node).node, MARK)

    def attachment(self) -> str:
        """Attach a volume to the node."""
        self.admin.make_attachment(self.node, f"{self.node}-va", f"{self.node}-pv", attached=True)
        return f"{ATTACHMENTS}/{self.node}-va"

    # -- what the account tries ----------------------------------------------------------------------------

    def send(self, method: str, path: str, body: Any = None, kind: str = MERGE) -> Response:
        """Ask the API server as fencer's account, and remember how things stood before."""
        self.before = self.state()
        return send(self.api, method, path, body, kind=kind)

    def patch(self, body: Mapping[str, Any], name: str = "fencer") -> Response:
        """Patch the node as fencer's account, under fencer's name or another."""
        return self.send("PATCH", f"{NODES}/{self.node}?fieldManager={name}", body)

    def record(self) -> list[dict[str, Any]]:
        """Return the API server's record of who wrote which field of the node."""
        return self.admin.send("GET", f"{NODES}/{self.node}")["metadata"]["managedFields"]

    def note(self, **notes: str | None) -> Response:
        """Write fencer's annotations on the node."""
        return self.patch({"metadata": {"annotations": {_KEYS[key]: text for key, text in notes.items()}}})

    def taint(self, *taints: Mapping[str, Any], **notes: str | None) -> Response:
        """Set the node's taints and fencer's annotations in one write."""
        annotations = {_KEYS[key]: text for key, text in notes.items()}
        return self.patch({"metadata": {"annotations": annotations}, "spec": {"taints": list(taints)}})

    def fail(self, body: Mapping[str, Any] = FAILED) -> Response:
        """Patch the pod's status as fencer's account."""
        return self.send("PATCH", f"{PODS}/{self.pod}/status", body)

    def delete(self, **options: Any) -> Response:
        """Delete the pod as fencer's account: by its UID, unless the options say otherwise."""
        uid = self.admin.send("GET", f"{PODS}/{self.pod}")["metadata"]["uid"]
        body = {**NO_GRACE, "preconditions": {"uid": uid}, **options}
        return self.send("DELETE", f"{PODS}/{self.pod}", body)

    def evict(self, **options: Any) -> Response:
        """Evict the pod as fencer's account: by its UID, unless the options say otherwise."""
        uid = self.admin.send("GET", f"{PODS}/{self.pod}")["metadata"]["uid"]
        body = {
            "metadata": {"name": self.pod, "namespace": "default"},
            "deleteOptions": {"preconditions": {"uid": uid}, **options},
        }
        return self.send("POST", f"{PODS}/{self.pod}/eviction", body)

    def secret(self, **body: Any) -> Response:
        """Make a Secret as fencer's account, as a dry run: that the real key is made is not this test's."""
        return self.send("POST", f"{SECRETS}?dryRun=All", body)

    def lease(self, body: Mapping[str, Any]) -> Response:
        """Patch fencer's Lease of the cluster as fencer's account, as it is now."""
        self.admin.send("PATCH", LEASE, {"metadata": {"annotations": {"example.com/theirs": "1"}}})
        return self.send("PATCH", LEASE, {"spec": {"leaseDurationSeconds": 15}} | dict(body))

    def asked(self) -> str:
        """Ask for the node as another controller does, with a finalizer and a word of its own."""
        status = {"conditions": [{**CONDITION, "type": "Theirs"}]}
        path = self.admin.make_request(self.node, finalizers=["example.com/hold"])
        self.admin.send("PATCH", f"{path}/status", {"status": status})
        return path

    def machine(self) -> str:
        """Make a Machine; return its path."""
        self.admin.make_machine(self.node)
        return f"{MACHINES}/{self.node}"

    def request(self, body: Mapping[str, Any], part: str = "") -> Response:
        """Patch such a request as fencer's account."""
        return self.send("PATCH", f"{self.asked()}{part}", body)

    # -- what there is to be harmed ------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the node, the pod and the attachment without what the API server counts."""
        paths = (f"{NODES}/{self.node}", f"{PODS}/{self.pod}", f"{ATTACHMENTS}/{self.node}-va", LEASE)
        found = {path: self.api.request("GET", path).body for path in (*paths, f"{REMEDIATIONS}/{self.node}")}
        for one in found.values():
            one["metadata"].pop("resourceVersion", None)
        return found


_KEYS = {
    "mark": keys.MARK,
    "cordon": keys.CORDON,
    "applied_by": keys.APPLIED_BY,
    "exclude": keys.EXCLUDE,
    "pause": keys.PAUSE,
    "binding": keys.BINDING,
    "doubts": keys.DOUBTS,
    "incident": keys.INCIDENT,
    "approved": keys.APPROVED,
    "later": "fencer.dev/later",
}

RBAC = "RBAC"


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that the account may try.

    Attributes:
        right: Verb and resource, as `fencer.cluster.rights.Right` tells them.
        tried: What, in words.
        attempt: Tries it.
        why: Why it is allowed; empty: it is refused.
        needed: It is allowed because fencer does it; else because nothing can refuse it.
        by: What refuses it: RBAC, or the name of an admission policy.
        words: Part of what the policy says.
    """

    right: str
    tried: str
    attempt: Callable[[Scene], Any]
    why: str = ""
    needed: bool = True
    by: str = ""
    words: str = ""


def allowed(right: str, tried: str, attempt: Callable[[Scene], Any], why: str) -> Row:
    """Make a row of what fencer needs."""
    return Row(right, tried, attempt, why=why)


def left(right: str, tried: str, attempt: Callable[[Scene], Any], why: str) -> Row:
    """Make a row of what goes through, though fencer never does it."""
    return Row(right, tried, attempt, why=why, needed=False)


def refused(right: str, tried: str, attempt: Callable[[Scene], Any], by: str, words: str = "") -> Row:
    """Make a row of what does not."""
    return Row(right, tried, attempt, by=by, words=words)


def table() -> str:
    """Make the table of docs/security.md."""
    lines = ["| right | what is tried | answer |", "| --- | --- | --- |"]
    for row in ROWS:
        answer = (
            f"allowed{':' if row.needed else ', because'} {row.why}"
            if row.why
            else f"refused by {row.by if row.by == RBAC else f'`{row.by}`'}"
        )
        lines.append(f"| {row.right} | {row.tried} | {answer} |")
    return "\n".join(lines)


# -- steps of more than one write -------------------------------------------------------------------------


def _admins_taint(change: Callable[[Scene], Response]) -> Callable[[Scene], Response]:
    """Try something of a node that an administrator tainted."""

    def attempt(scene: Scene) -> Response:
        scene.set({"spec": {"taints": [DEDICATED, ADMINS]}})
        return change(scene)

    return attempt


def _admins_cordon(change: Callable[[Scene], Response], **notes: str) -> Callable[[Scene], Response]:
    """Try something of a node that an administrator cordoned, perhaps with a note from before."""

    def attempt(scene: Scene) -> Response:
        old = {_KEYS[key]: text for key, text in notes.items()}
        scene.set({"metadata": {"annotations": old}, "spec": {"unschedulable": True}})
        return change(scene)

    return attempt


def _of_fenced(change: Callable[[Scene], Response]) -> Callable[[Scene], Response]:
    """Try something of a node that fencer has fenced."""

    def attempt(scene: Scene) -> Response:
        scene.fenced()
        return change(scene)

    return attempt


def _cordoned(change: Callable[[Scene], Any]) -> Callable[[Scene], Any]:
    """Try something of a node that fencer has cordoned."""

    def attempt(scene: Scene) -> Any:
        scene.account.cordon(scene.account.fact(scene.node).node, CORDON)
        return change(scene)

    return attempt


def _recorded_as_cordoner(scene: Scene) -> Response:
    """Have the API server's own record say that fencer set an administrator's cordon."""
    fields = scene.record()
    for entry in _of_cordon(fields):
        entry["manager"] = "fencer"
    return scene.patch({"metadata": {"managedFields": fields}})


def _recorded_beside(scene: Scene) -> Response:
    """Have it say so behind the kubelet, whose next report gets a newer time and goes to the end."""
    fields = scene.record()
    for entry in _of_cordon(fields):
        del entry["fieldsV1"]["f:spec"]["f:unschedulable"]
    (kubelet,) = [entry for entry in fields if entry.get("subresource") == "status"]
    kubelet["fieldsV1"].update(CORDONED)
    kubelet["time"] = "2020-01-01T00:00:00Z"
    fields.append(_entry("fencer", "Update", CORDONED, "2020-01-02T00:00:00Z"))
    return scene.patch({"metadata": {"managedFields": fields}})


def _lifted_with_another(scene: Scene) -> Response:
    """Lift a cordon that fencer is recorded for first, and an administrator after it."""
    fields = scene.record()
    fields.append(_entry("fencer", "Update", CORDONED, "2020-01-01T00:00:00Z"))
    scene.set({"metadata": {"managedFields": fields}})
    assert next(entry["manager"] for entry in _of_cordon(scene.record())) == "fencer"
    return scene.patch({"spec": {"unschedulable": None}})


def _lifted_without_record(scene: Scene) -> Response:
    """Lift a cordon where an administrator has reset the record."""
    scene.set(RESET)
    assert "managedFields" not in scene.admin.send("GET", f"{NODES}/{scene.node}")["metadata"]
    return scene.patch({"spec": {"unschedulable": None}})


def _without_the_other(scene: Scene) -> Response:
    """Take an administrator off the record of a cordon that fencer had set and they applied as well."""
    _apply(scene, scene.api.request, "gitops")
    assert {entry["manager"] for entry in _of_cordon(scene.record())} == {"fencer", "gitops"}
    fields = [entry for entry in scene.record() if entry["manager"] != "gitops"]
    return scene.patch({"metadata": {"managedFields": fields}})


def _owned_by_another(scene: Scene) -> Response:
    """Have it say that somebody applied the taints: their next apply, without any, would take all off."""
    fields = scene.record()
    fields.append(_entry("gitops", "Apply", {"f:spec": {"f:taints": {}}}, "2020-01-01T00:00:00Z"))
    return scene.patch({"metadata": {"managedFields": fields}})


def _more_by_another(scene: Scene) -> Response:
    """The same by a field more in an entry that is there."""
    _apply(scene, scene.api.request, "gitops")
    fields = scene.record()
    (theirs,) = [entry for entry in fields if entry["manager"] == "gitops"]
    theirs["fieldsV1"]["f:spec"]["f:taints"] = {}
    return scene.patch({"metadata": {"managedFields": fields}})


def _owned_as_cordoner(scene: Scene) -> Response:
    """The same by server-side apply, under fencer's name."""
    return _apply(scene, scene.send, "fencer")


def _apply(scene: Scene, send: Callable[..., Response], name: str) -> Response:
    """Cordon by server-side apply, under a name."""
    body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": scene.node},
        "spec": {"unschedulable": True},
    }
    path = f"{NODES}/{scene.node}?fieldManager={name}&force=true"
    how = "application/apply-patch+yaml"
    return send("PATCH", path, body, **{"kind" if send == scene.send else "content_type": how})


def _of_cordon(fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of those who are recorded for the cordon."""
    return [entry for entry in fields if "f:unschedulable" in entry["fieldsV1"].get("f:spec", {})]


def _entry(name: str, operation: str, fields: Mapping[str, Any], time: str) -> dict[str, Any]:
    """Make an entry of metadata.managedFields."""
    kind = {"apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    return {"manager": name, "operation": operation, "time": time, **kind}


def _failed_and_deleted(scene: Scene) -> Response:
    assert scene.fail().status == 200
    return scene.delete()


def _mirror(scene: Scene) -> Response:
    scene.fenced()
    scene.pod = f"{scene.node}-mirror"
    scene.admin.make_pod(scene.node, scene.pod, mirror=True)
    scene.set_pod({"status": {"phase": "Failed"}})
    return scene.delete()


def _unbound(change: Callable[[Scene], Response]) -> Callable[[Scene], Response]:
    """Try something of a pod that is bound to no node."""

    def attempt(scene: Scene) -> Response:
        scene.pod = f"{scene.node}-unbound"
        spec = {"containers": [{"name": "main", "image": "none"}]}
        scene.admin.send("POST", PODS, {"metadata": {"name": scene.pod}, "spec": spec})
        return change(scene)

    return attempt


def _gone(scene: Scene) -> None:
    """A node that is deleted amid its fence, and what is left of it."""
    path = scene.attachment()
    (pod,) = scene.account.pods(scene.node)
    (item,) = scene.account.attachments().of(scene.node)
    scene.admin.drop_node(scene.node)
    assert scene.account.clear(pod, "guest stopped").gone
    scene.account.delete_attachment(item)
    assert scene.api.request("GET", path).status == 404


def _fence_and_back(scene: Scene) -> None:
    """All that fencer writes of a fence, from the binding to the end of the cordon after it."""
    account, name = scene.account, scene.node
    account.bind(account.fact(name).node, Binding(GUEST, ("boot-1",)))
    account.claim(account.fact(name).node, "i-1", "fencer")
    account.record_doubts(account.fact(name).node, ())
    scene.fenced()
    (pod,) = account.pods(name)
    assert account.clear(pod, "guest stopped").gone
    account.untaint(account.fact(name).node, Cordon("unfence", "boot-2", "2026-11-20T10:55:00Z"))
    account.uncordon(account.fact(name).node)
    after = account.fact(name).node
    assert (after.mark, after.cordon, after.unschedulable) == (None, None, False)
    assert [taint.key for taint in after.taints] == ["dedicated"]


def _drain_and_back(scene: Scene) -> None:
    account = scene.account
    account.cordon(account.fact(scene.node).node, Cordon("hook", "boot-1", "2026-11-20T10:56:00Z"))
    account.cordon(account.fact(scene.node).node, CORDON)  # a drain takes over what the agent would lift
    account.uncordon(account.fact(scene.node).node)
    assert account.fact(scene.node).node.cordon is None


def _forgotten(scene: Scene) -> None:
    scene.fenced()
    scene.set({"spec": {"taints": [DEDICATED, ADMINS]}})
    scene.account.forget_mark(scene.account.fact(scene.node).node)
    assert scene.account.fact(scene.node).node.mark is None


def _finished(scene: Scene) -> Response:
    scene.fenced()
    scene.admin.send("DELETE", f"{PODS}/{scene.pod}", {"gracePeriodSeconds": 30})
    scene.set_pod({"status": {"phase": "Succeeded"}})
    (pod,) = scene.account.pods(scene.node)
    assert scene.account.clear(pod, "guest stopped").gone
    return Response(200, {})


def _ended(phase: str, change: Callable[[Scene], Response]) -> Callable[[Scene], Response]:
    """Try something of a pod that has ended by itself."""

    def attempt(scene: Scene) -> Response:
        scene.set_pod({"status": {"phase": phase}})
        return change(scene)

    return attempt


def _conditions(*kinds: str) -> dict[str, Any]:
    """Return a status with conditions of these types."""
    return {"status": {"conditions": [{**CONDITION, "type": kind} for kind in kinds]}}


def _event(node: str) -> dict[str, Any]:
    return {
        "metadata": {"generateName": "forged-", "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node},
        "type": "Normal",
        "reason": "Forged",
    }


def _led(scene: Scene) -> Response:
    """Take the Lease, renew it with a note, and give it back, as fencer does."""
    answer = None
    held = "2026-11-20T10:41:12.000001Z"
    for holder, notes in (("fencer@a/1/2", {}), ("fencer@a/1/2", {"fencer.dev/brake": "{}"}), ("", {})):
        found = read_record(scene.admin.send("GET", LEASE), "fencer-cluster", "")
        kept = {key: note for key, note in found.notes.items() if not key.startswith("fencer.dev/")}
        record = replace(found, holder=holder, acquired=held, renewed=held, notes={**kept, **notes})
        answer = scene.send("PATCH", LEASE, written(record), "application/strategic-merge-patch+json")
        assert answer.status < 300, answer
    assert answer is not None
    return answer


def _key_is_there(scene: Scene) -> Response:
    """Ask for the key's making: the answer that it is there comes from behind the policy."""
    answer = scene.secret(metadata={"name": "fencer-key"})
    return Response(200, {}) if answer.status == 409 else answer


KEY = f"{SECRETS}/fencer-key"
NODES_BY = "fencer-nodes"
FORCED = "an agent has to, and no policy sees a hypervisor"
REMEDIATION_ROLE = "the role `fencer-remediation`"
SEES_ONE = "a policy sees the one object that is written, not its Node"

ROWS = (
    # -- nodes
    allowed("get nodes", "read a node", lambda s: s.send("GET", f"{NODES}/{s.node}"), "live readings"),
    allowed(
        "list nodes, watch nodes",
        "read all nodes",
        lambda s: s.send("GET", NODES),
        "it has to know all of them at any time",
    ),
    refused(
        "create nodes", "make a node", lambda s: s.send("POST", NODES, {"metadata": {"name": "evil"}}), RBAC
    ),
    refused("delete nodes", "delete a node", lambda s: s.send("DELETE", f"{NODES}/{s.node}"), RBAC),
    refused(
        "patch nodes/status",
        "say that a node is ready",
        lambda s: s.send("PATCH", f"{NODES}/{s.node}/status", {"status": {"phase": "Running"}}),
        RBAC,
    ),
    allowed(
        "patch nodes", "fence a node and lift it: all that fencer writes", _fence_and_back, "what it is for"
    ),
    left(
        "patch nodes",
        "fence a node that is Ready, whose guest runs, by a mark that is forged",
        lambda s: s.taint(DEDICATED, OURS, mark=FORGED),
        f"a person may fence a node that is Ready; {FORCED}",
    ),
    allowed("patch nodes", "cordon and uncordon: all that a drain writes", _drain_and_back, "drains"),
    allowed(
        "patch nodes",
        "forget the mark of a fence that an administrator took off",
        _forgotten,
        "the node has booted again",
    ),
    allowed(
        "patch nodes",
        "rewrite who a guest is, doubts, claims",
        lambda s: s.note(binding="forged", doubts="forged", incident="forged"),
        "an agent has to; it believes what the key in the Secret signed",
    ),
    refused(
        "patch nodes",
        "add the taint without a mark",
        lambda s: s.taint(DEDICATED, OURS),
        NODES_BY,
        "any taint",
    ),
    refused(
        "patch nodes",
        "add the taint beside a mark that names no time",
        lambda s: s.taint(DEDICATED, OURS, mark="{}"),
        NODES_BY,
        "any taint but",
    ),
    refused(
        "patch nodes",
        "add the taint beside a mark of another time",
        lambda s: s.taint(DEDICATED, {**OURS, "timeAdded": "2026-11-20T10:41:13Z"}, mark=FORGED),
        NODES_BY,
        "any taint but",
    ),
    refused(
        "patch nodes",
        "add the taint of no time, which Kubernetes writes as the year 1",
        lambda s: s.taint(DEDICATED, {**OURS, "timeAdded": "0001-01-01T00:00:00Z"}, mark=FORGED),
        NODES_BY,
        "any taint but",
    ),
    refused(
        "patch nodes",
        "write the mark alone, so that an administrator's taint would look like fencer's",
        _admins_taint(lambda s: s.note(mark=FORGED)),
        NODES_BY,
        "may not write its mark",
    ),
    refused(
        "patch nodes",
        "write the mark and its time onto an administrator's taint",
        _admins_taint(lambda s: s.taint(DEDICATED, OURS, mark=FORGED)),
        NODES_BY,
        "any taint but",
    ),
    refused(
        "patch nodes",
        "write the mark alone",
        lambda s: s.note(mark=FORGED),
        NODES_BY,
        "may not write its mark",
    ),
    refused(
        "patch nodes",
        "say alone that fencer applied the taint",
        lambda s: s.note(applied_by="fencer"),
        NODES_BY,
        "may not write its mark",
    ),
    refused(
        "patch nodes",
        "change the mark of a fence",
        _of_fenced(lambda s: s.note(mark='{"fencedAt":"2026-11-20T10:41:12Z","by":"me"}')),
        NODES_BY,
        "may not write its mark",
    ),
    refused(
        "patch nodes",
        "replace a fence by another one",
        _of_fenced(
            lambda s: s.taint(
                DEDICATED,
                {**OURS, "timeAdded": "2027-11-20T10:41:12Z"},
                mark=FORGED.replace("2026", "2027"),
            )
        ),
        NODES_BY,
        "may not write its mark",
    ),
    refused(
        "patch nodes",
        "take the mark off and leave the taint, for nobody to lift",
        _of_fenced(lambda s: s.note(mark=None)),
        NODES_BY,
        "any taint but",
    ),
    refused(
        "patch nodes",
        "lift the fence and leave the mark, as if a person had lifted it",
        _of_fenced(lambda s: s.taint(DEDICATED)),
        NODES_BY,
        "leave the mark",
    ),
    refused(
        "patch nodes",
        "change the value of fencer's taint",
        _of_fenced(lambda s: s.taint(DEDICATED, {**OURS, "value": "maintenance"})),
        NODES_BY,
        "any taint but",
    ),
    refused(
        "patch nodes",
        "lift an administrator's out-of-service taint",
        _admins_taint(lambda s: s.taint(DEDICATED)),
        NODES_BY,
        "any taint but",
    ),
    refused(
        "patch nodes",
        "change the value of an administrator's out-of-service taint",
        _admins_taint(lambda s: s.taint(DEDICATED, {**ADMINS, "value": "maintenance"})),
        NODES_BY,
        "any taint but",
    ),
    refused(
        "patch nodes",
        "change its effect",
        _admins_taint(lambda s: s.taint(DEDICATED, {**ADMINS, "effect": "NoSchedule"})),
        NODES_BY,
        "any taint but",
    ),
    refused(
        "patch nodes",
        "add the taint with another effect",
        lambda s: s.taint(DEDICATED, {**OURS, "effect": "NoSchedule"}, mark=FORGED),
        NODES_BY,
        "any taint but",
    ),
    refused("patch nodes", "take any other taint off", lambda s: s.taint(), NODES_BY, "any taint but"),
    refused(
        "patch nodes",
        "add any other taint",
        lambda s: s.taint(DEDICATED, {"key": "evil", "effect": "NoExecute"}),
        NODES_BY,
        "any taint but",
    ),
    refused(
        "patch nodes",
        "cordon without a note",
        lambda s: s.patch({"spec": {"unschedulable": True}}),
        NODES_BY,
        "without saying so",
    ),
    refused("patch nodes", "write the note alone", lambda s: s.note(cordon="{}"), NODES_BY, "as it sets it"),
    refused(
        "patch nodes",
        "write the note onto an administrator's cordon",
        _admins_cordon(lambda s: s.note(cordon="{}")),
        NODES_BY,
        "as it sets it",
    ),
    refused(
        "patch nodes",
        "lift an administrator's cordon",
        _admins_cordon(lambda s: s.patch({"spec": {"unschedulable": None}})),
        NODES_BY,
        "lift a cordon",
    ),
    refused(
        "patch nodes",
        "lift one where a note of fencer's was left from before",
        _admins_cordon(lambda s: s.patch({"spec": {"unschedulable": None}}), cordon="{}"),
        NODES_BY,
        "lift a cordon",
    ),
    left(
        "patch nodes",
        "the same where the API server has no record of who wrote what on the node",
        _admins_cordon(_lifted_without_record, cordon="{}"),
        "where nothing else tells, fencer's note has to do",
    ),
    refused(
        "patch nodes",
        "lift such a cordon without a note",
        _admins_cordon(_lifted_without_record),
        NODES_BY,
        "lift a cordon",
    ),
    refused(
        "patch nodes",
        "empty that record, so that the next cordon is nobody's",
        lambda s: s.patch(RESET),
        NODES_BY,
        "empty the record",
    ),
    refused(
        "patch nodes",
        "have itself recorded as who set it, in metadata.managedFields",
        _admins_cordon(_recorded_as_cordoner, cordon="{}"),
        NODES_BY,
        "recorded as who set a cordon",
    ),
    refused(
        "patch nodes",
        "the same by server-side apply in fencer's name",
        _admins_cordon(_owned_as_cordoner, cordon="{}"),
        NODES_BY,
        "recorded as who set a cordon",
    ),
    refused(
        "patch nodes",
        "have itself recorded behind the kubelet, whose next report would make it the first",
        _admins_cordon(_recorded_beside, cordon="{}"),
        NODES_BY,
        "recorded as who set a cordon",
    ),
    refused(
        "patch nodes",
        "lift a cordon for which an administrator is recorded, too",
        _admins_cordon(_lifted_with_another, cordon="{}"),
        NODES_BY,
        "lift a cordon",
    ),
    refused(
        "patch nodes",
        "take the administrator off that record",
        _cordoned(_without_the_other),
        NODES_BY,
        "recorded as who set a cordon",
    ),
    refused(
        "patch nodes",
        "have somebody recorded as who applied the taints, whose next apply would take them off",
        _owned_by_another,
        NODES_BY,
        "in another's name",
    ),
    refused(
        "patch nodes",
        "the same of somebody who applies another field",
        _more_by_another,
        NODES_BY,
        "in another's name",
    ),
    refused(
        "patch nodes",
        "write its own annotations under another name",
        lambda s: s.patch({"metadata": {"annotations": {keys.BINDING: "forged"}}}, "kubectl"),
        NODES_BY,
        "in another's name",
    ),
    refused(
        "patch nodes",
        "take the note off a cordon that stays, for nobody to lift",
        _cordoned(lambda s: s.note(cordon=None)),
        NODES_BY,
        "take the word off",
    ),
    refused(
        "patch nodes", "take over fencer.dev/exclude", lambda s: s.note(exclude="true"), NODES_BY, "exclude"
    ),
    refused("patch nodes", "pause a node, or lift its pause", lambda s: s.note(pause="1"), NODES_BY, "pause"),
    refused(
        "patch nodes",
        "any other fencer.dev/ annotation",
        lambda s: s.note(later="1"),
        NODES_BY,
        "fencer.dev/later",
    ),
    refused(
        "patch nodes",
        "change an annotation of others",
        lambda s: s.patch({"metadata": {"annotations": {"example.com/theirs": "2"}}}),
        NODES_BY,
        "annotation example.com/theirs",
    ),
    refused(
        "patch nodes",
        "change labels, the role of a control plane among them",
        lambda s: s.patch({"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}),
        NODES_BY,
        "metadata.labels",
    ),
    refused(
        "patch nodes",
        "change finalizers",
        lambda s: s.patch({"metadata": {"finalizers": ["example.com/hold"]}}),
        NODES_BY,
        "metadata.finalizers",
    ),
    refused(
        "patch nodes",
        "change owners",
        lambda s: s.patch(
            {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}}
        ),
        NODES_BY,
        "metadata.ownerReferences",
    ),
    refused(
        "patch nodes",
        "change spec.providerID",
        lambda s: s.patch({"spec": {"providerID": "proxmox://home/666"}}),
        NODES_BY,
        "spec.providerID",
    ),
    refused(
        "patch nodes",
        "change spec.podCIDR",
        lambda s: s.patch({"spec": {"podCIDR": "10.9.0.0/24", "podCIDRs": ["10.9.0.0/24"]}}),
        NODES_BY,
        "spec.podCIDR",
    ),
    # -- pods
    allowed("get pods", "read a pod", lambda s: s.send("GET", f"{PODS}/{s.pod}"), "is it the same pod still"),
    allowed("list pods", "read all pods", lambda s: s.send("GET", PODS), "what a fence clears"),
    refused(
        "create pods", "make a pod", lambda s: s.send("POST", PODS, {"metadata": {"name": "evil"}}), RBAC
    ),
    refused("patch pods", "change a pod", lambda s: s.send("PATCH", f"{PODS}/{s.pod}", FAILED), RBAC),
    refused("deletecollection pods", "delete many pods", lambda s: s.send("DELETE", PODS), RBAC),
    refused(
        "create pods/exec", "run a command", lambda s: s.send("POST", f"{PODS}/{s.pod}/exec?command=id"), RBAC
    ),
    allowed(
        "patch pods/status, delete pods",
        "fail and delete a pod of a fenced node, one that has finished, too",
        _finished,
        "clearing",
    ),
    allowed(
        "patch pods/status, delete pods",
        "the same, and its attachment, of a node whose object was deleted",
        _gone,
        "a Node may be deleted amid its fence; its attachments need a role of their own",
    ),
    left(
        "patch pods/status, delete pods",
        "fail and delete a pod that runs, of a node that is not fenced",
        _failed_and_deleted,
        SEES_ONE,
    ),
    left(
        "patch pods/status, delete pods",
        "the same, of a node that an administrator tainted",
        _admins_taint(_failed_and_deleted),
        SEES_ONE,
    ),
    refused(
        "patch pods/status",
        "fail a pod that has succeeded",
        _ended("Succeeded", lambda s: s.fail()),
        "fencer-pod-status",
        "that has succeeded",
    ),
    *(
        refused(
            "patch pods/status",
            tried,
            _of_fenced(lambda s, body=body: s.fail({**FAILED, **body})),
            "fencer-pod-status",
            words,
        )
        for tried, body, words in (
            (
                "say that a pod has succeeded",
                {"status": {"phase": "Succeeded"}},
                "to Failed and to nothing else",
            ),
            ("say something of it", {"status": {"phase": "Failed", "message": "x"}}, "status.message"),
            (
                "change its address",
                {"status": {"phase": "Failed", "podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.9"}]}},
                "status.podIP",
            ),
            (
                "change its conditions",
                {"status": {"phase": "Failed", "conditions": [{"type": "Ready", "status": "True"}]}},
                "any condition of a pod but DisruptionTarget",
            ),
            (
                "change its labels",
                {"metadata": {"labels": {"app": "stolen"}}},
                "metadata.labels",
            ),
            (
                "change its annotations",
                {"metadata": {"annotations": {"a": "b"}}},
                "metadata.annotations",
            ),
            (
                "change its finalizers",
                {"metadata": {"finalizers": ["example.com/hold"]}},
                "metadata.finalizers",
            ),
        )
    ),
    refused(
        "patch pods/status",
        "fail a pod that is bound to no node",
        _unbound(lambda s: s.fail()),
        "fencer-pod-status",
        "bound to no node",
    ),
    refused(
        "delete pods",
        "delete a pod that runs",
        _of_fenced(lambda s: s.delete()),
        "fencer-pods",
        "before its phase",
    ),
    left(
        "delete pods",
        "delete a finished pod of a node that is not fenced",
        _ended("Succeeded", lambda s: s.delete()),
        SEES_ONE,
    ),
    refused(
        "delete pods",
        "delete a finished pod that is bound to no node",
        _unbound(_ended("Failed", lambda s: s.delete())),
        "fencer-pods",
        "bound to no node",
    ),
    refused("delete pods", "delete a mirror pod", _mirror, "fencer-pods", "a mirror pod"),
    refused(
        "delete pods",
        "delete whichever pod has the name",
        _of_fenced(lambda s: (s.fail(), s.delete(preconditions={}))[1]),
        "fencer-pods",
        "without naming the UID",
    ),
    # -- evictions: fencer-drain
    allowed(
        "create pods/eviction",
        "evict any pod, as far as budgets allow",
        lambda s: s.evict(),
        "drains: the role `fencer-drain`",
    ),
    left(
        "create pods/eviction",
        "evict it with a grace of one second, whatever its spec gives",
        lambda s: s.evict(gracePeriodSeconds=1),
        "`fencer drain --grace-period` does, and a policy sees no pod of an eviction",
    ),
    refused(
        "create pods/eviction",
        "evict it without grace, while it runs on",
        lambda s: s.evict(**NO_GRACE),
        "fencer-evictions",
        "without grace",
    ),
    refused(
        "create pods/eviction",
        "evict whichever pod has the name",
        lambda s: s.evict(preconditions={}),
        "fencer-evictions",
        "without naming the UID",
    ),
    allowed(
        "list poddisruptionbudgets",
        "read all budgets",
        lambda s: s.send("GET", BUDGETS),
        "drains: the role `fencer-drain`",
    ),
    refused("patch poddisruptionbudgets", "loosen one", lambda s: s.send("PATCH", f"{BUDGETS}/b", {}), RBAC),
    # -- volumes: fencer-attachments
    allowed(
        "list volumeattachments",
        "read all attachments",
        lambda s: s.send("GET", ATTACHMENTS),
        "is a fence over",
    ),
    left(
        "delete volumeattachments",
        "delete the attachment of a node that is there and not fenced",
        lambda s: s.send("DELETE", s.attachment()),
        f"{SEES_ONE}: the role `fencer-attachments`",
    ),
    refused("patch volumeattachments", "change one", lambda s: s.send("PATCH", s.attachment(), {}), RBAC),
    allowed(
        "get persistentvolumeclaims",
        "read a claim that it can name",
        lambda s: (s.admin.make_claim(s.node), s.send("GET", f"{CLAIMS}/{s.node}"))[1],
        "which volumes a pod keeps",
    ),
    refused("list persistentvolumeclaims", "read all claims", lambda s: s.send("GET", CLAIMS), RBAC),
    # -- leases, namespaces, events, the key
    allowed(
        "list leases in kube-node-lease", "read all of them", lambda s: s.send("GET", LEASES), "who is heard"
    ),
    allowed(
        "get leases in kube-node-lease",
        "read one",
        lambda s: (s.admin.renew_lease(s.node), s.send("GET", f"{LEASES}/{s.node}"))[1],
        "who is heard",
    ),
    refused(
        "patch leases in kube-node-lease",
        "renew one, as if its kubelet lived",
        lambda s: s.send("PATCH", f"{LEASES}/{s.node}", {}),
        RBAC,
    ),
    allowed(
        "get leases fencer-cluster in fencer",
        "read it",
        lambda s: s.send("GET", LEASE),
        "what agents share; each hypervisor's Lease likewise, by a role of its own",
    ),
    allowed(
        "patch leases fencer-cluster in fencer",
        "take a Lease, renew it, leave notes on it, give it back: all that fencer writes",
        _led,
        "one agent gives a hypervisor its orders",
    ),
    left(
        "patch leases fencer-cluster in fencer",
        "take a Lease from whoever holds it, again and again",
        lambda s: s.lease({"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 15}}),
        "all agents have this one account: nobody gives power orders then; guests that ended are fenced",
    ),
    left(
        "patch leases fencer-cluster in fencer",
        "forge or erase what agents share: the last power order, and who is about to fence",
        lambda s: s.lease(
            {"metadata": {"annotations": {"fencer.dev/brake": None, "fencer.dev/last-power": "{}"}}}
        ),
        "all agents have this one account, and each writes there for itself",
    ),
    *(
        refused(
            "patch leases fencer-cluster in fencer",
            tried,
            lambda s, body=body: s.lease(body),
            "fencer-leases",
            words,
        )
        for tried, body, words in (
            (
                "change which hypervisor it is of, for people",
                {"metadata": {"annotations": {"fencer.dev/hypervisor": "another"}}},
                "annotation fencer.dev/hypervisor",
            ),
            (
                "change an annotation of others",
                {"metadata": {"annotations": {"example.com/theirs": None}}},
                "annotation example.com/theirs",
            ),
            ("change its labels", {"metadata": {"labels": {"a": "b"}}}, "metadata.labels"),
            (
                "have it kept when it is deleted",
                {"metadata": {"finalizers": ["example.com/hold"]}},
                "metadata.finalizers",
            ),
            (
                "have it go with another object",
                {
                    "metadata": {
                        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]
                    }
                },
                "metadata.ownerReferences",
            ),
            (
                "fill it, so that agents cannot write there what they share",
                {"metadata": {"annotations": {"fencer.dev/later": "x" * 200_000}}},
                "may not fill the annotations",
            ),
            ("hold it for an hour", {"spec": {"leaseDurationSeconds": 3600}}, "15 seconds at most"),
            ("hold it for ever", {"spec": {"leaseDurationSeconds": None}}, "15 seconds at most"),
            (
                "write a holder that no agent reads",
                {"spec": {"holderIdentity": "x" * 501, "leaseDurationSeconds": 15}},
                "a holder that no agent reads",
            ),
        )
    ),
    refused(
        "get leases in fencer",
        "read one that no role of fencer's names",
        lambda s: s.send("GET", f"{OUR_LEASES}/other"),
        RBAC,
    ),
    refused("list leases in fencer", "read all of them", lambda s: s.send("GET", OUR_LEASES), RBAC),
    refused(
        "create leases in fencer",
        "make another",
        lambda s: s.send("POST", OUR_LEASES, {"metadata": {"name": "other"}}),
        RBAC,
    ),
    refused("delete leases in fencer", "delete it", lambda s: s.send("DELETE", LEASE), RBAC),
    # -- requests of other controllers: fencer-remediation
    allowed(
        "get fencerremediations",
        "read a request",
        lambda s: s.send("GET", s.asked()),
        f"right before a write: {REMEDIATION_ROLE}",
    ),
    allowed(
        "list fencerremediations",
        "read all requests",
        lambda s: s.send("GET", REMEDIATIONS),
        f"what is asked: {REMEDIATION_ROLE}",
    ),
    allowed(
        "patch fencerremediations",
        "put fencer's finalizer on a request, beside those of others",
        lambda s: s.request({"metadata": {"finalizers": ["example.com/hold", FINALIZER]}}),
        f"it stays until what was done for it is undone: {REMEDIATION_ROLE}",
    ),
    allowed(
        "patch fencerremediations/status",
        "say what became of a request",
        lambda s: s.request(_conditions("Theirs", "Processing", "Succeeded"), "/status"),
        f"what it is for: {REMEDIATION_ROLE}",
    ),
    left(
        "patch fencerremediations/status",
        "say of a node that nobody fenced that it is fenced and cleared",
        lambda s: s.request(_conditions("Theirs", "Processing", "Succeeded"), "/status"),
        "a policy sees the one object that is written: whoever asked waits for a node that is not fenced",
    ),
    *(
        refused(
            f"patch fencerremediations{part}",
            tried,
            lambda s, body=body, part=part: s.request(body, part),
            "fencer-remediations",
            words,
        )
        for tried, body, part, words in (
            ("take another's finalizer off", {"metadata": {"finalizers": None}}, "", "any finalizer"),
            (
                "put another finalizer on it",
                {"metadata": {"finalizers": ["example.com/hold", "example.com/ours"]}},
                "",
                "any finalizer",
            ),
            ("ask for a stop instead of a proof", {"spec": {"strategy": "stop"}}, "", "(spec)"),
            (
                "turn a request to another node",
                {"metadata": {"annotations": {NODE_NAME: "k8s-9"}}},
                "",
                "metadata.annotations",
            ),
            ("change its labels", {"metadata": {"labels": {"a": "b"}}}, "", "metadata.labels"),
            (
                "have it go with another object",
                {
                    "metadata": {
                        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]
                    }
                },
                "",
                "metadata.ownerReferences",
            ),
            (
                "take a condition of others off",
                _conditions("Processing", "Succeeded"),
                "/status",
                "any condition of a request but",
            ),
        )
    ),
    refused("create fencerremediations", "ask for a node", lambda s: s.send("POST", REMEDIATIONS, {}), RBAC),
    refused("delete fencerremediations", "delete a request", lambda s: s.send("DELETE", s.asked()), RBAC),
    refused(
        "list fencerremediationtemplates",
        "read what health checks ask for",
        lambda s: s.send("GET", f"{REMEDIATIONS.removesuffix('s')}templates"),
        RBAC,
    ),
    allowed(
        "get machines",
        "read a Machine that it can name",
        lambda s: s.send("GET", s.machine()),
        f"which node a Machine has become: {REMEDIATION_ROLE}",
    ),
    refused("list machines", "read all Machines", lambda s: s.send("GET", MACHINES), RBAC),
    allowed(
        "list leases in medik8s-leases",
        "read all of them",
        lambda s: s.send("GET", MEDIK8S_LEASES),
        f"on which nodes others work: {REMEDIATION_ROLE}",
    ),
    refused(
        "create leases in medik8s-leases",
        "keep others from working on a node",
        lambda s: s.send("POST", MEDIK8S_LEASES, {"metadata": {"name": f"node-{s.node}"}}),
        RBAC,
    ),
    allowed(
        "get namespaces kube-system",
        "read it",
        lambda s: s.send("GET", "/api/v1/namespaces/kube-system"),
        "which cluster this is, and the pause",
    ),
    refused(
        "get namespaces", "read another one", lambda s: s.send("GET", "/api/v1/namespaces/default"), RBAC
    ),
    refused(
        "patch namespaces",
        "lift the pause",
        lambda s: s.send("PATCH", "/api/v1/namespaces/kube-system", {}),
        RBAC,
    ),
    allowed(
        "create events in default",
        "leave an Event, about whatever and in whoever's name",
        lambda s: s.send("POST", EVENTS, _event(s.node)),
        "what people are told; nobody acts upon an Event",
    ),
    refused("list events in default", "read Events", lambda s: s.send("GET", EVENTS), RBAC),
    allowed(
        "get secrets fencer-key in fencer",
        "read the key, and sign in fencer's name",
        lambda s: (
            s.account.bind(s.account.fact(s.node).node, Binding(GUEST, ("boot-1",))),
            s.send("GET", KEY),
        )[1],
        "agents sign what they write; after a theft end the token first, then the key",
    ),
    refused(
        "get secrets in fencer", "read another Secret", lambda s: s.send("GET", f"{SECRETS}/other"), RBAC
    ),
    refused("list secrets in fencer", "read all of them", lambda s: s.send("GET", SECRETS), RBAC),
    refused("patch secrets in fencer", "change the key", lambda s: s.send("PATCH", KEY, {}), RBAC),
    refused("delete secrets in fencer", "delete the key", lambda s: s.send("DELETE", KEY), RBAC),
    refused(
        "create secrets in fencer",
        "make any Secret but the key",
        lambda s: s.secret(metadata={"name": "other"}),
        "fencer-secrets",
        "any Secret but fencer-key",
    ),
    refused(
        "create secrets in fencer",
        "have Kubernetes make it a token of any account of that namespace",
        lambda s: s.secret(
            metadata={"name": "fencer-key", "annotations": {"kubernetes.io/service-account.name": "fencer"}},
            type="kubernetes.io/service-account-token",
        ),
        "fencer-secrets",
        "made into a token",
    ),
    *(
        refused(
            "create secrets in fencer",
            tried,
            lambda s, body=body: s.secret(**{"metadata": {"name": "fencer-key"}, **body}),
            "fencer-secrets",
            words,
        )
        for tried, body, words in (
            (
                "make the key so that its deletion leaves it there",
                {"metadata": {"name": "fencer-key", "finalizers": ["example.com/hold"]}},
                "may not have a Secret kept",
            ),
            (
                "make the key so that it goes with another object",
                {
                    "metadata": {
                        "name": "fencer-key",
                        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}],
                    }
                },
                "may not have a Secret owned",
            ),
        )
    ),
    allowed(
        "create secrets in fencer", "make the key where there is none", _key_is_there, "the first agent does"
    ),
    refused(
        "create serviceaccounts/token in fencer",
        "make itself another token",
        lambda s: s.send("POST", "/api/v1/namespaces/fencer/serviceaccounts/fencer/token", {}),
        RBAC,
    ),
    refused(
        "create clusterrolebindings",
        "give itself more rights",
        lambda s: s.send("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {}),
        RBAC,
    ),
    refused(
        "delete validatingadmissionpolicies",
        "take the policy away",
        lambda s: s.send(
            "DELETE", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/fencer-nodes"
        ),
        RBAC,
    ),
)
