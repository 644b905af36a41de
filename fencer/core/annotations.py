"""What fencer writes on Nodes: keys, and the versioned texts of binding, mark, doubts, cordon and claim.

A text that is broken or of a newer schema reads `Unreadable`: it is left alone and reported.

A kubelet may change the annotations of its own Node. So what fencer acts upon (binding, mark, doubts) is
signed since the second schema. The key is one that only agents read, and the Node's UID is signed as well.
The first schema was not signed. Of it a binding still counts, so that nodes which are dead at an upgrade are
fenced; a mark is only read.
"""

from __future__ import annotations

import hmac
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from fencer.core.model import (
    Binding,
    Cordon,
    Doubt,
    Doubted,
    FenceMark,
    GuestRef,
    Left,
    Proof,
    Unreadable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BINDING = "fencer.dev/binding"
MARK = "fencer.dev/mark"
CORDON = "fencer.dev/cordon"
INCIDENT = "fencer.dev/incident"
"""The claim of one agent on an incident, before a power action."""
EXCLUDE = "fencer.dev/exclude"
"""On a Node, set by people: fencer leaves it alone. Any value but ``false``."""
EXCLUDE_LABEL = "remediation.medik8s.io/exclude-from-remediation"
"""A label: no remediator of the cluster is to touch this node. Source: medik8s NodeHealthCheck."""
PAUSE = "fencer.dev/pause"
"""On the namespace kube-system or a Node, set by people: fencing is paused. See `fencer.core.pause`."""
APPLIED_BY = "node.kubernetes.io/out-of-service-applied-by"
"""Who set the taint, for other tools. OpenShift's two-node fencing writes the same key.

Source: openshift/cluster-etcd-operator, pkg/tnf/pkg/tools/taint.go, OutOfServiceAnnotationKey.
"""

DOUBTS = "fencer.dev/doubts"
APPROVED = "fencer.dev/approved"
"""Which VM a person has approved as this node's: only then a tag or a pool gives power over it (C3)."""

SIGNED = 2
UNSIGNED = 1
"""Schemas: of what is signed, and of what is not (as older fencers wrote everything)."""


@dataclass(frozen=True, slots=True)
class Seal:
    """Signs what fencer writes on one Node, and recognises what it has signed.

    Attributes:
        key: Of the cluster; only agents can read it.
        node_uid: The Node's UID: what was written on one Node does not count on another.
    """

    key: bytes
    node_uid: str

    def sign(self, annotation: str, data: dict[str, Any]) -> str:
        """Return the signature of an annotation's content."""
        told = json.dumps([annotation, self.node_uid, data], separators=(",", ":"), sort_keys=True)
        return hmac.digest(self.key, told.encode(), "sha256").hex()

    def signed(self, annotation: str, data: dict[str, Any]) -> bool:
        """Whether a content carries its right signature."""
        content = {name: value for name, value in data.items() if name != "sig"}
        return hmac.compare_digest(str(data.get("sig")).encode(), self.sign(annotation, content).encode())


Written = TypeVar("Written", Binding, FenceMark, Cordon, str, Left, tuple[Doubt, ...])


def write_binding(binding: Binding, seal: Seal) -> str:
    """Return the annotation's text for a binding."""
    return _sealed(BINDING, {"guest": _guest(binding.guest), "bootIDs": list(binding.boot_ids)}, seal)


def write_mark(mark: FenceMark, seal: Seal) -> str:
    """Return the annotation's text for a mark."""
    data = {
        "incident": mark.incident,
        "fencedAt": mark.fenced_at_utc,
        "bootID": mark.boot_id,
        "guest": _guest(mark.guest),
        "by": mark.by,
        "proof": mark.proof.value,
        "incarnation": mark.incarnation,
        "pods": mark.pods,
        "podUIDs": None if mark.pod_uids is None else list(mark.pod_uids),
        "volumeAttachmentUIDs": None if mark.attachment_uids is None else list(mark.attachment_uids),
        "leaseVersion": mark.lease_version,
        "reportedAt": mark.reported_utc,
    }
    return _sealed(MARK, data, seal)  # with the same schema: an older agent reads what it knows


def write_doubts(doubts: tuple[Doubt, ...], seal: Seal) -> str:
    """Return the annotation's text for all doubts that hold."""
    entries = [
        {
            "kind": doubt.kind.value,
            "guest": _guest(doubt.guest),
            "witness": doubt.witness,
            "by": doubt.by,
            "since": doubt.since_utc,
        }
        | _of_endpoint(doubt)
        for doubt in doubts
    ]
    return _sealed(DOUBTS, {"doubts": entries}, seal)  # with the same schema, as a mark


def _of_endpoint(doubt: Doubt) -> dict[str, Any]:
    """Return what a doubt says of its VM's endpoint, as far as it says anything."""
    more = {"bootID": doubt.boot_id, "paired": doubt.paired, "trusted": doubt.trusted}
    return {name: value for name, value in more.items() if value}


def write_cordon(cordon: Cordon) -> str:
    """Return the annotation's text for a cordon."""
    more = {"run": cordon.run, "stop": cordon.shutdown}
    told = {name: value for name, value in more.items() if value}
    return _text({"by": cordon.by, "bootID": cordon.boot_id, "since": cordon.since_utc, **told})


def write_claim(incident: str, by: str, seal: Seal, left: Left | None = None) -> str:
    """Return the annotation's text for a claim on an incident.

    Args:
        incident: Its id.
        by: Who claims it.
        seal: Of the Node.
        left: How the power action that was claimed has left the guest; None: not known yet.
    """
    data: dict[str, Any] = {"incident": incident, "by": by}
    if left is not None:
        data["left"] = {"as": left.incarnation, "starts": left.starts, "startedAt": left.started_utc}
    return _sealed(INCIDENT, data, seal)


def read_claim(text: str | None, seal: Seal) -> str:
    """Read which incident was claimed, by any agent; empty: none, or none that can be read."""
    claimed = _read(text, lambda data: _string(data["incident"]), INCIDENT, seal)
    return claimed if isinstance(claimed, str) else ""


def read_left(text: str | None, seal: Seal) -> Left | None:
    """Read how a claimed power action has left the guest; None: that is not told, or nobody has signed it."""
    found = _read(text, _left, INCIDENT, seal)
    return found if isinstance(found, Left) else None


def write_approval(uuid: str, by: str, since_utc: str, seal: Seal) -> str:
    """Return the annotation's text for a person's approval.

    Args:
        uuid: The VM's.
        by: The person.
        since_utc: When, by the API server's clock.
        seal: Of the Node.
    """
    return _sealed(APPROVED, {"uuid": uuid, "by": by, "since": since_utc}, seal)


def read_approval(text: str | None, seal: Seal) -> str:
    """Read the UUID of the VM that was approved; empty: none, or no agent's key has signed it here."""
    found = _read(text, _approval, APPROVED, seal)
    return found if isinstance(found, str) else ""


def read_binding(text: str | None, seal: Seal) -> Binding | Unreadable | None:
    """Read a binding; None where there is none."""
    return _read(
        text,
        lambda data: Binding(
            _guest_of(data["guest"]), tuple(_strings(data["bootIDs"])), schema=data["schema"]
        ),
        BINDING,
        seal,
    )


def read_mark(text: str | None, seal: Seal) -> FenceMark | Unreadable | None:
    """Read a mark; None where there is none."""
    return _read(
        text,
        lambda data: FenceMark(
            incident=_string(data["incident"]),
            fenced_at_utc=_string(data["fencedAt"]),
            boot_id=_string(data["bootID"]),
            guest=_guest_of(data["guest"]),
            by=_string(data["by"]),
            proof=Proof(_string(data["proof"])),
            incarnation=_text_or_none(data.get("incarnation")),
            pods=_number_or_none(data.get("pods")),
            pod_uids=_strings_or_none(data.get("podUIDs")),
            attachment_uids=_strings_or_none(data.get("volumeAttachmentUIDs")),
            lease_version=_number_or_none(data.get("leaseVersion")) or 0,
            reported_utc=_text_or_none(data.get("reportedAt")) or "",
            schema=data["schema"],
        ),
        MARK,
        seal,
    )


def read_doubts(text: str | None, seal: Seal) -> tuple[Doubt, ...] | Unreadable:
    """Read the doubts that hold; none where there is no such annotation."""
    found = _read(text, lambda data: tuple(map(_doubt, _list(data["doubts"]))), DOUBTS, seal)
    if isinstance(found, tuple) and json.loads(text or "{}")["schema"] == UNSIGNED:
        return Unreadable("it is not signed", forged=True)
    return () if found is None else found


def read_cordon(text: str | None) -> Cordon | Unreadable | None:
    """Read a cordon; None where there is none."""
    return _read(
        text,
        lambda data: Cordon(
            _string(data["by"]),
            _string(data["bootID"]),
            _string(data["since"]),
            _text_or_none(data.get("run")) or "",
            # `fencer-guest` writes the second one; it takes a cordon with that off by itself after the boot.
            shutdown=data.get("stop") is True or data.get("shutdown") is True,
        ),
    )


def excluded_by(notes: Mapping[str, str], labels: Mapping[str, str]) -> str:
    """Return what takes a node out of fencing, for people; empty: nothing does.

    Args:
        notes: Its annotations.
        labels: Its labels.
    """
    if notes.get(EXCLUDE, "false").strip().lower() != "false":
        return f"the annotation {EXCLUDE}"
    return f"the label {EXCLUDE_LABEL}=true" if labels.get(EXCLUDE_LABEL) == "true" else ""


def _text(data: dict[str, Any]) -> str:
    return json.dumps({"schema": UNSIGNED, **data}, separators=(",", ":"), sort_keys=True)


def _sealed(annotation: str, data: dict[str, Any], seal: Seal) -> str:
    content = {"schema": SIGNED, **data}
    signed = {**content, "sig": seal.sign(annotation, content)}
    return json.dumps(signed, separators=(",", ":"), sort_keys=True)


def _read(
    text: str | None,
    build: Callable[[dict[str, Any]], Written],
    annotation: str = "",
    seal: Seal | None = None,
) -> Written | Unreadable | None:
    """Read a text; with a seal: one that is signed, or one of the schema before that."""
    if text is None:
        return None
    newest = UNSIGNED if seal is None else SIGNED
    try:
        data = json.loads(text)
        if data["schema"] not in range(UNSIGNED, newest + 1):
            return Unreadable(f"schema {data['schema']!r} (this fencer reads {newest})")
        if seal is not None and data["schema"] == SIGNED and not seal.signed(annotation, data):
            return Unreadable(
                "no agent with the current key (Secret fencer/fencer-key) wrote it on this Node",
                forged=True,
            )
        return build(data)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return Unreadable(f"{type(error).__name__}: {error}")


def _left(data: dict[str, Any]) -> Left:
    """Read it of a signed claim alone: a guest may be started for it."""
    if data["schema"] != SIGNED:
        raise ValueError("it is not signed")
    left = data["left"]
    return Left(_string(left["as"]), _number_or_none(left["starts"]) or 0, _string(left["startedAt"]))


def _approval(data: dict[str, Any]) -> str:
    """Read it of a signed one alone: it gives power."""
    if data["schema"] != SIGNED:
        raise ValueError("it is not signed")
    return _string(data["uuid"])


def _doubt(data: Any) -> Doubt:
    return Doubt(
        kind=Doubted(_string(data["kind"])),
        guest=_guest_of(data["guest"]),
        witness=_string(data["witness"]),
        by=_string(data["by"]),
        since_utc=_string(data["since"]),
        boot_id=_text_or_none(data.get("bootID")) or "",
        paired=data.get("paired") is True,
        trusted=_text_or_none(data.get("trusted")) or "",
    )


def _guest(guest: GuestRef) -> dict[str, str | None]:
    told = {
        "endpoint": guest.endpoint,
        "id": guest.id,
        "uuid": guest.uuid,
        "name": guest.name,
        "host": guest.host,
        "hostUUID": guest.host_uuid,
    }
    return told | {"hypervisor": guest.hypervisor} if guest.hypervisor else told


def _guest_of(data: Any) -> GuestRef:
    if not isinstance(data, dict):
        raise TypeError(f"expected a guest, not {data!r}")
    return GuestRef(
        endpoint=_string(data["endpoint"]),
        id=_string(data["id"]),
        uuid=_string(data["uuid"]),
        name=_string(data["name"]),
        host=_text_or_none(data.get("host")),
        host_uuid=_text_or_none(data.get("hostUUID")),
        hypervisor=_text_or_none(data.get("hypervisor")) or "",
    )


def _strings(values: Any) -> list[str]:
    return [_string(value) for value in _list(values)]


def _strings_or_none(values: Any) -> tuple[str, ...] | None:
    return None if values is None else tuple(_strings(values))


def _list(values: Any) -> list[Any]:
    if not isinstance(values, list):
        raise TypeError(f"expected a list, not {values!r}")
    return values


def _number_or_none(value: Any) -> int | None:
    if value is not None and not isinstance(value, int):
        raise TypeError(f"expected a number, not {value!r}")
    return value


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _string(value)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, not {value!r}")
    return value
