"""Evictions, and the pods of a namespace: the API calls of a drain that the agent does not need."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from fencer.cluster import parse
from fencer.cluster.answers import Refused
from fencer.cluster.client import Connection
from fencer.cluster.fields import mapping, sequence, text
from fencer.cluster.lists import PAGE, Lists
from fencer.cluster.names import refuse_odd_names
from fencer.cluster.requests import POD, PODS_IN, create, get
from fencer.cluster.rights import DRAIN_RIGHTS, granted
from fencer.cluster.settings import ClusterSettings
from fencer.core.model import PodView
from fencer.errors import ClusterProtocol
from fencer.evicting.answers import Answer

EVICTION_S = 20.0
"""The API server itself tries for 10 s if a budget changes meanwhile. Source: kubernetes
pkg/registry/core/pod/storage/eviction.go, MaxRetries and the steps of its back-off."""


class KubernetesEvictor:
    """Implements the port `fencer.ports.Evictor`; its contract stands there.

    Args:
        settings: Where the API is and who we are there.
        sleep: Pauses between two tries of a read, in seconds.
        page: How many objects of a list are asked for at a time.

    Raises:
        ConfigError: the settings or the kubeconfig cannot be used.
    """

    def __init__(
        self, settings: ClusterSettings, *, sleep: Callable[[float], object] = time.sleep, page: int = PAGE
    ) -> None:
        self._api = Connection(settings, sleep)
        self._lists = Lists(self._api, page)

    def missing_drain_rights(self) -> list[str]:
        """See `Evictor.missing_drain_rights`."""
        return [str(right) for right in DRAIN_RIGHTS if not granted(self._api, right)]

    def evict(self, pod: PodView, grace_s: float | None = None) -> Answer:
        """See `Evictor.evict`."""
        refuse_odd_names(pod.namespace, pod.name)
        answer = self._api.attempt(
            f"evict pod {pod}",
            create(f"{POD}/eviction", pod.namespace, pod.name, body=eviction(pod, grace_s)),
            EVICTION_S,
        )
        if isinstance(answer, Refused):
            return answer_of(answer.status, answer.body, answer.retry_after)
        return Answer(status=201)

    def pods_in(self, namespace: str) -> list[PodView]:
        """See `Evictor.pods_in`."""
        refuse_odd_names(namespace)
        return self._lists.read(
            f"list pods in {namespace}",
            "PodList",
            get(PODS_IN, namespace),
            lambda item, _utc: parse.name_in_error(parse.pod, item),
        )


def eviction(pod: PodView, grace_s: float | None) -> dict[str, Any]:
    """Build an Eviction that is bound to this pod."""
    options: dict[str, Any] = {"preconditions": {"uid": pod.uid}}
    if grace_s is not None:
        options["gracePeriodSeconds"] = int(grace_s)
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": options,
    }


def answer_of(status: int, body: Any, retry_after: str | None) -> Answer:
    """Read an answer to an eviction; a body that is no Status leaves only the number.

    Args:
        status: The HTTP status.
        body: The body, as bytes, text or JSON.
        retry_after: The header Retry-After; a date instead of seconds is passed over.
    """
    try:
        data = json.loads(body) if isinstance(body, bytes | str) else body
        causes = tuple(
            (text(cause, "reason"), text(cause, "message")) for cause in sequence(data, "details", "causes")
        )
        message = text(mapping(data), "message")
    except (ValueError, RecursionError, ClusterProtocol):
        message, causes = "", ()
    return Answer(status, message, causes, _seconds(retry_after))


def _seconds(header: str | None) -> float | None:
    try:
        seconds = float(header or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
