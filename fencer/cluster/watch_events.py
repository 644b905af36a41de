"""What a watch of nodes tells, one event at a time. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from fencer.cluster import parse
from fencer.cluster.answers import Answer, refusal
from fencer.cluster.fields import mapping, number, required, shown, text, version
from fencer.errors import ClusterProtocol

BOOKMARK, DELETED = "BOOKMARK", "DELETED"
_KINDS = {"ADDED", "MODIFIED", DELETED, BOOKMARK}


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch.

    Attributes:
        kind: ``ADDED``, ``MODIFIED``, `DELETED` or `BOOKMARK`.
        version: The resourceVersion up to which all was told with it.
        name: Of the node; empty with a bookmark.
        node: As it is now, or was when it was deleted; or why it cannot be read. None with a bookmark.
    """

    kind: str
    version: int
    name: str = ""
    node: parse.SealedNode | str | None = None


def read_event(data: dict[str, Any], place: str) -> WatchEvent:
    """Read an event.

    Args:
        data: The JSON.
        place: Server and request, for errors.

    Raises:
        Expired: the server has forgotten what came after the version that was asked for (410).
        ClusterError: it reports another error, or it cannot be understood. One malformed node is no error.

    Source: https://kubernetes.io/docs/reference/using-api/api-concepts/, "Efficient detection of changes".
    """
    told = Answer(data, None, place)
    if told.read(lambda body: text(body, "type")) == "ERROR":
        status = told.read(lambda body: mapping(body, "object"))
        raise refusal(
            told.read(lambda body: number(body, "object", "code")) or 0, json.dumps(status).encode(), place
        )
    return told.read(_event)


def _event(data: dict[str, Any]) -> WatchEvent:
    kind, item = text(data, "type"), mapping(data, "object")
    if kind not in _KINDS:
        raise ClusterProtocol(f"no event of a watch: its type is {shown(kind)}")
    if not (at := version(item)):
        raise ClusterProtocol(f"an event of type {kind} without a resourceVersion")
    if kind == BOOKMARK:
        return WatchEvent(kind, at)
    return WatchEvent(kind, at, required(item, "metadata", "name"), parse.set_aside(parse.node, item))
