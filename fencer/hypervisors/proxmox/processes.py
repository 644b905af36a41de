"""Whose process is not the one that was read last, by the process tables of the hosts that run nodes.

What `cluster/resources` repeats is up to 10 s old. A host's own list of guests is made when it is asked for,
from its process table, in a few hundredths of a second. It says "running" or "stopped" and no more (never
with `full`, which asks every QEMU), and not why, nor whether that is final. So it proves nothing: it only
says whom to read live.

Each sweep asks for it, so only the hosts that run guests that are nodes: 3 of 32, in many a cluster.

Source: qemu-server 9.2.6, src/PVE/API2/Qemu.pm (vmlist) and src/PVE/QemuServer.pm (vmstatus, vzlist).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeAlias

from fencer.errors import HypervisorError
from fencer.hypervisors.proxmox.errors import HostSilent
from fencer.hypervisors.proxmox.look import Look
from fencer.hypervisors.proxmox.memory import Memory, Run
from fencer.hypervisors.proxmox.parse import Row, read_processes

LIST_S = 1.5
"""How long a sweep waits for all these lists, which are asked for at once. A pass waits 2 s for a sweep."""

Processes: TypeAlias = Mapping[int, int | None]
"""A guest's number → its process; None: it has none."""


def ended_or_replaced(look: Look, memory: Memory, rows: Sequence[Row]) -> Iterator[int]:
    """Return the numbers of the nodes' guests that have not the process any more that was read last.

    A guest that its host's list lacks has none to compare: it is on its way, or the host has not heard of it
    or of our rights yet. A host that did not answer is left alone for a while.

    Args:
        look: At the endpoint.
        memory: Which guests are nodes, and in which run each was last read.
        rows: Of guests.
    """
    runs = _runs(look, memory, rows)
    listed = _lists(look, memory, {row.host for row, _ in runs})
    for row, run in runs:
        processes = listed.get(row.host, {})
        if row.vmid in processes and (row.host, processes[row.vmid]) != (run.host, run.pid):
            yield row.vmid


def _runs(look: Look, memory: Memory, rows: Sequence[Row]) -> list[tuple[Row, Run]]:
    """Return the nodes' guests that were last read running or paused, and are on hosts that can be asked."""
    with memory.lock:
        return [
            (row, run)
            for row in rows
            if row.vmid in memory.attended
            and (run := memory.of(row.vmid).run) is not None
            and look.online(row.host)
            and not memory.unlisted(row.host, look.began_s)
        ]


def _lists(look: Look, memory: Memory, hosts: Collection[str]) -> dict[str, Processes]:
    """Ask hosts for their lists, side by side, so that none that hangs delays the others."""
    if not hosts:
        return {}
    api, found = look.api.within(LIST_S), dict[str, Processes]()
    pool = ThreadPoolExecutor(len(hosts), "fencer-proxmox")
    asked = {host: pool.submit(api.get, "nodes", host, "qemu") for host in hosts}
    pool.shutdown(wait=False)
    wait(asked.values(), LIST_S)
    for host, answer in asked.items():
        try:
            found[host] = read_processes(answer.result(0).data)
        except (TimeoutError, HostSilent):
            memory.silent_lists[host] = look.began_s
        except HypervisorError:
            continue  # a guest may have left amid the list: the next one can be read
    return found
