"""Pods to be evicted."""

from __future__ import annotations

from typing import Any

from fencer.core.model import PodView


def pod(name: str, **traits: Any) -> PodView:
    """Return one of a Deployment, unless told otherwise."""
    facts: dict[str, Any] = {"controller": "ReplicaSet/web", **traits}
    return PodView("shop", name, f"uid-{name}", "1", "Running", **facts)
