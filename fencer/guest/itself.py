"""What is running here: the zipapp with its units, or a checkout from which they would be built."""

from __future__ import annotations

import sys
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from fencer.guest.errors import Unusable
from fencer.guest.facts import DRAIN_UNIT, UNCORDON_UNIT


def program_and_units() -> tuple[bytes, dict[str, str]]:
    """Return this program's own bytes and the texts of its units.

    Raises:
        Unusable: it runs from neither.
    """
    path = Path(sys.argv[0])
    try:
        with ZipFile(path) as archive:
            names = (DRAIN_UNIT, UNCORDON_UNIT)
            return path.read_bytes(), {
                name: archive.read(f"fencer/guest/units/{name}").decode() for name in names
            }
    except (OSError, BadZipFile, KeyError):
        pass
    try:
        from fencer.guest import build  # noqa: PLC0415 - not inside of the zipapp
    except ImportError:
        raise Unusable(f"{path} is not the whole program; build it: python -m fencer.guest.build") from None
    return build.build(), build.units()
