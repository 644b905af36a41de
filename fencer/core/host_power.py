"""A guest on a silent host that a power witness read: is the guest off as well, or not?

A host without power holds no guest's memory. But a silent host alone proves nothing, and a witness may watch
the wrong machine. So its word replaces only UNKNOWN, only while the host is silent too, and only for a guest
that was last seen running on that host. It is then a reading like any other: `held` asks for two.

"Off" is off as IPMI, Redfish and outlets know it, and none of them can tell a host that was switched off (S5)
from one that was put to sleep on disk (S4) and comes back with the memory of its guests. Nothing here can
either: the configuration takes a witness only together with the operator's word that the host never sleeps.
"""

from __future__ import annotations

from dataclasses import replace

from fencer.core.model import Binding, Evidence, GuestHistory, HostReading, NodeView, PowerState, Proof


def by_host_power(
    evidence: Evidence | None, reading: HostReading | None, node: NodeView, history: GuestHistory
) -> Evidence | None:
    """Return a guest's reading together with what a witness read of its host.

    Call it before the reading is taken into the history.

    Args:
        evidence: Of the guest, by its hypervisor.
        reading: The newest of the host's power; None: no witness watches it, or none has answered yet.
        node: The node, for its binding.
        history: What this agent remembers of the guest.
    """
    if evidence is None or reading is None:
        return evidence
    if evidence.power_state is not PowerState.UNKNOWN or not evidence.host_silent:
        return evidence
    host, ran_on = evidence.guest.host, _ran_on(evidence, node, history)
    told = replace(
        evidence,
        raw=f"{evidence.raw}; the power witness of {host} says {reading.words}",
        observed_at_s=min(evidence.observed_at_s, reading.observed_at_s),
    )
    if reading.off is not True:
        # A live reading that is not "off" ends the run of those that were.
        return replace(told, conclusive=True)
    if ran_on != {host}:
        where = " and ".join(sorted(ran_on)) or "nowhere that is known"
        return replace(told, raw=f"{told.raw}, but the guest was last seen running on {where}")
    return replace(
        told,
        power_state=PowerState.STOPPED,
        incarnation=f"off, {host} has no power",
        source="power witness",
        proof=Proof.HOST_POWER,
    )


def _ran_on(evidence: Evidence, node: NodeView, history: GuestHistory) -> set[str]:
    """Return where the guest was last seen running: by the binding, and by this agent; they have to agree."""
    found: set[str | None] = set()
    if isinstance(node.binding, Binding) and node.binding.guest.key == evidence.guest.key:
        found.add(node.binding.guest.host)
    if history.guest == evidence.guest.key:
        found.add(history.ran_as.host if history.ran_as is not None else None)
    return {host for host in found if host is not None}
