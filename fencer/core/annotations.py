"""What fencer writes on Nodes: keys, and the versioned texts of binding, mark and cordon.

A text that is broken or of a newer schema reads `Unreadable`: it is left alone, and said.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from fencer.core.model import Binding, Cordon, FenceMark, GuestRef, Proof, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable

BINDING = "fencer.dev/binding"
MARK = "fencer.dev/mark"
CORDON = "fencer.dev/cordon"
INCIDENT = "fencer.dev/incident"
"""The claim of one agent on an incident, before a power action."""
EXCLUDE = "fencer.dev/exclude"
"""On a Node, set by people: fencer leaves it alone. Any value but ``false``."""
PAUSE = "fencer.dev/pause"
"""On the namespace kube-system, set by people: fencing is paused; the value says why."""
APPLIED_BY = "node.kubernetes.io/out-of-service-applied-by"
"""Who set the taint, for other tools. Source: OpenShift's two-node fencing writes the same key."""

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Claim:
    """Which incident an agent claimed."""

    incident: str


Written = TypeVar("Written", Binding, FenceMark, Cordon, Claim)


def write_binding(binding: Binding) -> str:
    """Return the annotation's text for a binding."""
    return _text({"guest": _guest(binding.guest), "bootIDs": list(binding.boot_ids)})


def write_mark(mark: FenceMark) -> str:
    """Return the annotation's text for a mark."""
    return _text(
        {
            "incident": mark.incident,
            "fencedAt": mark.fenced_at_utc,
            "bootID": mark.boot_id,
            "guest": _guest(mark.guest),
            "by": mark.by,
            "proof": mark.proof.value,
            "incarnation": mark.incarnation,
        }
    )


def write_cordon(cordon: Cordon) -> str:
    """Return the annotation's text for a cordon."""
    return _text({"by": cordon.by, "bootID": cordon.boot_id, "since": cordon.since_utc})


def write_claim(incident: str, by: str) -> str:
    """Return the annotation's text for a claim on an incident."""
    return _text({"incident": incident, "by": by})


def read_claim(text: str | None) -> str:
    """Read which incident was claimed; empty where there is no claim, or none that can be read."""
    claimed = _read(text, lambda data: Claim(_string(data["incident"])))
    return claimed.incident if isinstance(claimed, Claim) else ""


def read_binding(text: str | None) -> Binding | Unreadable | None:
    """Read a binding; None where there is none."""
    return _read(text, lambda data: Binding(_guest_of(data["guest"]), tuple(_strings(data["bootIDs"]))))


def read_mark(text: str | None) -> FenceMark | Unreadable | None:
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
        ),
    )


def read_cordon(text: str | None) -> Cordon | Unreadable | None:
    """Read a cordon; None where there is none."""
    return _read(
        text, lambda data: Cordon(_string(data["by"]), _string(data["bootID"]), _string(data["since"]))
    )


def excluded(text: str | None) -> bool:
    """Whether the exclude annotation takes the node out of fencing."""
    return text is not None and text.strip().lower() != "false"


def _text(data: dict[str, Any]) -> str:
    return json.dumps({"schema": SCHEMA, **data}, separators=(",", ":"), sort_keys=True)


def _read(text: str | None, build: Callable[[dict[str, Any]], Written]) -> Written | Unreadable | None:
    if text is None:
        return None
    try:
        data = json.loads(text)
        if data["schema"] != SCHEMA:
            return Unreadable(f"schema {data['schema']!r} (this fencer reads {SCHEMA})")
        return build(data)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return Unreadable(f"{type(error).__name__}: {error}")


def _guest(guest: GuestRef) -> dict[str, str | None]:
    return {
        "endpoint": guest.endpoint,
        "id": guest.id,
        "uuid": guest.uuid,
        "name": guest.name,
        "host": guest.host,
    }


def _guest_of(data: Any) -> GuestRef:
    if not isinstance(data, dict):
        raise TypeError(f"expected a guest, not {data!r}")
    return GuestRef(
        endpoint=_string(data["endpoint"]),
        id=_string(data["id"]),
        uuid=_string(data["uuid"]),
        name=_string(data["name"]),
        host=_text_or_none(data.get("host")),
    )


def _strings(values: Any) -> list[str]:
    if not isinstance(values, list):
        raise TypeError(f"expected a list, not {values!r}")
    return [_string(value) for value in values]


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _string(value)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, not {value!r}")
    return value
