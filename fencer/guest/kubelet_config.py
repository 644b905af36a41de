"""What the kubelet's configuration says about graceful node shutdown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Callable, Sequence

from fencer.guest import files
from fencer.guest.errors import Unusable
from fencer.guest.facts import Kubelet
from fencer.guest.fields import items, mapping
from fencer.guest.kubelets import Process
from fencer.guest.little_yaml import document
from fencer.guest.places import PLACES, Place
from fencer.guest.spans import seconds

_PERIODS = {"shutdownGracePeriod", "shutdownGracePeriodByPodPriority", "GracefulNodeShutdown"}
_KUBELET_ARG = re.compile(r"--kubelet-arg[= ]['\"]?(config|config-dir)=([^\s'\";]+)")


def kubelet_config(root: Path, unit: str, found: Sequence[Process], command: str = "") -> Kubelet:
    """Read the files that the kubelet reads, in its order: its file, then the drop-ins by name.

    Args:
        root: Of the file system.
        unit: The kubelet's unit; empty: none.
        found: The kubelets' processes.
        command: The unit's ExecStart, where k3s and RKE2 may be told `--kubelet-arg`.
    """
    place = next((place for place in PLACES if unit in place.units), None)
    troubles: list[str] = []
    merged: dict[str, Any] = {}
    set_in = ""
    for path in _files(root, place, found, command, troubles):
        said = read_found(root, path, _settings, troubles) or {}
        if _PERIODS & {*said, *mapping(said.get("featureGates"))}:
            set_in = f"/{path.relative_to(root)}"
        merged.update(said)
    by_priority = [mapping(entry) for entry in items(merged.get("shutdownGracePeriodByPodPriority"))]
    periods_s = [_seconds(entry.get("shutdownGracePeriodSeconds")) for entry in by_priority]
    off = str(mapping(merged.get("featureGates")).get("GracefulNodeShutdown", "true")).lower() == "false"
    return Kubelet(
        unit=unit,
        grace_s=0.0 if off else sum(periods_s) or _seconds(merged.get("shutdownGracePeriod")),
        critical_s=_seconds(merged.get("shutdownGracePeriodCriticalPods")),
        by_priority=bool(by_priority),
        set_in=set_in,
        trouble="; ".join(troubles),
    )


def settings_files(root: Path, place: Place) -> list[Path]:
    """Return the installer's own files in its order; they need not exist."""
    if not place.settings:
        return []
    own = root / place.settings.lstrip("/")
    return [own, *sorted((own.parent / f"{own.name}.d").glob("*.yaml"))]


def _settings(text: str) -> dict[str, Any]:
    return mapping(document(text))


def read_found(root: Path, path: Path, reader: Callable[[str], Any], troubles: list[str]) -> Any:
    """Read a file that root must own; None: it cannot be read, and `troubles` gets the reason."""
    try:
        return reader(files.found(root, path))
    except (ValueError, Unusable) as error:
        troubles.append(f"/{path.relative_to(root)}: {error}")
        return None


def _files(
    root: Path, place: Place | None, found: Sequence[Process], command: str, troubles: list[str]
) -> list[Path]:
    if place is not None and place.arguments:
        found = _as_if_started(root, place, troubles)
    named = [(process.option("config"), process.option("config-dir")) for process in found]
    if place is not None and not any(map(any, named)):
        told = {**_kubelet_arguments(root, place, troubles), **dict(_KUBELET_ARG.findall(command))}
        # A file that nobody named need not exist.
        usual = place.config if files.there(root / place.config.lstrip("/")) else ""
        named = [(told.get("config") or usual, told.get("config-dir") or place.drop_ins)]
    paths = [root / config.lstrip("/") for config, _ in named if config]
    for _, folder in named:
        paths += sorted((root / folder.lstrip("/")).glob("*.conf")) if folder else []
    return paths


def _as_if_started(root: Path, place: Place, troubles: list[str]) -> list[Process]:
    """Read the command line from a file, as kubelite does.

    Source: microk8s, patch "Kubelite integration", ReadArgsFromFile.
    """
    path = root / place.arguments.lstrip("/")
    lines = read_found(root, path, str.splitlines, troubles) or []
    text = " ".join(line for line in lines if not line.lstrip().startswith("#"))
    words = re.sub("[\"']", "", text).replace("${SNAP_DATA}", str(path.parents[1].relative_to(root))).split()
    return [Process(0, ("kubelet", *words), "")]


def _kubelet_arguments(root: Path, place: Place, troubles: list[str]) -> dict[str, str]:
    """Read `kubelet-arg` from the installer's own files (k3s, RKE2)."""
    found: dict[str, str] = {}
    for path in filter(files.there, settings_files(root, place)):
        content = read_found(root, path, _settings, troubles) or {}
        said = content.get("kubelet-arg", content.get("kubelet-arg+"))
        for argument in said if isinstance(said, list) else [said]:
            key, _, value = str(argument).partition("=")
            found[key] = value
    return found


def _seconds(value: Any) -> float:
    return (seconds(str(value)) or 0.0) if value not in (None, "") else 0.0
