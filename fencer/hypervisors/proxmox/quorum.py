"""Whether an API server that calls itself quorate still hears the others: checked before any proof.

Old workers of pvedaemon say `quorate: 1` for minutes after corosync ended, and where corosync hangs, nothing
on that host says otherwise: it repeats what it knew. Two things do tell. What other hosts say of themselves
comes over corosync, and stops; and another server of the endpoint knows that this one left.

Source: seen on Proxmox VE 9.2, with corosync killed, and stopped by a signal, under running daemons.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from fencer.errors import HypervisorError, HypervisorProtocol
from fencer.hypervisors.proxmox.api import Api
from fencer.hypervisors.proxmox.errors import ServerUnfit
from fencer.hypervisors.proxmox.ha import Agent
from fencer.hypervisors.proxmox.ha_read import read_ha
from fencer.hypervisors.proxmox.look import PATIENCE_S, Look
from fencer.hypervisors.proxmox.memory import Memory
from fencer.hypervisors.proxmox.parse import Members, read_members, read_uptime

HEARD_S = 30.0
"""What another host said of itself may be so old: it is said every 10 s, or a little later."""
SILENT_S = 30.0
"""A server that did not answer is left alone for this long."""


def _take_in(look: Look, memory: Memory) -> None:
    """Remember what a server has heard of the other hosts, and since when: only that it moves means anything.

    Their clocks may be wrong, and their uptimes begin again.
    """
    uptimes_s = look.listing.uptimes_s
    words = {_up(host): uptimes_s[host] for host in look.members.others if host in uptimes_s}
    agents: Mapping[str, Agent] = {}
    with suppress(HypervisorProtocol):  # then the statistics have to tell
        agents = read_ha(look.ha or {}).agents
    words |= {f"{host}, HA at": agents[host].written for host in look.members.others if host in agents}
    with memory.lock:
        if look.members.here:
            memory.servers[look.api.where] = look.members.here
        for what, word in words.items():
            memory.heard_from(look.api.where, what, word, look.began_s)


def make_sure_it_hears(look: Look, memory: Memory) -> None:
    """Refuse to believe a server that may have lost the others without knowing.

    Args:
        look: At the endpoint, through that server.
        memory: What it has heard of them, as far as this agent has seen.

    Raises:
        ServerUnfit: it may have; another server may tell.
        HypervisorError: something could not be asked.
    """
    if look.members.name is not None:
        _ask_peers(look, memory)
        refuse_deaf(look, memory)


def refuse_deaf(look: Look, memory: Memory) -> None:
    """Refuse a server that has heard of no other host lately, by what this agent remembers: mostly no call.

    Raises:
        ServerUnfit: so it is.
    """
    _take_in(look, memory)
    if look.members.others and not _heard_lately(look, memory):
        raise ServerUnfit(
            f"{look.api.where} has heard of no other host in the last {HEARD_S:.0f} s, and may have lost "
            "them without knowing. Is corosync stuck there, or pvestatd on all the others?"
        )


def _heard_lately(look: Look, memory: Memory) -> bool:
    """Whether what another host says of itself has moved a moment ago.

    Its statistics, or the word of its HA agent, for clusters whose pvestatd all hang, as they do on storage
    that does not answer. At first, before anything can have moved, the host itself is asked.
    """
    with memory.lock:
        moved = memory.moved_s(look.api.where, look.began_s)
    return (moved is not None and moved <= HEARD_S) or _confirmed(look, memory)


def _confirmed(look: Look, memory: Memory) -> bool:
    """Whether another host says of itself what was heard of it, where nothing can have moved yet."""
    where, since_s, told_s = look.api.where, look.began_s - HEARD_S, look.listing.uptimes_s
    with memory.lock:
        hosts = [host for host in look.members.others if host in told_s]
        new = [host for host in hosts if memory.is_new(where, _up(host), since_s)]
    for host in new:
        with suppress(HypervisorError):  # another one may tell
            live_s = read_uptime(look.api.within(PATIENCE_S).get("nodes", host, "status").data)
            if 0 <= live_s - told_s[host] <= HEARD_S:
                return True
    return False


def _up(host: str) -> str:
    return f"{host}, up for"


def _ask_peers(look: Look, memory: Memory) -> None:
    """Ask the other servers whether they count this one in, and have a quorum themselves."""
    for peer in look.api.peers():
        if not _worth_asking(look, memory, peer):
            continue
        try:
            members = read_members(peer.within(PATIENCE_S).get("cluster", "status").data)
        except HypervisorError:
            with memory.lock:
                memory.silent[peer.where] = look.began_s
            return  # one that is waited for in vain is enough for one proof; the others have their turn
        with memory.lock:
            memory.silent.pop(peer.where, None)
            memory.servers[peer.where] = members.here
        if why := _objection(look.members, members):
            raise ServerUnfit(f"{look.api.where} is contradicted by {peer.where}: {why}")


def _worth_asking(look: Look, memory: Memory, peer: Api) -> bool:
    """Whether a server may object, and answer: one that is missing from a majority has nothing to say."""
    with memory.lock:
        silent = look.began_s - memory.silent.get(peer.where, -SILENT_S) < SILENT_S
        host = memory.servers.get(peer.where, "")
    return not silent and (look.members.online.get(host, True) or not look.members.most)


def _objection(here: Members, there: Members) -> str:
    """Say how another server's view contradicts this one's; empty: it does not."""
    counts_in, is_counted_in = here.online.get(there.here, False), there.online.get(here.here, False)
    if there.name != here.name:
        return ""
    if counts_in and not there.quorate:
        return f"{there.here}, which {here.here} counts as a member, has no quorum"
    if there.quorate and not is_counted_in:
        return f"{there.here}, which is quorate, does not count in {here.here}"
    return ""
