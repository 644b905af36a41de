"""The running program: the zipapp with its units, or a checkout that can build them."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from zipfile import BadZipFile, ZipFile

import fencer
from fencer.guest.errors import Unusable
from fencer.guest.facts import DRAIN_UNIT, UNCORDON_UNIT


def program() -> bytes:
    """Return this program's own bytes.

    Raises:
        Unusable: it runs from neither.
    """
    path = Path(sys.argv[0])
    return path.read_bytes() if _packed(path) else _build().build()


def version() -> str:
    """Return the version that was built."""
    return str(getattr(fencer, "__version__", "") or _build().version())


def units() -> dict[str, str]:
    """Return the texts of its units, by name.

    Raises:
        Unusable: it runs from neither.
    """
    return _packed(Path(sys.argv[0])) or _build().units()


def _packed(path: Path) -> dict[str, str]:
    """Return the units in a zipapp; empty: it is none of ours."""
    try:
        with ZipFile(path) as archive:
            names = (DRAIN_UNIT, UNCORDON_UNIT)
            return {name: archive.read(f"fencer/guest/units/{name}").decode() for name in names}
    except (OSError, BadZipFile, KeyError):
        return {}


def _build() -> ModuleType:
    try:
        from fencer.guest import build  # noqa: PLC0415 - not inside of the zipapp
    except ImportError:
        why = "is not the whole program; build it: python -m fencer.guest.build"
        raise Unusable(f"{sys.argv[0]} {why}") from None
    return build
