"""Read all guests at once: three calls, one for each host that runs nodes, and few for what they do not tell.

`cluster/resources` is a cache: of a dead host it repeats the last word for five minutes, and it calls every
guest stopped for ten seconds after its start. So its rows only wake, and prove nothing, with one exception: a
row that continues a run that was read live (same host, uptime up to a short while ago) says that this very
process ran then. That is enough to bind a node to its guest, and costs no call per guest and look.

It does not tell UUIDs either. So each guest is read live once, and again whenever its row departs from what
was read, or its host has lost its process (`processes`): as many as fit into a short time, those first that
something is said to have happened to.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from fencer.core.model import Evidence, GuestRef, PowerState
from fencer.errors import HypervisorDenied, HypervisorProtocol
from fencer.hypervisors.proxmox.deadhost import may_be_witnessed
from fencer.hypervisors.proxmox.errors import HostSilent, shown
from fencer.hypervisors.proxmox.ha import HaView, standing
from fencer.hypervisors.proxmox.look import Look, look_at_ha
from fencer.hypervisors.proxmox.memory import SILENT_S, Known, Memory, Run, Sighting
from fencer.hypervisors.proxmox.parse import Row, read_rights
from fencer.hypervisors.proxmox.processes import ended_or_replaced
from fencer.hypervisors.proxmox.proof import Prover
from fencer.hypervisors.proxmox.quorum import refuse_deaf
from fencer.hypervisors.proxmox.rights import sees_all_guests
from fencer.hypervisors.proxmox.states import PowerReading, read_row

LIVE_S = 3.0
"""How long a sweep goes on reading guests live, lists of processes included; the rest waits for the next …"""
ANSWER_S = 4.0
"""… and how long it waits for each answer: a frozen guest's takes 3 s. Together below a call's 10 s."""
AGAIN_S = 10.0
"""How often a guest whose row stays odd is read live: as often as its host tells the cluster."""
RELEARN_S = 300.0
"""Configurations change and numbers are used again: how often each is read again …"""
RELEARNT = 2
"""… and how many at most in each sweep."""
FORGOTTEN_S = 86_400.0
"""A guest that was last seen this long ago is not asked for any more."""


@dataclass(frozen=True, slots=True)
class Sweeper:
    """Reads all guests through a look.

    Attributes:
        prover: Reads single ones.
        timer: Real seconds, to stay within `LIVE_S`.
    """

    prover: Prover
    timer: Callable[[], float] = time.monotonic

    @property
    def memory(self) -> Memory:
        """What is known of the guests."""
        return self.prover.memory

    def sweep(self, look: Look) -> Sequence[Evidence]:
        """Read all guests but containers and templates, and those whose UUID is not known yet.

        Raises:
            HypervisorError: nothing is known of any guest.
        """
        refuse_deaf(look, self.memory)
        self._refuse_blind(look)
        rows = [row for row in look.listing.rows.values() if row.kind == "qemu" and not row.template]
        ha: HaView | None = None
        if self.memory.ha.guarded or any(row.hastate for row in rows):
            with suppress(HypervisorDenied, HypervisorProtocol):  # then HA will prove nothing
                ha = look_at_ha(look, self.memory)
        runs = {row.vmid: self.memory.goes_on(row, look.began_s) for row in rows}
        until_s = self.timer() + LIVE_S
        for vmid in ended_or_replaced(look, self.memory, rows):
            self.memory.of(vmid).nudged = True
        live = self._read_live(replace(look, api=look.api.within(ANSWER_S)), rows, runs, until_s)
        found = [live.get(row.vmid) or self._by_row(look, row, runs[row.vmid], ha) for row in rows]
        found.extend(self._unreadable(look, vmid, why) for vmid, why in look.listing.unreadable.items())
        self._forget(look)
        return [evidence for evidence in found if evidence is not None]

    def _refuse_blind(self, look: Look) -> None:
        """Refuse to report no guest at all where the token may only not see them.

        Raises:
            HypervisorDenied: so it is.
        """
        if look.listing.rows or look.listing.unreadable:
            return
        if not sees_all_guests(read_rights(look.api.get("access", "permissions").data)):
            raise HypervisorDenied(
                f"{look.api.where}: the token {self.prover.settings.token_id} sees no guest: it lacks "
                "VM.Audit on /vms. `fencer setup proxmox` prints the lines that grant it"
            )

    def _read_live(
        self, look: Look, rows: Sequence[Row], runs: dict[int, Run | None], until_s: float
    ) -> dict[int, Evidence | None]:
        """Read those guests live whose rows do not tell enough, the most urgent first, for a while."""
        found = dict[int, Evidence | None]()
        for row in self._wanting(look, rows, runs):
            known = self.memory.of(row.vmid)
            if look.began_s - self.memory.silent.get(row.host, -SILENT_S) < SILENT_S:
                continue
            known.tried_s = look.began_s
            try:
                found[row.vmid] = self.prover.examine(look, row)
            except HostSilent:
                self.memory.silent[row.host] = look.began_s
            except (HypervisorDenied, HypervisorProtocol):
                continue
            known.nudged = _ending(found.get(row.vmid))
            if self.timer() >= until_s:
                break
        return found

    def _wanting(self, look: Look, rows: Sequence[Row], runs: dict[int, Run | None]) -> list[Row]:
        urgent, odd, old = list[Row](), list[Row](), list[Row]()
        for row in rows:
            known = self.memory.of(row.vmid)
            if not look.online(row.host):
                continue
            if known.nudged:
                urgent.append(row)
            elif look.began_s - known.tried_s < AGAIN_S:
                continue
            elif known.uuid is None or (runs[row.vmid] is None and _departs(row, known)):
                odd.append(row)
            elif look.began_s - known.learnt_s > RELEARN_S:
                old.append(row)
        urgent.sort(key=lambda row: self.memory.of(row.vmid).tried_s)
        odd.sort(key=lambda row: (row.vmid not in self.memory.attended, self.memory.of(row.vmid).tried_s))
        old.sort(key=lambda row: self.memory.of(row.vmid).learnt_s)
        wanting = [*urgent, *odd, *old[:RELEARNT]]
        return sorted(wanting, key=lambda row: self.memory.unlisted(row.host, look.began_s))

    def _by_row(self, look: Look, row: Row, run: Run | None, ha: HaView | None) -> Evidence | None:
        last = self.memory.of(row.vmid).last
        if run is None and last is not None and look.began_s - last.observed_at_s <= AGAIN_S:
            return replace(last, conclusive=False)  # newer than the row, which its host may tell 10 s late
        reading = self._recovered(look, row, ha) or read_row(row, host_online=look.online(row.host))
        if run is not None:
            seen_s = min(look.began_s, run.started_s + row.uptime_s)
            utc_s = None if look.utc_s is None else look.utc_s - (look.began_s - seen_s)
            self.memory.sighted(row.vmid, Sighting(row.host, seen_s, utc_s))
        return self._evidence(look, row.vmid, row.host, row.name, reading, run)

    def _recovered(self, look: Look, row: Row, ha: HaView | None) -> PowerReading | None:
        """Return HA's proof for a guest whose host is not there, so that it is looked at closely.

        HA may have fenced the host and have nowhere to start the guest: then nothing else will tell of it.
        """
        if ha is None or look.online(row.host) or row.hastate is None:
            return None
        with self.memory.lock:
            proven, words = standing(self.memory.ha, ha, f"vm:{row.vmid}", row.host)
        if not proven:
            return None
        return PowerReading(PowerState.STOPPED, settled=True, raw=shown(f"{row.host} is offline; {words}"))

    def _unreadable(self, look: Look, vmid: int, why: str) -> Evidence | None:
        reading = PowerReading(PowerState.UNKNOWN, settled=False, raw=why)
        return self._evidence(look, vmid, None, "", reading, None)

    def _evidence(
        self, look: Look, vmid: int, host: str | None, name: str, reading: PowerReading, run: Run | None
    ) -> Evidence | None:
        """Return what a row says; None: the guest has no known UUID, and so cannot be a node."""
        known = self.memory.of(vmid)
        if known.uuid is None:
            return None
        token = run.token if run else None
        if run is None and reading.power_state is PowerState.STOPPED:
            token = known.off_token
        return Evidence(
            guest=GuestRef(self.prover.settings.name, str(vmid), known.uuid, known.name or name, host),
            power_state=reading.power_state,
            settled=reading.settled,
            incarnation=token,
            cold_start=run.cold_start if run else None,
            raw=reading.raw,
            source="cluster/resources",
            observed_at_s=look.began_s,
            conclusive=run is not None and reading.power_state is not PowerState.STOPPED,
            io_error=reading.io_error,
            witness=look.witness,
            host_silent=reading.power_state is PowerState.UNKNOWN
            and host is not None
            and not look.online(host)
            and may_be_witnessed(look, host),
        )

    def _forget(self, look: Look) -> None:
        with self.memory.lock:
            gone = self.memory.guests.keys() - look.listing.rows.keys() - look.listing.unreadable.keys()
            for vmid in gone:
                if look.began_s - self.memory.guests[vmid].read_s > FORGOTTEN_S:
                    del self.memory.guests[vmid]


def _ending(evidence: Evidence | None) -> bool:
    """Whether a guest is off, and the task that ended it still holds it: the next sweep reads it again."""
    return evidence is not None and evidence.power_state is PowerState.STOPPED and not evidence.settled


def _departs(row: Row, known: Known) -> bool:
    """Whether a row says something else than the last live reading did."""
    return known.run is not None or row.status not in {"stopped", "unknown"}
