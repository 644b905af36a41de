"""The contract of receivers on real servers that no package has: where their binaries are named."""

from __future__ import annotations

import os
import sys

from tests.long.parts import Part, do
from tests.long.site import Site
from tests.long.step import LeftOut

BINARIES = {"FENCER_NTFY": "ntfy 2", "FENCER_GOTIFY": "Gotify's server"}


def receivers(site: Site) -> str:
    """Send to a real ntfy and a real Gotify."""
    absent = [
        f"{name} names no binary of {what}" for name, what in BINARIES.items() if not os.environ.get(name)
    ]
    if len(absent) == len(BINARIES):
        raise LeftOut(" and ".join(absent))
    tests = (sys.executable, "-m", "pytest", "-n", "0", "-k", "real", "tests/notify/receivers")
    return "; ".join([do(site, [Part("", tests)]), *absent])
