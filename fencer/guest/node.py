"""This machine's own Node and pods through the API, with only the kubelet's rights.

Source: the Node authorizer and NodeRestriction let a kubelet change its own `spec.unschedulable` and
annotations, list the pods with `fieldSelector=spec.nodeName=` itself, and evict them; nothing more is used.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from fencer.evicting.answers import Reply, grace_for, unanswered, understand
from fencer.guest.api import Answer, Api
from fencer.guest.errors import Denied, Overtaken, TooLarge, Unreachable, Unsure
from fencer.guest.fields import items, mapping
from fencer.guest.notes import CORDON, Cordon, OwnNode, own_node, write_cordon
from fencer.guest.pods import Pod, answer_of, pod_of

MANAGER = "fencer-guest"
"""Our field manager, as `AGENT` is the agent's."""
ASK_WITHIN_S = 5.0
EVICT_WITHIN_S = 15.0
"""The API server itself tries an eviction again for up to 10 s where budgets conflict."""
LIST_WITHIN_S = 60.0
"""For all pages: 110 pages of one large pod each come in this time."""
RETRY_AT_MOST_S = 15.0
"""At most, even if a server asks to wait longer: a drain at shutdown has two minutes in all."""
_PAGE = 20
_TRIES = 3
"""A list expires after five minutes, or when the server's store is put back. Source: etcd's compaction."""


@dataclass(frozen=True)
class Listed:
    """The pods of a node.

    Attributes:
        pods: All of them.
        utc: When, by the API server's clock, as RFC 3339; empty: not told.
    """

    pods: list[Pod]
    utc: str


class NodeClient:
    """Reads and changes one Node and its pods.

    Args:
        api: The client.
        name: The node's name.
        boot_id: This machine's boot, which a listed server has to know: another cluster may have the same
            authority and a node of the same name, for a clone of a machine, or one restored from a snapshot.
            Empty: no other server is used.
    """

    def __init__(self, api: Api, name: str, boot_id: str = "") -> None:
        self.api = api
        self.name = name
        self.path = f"/api/v1/nodes/{quote(name, safe='')}"
        self._boot_id = boot_id

    def read(self, within_s: float = 2 * ASK_WITHIN_S) -> OwnNode:
        """Read the node within this many seconds; the server that was asked last gets half of them.

        Raises:
            Unreachable: no answer, or only a passing error.
            Denied: it may not be read, or is not there.
        """
        answer = self._get(self.path, min(within_s / 2, ASK_WITHIN_S), time.monotonic() + within_s)
        return own_node(_checked(answer).body)

    def pods(self, within_s: float = LIST_WITHIN_S) -> Listed:
        """List all pods that are bound to the node, in pages: anyone can make a pod very large.

        Raises:
            Unreachable: no answer, no list, only a passing error, or more pages than fit into this many
                seconds.
            Denied: they may not be listed.
        """
        deadline_s = time.monotonic() + within_s
        found: list[Pod] = []
        began_utc = ""
        token, limit, tries = "", _PAGE, _TRIES
        while time.monotonic() < deadline_s:
            try:
                answer = self._page(token, limit)
            except TooLarge:
                if limit == 1:
                    raise
                limit //= 4
                continue
            tries -= answer.status == HTTPStatus.GONE
            if answer.status == HTTPStatus.GONE and tries:
                found, token = [], ""
                continue
            body = _checked(answer).body
            if "items" not in body:
                raise Unreachable("the list of pods: an answer that is no list")
            pods = (pod_of(item) for item in items(body.get("items")))
            found += (pod for pod in pods if pod is not None)
            began_utc = began_utc if token else answer.utc
            token = str(mapping(body.get("metadata")).get("continue") or "")
            if not token:
                return Listed(found, began_utc)
            limit = min(2 * limit, _PAGE)
        raise Unreachable(f"the list of pods: did not end within {within_s:g} s")

    def _page(self, token: str, limit: int) -> Answer:
        path = f"/api/v1/pods?fieldSelector={quote('spec.nodeName=' + self.name, safe='')}&limit={limit}"
        if token:
            path += f"&continue={quote(token, safe='')}"
        return self._get(path, EVICT_WITHIN_S, time.monotonic() + 2 * EVICT_WITHIN_S)

    def doubt(self, answer: Answer) -> str:
        """Say why another server's answer for the node is not about this machine; empty: it is."""
        node = own_node(answer.body)
        if answer.status != HTTPStatus.OK or node.name != self.name:
            return f"it does not know node {self.name} ({answer.message})"
        if not self._boot_id or node.boot_id != self._boot_id:
            return f"its node {self.name} runs another boot ({node.boot_id or 'none'}) than this machine"
        return ""

    def _get(self, path: str, within_s: float, deadline_s: float) -> Answer:
        """Ask for something; if the server is gone, ask another one that has this node, until the deadline.

        Changes do not go from one server to the next: it is not known whether the first has done it.
        """
        access = self.api.access
        try:
            return _lasting(self.api.ask("GET", path, within_s=within_s, at=access))
        except TooLarge:
            raise
        except Unreachable as error:
            left_s = min(deadline_s - time.monotonic(), ASK_WITHIN_S)
            answer = self.api.move(access, self.path, str(error), left_s, self.doubt)
        if path == self.path:
            return answer
        return self.api.ask("GET", path, within_s=max(deadline_s - time.monotonic(), 0))

    def cordon(self, node: OwnNode, note: Cordon) -> None:
        """Cordon the node as it was read, and note in the same write that it was us.

        Args:
            node: As it was read.
            note: Replaces any other note.

        Raises:
            Overtaken: the node has changed since.
            Unsure: no answer; it may have been done.
            Denied: refused.
        """
        self._patch(node, {CORDON: write_cordon(note)}, unschedulable=True)

    def uncordon(self, node: OwnNode) -> None:
        """Take cordon and note off the node as it was read. Raises as `cordon`."""
        self._patch(node, {CORDON: None}, unschedulable=None)

    def forget(self, node: OwnNode) -> None:
        """Take only the note off the node as it was read. Raises as `cordon`."""
        self._patch(node, {CORDON: None})

    def evict(self, pod: Pod) -> Reply:
        """Ask for a pod's eviction, if it is still that pod; a missing answer does not raise.

        A pod without a grace period of its own gets one second. Otherwise the API server forgets it at once,
        and its replacement starts and writes before the kubelet has ended it. With one second the pod stays
        until the kubelet says that its containers ended.

        Source: kubernetes pkg/registry/core/pod/strategy.go, CheckGracefulDelete; apiserver
        registry/rest/delete.go, BeforeDelete.
        """
        path = f"/api/v1/namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}/eviction"
        grace_s = grace_for(pod, None)
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": pod.namespace, "name": pod.name},
            "deleteOptions": {
                "preconditions": {"uid": pod.uid},
                **({} if grace_s is None else {"gracePeriodSeconds": int(grace_s)}),
            },
        }
        try:
            answer = self.api.ask("POST", path, body, within_s=EVICT_WITHIN_S)
        except Unreachable as error:
            return unanswered(str(error))
        told = answer_of(answer.status, answer.body, answer.retry_after_s)
        return understand(told, RETRY_AT_MOST_S)

    def _patch(self, node: OwnNode, notes: dict[str, str | None], **spec: Any) -> None:
        meta = {"uid": node.uid, "resourceVersion": node.version, "annotations": notes}
        body = {"metadata": meta, "spec": spec}
        path = f"{self.path}?fieldManager={MANAGER}"
        try:
            answer = self.api.ask("PATCH", path, body, within_s=ASK_WITHIN_S)
            if answer.status == HTTPStatus.CONFLICT:
                raise Overtaken(answer.message)
            _checked(answer)
        except Unreachable as error:
            raise Unsure(str(error)) from error


def _lasting(answer: Answer) -> Answer:
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise Unreachable(answer.message)
    return answer


def _checked(answer: Answer) -> Answer:
    if HTTPStatus.OK <= _lasting(answer).status < HTTPStatus.MULTIPLE_CHOICES:
        return answer
    if answer.status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.GONE):
        raise Unreachable(answer.message)
    raise Denied(answer.message)
