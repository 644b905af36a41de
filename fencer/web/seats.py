"""What this agent is to each hypervisor, of several agents: for metrics, health and the page. Pure."""

from __future__ import annotations

from fencer.core.election import Seat
from fencer.core.text import printable
from fencer.web.answer import stale_after_s
from fencer.web.snapshot import Snapshot


def leads(shown: Snapshot, endpoint: str) -> bool:
    """Whether this agent gives an endpoint its orders, as of its newest pass.

    Where no other agent is thought of, because this one only observes, it counts as the one.

    Args:
        shown: What is shown.
        endpoint: Its name.
    """
    tenures = {} if shown.sight is None else shown.sight.tenures
    if shown.sight is None or not tenures:
        return not shown.armed or shown.sight is not None
    old = shown.pass_age_s is None or shown.pass_age_s > stale_after_s(shown.policy)
    tenure = tenures.get(endpoint)
    return tenure is not None and not old and tenure.holds(shown.sight.at_s)


def seat_of(shown: Snapshot, endpoint: str) -> str:
    """Say who gives an endpoint its orders; empty: no other agent is thought of.

    Args:
        shown: What is shown.
        endpoint: Its name.
    """
    tenure = None if shown.sight is None else shown.sight.tenures.get(endpoint)
    if shown.sight is None or tenure is None:
        return ""
    if leads(shown, endpoint):
        return "this agent gives the orders"
    if tenure.seat is Seat.STANDBY:
        return f"{printable(tenure.holder)} gives the orders"
    return "nobody gives orders yet" if tenure.seat is not Seat.UNFILLED else "nobody gives orders"
