"""Whether a reading may be taken for the end of a guest."""

from __future__ import annotations

from fencer.core.model import PowerState
from fencer.errors import HypervisorUnreachable

OFF = {PowerState.STOPPED, PowerState.ABSENT}


def final(evidence, ran="pve1") -> bool:
    """Whether core may take a reading for the end of a guest that last ran on a host."""
    in_place = evidence.guest.host == ran or ran in evidence.moved_from
    return evidence.power_state in OFF and evidence.settled and evidence.conclusive and in_place


def look(home, conf):
    """Read a guest; None where nothing is known."""
    try:
        return home.read(conf)
    except HypervisorUnreachable:
        return None


def must_not_be_final(home, conf, ran="pve1") -> None:
    """Neither a reading nor a sweep may call it off for good."""
    evidence = look(home, conf)
    assert evidence is None or not final(evidence, ran), evidence
    assert not [it for it in home.hypervisor.sweep() if it.guest.id == str(conf.vmid) and final(it, ran)]
