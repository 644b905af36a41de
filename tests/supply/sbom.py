"""Adds licences to what uv makes of the lock (CycloneDX, JSON): `./dev sbom` pipes the one into the other."""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

from tests.supply.licences import licence


def licensed(sbom: dict[str, Any]) -> dict[str, Any]:
    """Return the same list, each component with its licence where it is known."""
    components = [dict(component, **_licences(component["name"])) for component in sbom["components"]]
    return {**sbom, "components": components}


def _licences(package: str) -> dict[str, Any]:
    expression = licence(package)
    return {"licenses": [{"expression": expression}]} if expression else {}


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while uv still works: no traceback
    json.dump(licensed(json.load(sys.stdin)), sys.stdout, indent=2)
    sys.stdout.write("\n")
