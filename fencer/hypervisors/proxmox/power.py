"""Order a guest stopped, shut down or started: sent once, and followed for a while to notice a failure.

An order is a task; HTTP 200 only says that it was begun. A guest under HA is not touched by the task at all:
`hastop` and `hastart` only queue the wish, which HA fulfils some ten seconds later, and *keeps*: a guest that
was stopped so stays stopped until it is started the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fencer.core.model import GuestRef
from fencer.errors import GuestChanged, HypervisorError, HypervisorProtocol, HypervisorUnreachable
from fencer.hypervisors.proxmox.api import Api
from fencer.hypervisors.proxmox.errors import NotThere, shown
from fencer.hypervisors.proxmox.find import find_guest
from fencer.hypervisors.proxmox.look import Look, look_around
from fencer.hypervisors.proxmox.memory import Lost
from fencer.hypervisors.proxmox.parse import Task, ended_well, read_task_end, read_upid
from fencer.hypervisors.proxmox.proof import Prover
from fencer.hypervisors.proxmox.servers import Servers
from fencer.hypervisors.proxmox.settings import ProxmoxSettings
from fencer.ports import Deadline

ASKED_EVERY_S = 0.5
"""How often to ask about a task."""


@dataclass(frozen=True, slots=True)
class PowerSwitch:
    """Gives power orders.

    Attributes:
        settings: Of the endpoint.
        servers: Where to send them.
        prover: Reads the guest once more before anything is sent.
        now_s: Our clock.
        rest: Waits for so many seconds.
    """

    settings: ProxmoxSettings
    servers: Servers
    prover: Prover
    now_s: Callable[[], float]
    rest: Callable[[float], object]

    def order(self, guest: GuestRef, verb: str, incarnation: str | None, not_after: Deadline) -> None:
        """Send an order, and follow its task for `task_wait_s`. A task that goes on then is left to itself.

        Args:
            guest: By number, whose UUID must be the guest's.
            verb: ``stop``, ``shutdown`` or ``start``.
            incarnation: In which run.
            not_after: Until when it may be sent.

        Raises:
            GuestChanged: it is in another run; nothing was sent.
            GuestNotFound: no guest has that number, or another UUID has.
            HypervisorProtocol: the task failed.
            HypervisorError: something could not be asked or sent.
        """
        api, look, host = self.servers.work(lambda api: (api, *self._find(api, guest, incarnation)))
        not_after.refuse_if_over(f"{verb} {guest}")
        try:
            reply = api.post("nodes", host, "qemu", guest.id, "status", verb)
        except HypervisorUnreachable:
            self._lose(look, guest, verb)
            raise
        self._follow(api, guest, verb, read_upid(reply.data))

    def _lose(self, look: Look, guest: GuestRef, verb: str) -> None:
        """Remember an order that was not answered: pvedaemon may carry it out whenever it goes on."""
        if look.utc_s is not None:
            memory = self.prover.memory
            with memory.lock:
                memory.of(int(guest.id)).lost = Lost(f"qm{verb}", look.utc_s)

    def _find(self, api: Api, guest: GuestRef, incarnation: str | None) -> tuple[Look, str]:
        """Find the guest's host, and make sure that it is the one that is meant, in the run that is meant."""
        look = look_around(api, self.settings, self.now_s())
        try:
            row, _ = find_guest(look, guest)
        except NotThere as error:
            raise HypervisorProtocol(f"{error}: {guest.name} is being moved; nothing was sent") from error
        if incarnation is None:
            return look, row.host
        now = self.prover.prove(look, guest).incarnation
        if now != incarnation:
            raise GuestChanged(f"{guest}: {incarnation!r} was meant, it is {now!r} now; nothing was sent")
        return look, row.host

    def _follow(self, api: Api, guest: GuestRef, verb: str, task: Task) -> None:
        until_s = self.now_s() + self.settings.task_wait_s
        while True:
            try:
                end = read_task_end(api.get("nodes", task.host, "tasks", task.upid, "status").data)
            except HypervisorError as error:
                raise type(error)(f"{error}. {verb} of {guest.name} was sent ({task.upid})") from error
            if end is not None:
                break
            if self.now_s() >= until_s:
                return
            self.rest(ASKED_EVERY_S)
        if not ended_well(end):
            raise HypervisorProtocol(
                f"{api.where}: {verb} of {guest.name} ({guest.id} on {task.host}) failed: {shown(end)}"
                f"{_way_out(end, guest.id, task.host)}"
            )


def _way_out(end: str, vmid: str, host: str) -> str:
    if end.startswith("VM is locked (migrate)"):
        return ". It is being moved, or has left: wait until it has arrived"
    if end.startswith("VM is locked"):
        return f". No token may override a lock: `qm unlock {vmid}` on {host}, once its operation is over"
    if "got timeout" in end and "lock file" in end:
        return ". Another operation holds it; that may take 40 s after a stop"
    return ""
