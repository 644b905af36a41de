"""Readers under input that was right once, round after round, until the time is over."""

from __future__ import annotations

import math
import os
import sys
import time

from tests.long.site import Site
from tests.long.step import StepFailed

MINUTES = "FENCER_FUZZ_MINUTES"
"""The variable that says how long; an hour without it."""
EXAMPLES = 500
"""Of each target in a round, so that each has its turn also within minutes."""
TARGETS = (
    *("tests/fuzz", "tests/config/test_config_bad_input.py", "tests/guest/test_little_yaml.py"),
    *("tests/guest/test_kubeconfig.py", "tests/hypervisors/proxmox/test_fuzzed_answers.py"),
    *(
        "tests/hypervisors/virtualbox/test_parse.py",
        "tests/cluster/test_parse.py",
        "tests/core/test_values.py",
    ),
)


def fuzz(site: Site) -> str:
    """Draw other input in each round; what fails stays in `.hypothesis`, and is tried first the next time.

    Raises:
        StepFailed: a reader stumbled; the log has the smallest input that makes it. Or no time was named.
    """
    until_s = time.monotonic() + 60 * _minutes(os.environ.get(MINUTES) or "60")
    rounds = 0
    while rounds == 0 or time.monotonic() < until_s:
        seed = f"--hypothesis-seed={site.seed * 100_000 + rounds}"
        code = site.run(
            *(sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "hypothesis", seed, *TARGETS),
            variables={"FENCER_EXAMPLES": str(EXAMPLES)},
        )
        if code:
            raise StepFailed(f"round {rounds + 1}, {seed}: {site.last_line()}")
        rounds += 1
    return f"{rounds} rounds of {EXAMPLES} examples for each target: {site.last_line()}"


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = math.nan
    if not 0 <= minutes < math.inf:
        raise StepFailed(f"{MINUTES}={text}: for how many minutes? A number, like 5")
    return minutes
