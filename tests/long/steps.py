"""All steps of the long run, in the order of what they show for a minute."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial

from tests.long import numbers, pythons
from tests.long.audit import audit
from tests.long.clean_debian import BOOKWORM, TRIXIE, both_commands
from tests.long.deb import deb
from tests.long.deb_guest import deb_guest
from tests.long.deb_systemd import deb_systemd
from tests.long.fuzz import fuzz
from tests.long.image import image
from tests.long.mutants.__main__ import PARTS
from tests.long.parts import Part, do
from tests.long.quickstart import quickstart
from tests.long.receivers import receivers
from tests.long.site import Site
from tests.long.step import Step


def benchmarks(site: Site) -> str:
    """Measure every number of the table; it stays in the step's output."""
    return do(site, [Part("", (sys.executable, "-m", "tests.benchmarks"))])


def mutants(part: str, site: Site) -> str:
    """Put faults into a part of fencer, one at a time."""
    return do(site, [Part("", (sys.executable, "-m", "tests.long.mutants", part))])


def end_to_end(site: Site) -> str:
    """Run the end-to-end tests, of which the gate has those that are marked `smoke`."""
    return do(site, [Part("", ("./dev", "test", "tests/e2e"))])


def slow(site: Site) -> str:
    """Run the slow tests, of which the gate has those that are marked `smoke`, too."""
    return do(site, [Part("", ("./dev", "test", "-m", "slow"))])


_STEPS = (
    Step("e2e", "every end-to-end test, on a real control plane and real guests", end_to_end),
    Step("slow", "every test that is slow for another reason", slow),
    Step("pythons", "quick tests on every Python of this machine", pythons.quick),
    Step("seeds", "properties, incidents and random faults with many other seeds", numbers.seeds),
    Step("races", f"each test that races, {numbers.TIMES} times", numbers.races),
    Step("python-3.13", "all tests on Python 3.13", partial(pythons.whole, "3.13")),
    Step(
        "debian-13",
        "./dev demo and ./dev test on a clean Debian 13",
        partial(both_commands, TRIXIE),
    ),
    Step(
        "debian-12",
        "./dev demo and ./dev test on a clean Debian 12",
        partial(both_commands, BOOKWORM),
    ),
    *(
        Step(
            f"mutants-{part}",
            f"faults put into fencer/{part}, which its tests must find",
            partial(mutants, part),
        )
        for part in PARTS
    ),
    Step("fuzz", "readers under input that was right once, for an hour or FENCER_FUZZ_MINUTES", fuzz),
    Step("image", "the container image is built, and started as the Deployment says", image),
    Step("deb", "the .deb: built twice, judged by lintian, and used on a clean Debian 12 and 13", deb),
    Step(
        "deb-systemd",
        "the .deb under systemd: reload, crash, stop, upgrade, and an upgrade of Debian 12 to 13 around it",
        deb_systemd,
    ),
    Step("quickstart", "the README's three quick starts, pasted on clean Debians", quickstart),
    Step("deb-guest", "the .deb in a Debian 13 with a kernel of its own, emulated", deb_guest),
    Step("receivers", "a real ntfy and a real Gotify take what is sent there", receivers),
    Step("audit", "the lock against known vulnerabilities", audit),
    Step("benchmarks", "the benchmarks of the table; the numbers are in its output", benchmarks),
)
STEPS: Mapping[str, Step] = {step.name: step for step in _STEPS}
"""By name."""
