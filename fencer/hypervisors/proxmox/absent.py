"""A guest that is not listed: whether that is known for certain, and whether its end is on record.

Proxmox silently leaves out of its lists what a token may not see. And a guest can vanish while it keeps
running: moved into another cluster, or its configuration removed by hand. So "not there" needs proof that we
would see it, and its end needs the task that destroyed it: Proxmox destroys no guest that runs on that host.
"""

from __future__ import annotations

from dataclasses import replace

from fencer.core.model import Evidence, GuestRef, Proof
from fencer.errors import GuestNotFound, HypervisorDenied, HypervisorProtocol
from fencer.hypervisors.proxmox.look import Look
from fencer.hypervisors.proxmox.memory import Memory, Sighting
from fencer.hypervisors.proxmox.moves import SKEW_S, away, emigrated, explained
from fencer.hypervisors.proxmox.parse import Task, read_rights
from fencer.hypervisors.proxmox.quorum import make_sure_it_hears
from fencer.hypervisors.proxmox.rights import sees_all_guests
from fencer.hypervisors.proxmox.tasks import CONSOLES, newest, off_token

_DESTROY = "qmdestroy"


def absent(look: Look, memory: Memory, guest: GuestRef, token_id: str, *, reused: bool) -> Evidence:
    """Return the evidence that a guest is gone for good.

    Args:
        look: At the endpoint, which does not list it.
        memory: Where it was seen running.
        guest: The guest.
        token_id: The token that asks, for people.
        reused: Its number is another guest's now.

    Raises:
        HypervisorDenied: we might just not see it.
        GuestNotFound: it is not there, and there is no record of its end.
        HypervisorError: something could not be asked.
    """
    if not reused:
        _make_sure(look, guest, token_id)
    vmid = int(guest.id)
    with memory.lock:
        elsewhere = [
            number for number, known in memory.guests.items() if number != vmid and known.uuid == guest.uuid
        ]
    if guest.uuid and any(number in look.listing.rows for number in elsewhere):
        raise GuestNotFound(
            f"{look.api.where}: no guest {guest.id} with UUID {guest.uuid}; guest {elsewhere[0]} has that "
            "UUID. Was it restored under another number?"
        )
    tasks = look.tasks_anywhere(vmid)
    end = _destroyed(tasks, memory, guest, reused=reused)
    if end is None:
        with memory.lock:
            now = f" (guest {guest.id} has the UUID {memory.of(vmid).uuid} now)" if reused else ""
        raise GuestNotFound(
            f"{look.api.where}: no guest {guest.id} with UUID {guest.uuid}{now}, and no task that destroyed "
            "it. That alone does not prove it off: it may have been moved to another cluster, or its "
            "configuration removed by hand, while it runs on"
        )
    here = [task for task in tasks if task.host == end.host]
    before = away(look, vmid, end.host, here, end.started_s)
    if (left := before or emigrated(look, tasks, _last_seen_s(memory, guest))) is not None:
        raise GuestNotFound(
            f"{look.api.where}: guest {guest.id} was destroyed on {end.host} ({end.upid}), after it had left "
            f"({left.upid}): what was destroyed is what it had left behind, and it may run on elsewhere"
        )
    make_sure_it_hears(look, memory)
    there = GuestRef(guest.endpoint, guest.id, guest.uuid, guest.name, end.host)
    raw = f"not listed; destroyed on {end.host} by {end.upid}"
    return replace(
        Evidence.absent(there, raw, "cluster/resources, tasks", look.began_s, off_token(here, end.host)),
        end_recorded=True,
        moved_from=explained(look, memory, vmid, end.host),
        proof=Proof.ABSENCE,
        witness=look.witness,
    )


def _make_sure(look: Look, guest: GuestRef, token_id: str) -> None:
    """Refuse to report a guest missing if we might only not see it.

    Raises:
        HypervisorDenied: so it is.
    """
    if not sees_all_guests(read_rights(look.api.get("access", "permissions").data)):
        raise HypervisorDenied(
            f"{look.api.where}: guest {guest.id} is not listed, but the token {token_id} lacks VM.Audit on "
            "/vms and would not see every guest"
        )
    try:
        free = look.api.get("cluster", "nextid", vmid=guest.id).data
    except HypervisorProtocol as error:
        if "already exists" in str(error):
            raise HypervisorDenied(
                f"{look.api.where}: guest {guest.id} exists and is not listed: the token {token_id} may not "
                "see it"
            ) from error
        raise
    if str(free) != guest.id:
        raise HypervisorProtocol(f"{look.api.where}: cluster/nextid did not tell whether {guest.id} is free")


def _destroyed(tasks: list[Task], memory: Memory, guest: GuestRef, *, reused: bool) -> Task | None:
    """Return the task that ended this guest, later than its last run; None: there is none for certain.

    Without another guest under its number, it must be the last task with that number. With one, our memory
    must tell which of the tasks are whose.
    """
    seen = _last_seen(memory, guest)
    last = newest(task for task in tasks if task.kind not in CONSOLES)
    if reused:
        last = newest(task for task in tasks if task.kind == _DESTROY) if seen is not None else None
    if last is None or last.kind != _DESTROY or not last.ok:
        return None
    if seen is not None and (seen.utc_s is None or last.ended_s is None or last.ended_s < seen.utc_s):
        return None
    return last


def _last_seen(memory: Memory, guest: GuestRef) -> Sighting | None:
    """Return when this same guest was last read running: its number may have been another's since."""
    vmid = int(guest.id)
    with memory.lock:
        known = memory.of(vmid)
        same = known.uuid in {None, guest.uuid} and known.sighting is not None
        return known.sighting if same else memory.former.get((vmid, guest.uuid))


def _last_seen_s(memory: Memory, guest: GuestRef) -> float:
    """Return that by the cluster's clock; the beginning of time if it is not known."""
    seen = _last_seen(memory, guest)
    return 0.0 if seen is None or seen.utc_s is None else seen.utc_s - SKEW_S
