"""Adapters of others: found by entry point, loaded when a configuration names their type, and never before.

A package brings one by an entry point of the group `GROUP`, which names an `Adapter`. The entry point's name
is the `type` of such hypervisors in the configuration. docs/adapters.md tells how one is written;
docs/adapter-example is the smallest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from fencer.core.text import printable
from fencer.errors import ConfigError
from fencer.hypervisors.guarded import Guarded
from fencer.hypervisors.plausible import words
from fencer.ports import Hypervisor

GROUP = "fencer.hypervisors"
_METHODS = (
    *("describe", "sweep", "read", "stop_settings", "shutdown", "stop", "discard", "start"),
    *("subscribe", "nudge", "attend", "close"),
)
OWN_TYPES = ("libvirt", "proxmox", "virtualbox")
"""The types that fencer itself has an adapter for. Another adapter with one of these names is never found."""
API = 1
"""Version of the interface between adapters and fencer; it grows when an adapter must know of a change."""


@dataclass(frozen=True, slots=True)
class AdapterSettings:
    """What an adapter gets from the configuration. It checks `settings` itself, and refuses unusable ones.

    Attributes:
        endpoint: The endpoint's name, for every error and every guest.
        settings: The values under `settings`: text, numbers, true and false, and lists of them.
        secret_files: Files with credentials, by the names that the configuration gives them.
        now_s: The agent's monotonic clock. It counts suspension, which `time.monotonic` does not.
    """

    endpoint: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    secret_files: Mapping[str, Path] = field(default_factory=dict)
    now_s: Callable[[], float] = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Adapter:
    """What an entry point of `GROUP` names.

    Attributes:
        connect: Makes the port of one endpoint: at once, and without asking it anything.
        api: For which `API` it was written.
    """

    connect: Callable[[AdapterSettings], Hypervisor]
    api: int


def installed() -> tuple[str, ...]:
    """Name the types of hypervisors that installed packages bring adapters for. None of them is loaded."""
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def connect(kind: str, settings: AdapterSettings, *, one_host: bool = False) -> Hypervisor:
    """Make the port of an endpoint with another package's adapter, with a guard in front of it.

    Args:
        kind: The `type` that the configuration names.
        settings: The endpoint's.
        one_host: Whether the configuration says that it is one host.

    Raises:
        ConfigError: there is no such adapter, or it cannot be used, or refuses its settings.
    """
    adapter = unguarded(kind, settings)
    return Guarded(settings.endpoint, adapter, settings.now_s, one_host=one_host)


def unguarded(kind: str, settings: AdapterSettings) -> Hypervisor:
    """Do the same without the guard: the contract has to see what an adapter itself does.

    Raises:
        ConfigError: as `connect`.
    """
    adapter = load(settings.endpoint, kind)
    try:
        hypervisor = adapter.connect(settings)
    except ConfigError as error:
        raise ConfigError(f"{settings.endpoint}: {words(error)}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # Any error of somebody else's code with a setting is named, and shown without a traceback.
        raise ConfigError(
            f"{settings.endpoint}: the adapter of type {kind} cannot be made of its settings: {_told(error)}"
        ) from error
    missing = [name for name in _METHODS if not _has(hypervisor, name)]
    if missing:
        raise ConfigError(
            f"{settings.endpoint}: the adapter of type {kind} made a {type(hypervisor).__name__}, which is "
            f"no hypervisor: it has no {', '.join(missing)}"
        )
    return hypervisor


def load(endpoint: str, kind: str) -> Adapter:
    """Find and load the adapter for a type.

    Args:
        endpoint: The endpoint that needs it, for people.
        kind: The type.

    Raises:
        ConfigError: no package brings it, or two do, or it cannot be loaded, or was written for another
            fencer.
    """
    point = _only(endpoint, kind)
    by = f"{endpoint}: the adapter of type {kind} by {_package(point)}"
    try:
        adapter = point.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ConfigError(f"{by} cannot be loaded from {point.value}: {_told(error)}") from error
    if not isinstance(adapter, Adapter):
        raise ConfigError(
            f"{by}: {point.value} is a {type(adapter).__name__}, not a fencer.hypervisors.adapters.Adapter"
        )
    if type(adapter.api) is not int or adapter.api != API:
        written = (
            f"{adapter.api}" if type(adapter.api) is int else f"{type(adapter.api).__name__}, no number,"
        )
        raise ConfigError(
            f"{by} was written for API {written} of adapters, this fencer has {API}: install the "
            "release of either that fits the other"
        )
    if not callable(adapter.connect):
        raise ConfigError(
            f"{by}: its `connect` cannot be called, it is of type {type(adapter.connect).__name__}"
        )
    return adapter


def _only(endpoint: str, kind: str) -> EntryPoint:
    found = list(entry_points(group=GROUP, name=kind))
    if not found:
        known = ", ".join(installed())
        raise ConfigError(
            f"{endpoint}: no installed package brings an adapter of type {printable(kind)} "
            f"({f'there is {known}' if known else 'there is none at all'}). Install it beside fencer, into "
            "the same environment"
        )
    if len(found) > 1:
        packages = " and ".join(sorted(_package(point) for point in found))
        raise ConfigError(
            f"{endpoint}: {packages} each bring an adapter of type {kind}: uninstall all but one of them"
        )
    return found[0]


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown package"


def _has(hypervisor: object, method: str) -> bool:
    """Whether it has a method; an error while looking counts as no."""
    try:
        return callable(getattr(hypervisor, method, None))
    except Exception:  # noqa: BLE001 - a property of somebody else's
        return False


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {words(error)}"
