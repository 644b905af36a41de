"""Where the recordings of the real API are, on machines that have them. They are no part of the project."""

from __future__ import annotations

import os
from pathlib import Path

_SHARED = Path(__file__).parents[4] / "shared" / "data" / "proxmox"


def recordings() -> Path:
    """Return the folder of recordings, whether it is there or not: `FENCER_PVE_RECORDINGS`, or beside us."""
    return Path(os.environ.get("FENCER_PVE_RECORDINGS") or usual_recordings())


def usual_recordings() -> Path:
    """Return the folder beside the project, which the tables are about, whether it is there or not."""
    return _SHARED / "recordings"


def api_schema() -> Path:
    """Return the file with the schema of the API: `FENCER_PVE_SCHEMA`, or beside the project."""
    return Path(os.environ.get("FENCER_PVE_SCHEMA") or _SHARED / "api-schema.json")
