"""Takes a pod of a fenced node away: failed first, then deleted, both bound to what was read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from fencer.cluster import parse, patches
from fencer.cluster.answers import Answer
from fencer.cluster.client import Connection, Pick
from fencer.cluster.names import refuse_odd_names
from fencer.core.model import PodView
from fencer.errors import (
    ClusterConflict,
    ClusterDenied,
    ClusterNotFound,
    ClusterProtocol,
    ClusterUnreachable,
)
from fencer.ports import Cleared

POLICY = "'fencer-clearing'"
"""How the API server names, in a refusal, the policy that knows Nodes from a cache.

Source: apiserver pkg/admission/plugin/policy/validating/dispatcher.go.
"""
BEHIND_S = (0.1, 0.2, 0.4, 0.8)
"""Pauses between tries while that cache may be behind our taint, which takes it milliseconds."""


class Clearing:
    """Clears pods.

    Args:
        api: The way to the API.
        sleep: Pauses between two tries, in seconds.
    """

    def __init__(self, api: Connection, sleep: Callable[[float], object]) -> None:
        self._api = api
        self._sleep = sleep

    def clear(self, pod: PodView, why: str) -> Cleared:
        """See `Cluster.clear`. A mirror pod is not sent anywhere: its kubelet owns it."""
        if pod.mirror:
            return Cleared(pod, gone=False, note="a mirror pod: only its kubelet can end it")
        refuse_odd_names(pod.namespace, pod.name)
        try:
            failed = self._fail(pod, why)
            body = patches.delete_pod(failed)
            self._write(f"delete pod {pod}", lambda apis: apis.core.delete_namespaced_pod, pod, body)
        except ClusterNotFound:
            return Cleared(pod, gone=True)
        except ClusterConflict:
            if self._is_gone(pod):
                return Cleared(pod, gone=True)
            raise
        # The delete was bound to this very version, so these are all the finalizers there are.
        note = f"held by finalizers: {', '.join(failed.finalizers)}" if failed.finalizers else ""
        return Cleared(pod, gone=not note, note=note)

    def _fail(self, pod: PodView, why: str) -> PodView:
        """Set the phase to Failed; return the pod as it is now, whose version the deletion needs."""
        now_utc = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        body = patches.fail_pod(pod, why, now_utc)
        answer = self._write(f"fail pod {pod}", lambda apis: apis.core.patch_namespaced_pod_status, pod, body)
        try:
            return parse.name_in_error(parse.pod, answer.body)
        except ClusterProtocol as error:
            raise ClusterUnreachable(f"fail pod {pod}: the outcome is unknown: {error}") from error

    def _write(self, what: str, pick: Pick, pod: PodView, body: patches.Body) -> Answer:
        """Write, and again while the admission policy does not see the taint yet: nothing was changed then.

        Raises:
            ClusterError: as `Connection.write`.
        """
        pauses = iter(BEHIND_S)
        while True:
            try:
                return self._api.write(what, pick, name=pod.name, namespace=pod.namespace, body=body)
            except ClusterDenied as error:
                pause_s = next(pauses, None)
                if POLICY not in str(error) or pause_s is None:
                    raise
                self._sleep(pause_s)

    def _is_gone(self, pod: PodView) -> bool:
        """Whether there is no pod any more with this name and this UID."""
        try:
            answer = self._api.read(
                f"get pod {pod}",
                lambda apis: apis.core.read_namespaced_pod,
                name=pod.name,
                namespace=pod.namespace,
            )
        except ClusterNotFound:
            return True
        return parse.name_in_error(parse.pod, answer.body).uid != pod.uid
