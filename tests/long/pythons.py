"""Quick tests on every Python of this machine, and the whole suite on one."""

from __future__ import annotations

import subprocess

from tests.long.parts import Part, do
from tests.long.site import CHECKOUT, Site
from tests.long.step import LeftOut, StepFailed

VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def quick(site: Site) -> str:
    """Run the quick tests on each Python that is here, and name those that are not."""
    here = _here()
    if not here:
        raise StepFailed("`./dev pythons` names none: run it by itself")
    absent = [version for version in VERSIONS if version not in here]
    seen = do(site, [Part(version, ("./dev", "quick"), {"FENCER_PYTHON": version}) for version in here])
    return "; ".join([seen, *(f"{version}: not on this machine" for version in absent)])


def whole(version: str, site: Site) -> str:
    """Run all tests on one Python."""
    if version not in _here():
        raise LeftOut(f"no Python {version} on this machine: install it, so that `./dev pythons` names it")
    every = ("-m", "slow or not slow")  # without an option, what takes long is left out
    return do(site, [Part("", ("./dev", "test", *every), {"FENCER_PYTHON": version})])


def _here() -> list[str]:
    told = subprocess.run(["./dev", "pythons"], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    return told.stdout.split()
