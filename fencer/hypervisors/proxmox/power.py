"""Order a guest stopped, shut down or started: sent once, and followed for a while to hear of a failure.

An order is a task; HTTP 200 only says that it was begun. A guest under HA is not touched by the task at all:
`hastop` and `hastart` only queue the wish, which HA fulfils some ten seconds later, and *keeps*: a guest that
was stopped so stays stopped until it is started the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fencer.core.model import GuestRef
from fencer.errors import HypervisorError, HypervisorProtocol
from fencer.hypervisors.proxmox.api import Api
from fencer.hypervisors.proxmox.errors import NotThere, shown
from fencer.hypervisors.proxmox.find import find_guest
from fencer.hypervisors.proxmox.look import look_around
from fencer.hypervisors.proxmox.parse import Task, ended_well, read_task_end, read_upid
from fencer.hypervisors.proxmox.servers import Servers
from fencer.hypervisors.proxmox.settings import ProxmoxSettings

ASKED_EVERY_S = 0.5
"""How often a task is asked after."""


@dataclass(frozen=True, slots=True)
class PowerSwitch:
    """Orders at guests' power.

    Attributes:
        settings: Of the endpoint.
        servers: Where to send them.
        now_s: Our clock.
        rest: Waits for so many seconds.
    """

    settings: ProxmoxSettings
    servers: Servers
    now_s: Callable[[], float]
    rest: Callable[[float], object]

    def order(self, guest: GuestRef, verb: str) -> None:
        """Send an order, and follow its task for `task_wait_s`. A task that goes on then is left to itself.

        Args:
            guest: By number, whose UUID must be the guest's.
            verb: ``stop``, ``shutdown`` or ``start``.

        Raises:
            GuestNotFound: no guest has that number, or another UUID has.
            HypervisorProtocol: the task failed.
            HypervisorError: something could not be asked or sent.
        """
        api, host = self.servers.work(lambda api: (api, self._host_of(api, guest)))
        reply = api.post("nodes", host, "qemu", guest.id, "status", verb)
        self._follow(api, guest, verb, read_upid(reply.data))

    def _host_of(self, api: Api, guest: GuestRef) -> str:
        """Find the guest, and make sure that it is the one that is meant."""
        look = look_around(api, self.settings, self.now_s())
        try:
            row, _ = find_guest(look, guest)
        except NotThere as error:
            raise HypervisorProtocol(f"{error}: {guest.name} is being moved; nothing was sent") from error
        return row.host

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
                f"{_way_out(end)}"
            )


def _way_out(end: str) -> str:
    if end.startswith("VM is locked"):
        return ". Only root may override a lock: `qm unlock`, once what set it is over"
    if "got timeout" in end and "lock file" in end:
        return ". Another operation holds it; that may take 40 s after a stop"
    return ""
