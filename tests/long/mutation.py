"""Faults put into fencer/core by mutmut, a sample by chance: tests/core must find them.

A fault that no test finds is printed with its difference. Either there is a gap in the tests, or nobody could
see the difference: only a person can tell. So a few fail nothing, and too many fail the step.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from random import Random

from tests.long.site import CHECKOUT, HOUR_S, Site
from tests.long.step import StepFailed

SAMPLE = 400
WITHIN_S = HOUR_S
ENOUGH = 0.7
"""Of the faults that are tried, this share must be found: it is today. Most of the rest are in wording."""
TRIED = 0.25
"""Of the faults that are asked for, this share must be tried in the hour: 121 of 400 were."""
_FEW = "fencer.core.text.*"
"""What to begin with: before it tries any, mutmut makes all faults and learns which test runs what."""
_FOUND = {"killed", "timeout", "segfault"}
_NOT_TRIED = "not checked"


def run(site: Site) -> str:
    """Try a sample in a clone with an environment of its own: nothing of this checkout changes."""
    clone = site.folder / "clone"
    if site.run("git", "clone", "--quiet", str(CHECKOUT), str(clone)):
        raise StepFailed(f"git clone: {site.last_line()}")
    if site.run(*_mutmut("run", _FEW), cwd=clone, variables=_OWN):
        raise StepFailed(f"mutmut: {site.last_line()}")
    names = sorted(_results(clone))
    sample = Random(site.seed).sample(names, min(SAMPLE, len(names)))  # noqa: S311 - no secret
    code = site.run(*_mutmut("run", *sample), cwd=clone, within_s=WITHIN_S, variables=_OWN)
    if code not in (0, -signal.SIGKILL):  # the latter: time is up, and what was tried counts
        raise StepFailed(f"mutmut: exit code {code}: {site.last_line()}")
    tried = {name: how for name, how in _results(clone).items() if name in sample and how != _NOT_TRIED}
    left = [name for name, how in tried.items() if how not in _FOUND]
    for name in left:
        site.run(*_mutmut("show", name), cwd=clone, variables=_OWN)
    return judge(len(tried), len(left), len(sample), len(names))


def judge(tried: int, left: int, asked: int, all_of_them: int) -> str:
    """Say how many faults were found.

    Raises:
        StepFailed: Too few, or too few were tried.
    """
    told = f"{tried - left} of {tried} faults found, {asked} asked, of {all_of_them} that there are"
    if tried < asked * TRIED:
        raise StepFailed(f"{told}; at least {TRIED:.0%} of them must be tried: see the end of the output")
    if not tried or (tried - left) / tried < ENOUGH:
        raise StepFailed(f"{told}; at least {ENOUGH:.0%} must be: see the end of the output")
    return told


def parse(told: str) -> Mapping[str, str]:
    """Return what `mutmut results` tells: each fault's name, and what became of it."""
    lines = [line.strip().rpartition(": ") for line in told.splitlines()]
    return {name: how for name, _, how in lines if name.startswith("fencer.core.")}


def _results(clone: Path) -> Mapping[str, str]:
    told = subprocess.run(
        _mutmut("results", "--all", "true"),
        cwd=clone,
        env={**os.environ, **_OWN},
        capture_output=True,
        text=True,
        check=False,
    )
    return parse(told.stdout)


def _mutmut(*words: str) -> tuple[str, ...]:
    return (os.environ.get("UV", "uv"), "run", "--frozen", "--quiet", "--group", "long", "mutmut", *words)


_OWN = {"UV_PROJECT_ENVIRONMENT": ".venv", "VIRTUAL_ENV": ""}
"""The clone's environment, whichever one this process runs in."""
