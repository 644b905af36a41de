"""The `LeaseStore` port over a Kubernetes API server: read a Lease, and write it if nobody else has since.

A renewal that hangs is worth less than one that fails, so this keeps a connection of its own, whose answers
have to come sooner than others.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fencer.cluster.answers import Answer
from fencer.cluster.client import Connection
from fencer.cluster.fields import number, required, shown, text, texts
from fencer.cluster.requests import LEASE, get, patch
from fencer.cluster.settings import ClusterSettings
from fencer.core.election import DURATION_S, NAMESPACE, LeaseRecord
from fencer.errors import ClusterProtocol, ClusterUnreachable

CONNECT_S, ANSWER_S = 2.0, 2.5
"""A request may take 4.5 s. A holder is one for 10 s from the beginning of its last renewal, and looks again
2 s after one that failed, so it may fail once and still be renewed in time."""
READ_TRIES = 2
OURS = "fencer.dev/"
"""How the annotations begin that fencer writes; all others are left."""

LONGEST_HOLDER = 500
"""Characters. fencer's own names of holders have up to some 100."""
MOST_TRANSITIONS = 2**31 - 1
"""The field has 32 bits; one more is refused, and then nobody could take the Lease. Source: k8s.io/api
coordination/v1 types.go, LeaseSpec (``leaseTransitions *int32``)."""
_RELEASED_S = 1
"""The duration of a Lease that was given back: others of its readers need not wait, either. Source: client-go
tools/leaderelection/leaderelection.go, release."""


class KubernetesLeases:
    """The Leases of fencer in the namespace ``fencer``.

    Args:
        settings: Where the API is, and who we are there. Only shorter timeouts than `quick` has count.
        sleep: Pauses between two tries of a read, in seconds.

    Raises:
        ConfigError: the kubeconfig cannot be used.
    """

    def __init__(self, settings: ClusterSettings, sleep: Callable[[float], object] = time.sleep) -> None:
        self._api = Connection(quick(settings), sleep, READ_TRIES)

    def read_lease(self, name: str) -> LeaseRecord:
        """See `fencer.ports.LeaseStore.read_lease`."""
        what = f"get lease {NAMESPACE}/{name}"
        return _record(self._api.read(what, get(LEASE, NAMESPACE, name)), name)

    def write_lease(self, record: LeaseRecord) -> LeaseRecord:
        """See `fencer.ports.LeaseStore.write_lease`."""
        what = f"patch lease {NAMESPACE}/{record.name}"
        answer = self._api.write(what, patch(LEASE, NAMESPACE, record.name, body=written(record)))
        try:
            return _record(answer, record.name)
        except ClusterProtocol as error:  # it was done, by its status, but what it is now cannot be read
            raise ClusterUnreachable(f"{error}. The outcome is unknown") from error


def quick(settings: ClusterSettings) -> ClusterSettings:
    """Return the settings with times in which a renewal still fails early enough to be made again."""
    return replace(
        settings,
        connect_timeout_s=min(CONNECT_S, settings.connect_timeout_s),
        read_timeout_s=min(ANSWER_S, settings.read_timeout_s),
    )


def written(record: LeaseRecord) -> dict[str, Any]:
    """Build the patch that makes a Lease what the record says, if it still is the object that was read.

    A strategic merge patch merges annotations key by key, and a null takes one off.
    """
    gone = dict.fromkeys(record.noted - record.notes.keys())
    ours = {key: note for key, note in record.notes.items() if key.startswith(OURS)}
    return {
        "metadata": {"uid": record.uid, "resourceVersion": record.version, "annotations": {**gone, **ours}},
        "spec": {
            "holderIdentity": record.holder,
            "leaseDurationSeconds": _RELEASED_S if record.given_back else int(DURATION_S),
            "leaseTransitions": min(record.transitions, MOST_TRANSITIONS),
            "acquireTime": record.acquired or None,
            "renewTime": record.renewed or None,
        },
    }


def read_record(data: Any, name: str, utc: str) -> LeaseRecord:
    """Read a Lease of fencer's; a Lease that nobody ever held may have no spec.

    Args:
        data: The object.
        name: Which one was asked for.
        utc: The API server's clock, RFC 3339.

    Raises:
        ClusterProtocol: it is not that Lease, or a field is not what it should be.
    """
    kind, seen = text(data, "kind"), required(data, "metadata", "name")
    place = required(data, "metadata", "namespace")
    if (kind, place, seen) != ("Lease", NAMESPACE, name):
        raise ClusterProtocol(f"expected it, not {shown(kind)} {shown(place)} {shown(seen)}")
    notes = texts(data, "metadata", "annotations")
    holder, transitions = text(data, "spec", "holderIdentity"), number(data, "spec", "leaseTransitions") or 0
    if len(holder) > LONGEST_HOLDER:
        raise ClusterProtocol(
            f"spec.holderIdentity has {len(holder):,} characters: {shown(holder)}; "
            f"{LONGEST_HOLDER} at most are read"
        )
    if not 0 <= transitions <= MOST_TRANSITIONS:
        raise ClusterProtocol(f"spec.leaseTransitions: {shown(transitions)} is no count")
    return LeaseRecord(
        name=name,
        holder=holder,
        transitions=transitions,
        acquired=text(data, "spec", "acquireTime"),
        renewed=text(data, "spec", "renewTime"),
        given_back=not holder and number(data, "spec", "leaseDurationSeconds") == _RELEASED_S,
        notes=notes,
        uid=required(data, "metadata", "uid"),
        version=required(data, "metadata", "resourceVersion"),
        utc=utc,
        noted=frozenset(key for key in notes if key.startswith(OURS)),
    )


def _record(answer: Answer, name: str) -> LeaseRecord:
    """Read an answer; what cannot be read names the Lease."""

    def read(body: dict[str, Any]) -> LeaseRecord:
        try:
            return read_record(body, name, answer.utc)
        except ClusterProtocol as error:
            raise ClusterProtocol(f"lease {NAMESPACE}/{name}: {error}") from error

    return answer.read(read)
