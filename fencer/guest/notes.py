"""What fencer writes on Nodes, as far as the guest part needs it: the same texts as the agent's."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from fencer.guest.fields import items, mapping

CORDON = "fencer.dev/cordon"
MARK = "fencer.dev/mark"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
SCHEMA = 1
DRAIN = "drain"
"""Who cordoned: a drain."""
PASSING = ("unfence", "hook")
"""The agent, which takes these cordons off by itself: after a fence, and for a guest due to stop."""
AGENT = "fencer"
"""The agent's field manager: by it the API server remembers whose cordon it is."""


@dataclass(frozen=True)
class Cordon:
    """Annotation: this cordon is fencer's.

    Attributes:
        by: `drain`, or one of `PASSING`.
        boot_id: The boot during which it was set.
        since_utc: When.
        start: When the system that set it was started, from `system.started`; empty: not known.
        shutdown: It was set because the machine was going down.
    """

    by: str
    boot_id: str
    since_utc: str
    start: str = ""
    shutdown: bool = False


@dataclass(frozen=True)
class Unreadable:
    """An annotation that is broken, or newer than this program. A cordon with it is left alone.

    Attributes:
        why: What is wrong with it.
    """

    why: str


def write_cordon(cordon: Cordon) -> str:
    """Return the annotation's text for a cordon."""
    content = {
        "schema": SCHEMA,
        "by": cordon.by,
        "bootID": cordon.boot_id,
        "since": cordon.since_utc,
        **({"start": cordon.start} if cordon.start else {}),
        **({"shutdown": True} if cordon.shutdown else {}),
    }
    return json.dumps(content, separators=(",", ":"), sort_keys=True)


def read_cordon(text: Any) -> Cordon | Unreadable | None:
    """Read a cordon; None where there is none.

    Fields that only the guest part writes (start, shutdown) count if they are well-formed: the agent, and
    older programs, leave them out.
    """
    if text is None:
        return None
    try:
        content = json.loads(text)
        if content["schema"] != SCHEMA:
            return Unreadable(f"schema {content['schema']!r}; this program reads {SCHEMA}")
        by, boot_id, since = (content[key] for key in ("by", "bootID", "since"))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return Unreadable(f"{type(error).__name__}: {error}")
    if not all(isinstance(word, str) for word in (by, boot_id, since)):
        return Unreadable("not all of it is text")
    start = content.get("start")
    told = start if isinstance(start, str) else ""
    return Cordon(by, boot_id, since, told, content.get("shutdown") is True)


@dataclass(frozen=True)
class OwnNode:
    """This machine's Node, as far as it matters here.

    Attributes:
        name: Its name.
        uid: Its UID.
        version: Its resourceVersion.
        boot_id: What the kubelet reported last.
        unschedulable: It is cordoned.
        cordoner: The field manager that set `spec.unschedulable`; None: the API server does not tell.
        recorded: The API server has a record of which program wrote which field. False: it has none at all.
        cordon: What fencer noted about the cordon.
        fenced: What is left of a fence: the taint, the mark, or nothing (empty).
        volumes: What the kubelet has mounted and could be attached elsewhere (volumesInUse).
    """

    name: str
    uid: str
    version: str
    boot_id: str
    unschedulable: bool
    cordoner: str | None
    cordon: Cordon | Unreadable | None
    fenced: str
    volumes: tuple[str, ...]
    recorded: bool = True


def own_node(body: dict[str, Any]) -> OwnNode:
    """Read a Node; what is missing or of another type reads as empty."""
    meta, spec, status = (mapping(body.get(key)) for key in ("metadata", "spec", "status"))
    notes = mapping(meta.get("annotations"))
    taints = [taint for taint in items(spec.get("taints")) if isinstance(taint, dict)]
    tainted = any(taint.get("key") == OUT_OF_SERVICE for taint in taints)
    return OwnNode(
        name=str(meta.get("name", "")),
        uid=str(meta.get("uid", "")),
        version=str(meta.get("resourceVersion", "")),
        boot_id=str(mapping(status.get("nodeInfo")).get("bootID", "")),
        unschedulable=spec.get("unschedulable") is True,
        cordoner=_cordoner(meta),
        cordon=read_cordon(notes.get(CORDON)),
        fenced=f"the taint {OUT_OF_SERVICE}" if tainted else "fencer's mark" if MARK in notes else "",
        volumes=tuple(str(volume) for volume in items(status.get("volumesInUse"))),
        recorded=bool(items(meta.get("managedFields"))),
    )


def _cordoner(meta: dict[str, Any]) -> str | None:
    """Say who set `spec.unschedulable` last: setting a field to a new value makes its setter the owner.

    If several share it, all are named: it belongs to none alone.

    Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/, "Field management"
    (plain updates and patches are tracked too).
    """
    names = []
    for entry in items(meta.get("managedFields")):
        fields = mapping(mapping(entry).get("fieldsV1"))
        if "f:unschedulable" in mapping(fields.get("f:spec")):
            names.append(str(mapping(entry).get("manager", "")))
    return " and ".join(dict.fromkeys(names)) if names else None
