"""What somebody else's adapter may say at all: types and contradictions, with what was seen."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from math import inf
from types import NoneType

from fencer.core.identity import canonical
from fencer.core.model import Evidence, GuestRef, PowerState, Proof
from fencer.core.text import printable
from fencer.ports import EndpointInfo, StopSettings

LONGEST_TEXT = 2000
"""Characters. Names are written on Nodes, whose annotations are bounded."""

LARGEST = 1e12
"""Seconds. Python's whole numbers have no limit, but calculations with them do."""

Types = tuple[type, ...]
_GUEST: Mapping[str, Types] = {
    "endpoint": (str,),
    "id": (str,),
    "uuid": (str,),
    "name": (str,),
    "host": (str, NoneType),
    "host_uuid": (str, NoneType),
    "hypervisor": (str,),
}
_EVIDENCE: Mapping[str, Types] = {
    "power_state": (PowerState,),
    "settled": (bool,),
    "incarnation": (str, NoneType),
    "cold_start": (bool, NoneType),
    "raw": (str,),
    "source": (str,),
    "observed_at_s": (float, int),
    "conclusive": (bool,),
    "end_recorded": (bool,),
    "io_error": (bool,),
    "moved_from": (tuple,),
    "host_silent": (bool,),
    "proof": (Proof,),
    "witness": (str,),
    "away": (bool,),
    "filed": (bool,),
    "told": (str,),
    "stuck": (str,),
    "doubt": (NoneType,),
    "groups": (frozenset,),
    "fleeting": (bool,),
    "hibernated": (bool,),
    "powered_off": (bool,),
}
_INFO: Mapping[str, Types] = {
    "kind": (str,),
    "version": (str,),
    "detail": (str,),
    "can_power": (bool, NoneType),
    "problems": (tuple,),
    "remarks": (tuple,),
    "power_only": (frozenset, NoneType),
    "identity": (str, NoneType),
}
_STOPS: Mapping[str, Types] = {
    "shutdown_s": (float, int),
    "set_by": (str,),
    "settable": (bool,),
    "hook": (str,),
}
ITS_PROOFS = frozenset({Proof.POWER, Proof.ABSENCE})
"""The others take more than one hypervisor's word."""


class Lack(StrEnum):
    """What has to be said with "off" to make it usable; the value says why, for people."""

    HOST = "no host: it may run on another (`one_host` is not set)"
    RUN = "no incarnation: a start in between would not show"
    WITNESS = "no witness who says so"


class Implausible(Exception):
    """Something that an adapter cannot have meant, with the reason."""


def evidence(statement: object, endpoint: str, *, one_host: bool) -> Evidence:
    """Return a statement about a guest of an endpoint, if it can be one.

    Args:
        statement: What an adapter said.
        endpoint: The endpoint's name.
        one_host: Whether the configuration says that it is one host.

    Raises:
        Implausible: it cannot, with the reason.
    """
    if type(statement) is not Evidence:
        raise Implausible(f"no Evidence, but {_seen(statement)}")
    _check(statement, _EVIDENCE)
    if _check_guest(statement.guest, endpoint).hypervisor:
        raise Implausible("about a guest with its hypervisor: who that is, `describe` says")
    if not -LARGEST <= statement.observed_at_s <= inf:
        raise Implausible(f"observed_at_s is {_seen(statement.observed_at_s)}")
    if wrong := [words for words, is_so in _contradictions(statement, one_host=one_host).items() if is_so]:
        raise Implausible("; ".join(wrong))
    return statement


def named(statement: object, endpoint: str) -> GuestRef | None:
    """Return the guest that an unacceptable statement is about; None: unknown."""
    guest = statement.guest if type(statement) is Evidence else None
    try:
        return _check_guest(guest, endpoint)
    except Implausible:
        return None


def info(answer: object) -> EndpointInfo:
    """Return how an endpoint describes itself, if it can be that.

    Raises:
        Implausible: it cannot, with the reason.
    """
    if type(answer) is not EndpointInfo:
        raise Implausible(f"no EndpointInfo, but {_seen(answer)}")
    _check(answer, _INFO)
    return answer


def stop_settings(answer: object) -> StopSettings | None:
    """Return what is set for a guest's stops, if it can be that.

    Raises:
        Implausible: it cannot, with the reason.
    """
    if answer is None:
        return None
    if type(answer) is not StopSettings:
        raise Implausible(f"no StopSettings, but {_seen(answer)}")
    _check(answer, _STOPS)
    if not 0 <= answer.shutdown_s <= LARGEST:
        raise Implausible(f"shutdown_s is {_seen(answer.shutdown_s)}")
    return answer


def lacks(said: Evidence, *, one_host: bool) -> frozenset[Lack]:
    """Return what a statement would lack to be believed if it said that its guest is off.

    Args:
        said: Of a guest.
        one_host: As `evidence`.
    """
    missing = {
        Lack.HOST: not (said.guest.host or said.guest.host_uuid or one_host),
        Lack.RUN: not said.incarnation,
        Lack.WITNESS: not said.witness,
    }
    return frozenset(lack for lack, is_missing in missing.items() if is_missing)


def _contradictions(said: Evidence, *, one_host: bool) -> dict[str, bool]:
    state = said.power_state
    alive = state in {PowerState.RUNNING, PowerState.PAUSED}
    off = state is PowerState.STOPPED
    lacking = lacks(said, one_host=one_host)
    return {
        f"its proof is {said.proof}, which no adapter of others may give": said.proof not in ITS_PROOFS,
        f"the record of an end, of a guest that reads {state}": said.end_recorded
        and state is not PowerState.ABSENT,
        f"a silent host, of a guest that reads {state}": said.host_silent and state is not PowerState.UNKNOWN,
        f"its memory is elsewhere, and it reads {state}": said.away and (alive or off),
        f"an absence, of a guest that reads {state}": said.proof is Proof.ABSENCE
        and state is not PowerState.ABSENT,
        f"{state}, and {Lack.HOST}": off and Lack.HOST in lacking,
        f"its memory is in a file, or inside its disk, and it reads {state}": said.untracked is not None
        and state not in {PowerState.UNKNOWN, PowerState.PAUSED}
        and not (said.hibernated and state is PowerState.RUNNING),
        f"it has powered itself off, and reads {state}": said.powered_off
        and state is not PowerState.STOPPING,
        f"{state}, and {Lack.RUN}": said.gone and Lack.RUN in lacking,
        f"{state}, and {Lack.WITNESS}": said.gone and Lack.WITNESS in lacking,
    }


def _check_guest(guest: object, endpoint: str) -> GuestRef:
    if type(guest) is not GuestRef:
        raise Implausible(f"about no GuestRef, but {_seen(guest)}")
    _check(guest, _GUEST)
    if guest.endpoint != endpoint:
        raise Implausible(f"about a guest of the endpoint {guest.endpoint!r}")
    if not guest.id or canonical(guest.uuid) != guest.uuid or not guest.uuid:
        raise Implausible(f"about a guest with the id {guest.id!r} and the UUID {guest.uuid!r}: that is none")
    return guest


def words(error: BaseException) -> str:
    """Return what an exception says, on one line that ends: it may have no end, or raise when it is asked."""
    try:
        said = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as another:  # noqa: BLE001 - whatever it is, what is known is said
        return f"(what it says cannot be told: {type(another).__name__})"
    shown, length = printable(str.__getitem__(said, slice(LONGEST_TEXT))), str.__len__(said)
    return shown if length <= LONGEST_TEXT else f"{shown}… ({length} characters)"


def _check(value: object, types: Mapping[str, Types]) -> None:
    """Accept only exact types: a value of another type may run its own code on any access."""
    for name, allowed in types.items():
        seen: object = getattr(value, name)
        if not _is_of(seen, allowed):
            raise Implausible(f"{name} is {_seen(seen)}")
        texts = seen if isinstance(seen, tuple | frozenset) else (seen,) if _is_of(seen, (str,)) else ()
        for text in texts:
            if type(text) is not str or len(text) > LONGEST_TEXT:
                raise Implausible(f"in {name}: {_seen(text)}")


def _is_of(value: object, allowed: Types) -> bool:
    """Whether it is of one of these very types. Not by ``in``: a class can call itself equal to any."""
    return any(type(value) is one for one in allowed)


def _seen(value: object) -> str:
    shown = "one"
    if type(value) is str:
        shown = f"{value[:80]!r}"
    elif type(value) is int and abs(value) > LARGEST:
        shown = f"a number of {value.bit_length()} bits"
    elif _is_of(value, (int, float, bool, NoneType)):
        shown = f"{value!r}"
    return f"{shown} (of type {type(value).__name__})"
