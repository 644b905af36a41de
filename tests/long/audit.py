"""The lock against known vulnerabilities, by `uv audit` and a service of advisories."""

from __future__ import annotations

import os
import shutil

from tests.long.site import Site
from tests.long.step import LeftOut, StepFailed

SERVICE = "FENCER_ADVISORIES"
"""The variable that names another service than uv's own choice: one that speaks OSV's API, like a mirror."""
_FOUND = 1
"""Exit code of uv; 2 is for everything that kept it from looking."""


def audit(site: Site) -> str:
    """Ask about all that fencer needs at run time, extras included.

    Raises:
        StepFailed: something is known of a version in the lock; the log has it.
        LeftOut: nobody could be asked.
    """
    uv = os.environ.get("UV") or shutil.which("uv")  # `uv run` tells its own
    if uv is None:
        raise LeftOut("no uv here: run it by `./dev long audit`")
    url = os.environ.get(SERVICE)
    where = ("--service-url", url) if url else ()
    code = site.run(uv, "audit", "--frozen", "--no-dev", "--preview-features", "audit", *where)
    if code == _FOUND:
        raise StepFailed(f"known vulnerabilities in uv.lock, see {site.log.name}: {site.last_line()}")
    if code:
        raise LeftOut(
            f"no advisories ({site.last_line()}): run it where {url or 'https://api.osv.dev'} answers,"
            f" or name a mirror of it by {SERVICE}=URL"
        )
    return site.last_line()
