"""What the kubelet's configuration says about graceful node shutdown."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Sequence

from fencer.guest import files, little_yaml
from fencer.guest.errors import Unusable
from fencer.guest.facts import Kubelet
from fencer.guest.fields import items, mapping
from fencer.guest.kubelets import Process
from fencer.guest.places import PLACES, Place
from fencer.guest.spans import seconds

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
    read, trouble = [], ""
    merged: dict[str, Any] = {}
    for path in _files(root, place, found, command):
        try:
            content = mapping(document(files.found(root, path)))
        except (ValueError, Unusable) as error:
            trouble = f"{_shown(root, path)}: {error}"
            continue
        read.append(_shown(root, path))
        merged.update(content)
    by_priority = [mapping(entry) for entry in items(merged.get("shutdownGracePeriodByPodPriority"))]
    periods_s = [_seconds(entry.get("shutdownGracePeriodSeconds")) for entry in by_priority]
    off = str(mapping(merged.get("featureGates")).get("GracefulNodeShutdown", "true")).lower() == "false"
    return Kubelet(
        unit=unit,
        running=bool(unit),
        files=tuple(read),
        grace_s=0.0 if off else sum(periods_s) or _seconds(merged.get("shutdownGracePeriod")),
        critical_s=_seconds(merged.get("shutdownGracePeriodCriticalPods")),
        by_priority=bool(by_priority),
        trouble=trouble,
    )


def document(text: str) -> Any:
    """Read YAML or JSON.

    Raises:
        ValueError: it is neither, or more of YAML than we read.
    """
    try:
        return json.loads(text) if text.lstrip().startswith("{") else little_yaml.read(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _files(root: Path, place: Place | None, found: Sequence[Process], command: str) -> list[Path]:
    named = [process for process in found if process.option("config") or process.option("config-dir")]
    config = [process.option("config") for process in named]
    folders = [process.option("config-dir") for process in named]
    if place is not None and not named:
        told = {**_kubelet_arguments(root, place), **dict(_KUBELET_ARG.findall(command))}
        config = [told.get("config") or place.config]
        folders = [told.get("config-dir") or place.drop_ins]
    paths = [root / name.lstrip("/") for name in config if name]
    for folder in folders:
        paths += sorted((root / folder.lstrip("/")).glob("*.conf")) if folder else []
    return [path for path in paths if files.there(path)]


def _kubelet_arguments(root: Path, place: Place) -> dict[str, str]:
    """Read `kubelet-arg` from the installer's own files (k3s, RKE2)."""
    if not place.settings:
        return {}
    own = root / place.settings.lstrip("/")
    found: dict[str, str] = {}
    for path in (own, *sorted((own.parent / f"{own.name}.d").glob("*.yaml"))):
        try:
            content = mapping(document(files.found(root, path)))
        except (ValueError, Unusable):
            continue
        said = content.get("kubelet-arg", content.get("kubelet-arg+"))
        for argument in said if isinstance(said, list) else [said]:
            key, _, value = str(argument).partition("=")
            found[key] = value
    return found


def _seconds(value: Any) -> float:
    return (seconds(str(value)) or 0.0) if value not in (None, "") else 0.0


def _shown(root: Path, path: Path) -> str:
    return f"/{path.relative_to(root)}"
