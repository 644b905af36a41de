"""Find a guest by number, and make sure that it is the right one."""

from __future__ import annotations

from fencer.core.model import GuestRef
from fencer.errors import GuestNotFound
from fencer.hypervisors.proxmox.errors import shown
from fencer.hypervisors.proxmox.look import Look
from fencer.hypervisors.proxmox.parse import Config, Row
from fencer.hypervisors.proxmox.proof import refuse_non_guests


def find_guest(look: Look, guest: GuestRef) -> tuple[Row, Config]:
    """Return where a guest is, and its configuration.

    Args:
        look: At the endpoint.
        guest: By number, whose UUID must be the guest's.

    Raises:
        GuestNotFound: no guest has that number, or another UUID has.
        NotThere: its configuration is not where it was a moment ago.
        HypervisorError: something could not be asked, or the number is no guest's.
    """
    where = look.api.where
    row = look.listing.rows.get(int(guest.id)) if guest.id.isascii() and guest.id.isdigit() else None
    if row is None:
        raise GuestNotFound(f"{where}: no guest {shown(guest.id)} ({guest.name}, UUID {guest.uuid})")
    refuse_non_guests(look, row)
    config = look.config(row.host, row.vmid)
    if config.uuid != guest.uuid:
        raise GuestNotFound(
            f"{where}: guest {guest.id} is another one now: its UUID is {config.uuid or 'not set'}, not "
            f"that of {guest.name}, {guest.uuid}"
        )
    return row, config
