"""`VirtualBoxHypervisor`: the port `Hypervisor` over VBoxManage.

A sweep is ``list vms`` and one ``showvminfo --machinereadable`` for each machine, two at a time, 0.04 s
each; where one reads off, also its log, and once for all the host's processes. (``list --long vms`` would be
one call, but prints sentences, in which descriptions stand unescaped. ``list runningvms`` leaves out machines
that run: those that start, save, restore, take snapshots.) A machine with a frozen process hangs only its own
reading, and is left alone for a while after it did so twice.

Measured for fencer on VirtualBox 7.2.22 with its processes stopped one by one: a frozen VBoxHeadless hangs
``showvminfo``, ``pause`` and ``poweroff`` of its machine for ever, and neither the lists, nor ``--log``, nor
``emergencystop``; a frozen VBoxSVC hangs all. Source: docs/virtualbox.md, "How VirtualBox is reached", and
tests/hypervisors/recordings/virtualbox-7.2.22.jsonl.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace

from fencer.core.identity import canonical
from fencer.core.model import Evidence, GuestRef, PowerState, Proof
from fencer.core.text import printable
from fencer.errors import (
    GuestChanged,
    GuestNotFound,
    HypervisorError,
    HypervisorProtocol,
    HypervisorUnreachable,
)
from fencer.hypervisors.virtualbox.budget import Budget
from fencer.hypervisors.virtualbox.chronicle import UNASKED, Chronicle, is_alive, is_off, name_of_run
from fencer.hypervisors.virtualbox.ended import LET_THROUGH, Scene, needs_place, untold_of
from fencer.hypervisors.virtualbox.errors import Locked
from fencer.hypervisors.virtualbox.host import Host, Untold
from fencer.hypervisors.virtualbox.parse import NAME_OF_INACCESSIBLE, Listed, LogHead, Machine
from fencer.hypervisors.virtualbox.processes import suspects
from fencer.hypervisors.virtualbox.run import Late
from fencer.hypervisors.virtualbox.settings import VirtualBoxSettings
from fencer.hypervisors.virtualbox.silence import Silence
from fencer.hypervisors.virtualbox.tool import LOG_BYTES, LOG_HEAD_BYTES, Tool, Unreadable
from fencer.ports import Deadline, EndpointInfo, StopSettings

UNLOCKED_S = 0.5
"""Between two attempts to start a machine while its last run still holds it."""
START_TAKES_S = 2.0
"""With less time left, no further attempt."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What VirtualBox said about a machine, and when the question began."""

    machine: Machine
    log: LogHead | None
    began_s: float

    @property
    def needs_place(self) -> bool:
        """Whether its host has to say where it is stored, and when the host was booted."""
        return self.log is not None and is_off(self.machine) and needs_place(self.machine, self.log)


class VirtualBoxHypervisor:
    """The machines of one OS user on one host. Implements `fencer.ports.Hypervisor`; safe from any thread.

    A guest's `id` is its machine's UUID in the registry, and its `uuid` what the guest sees in its SMBIOS
    (``hardwareuuid``), in VirtualBox's own byte order: `fencer.core.identity` turns it round. No host is
    told: an endpoint is one. That a machine is paused because its storage failed is not told either.

    Args:
        settings: Of the endpoint.
        now_s: The agent's monotonic clock.
    """

    def __init__(self, settings: VirtualBoxSettings, now_s: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._now_s = now_s
        self._tool = Tool(settings)
        self._host = Host(settings.name, settings.command, settings.rest_s, now_s)
        self._chronicle = Chronicle()
        self._silence = Silence(settings.rest_s)
        self._logged: dict[str, str] = {}
        self._wakes: tuple[Callable[[], None], ...] = ()
        # VirtualBox gives its registries no name, and agents may use different ones.
        self._witness = "virtualbox"

    @property
    def endpoint(self) -> str:
        """The endpoint's name in the configuration."""
        return self._settings.name

    def describe(self) -> EndpointInfo:
        """Ask VBoxManage for its version and all machines, and their host for what an end may depend on.

        VirtualBox has no rights below a user's: a user who sees a machine may power it.

        Raises:
            As the port.
        """
        budget = self._settings.budget()
        version = self._tool.version(budget)
        machines = self._sweep(budget)
        identity, problems = None, self._problems(machines)
        try:
            registry = self._host.registry(budget)
            identity = registry and f"virtualbox:{registry}"
        except Untold as error:
            problems = (*problems, f"It cannot be told whose VirtualBox this is: {error}.")
        return EndpointInfo(
            kind="virtualbox",
            version=f"VirtualBox {version}",
            detail=f"{self._settings.tool}: {len(machines)} machine{'' if len(machines) == 1 else 's'}",
            can_power=True if machines else None,
            problems=problems,
            remarks=self._remarks(machines, budget),
            identity=identity,
        )

    def sweep(self) -> Sequence[Evidence]:
        """Read all machines; one that cannot be read is UNKNOWN.

        Raises:
            As the port.
        """
        return self._sweep(self._settings.budget())

    def read(self, guest: GuestRef) -> Evidence:
        """Read one machine by its UUID in the registry.

        Raises:
            As the port.
        """
        return self._read(guest, self._settings.budget())

    def stop_settings(self, _guest: GuestRef) -> StopSettings | None:
        """Return None: VirtualBox never stops a guest by itself."""
        return None

    def shutdown(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Press the ACPI power button. VirtualBox reports success even if the guest ignores it.

        Raises:
            As the port.
        """
        uuid = self._uuid(guest)
        doing, budget = f"shut down {printable(str(guest))}", self._settings.budget()
        self._look_again(doing, guest, incarnation, not_after, budget)
        self._tool.order(
            doing, uuid, budget.next_s(self._settings.off_s), "controlvm", uuid, "acpipowerbutton"
        )

    def stop(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Cut the power; if that hangs, have VBoxSVC kill the machine's process.

        The window that is left between the last look and the order is the start of a VBoxManage, 0.04 s;
        if VBoxManage stands still and is killed at the end of its time, VirtualBox still carries the order
        out later. So fencer looks again before the kill, which would end the next run, too.

        Raises:
            As the port.
        """
        uuid, name, settings = self._uuid(guest), printable(str(guest)), self._settings
        budget = settings.budget(settings.stop_s)
        self._look_again(f"stop {name}", guest, incarnation, not_after, budget)
        try:
            self._tool.order(
                f"stop {name}", uuid, budget.next_s(settings.off_s), "controlvm", uuid, "poweroff"
            )
        except Late:
            if not self._still_runs(guest, incarnation, budget):
                return
            # Its process does not react any more, and only VBoxSVC can end it.
            not_after.refuse_if_over(f"kill {name}")
            words = ("startvm", uuid, "--type", "emergencystop")
            doing = f"kill {name}, which does not react"
            self._tool.order(doing, uuid, budget.next_s(settings.kill_s), *words)

    def discard(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Throw the machine's saved state away.

        Raises:
            As the port.
        """
        uuid, doing = self._uuid(guest), f"discard the saved state of {printable(str(guest))}"
        budget = self._settings.budget()
        self._look_again(doing, guest, incarnation, not_after, budget)
        self._tool.order(doing, uuid, budget.next_s(self._settings.off_s), "discardstate", uuid)

    def start(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Power on. A saved machine comes back with its old memory.

        Raises:
            As the port.
        """
        uuid, budget = self._uuid(guest), self._settings.budget(self._settings.start_s)
        doing, words = f"start {printable(str(guest))}", ("startvm", uuid, "--type", "headless")
        self._look_again(doing, guest, incarnation, not_after, budget)
        while True:
            try:
                self._tool.order(doing, uuid, budget.next_s(self._settings.start_s), *words)
            except Locked:
                # A machine reads off before the process that ran it has let go of it.
                if not self._reads_off(guest, budget):
                    raise
                self._tool.rest(UNLOCKED_S)
                if budget.left_s() < START_TAKES_S:
                    raise
            else:
                return

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Call `wake` when a look finds a machine in another state: VirtualBox reports no events."""
        self._wakes = (*self._wakes, wake)

    def nudge(self, guest: str) -> None:
        """Do nothing: every sweep reads every guest live."""

    def attend(self, guests: Collection[GuestRef]) -> None:
        """Do nothing, for the same reason."""

    def close(self) -> None:
        """End all running commands. Later calls read unreachable."""
        self._tool.close()
        self._host.close()

    def _look_again(
        self, doing: str, guest: GuestRef, incarnation: str | None, not_after: Deadline, budget: Budget
    ) -> None:
        """Refuse an order for another run of the machine, or one that comes too late.

        Raises:
            GuestChanged: it is another run.
            HypervisorError: it cannot be read, or it is too late.
        """
        if incarnation is not None:
            self._refuse_if_changed(guest, incarnation, self._read(guest, budget).incarnation)
        not_after.refuse_if_over(doing)

    def _refuse_if_changed(self, guest: GuestRef, incarnation: str, now: str | None) -> None:
        if now != incarnation:
            raise GuestChanged(
                f"{printable(str(guest))}: {incarnation!r} was meant, it is {now!r} now; nothing was sent"
            )

    def _still_runs(self, guest: GuestRef, incarnation: str | None, budget: Budget) -> bool:
        """Whether the run that should end still goes on.

        If the machine's process hangs, so does its reading; but its log can be read, and shows which run is
        its last.

        Raises:
            GuestChanged: another run does.
            HypervisorError: it cannot be found out.
        """
        uuid = self._uuid(guest)
        try:
            machine = self._tool.show(Listed(uuid, guest.name), budget, self._settings.still_s)
        except Late:
            machine = None
        if isinstance(machine, Unreadable):
            raise HypervisorUnreachable(
                f"{self.endpoint}: {printable(str(guest))} was ordered to stop, and is {machine.why} now"
            )
        if machine is not None and not is_alive(machine):
            return False
        log = self._tool.log_head(uuid, budget)
        if incarnation is not None:
            self._refuse_if_changed(guest, incarnation, name_of_run(log) if log else None)
        return True

    def _reads_off(self, guest: GuestRef, budget: Budget) -> bool:
        state = self._read(guest, budget).power_state
        return state in {PowerState.STOPPED, PowerState.STOPPING, PowerState.SAVED}

    def _sweep(self, budget: Budget) -> list[Evidence]:
        listed = self._tool.machines(budget)
        if not listed:
            return []
        with ThreadPoolExecutor(min(len(listed), self._settings.parallel), "fencer-vboxmanage") as pool:
            found = list(pool.map(lambda one: self._glance(one, budget), listed))
        return self._judged([one for one in found if one is not None], budget)

    def _read(self, guest: GuestRef, budget: Budget) -> Evidence:
        began_s, uuid = self._now_s(), self._uuid(guest)
        try:
            look = self._look(Listed(uuid, guest.name), budget)
        except Late as error:
            if not self._silence.hangs(uuid):
                raise
            raise Late(
                f"{error}. The machine's process may hang: then only {self._kill(uuid)} ends it"
            ) from error
        except GuestNotFound:
            absent = self._absent(guest, uuid, began_s, budget)
            if absent is None:
                raise
            return absent
        return self._judged([look], budget)[0]

    def _glance(self, listed: Listed, budget: Budget) -> Seen | Evidence | None:
        """Look at one of many: its errors concern only this machine. None: it vanished meanwhile."""
        began_s = self._now_s()
        silent_s = self._silence.rests_for_s(listed.uuid, began_s)
        if silent_s is not None:
            return self._unread(
                listed, f"it did not answer {silent_s:.0f} s ago, nor before that", began_s, None
            )
        try:
            return self._look(listed, budget)
        except GuestNotFound:
            return None
        except Late as error:
            if budget.left_s() > 0:  # otherwise it did not get all of its time
                self._silence.missed(listed.uuid, self._now_s())
            return self._unread(listed, str(error), began_s, budget)
        except HypervisorError as error:
            return self._unread(listed, str(error), began_s, budget)

    def _look(self, listed: Listed, budget: Budget) -> Seen | Evidence:
        """Look at one machine, and at its log if that matters; raises as the port's `read`."""
        began_s, uuid = self._now_s(), listed.uuid
        machine = self._tool.show(listed, budget)
        self._silence.answered(uuid)
        if isinstance(machine, Unreadable):
            state = PowerState.STOPPING if machine.passing else PowerState.UNKNOWN
            return self._unread(listed, machine.why, began_s, budget, state, machine.way_out)
        log, bytes_ = None, LOG_BYTES if is_off(machine) else LOG_HEAD_BYTES
        if self._chronicle.needs_log(machine):
            log = self._tool.log_head(uuid, budget, bytes_)
        return Seen(machine, log, began_s)

    def _judged(self, looks: Sequence[Seen | Evidence], budget: Budget) -> list[Evidence]:
        """Turn looks into evidence; the host is asked once about all that read off, after VirtualBox was."""
        seen = [look for look in looks if isinstance(look, Seen)]
        scene = self._host.listed(budget) if any(is_off(look.machine) for look in seen) else UNASKED
        if any(look.needs_place for look in seen):
            scene = self._host.with_boot(scene, budget)
        return [look if isinstance(look, Evidence) else self._judge(look, scene, budget) for look in looks]

    def _judge(self, look: Seen, scene: Scene, budget: Budget) -> Evidence:
        machine = look.machine
        if look.needs_place:
            scene = self._host.with_place(scene, machine, budget)
        reading, is_change = self._chronicle.take(machine, look.log, look.began_s, scene)
        if is_change:
            for wake in self._wakes:
                wake()
        return Evidence(
            guest=GuestRef(self.endpoint, machine.uuid, machine.hardware_uuid, machine.name),
            power_state=reading.power_state,
            settled=reading.settled,
            incarnation=reading.incarnation,
            cold_start=reading.cold_start,
            raw=reading.raw,
            source="VBoxManage showvminfo",
            observed_at_s=look.began_s,
            witness=self._witness,
            away=reading.away,
            stuck=reading.way_out,
        )

    def _absent(self, guest: GuestRef, uuid: str, began_s: float, budget: Budget) -> Evidence | None:
        """Turn "not found" into evidence if this process read the end; None otherwise.

        And only in a registry that still has others of the machines that were read from it: an empty one is
        what another user sees, and what is left while the home folder's disk is not mounted. Nor where a
        process of its host may run it: it can have been registered by another user, and started.
        """
        end = self._chronicle.end_of(uuid)
        there = {listed.uuid for listed in self._tool.machines(budget)} if end else frozenset[str]()
        if end is None or uuid in there or not any(map(self._chronicle.machine, there)):
            return None
        if suspects(self._host.listed(budget).processes or (), uuid).any:
            return None
        raw = f"not registered any more; before that it was {end.raw}"
        absent = Evidence.absent(guest, raw, "VBoxManage list vms", began_s, end.incarnation)
        return replace(absent, end_recorded=True, proof=Proof.ABSENCE, witness=self._witness)

    def _kill(self, uuid: str) -> str:
        """Return the command, as people would type it, that ends a machine's process that does not react."""
        return f"`{self._settings.tool} startvm {uuid} --type emergencystop`"

    def _unread(
        self,
        listed: Listed,
        why: str,
        began_s: float,
        budget: Budget | None,
        state: PowerState = PowerState.UNKNOWN,
        way_out: str = "",
    ) -> Evidence:
        """Turn a look without a result into evidence. Without a budget nothing more is asked."""
        known, hangs = self._chronicle.machine(listed.uuid), self._silence.hangs(listed.uuid)
        hardware_uuid = known.hardware_uuid if known else self._logged_uuid(listed, budget)
        name = known.name if known and listed.name == NAME_OF_INACCESSIBLE else listed.name
        guest = GuestRef(self.endpoint, listed.uuid, hardware_uuid, name)
        if hangs:
            way_out = f"{self._kill(listed.uuid)}: its process hangs, and only that ends it"
        unread = Evidence.unknown(guest, why, "VBoxManage showvminfo", began_s)
        return replace(unread, power_state=state, stuck=way_out)

    def _logged_uuid(self, listed: Listed, budget: Budget | None) -> str:
        """Return what UUID the guest of a machine sees that was never read: by its log.

        If that does not tell, the machine's own, which it is unless somebody has set another. Without any, a
        copy that hangs would be nobody's, and the node of which it is the guest be judged by the other copy.
        """
        asked = listed.uuid in self._logged or listed.name == NAME_OF_INACCESSIBLE
        if budget and not asked:
            with suppress(HypervisorError):
                self._logged[listed.uuid] = self._tool.logged_uuid(listed.uuid, budget)
        return self._logged.get(listed.uuid) or listed.uuid

    def _problems(self, machines: Sequence[Evidence]) -> tuple[str, ...]:
        if not machines:
            return (
                f"`{self._settings.tool} list vms` names no machine. Every user of a host has machines of "
                "their own: run it as the user who made them",
            )
        return tuple(
            f"{name}: {reading.raw}. To change that: {reading.way_out}"
            for name, reading in self._chronicle.disbelieved()
        )

    def _remarks(self, machines: Sequence[Evidence], budget: Budget) -> tuple[str, ...]:
        """Check, before any power loss, that the host says what it will be asked after one."""
        if budget.left_s() <= 0:  # machines that hang have taken it
            return ()
        known = (self._chronicle.machine(reading.guest.id) for reading in machines)
        machine = next((one for one in known if one and one.settings_file), None)
        scene = self._host.with_boot(self._host.listed(budget), budget)
        if machine:
            scene = self._host.with_place(scene, machine, budget)
        untold = untold_of(scene, with_place=machine is not None)
        if not untold:
            return ()
        return (
            f"Its host does not tell ({untold}): after its power loss, or once VBoxSVC was killed, no end of "
            f"a machine is proven. What would change this: {LET_THROUGH}.",
        )

    def _uuid(self, guest: GuestRef) -> str:
        """Return the name of a guest that may be passed to a program: a UUID.

        Raises:
            HypervisorProtocol: the guest's id is none.
        """
        uuid = canonical(guest.id)
        if not uuid:
            raise HypervisorProtocol(
                f"{self.endpoint}: {printable(guest.id)!r} is no VirtualBox machine: these are named by UUID"
            )
        return uuid
