"""Read one guest well enough to act upon: what its own host says about its process, and why that is final.

For a guest that runs, that is all. For one that is off: the answering server is quorate and of the expected
cluster, the configuration was on that host before and after, there is no lock, task, reboot or HA in the way,
and its memory is not on disk. Core asks for all of it again after `confirm_s`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fencer.core.model import Evidence, GuestRef, PowerState, Proof
from fencer.errors import GuestNotFound, HypervisorProtocol
from fencer.hypervisors.proxmox.absent import absent
from fencer.hypervisors.proxmox.backup import but_for_backups, may_be_of_backup, off_under_backup
from fencer.hypervisors.proxmox.deadhost import on_dead_host, unknown
from fencer.hypervisors.proxmox.errors import NotThere, shown
from fencer.hypervisors.proxmox.ha import Recovery, moved_from
from fencer.hypervisors.proxmox.leftover import with_leftover
from fencer.hypervisors.proxmox.look import Look, look_at_ha
from fencer.hypervisors.proxmox.memory import Memory, Run, Sighting
from fencer.hypervisors.proxmox.moves import LOG_LINES, SKEW_S, away, begun_elsewhere, explained
from fencer.hypervisors.proxmox.parse import Config, Row, Status, Task, read_listing, read_log
from fencer.hypervisors.proxmox.quorum import make_sure_it_hears
from fencer.hypervisors.proxmox.settings import ProxmoxSettings
from fencer.hypervisors.proxmox.states import PowerReading, read_power
from fencer.hypervisors.proxmox.tasks import (
    RESUME,
    began_by,
    carried_out_late,
    goes_on,
    last_beginning,
    off_token,
    reboots,
)

HA_RESTARTS = frozenset({"started", "request_start", "request_start_balance"})
"""States of a service whose guest HA starts, as soon as its agent comes round to it."""
HA_MOVES = frozenset({"migrate", "relocate", "fence", "recovery"})

_START_PLAY_S = 120
"""How long before its process a guest's start task may have begun: hooks and storage are slow."""
_RESUMED = "Resuming suspended VM"


@dataclass(frozen=True, slots=True)
class Prover:
    """Reads guests through a look.

    Attributes:
        settings: Of the endpoint.
        memory: Of its guests.
    """

    settings: ProxmoxSettings
    memory: Memory

    def prove(self, look: Look, guest: GuestRef) -> Evidence:
        """Read one guest by number and UUID.

        Raises:
            As `fencer.ports.Hypervisor.read`.
        """
        if not guest.id.isascii() or not guest.id.isdigit():
            raise GuestNotFound(
                f"{look.api.where}: no guest {guest.id}: guests are asked for by number (UUID {guest.uuid})"
            )
        vmid = int(guest.id)
        row = look.listing.rows.get(vmid)
        if row is None and vmid in look.listing.unreadable:
            raise HypervisorProtocol(f"{look.api.where}: {look.listing.unreadable[vmid]}")
        if row is None:
            return absent(look, self.memory, guest, self.settings.token_id, reused=False)
        refuse_non_guests(look, row)
        if not look.online(row.host):
            return self.memory.keep(vmid, on_dead_host(look, self.memory, guest, row))
        try:
            evidence = self.examine(look, row, deeply=True)
        except NotThere as error:
            return unknown(look, replace(guest, host=row.host), f"{error}: it is being moved or deleted")
        if evidence.guest.uuid != guest.uuid:
            return absent(look, self.memory, guest, self.settings.token_id, reused=True)
        return evidence

    def examine(self, look: Look, row: Row, *, deeply: bool = False) -> Evidence:
        """Read whichever guest has a row's number now, on the row's host.

        Args:
            look: At the endpoint.
            row: Where the guest is.
            deeply: Well enough to act upon: how its present run began, and whether the server hears others.

        Raises:
            NotThere: its configuration is not there any more.
            HypervisorError: something could not be asked.
        """
        status = look.status(row.host, row.vmid)
        config = look.config(row.host, row.vmid)
        self.memory.learn(row.vmid, config, look.began_s)
        name = config.name or status.name
        found = GuestRef(self.settings.name, str(row.vmid), config.uuid, name, row.host)
        reading = read_power(status, config)
        if may_be_of_backup(status, config) and self._rested(look, row):
            reading = off_under_backup(reading)
        if reading.power_state is PowerState.STOPPED:
            evidence = self._stopped(look, found, row, status, config, reading)
            if deeply and evidence.power_state is PowerState.STOPPED:
                make_sure_it_hears(look, self.memory)
                evidence = _unless_begun_elsewhere(look, row, evidence)
        else:
            run = self._present(look, row, status, reading)
            if run is not None and not run.judged and deeply:
                self._judge(look, row, status, config, run)
            evidence = evidence_of(look, found, reading, run)
        lock = status.lock or config.lock
        evidence = with_leftover(look, self.memory, evidence, lock, status.qmpstatus)
        return self.memory.keep(row.vmid, evidence)

    def _rested(self, look: Look, row: Row) -> bool:
        """Whether a guest was read off for good, and nothing has begun it where it is since."""
        return self.memory.rested(row.vmid, last_beginning(look.tasks(row.host, row.vmid), row.host))

    def _present(self, look: Look, row: Row, status: Status, reading: PowerReading) -> Run | None:
        """Take in a guest that is not off: it has a process, or its memory is on disk, or nobody knows."""
        if status.pid is None:
            if reading.power_state is PowerState.SAVED:
                self.memory.is_off(row.vmid, PowerState.SAVED, None, look.began_s)
            return None
        run = self.memory.runs(row.vmid, row.host, status, look.began_s)
        self.memory.sighted(row.vmid, Sighting(row.host, look.began_s, look.utc_s))
        return run

    def _stopped(
        self, look: Look, guest: GuestRef, row: Row, status: Status, config: Config, reading: PowerReading
    ) -> Evidence:
        vmid, host = row.vmid, row.host
        tasks, lock = look.tasks(host, vmid), status.lock or config.lock
        begun, active = last_beginning(tasks, host), look.active_tasks(host)
        if lock is None or self.memory.rested(vmid, begun):  # a backup finds it off, or has found it so
            active = but_for_backups(active)
        task = goes_on(active, vmid, lock)
        due = self._due(look, vmid, status, tasks)
        if row.hastate is not None:
            look_at_ha(look, self.memory)
        moved = explained(look, self.memory, vmid, host)
        recovery = self._recovery(vmid, host, moved)
        left = away(look, vmid, host, tasks) if reading.settled else None
        if left is not None and (recovery is None or _since(look, left, recovery)):
            raw = f"{reading.raw} on {host}, but the last record there says that it left ({left.upid})"
            return replace(unknown(look, guest, shown(raw)), away=True)
        if look.outvoted and row.hastate is not None:
            raw = f"{reading.raw} on {host}; {look.outvoted}, and HA may have started it there"
            return unknown(look, guest, shown(raw))
        again = read_listing(look.api.get("cluster", "resources", type="vm").data).rows.get(vmid)
        if again is None or (again.host, again.template) != (host, False):
            where = again.host if again else "nowhere"
            return unknown(look, guest, f"{reading.raw} on {host}, but its configuration is on {where} now")
        token = off_token(tasks, host)
        self.memory.is_off(vmid, PowerState.STOPPED, token, look.began_s)
        words = [f"{host} status/current: {reading.raw}", "quorate" if look.members.name else "standalone"]
        words.append("UUID equal")
        words.extend(f"moved here from {left}" for left in moved)
        words.extend([f"{task.kind} is at work"] if task else [due] if due else [])
        settled = reading.settled and task is None and due is None and again.lock in {None, lock}
        if settled:
            self.memory.rests(vmid, begun, look.began_s)
        return Evidence(
            guest=guest,
            power_state=PowerState.STOPPED,
            settled=settled,
            incarnation=token,
            cold_start=None,
            raw=shown("; ".join(words)),
            source="status/current, config, tasks, cluster/resources",
            observed_at_s=look.began_s,
            moved_from=moved,
            proof=Proof.HA_RECOVERY if recovery else Proof.POWER,
            witness=look.witness,
            told=self._late_order(vmid, host, tasks),
        )

    def _recovery(self, vmid: int, host: str, moved: tuple[str, ...]) -> Recovery | None:
        """Return HA's recovery that brought a guest here; None: it came otherwise, or has run since."""
        with self.memory.lock:
            recovery, seen = moved_from(self.memory.ha, f"vm:{vmid}", host), self.memory.of(vmid).sighting
        if recovery is None or recovery.left not in moved:
            return None
        return recovery if seen is None or seen.at_s <= recovery.at_s else None

    def _late_order(self, vmid: int, host: str, tasks: tuple[Task, ...]) -> str:
        """Tell of an order of ours that was given up, and that has cut off a later run; empty: of none."""
        with self.memory.lock:
            lost = self.memory.of(vmid).lost
        if lost is None:
            return ""
        late = carried_out_late(tasks, lost.kind, self.settings.token_id, lost.utc_s)
        if late is None:
            return ""
        order, start = late
        return (
            f"fencer's own order to {lost.kind.removeprefix('qm')} it was given up, because {host} did not "
            f"answer, but carried out later all the same, on a newer run: {order.upid} hit what "
            f"{start.upid} had started. fencer does not start it again by itself. Look into why pvedaemon "
            "hung"
        )

    def _due(self, look: Look, vmid: int, status: Status, tasks: tuple[Task, ...]) -> str | None:
        """Say what is going to start the guest again; None: nothing, or it has been due for too long."""
        why = None
        if status.ha_state in HA_RESTARTS:
            why = f"HA is about to start it (service {status.ha_state})"
        elif status.ha_state in HA_MOVES:
            why = f"HA is about to move it (service {status.ha_state})"
        elif reboots(tasks, look.utc_s):
            why = "its reboot is about to start it"
        return why if self.memory.still_due(vmid, why, look.began_s) else None

    def _judge(self, look: Look, row: Row, status: Status, config: Config, run: Run) -> None:
        """Find out once for each run whether it began with old memory: resumed from disk, or rolled back."""
        began_utc_s = (look.utc_s or 0.0) - status.uptime_s
        start = began_by(look.tasks(row.host, row.vmid), began_utc_s)
        if start is not None:  # none, where the server does not tell the time
            ended_s = start.ended_s or began_utc_s
            if start.kind == "qmrollback" and start.started_s - 1 <= began_utc_s <= ended_s + 1:
                if config.parent and look.config(row.host, row.vmid, config.parent).saved:
                    run.cold_start = False
            elif start.kind in {"qmstart", RESUME} and -1 <= began_utc_s - start.started_s <= _START_PLAY_S:
                log = look.api.get("nodes", start.host, "tasks", start.upid, "log", limit=LOG_LINES)
                if _RESUMED in read_log(log.data):
                    run.cold_start = False
        run.judged = True


def _since(look: Look, left: Task, recovery: Recovery) -> bool:
    """Whether a guest left later than HA had recovered it."""
    if look.utc_s is None or left.ended_s is None:
        return True
    return left.ended_s > look.utc_s - (look.began_s - recovery.at_s) - SKEW_S


def _unless_begun_elsewhere(look: Look, row: Row, evidence: Evidence) -> Evidence:
    """Doubt a guest that is off where its configuration is, and was started on another host after that."""
    start = begun_elsewhere(look, row.vmid, row.host, by_ha=row.hastate is not None)
    if start is None:
        return evidence
    words = (
        f"stopped on {row.host}, but it was last started on {start.host} ({start.upid}), and no task there "
        f"ended it: look there for its process (kvm -id {row.vmid}). A start where it is, or a boot of "
        f"{start.host}, settles it"
    )
    return unknown(look, evidence.guest, shown(words))


def refuse_non_guests(look: Look, row: Row) -> None:
    """Refuse containers and templates by name.

    Raises:
        HypervisorProtocol: it is one.
    """
    who = f"{look.api.where}: {row.vmid} ({shown(row.name)})"
    if row.kind != "qemu":
        raise HypervisorProtocol(f"{who} is a container; fencer fences only virtual machines")
    if row.template:
        raise HypervisorProtocol(f"{who} is a template, and never runs")


def evidence_of(look: Look, guest: GuestRef, reading: PowerReading, run: Run | None) -> Evidence:
    """Return the evidence of a guest that is not off."""
    return Evidence(
        guest=guest,
        power_state=reading.power_state,
        settled=reading.settled,
        incarnation=run.token if run else None,
        cold_start=run.cold_start if run else None,
        raw=f"{guest.host} status/current: {reading.raw}",
        source="status/current",
        observed_at_s=look.began_s,
        io_error=reading.io_error,
        witness=look.witness,
    )
