"""Which endpoints are distrusted (D1), why, and what to type: for all that concerns no single node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fencer.core.distrust import why_distrusted
from fencer.core.model import Observation
from fencer.core.text import unticked

TRUST = "if you know that {endpoint} reports the truth now: `fencer trust {endpoint} --why WHY`"
"""How a person ends a distrust."""
MEANS = 'fencer ignores its "off" for all its VMs, so their nodes aren\'t fenced'
"""What a distrust means."""


def distrusted_endpoints(observations: Iterable[Observation]) -> Mapping[str, str]:
    """Return the distrusted endpoints, each with why.

    Args:
        observations: The nodes, of one pass.
    """
    fleets = (one.fleet for one in observations)
    found = {name: fleet for fleet in fleets for name in fleet.contradicted_endpoints}
    return {name: why_distrusted(name, found[name]) for name in sorted(found)}


def distrust_notice(endpoint: str, why: str) -> str:
    """Return, in two sentences, that an endpoint is distrusted, what that means and what ends it.

    Args:
        endpoint: The endpoint.
        why: As `distrusted_endpoints` has it.
    """
    way = TRUST.format(endpoint=unticked(endpoint))
    return f"{why}; {MEANS}. {way[0].upper()}{way[1:]}"
