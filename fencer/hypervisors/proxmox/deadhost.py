"""A guest on a silent host: that proves nothing by itself, unless HA has recovered the guest."""

from __future__ import annotations

from dataclasses import replace

from fencer.core.model import Evidence, GuestRef, PowerState, Proof
from fencer.hypervisors.proxmox.errors import shown
from fencer.hypervisors.proxmox.ha import standing
from fencer.hypervisors.proxmox.ha_read import read_armed
from fencer.hypervisors.proxmox.look import Look, look_at_ha
from fencer.hypervisors.proxmox.memory import Memory
from fencer.hypervisors.proxmox.parse import Row
from fencer.hypervisors.proxmox.quorum import make_sure_it_hears
from fencer.hypervisors.proxmox.states import ends_with_host


def on_dead_host(look: Look, memory: Memory, guest: GuestRef, row: Row) -> Evidence:
    """Return what is known of a guest whose configuration is on a host that corosync does not see.

    Args:
        look: At the endpoint.
        memory: What HA did, and which UUID the guest had while its host could be asked.
        guest: The guest.
        row: Where it is.

    Raises:
        HypervisorError: HA could not be asked.
    """
    there = replace(guest, host=row.host)
    make_sure_it_hears(look, memory)  # or it may be the only one that misses the host
    proven, words = _by_ha(look, memory, row)
    if look.outvoted:
        proven, words = False, f"{words}; {look.outvoted}"
    with memory.lock:
        uuid = memory.of(row.vmid).uuid
    if proven and uuid != guest.uuid:
        proven = False
        words += ", but its UUID cannot be read there, and this agent had not read it before"
    if not proven:
        lock = f", lock {row.lock}" if row.lock else ""
        reading = unknown(look, there, shown(f"{row.host} is offline; {words}{lock}"))
        # Under this number, another guest may have been seen since the one that is asked for.
        same = uuid in {None, guest.uuid}
        silent = same and may_be_witnessed(look, row.host)
        return replace(
            reading, host_silent=silent, settled=ends_with_host(row.lock), stuck=_comes(look, memory, row)
        )
    return Evidence(
        guest=there,
        power_state=PowerState.STOPPED,
        settled=True,
        incarnation=f"off, {row.host} fenced by HA",
        cold_start=None,
        raw=shown(f"{row.host} is offline; {words}"),
        source="ha/status/manager_status",
        observed_at_s=look.began_s,
        proof=Proof.HA_RECOVERY,
        witness=look.witness,
    )


def _comes(look: Look, memory: Memory, row: Row) -> str:
    """Say that HA is working on it, if it will find a proof by itself; empty: it will not."""
    with memory.lock:
        guard = memory.ha.guarded.get(f"vm:{row.vmid}")
    if guard is None or guard.host != row.host or look.outvoted:
        return ""
    return f"HA, which fences {row.host} within two to three minutes"


def may_be_witnessed(look: Look, host: str) -> bool:
    """Whether a silent host without power has taken its guests with it.

    Not if other hosts are missing, too, that may have their own quorum: its guests may run there.
    """
    return not look.outvoted or look.alone_missing(host)


def unknown(look: Look, guest: GuestRef, words: str) -> Evidence:
    """Return the evidence for a question without an answer."""
    told = Evidence.unknown(guest, words, "cluster/status, cluster/resources", look.began_s)
    return replace(told, witness=look.witness)


def _by_ha(look: Look, memory: Memory, row: Row) -> tuple[bool, str]:
    if row.hastate is None:
        return False, "HA does not manage the guest"
    view = look_at_ha(look, memory)
    with memory.lock:
        proven, words = standing(memory.ha, view, f"vm:{row.vmid}", row.host)
    if proven and read_armed(look.api.get("cluster", "ha", "status", "current").data) is False:
        return False, f"{words}, but HA is not armed now"
    return proven, words
