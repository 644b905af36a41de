"""Campaigns: this agent's part in the election for the Lease of each hypervisor.

Hand-written, because a power order must never be given by a former holder: the `kubernetes` client's election
goes by the wall clock, asks without a deadline, ends the process, and does not tell until when it holds. The
rules are in `fencer.core.election`; here they are put to the API again and again, beside the passes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from fencer.core.election import (
    CLUSTER_LEASE,
    RETRY_S,
    Campaign,
    LeaseRecord,
    Seat,
    Tenure,
    holder_name,
    lease_name,
)
from fencer.core.fitness import Fitness, futile_at
from fencer.core.nudges import taken
from fencer.core.text import printable
from fencer.errors import (
    ClusterConflict,
    ClusterDenied,
    ClusterError,
    ClusterNotFound,
    FencerError,
)
from fencer.ports import Asker, Clock, EndpointInfo, Hypervisor, LeaseStore, Sight

LEARN_S = 10.0
"""How long hypervisors may take to say who they are, and between two times that they are asked."""
LOOK_S = 10.0
"""Between two looks at the Lease on which agents share what they do."""
HELD_S = 10.0
"""So long after the API server was away for it an agent gives no order (C10): by default it is 7 s."""
TRIES = 3
"""How often a Lease is given back if hooks write nudges on it at the same time."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Lack:
    """Why there can be no holder.

    Attributes:
        why: For people.
        lasts: Only a person can change it.
    """

    why: str
    lasts: bool


class Campaigns:
    """Implements the port `fencer.ports.Election`, and asks the API for it in its `steps`.

    It is shown the passes (`fencer.ports.Viewer`): an agent that does not look any more, or whom a hypervisor
    does not answer, is of no use as its holder.

    Args:
        leases: The Leases.
        hypervisors: Endpoint's name → port, to ask who it is.
        asker: Asks them, beside whatever else they are asked.
        clock: The agent's monotonic clock; suspension counts.
        me: This agent's `fencer.core.election.Holder`, as text.
        wall: Returns the wall clock, RFC 3339 with six digits.
    """

    def __init__(
        self,
        leases: LeaseStore,
        hypervisors: Mapping[str, Hypervisor],
        asker: Asker,
        clock: Clock,
        me: str,
        wall: Callable[[], str],
    ) -> None:
        self._leases, self._hypervisors = leases, hypervisors
        self._asker, self._clock, self._wall, self._me = asker, clock, wall, me
        self._names: dict[str, str] = {}
        """Endpoint → its Lease's name, once it has said who it is. Replaced: other threads go through it."""
        self._lacks: dict[str, _Lack] = {}
        """By endpoint until it has said that, then by Lease."""
        self._campaigns: dict[str, Campaign] = {}
        """By Lease; written by one thread."""
        self._told: dict[str, str] = {}
        """Endpoint → what was said last of who gives it orders."""
        self._looked_s = self._failed_s = float("-inf")
        self._ended = False
        self._fitness = Fitness(clock.now_s())
        """Written by the passes, in one go: another thread reads it."""
        self._silent: frozenset[str] = frozenset()
        """Those that did not answer in the last pass."""
        self._rests_until_s: dict[str, float] = {}
        """By Lease: until when it is left to others, as this agent could not do what is due."""
        self._unsure: set[str] = set()
        """Those that answer again after an outage: what has their address now may be another hypervisor."""

    def passed(self, seen: Sight) -> None:
        """See `fencer.ports.Viewer.passed`."""
        self._unsure.update(self._silent - seen.errors.keys())
        self._silent = frozenset(self._hypervisors.keys() & seen.errors.keys())
        futile = futile_at(judged.decision for judged in seen.judged.values())
        endpoints, now_s = self._hypervisors.keys(), self._clock.now_s()
        if now_s - self._failed_s < HELD_S:  # C10: another agent may reach the API server all the time
            futile = frozenset(endpoints)
        self._fitness = self._fitness.after(endpoints, self._silent, futile, now_s)

    def failed(self, why: str) -> None:  # noqa: ARG002 - whatever the reason
        """See `fencer.ports.Viewer.failed`: an agent that reaches the API now and then may renew Leases."""
        self._failed_s = self._clock.now_s()

    def tenure(self, endpoint: str) -> Tenure:
        """See `fencer.ports.Election.tenure`."""
        name = self._names.get(endpoint)
        if name is None:
            lack = self._lacks.get(endpoint)
            why = lack.why if lack else f"{endpoint} has not said yet who it is"
            return Tenure(Seat.UNSETTLED, why=why)
        for lack in filter(None, (self._lacks.get(CLUSTER_LEASE), self._lacks.get(name))):
            campaign = self._campaigns.get(name)
            if lack.lasts or campaign is None or campaign.record is None:
                return Tenure(Seat.UNFILLED if lack.lasts else Seat.UNSETTLED, name, why=lack.why)
        campaign = self._campaigns.get(name)
        record = campaign.record if campaign else None
        if campaign is None or record is None:
            return Tenure(Seat.UNSETTLED, name, why=f"lease {name} was not read yet")
        if not record.holder and not self._is_fit(name):
            rests = self._clock.now_s() < self._rests_until_s.get(name, float("-inf"))
            why = "is left to other agents for a moment" if rests else "does not answer this agent"
            return Tenure(Seat.UNSETTLED, name, why=f"{endpoint} {why}")
        if record.holder == self._me:
            return Tenure(Seat.HOLDER, name, campaign.valid_s, holder_name(self._me))
        holder = printable(holder_name(record.holder))
        seat = Seat.STANDBY if holder else Seat.UNSETTLED
        return Tenure(seat, name, holder=holder, why=_waits(record), heard_s=campaign.heard_s)

    def steps(self) -> Sequence[Callable[[], float]]:
        """Return what is to be called again and again, each for itself; each returns when to come again."""
        return self._learn, self._renew

    def _learn(self) -> float:
        """Ask hypervisors who they are, until each of them has said so; and again after an outage."""
        unknown = self._hypervisors.keys() - self._names.keys()
        calls = {name: self._hypervisors[name].describe for name in sorted(unknown | self._unsure)}
        for endpoint, told in self._asker.ask_all(calls, LEARN_S, patient=True).items():
            if isinstance(told, FencerError) or told.identity is None:
                if endpoint in self._names:
                    continue
                why = told if isinstance(told, FencerError) else "; ".join(told.problems)
                self._lacks[endpoint] = _Lack(f"{endpoint} has not said yet who it is: {why}", lasts=False)
            else:
                self._names = {**self._names, endpoint: name_of(endpoint, told)}
                self._unsure.discard(endpoint)
        return LEARN_S

    def _renew(self) -> float:
        """Renew what is held, and look at all else."""
        if not self._ended:
            now_s = self._clock.now_s()
            if now_s - self._looked_s >= LOOK_S:
                self._looked_s = now_s
                self._try(CLUSTER_LEASE, partial(self._leases.read_lease, CLUSTER_LEASE))
            for name in sorted(set(self._names.values())):
                self._try(name, partial(self._campaign, name))
            for endpoint in self._names:
                self._tell(endpoint)
        return RETRY_S

    def _tell(self, endpoint: str) -> None:
        """Say who gives a hypervisor its orders, when that has changed; not while it is not clear."""
        tenure = self.tenure(endpoint)
        said = _said(endpoint, tenure, self._clock.now_s())
        if said and said != self._told.get(endpoint):
            self._told[endpoint] = said
            log.log(logging.WARNING if tenure.seat is Seat.UNFILLED else logging.INFO, "%s", said)

    def _try(self, name: str, call: Callable[[], object]) -> None:
        """Make a call about a Lease, and take note of why it is of no use."""
        try:
            call()
            self._lacks.pop(name, None)
        except (ClusterNotFound, ClusterDenied) as error:
            self._campaigns.pop(name, None)
            self._lack(name, _Lack(str(error), lasts=True))
        except ClusterError as error:
            self._lack(name, _Lack(str(error), lasts=False))

    def _lack(self, name: str, lack: _Lack) -> None:
        if self._lacks.get(name) != lack:
            log.debug("lease %s: %s", name, lack.why)
        self._lacks[name] = lack

    def _campaign(self, name: str) -> None:
        """Do for one Lease what is due now."""
        if not self._is_fit(name):
            self._leave(name)
            return
        campaign = self._campaigns.setdefault(name, Campaign(self._me))
        before = campaign.record
        if before is None or before.holder != self._me:
            campaign = self._read(name)
        wanted = campaign.due(self._clock.now_s(), self._wall())
        if wanted is None:
            return
        try:
            self._write(name, wanted)
        except ClusterConflict:  # a note was written, or another agent was quicker
            again = self._read(name).due(self._clock.now_s(), self._wall())
            if again is not None:
                self._write(name, again)

    def _is_fit(self, name: str) -> bool:
        """Whether this agent is of use as the holder of a Lease."""
        rests_until_s = self._rests_until_s.get(name, float("-inf"))
        return self._fitness.is_fit(self._endpoints(name), rests_until_s, self._clock.now_s())

    def _endpoints(self, name: str) -> list[str]:
        """Return those of which a Lease is."""
        return [endpoint for endpoint, its_name in self._names.items() if its_name == name]

    def _leave(self, name: str) -> None:
        """Give a Lease back that this agent can do nothing with, and leave it to others for a moment.

        Also one that it does not hold: its holder may die, and this agent be the only one left.
        """
        wanted = self._campaigns.get(name, Campaign(self._me)).released(self._wall())
        now_s = self._clock.now_s()
        rests_until_s = self._fitness.rest(self._endpoints(name), now_s)
        if rests_until_s is not None and now_s >= self._rests_until_s.get(name, float("-inf")):
            self._rests_until_s[name] = rests_until_s
        if wanted is not None:
            self._give_back(name, wanted)
        self._read(name)

    def _give_back(self, name: str, wanted: LeaseRecord) -> None:
        """Give a Lease back, with the nudges that were written on it meanwhile. First no order may begin."""
        self._campaigns.pop(name, None)
        left: LeaseRecord | None = wanted
        for _ in range(TRIES):
            if left is None:
                return
            try:
                self._leases.write_lease(left)
            except ClusterConflict:
                record = self._leases.read_lease(name)
                left = Campaign(self._me).read(record, self._clock.now_s()).released(self._wall())
            else:
                return

    def _read(self, name: str) -> Campaign:
        record = self._leases.read_lease(name)
        campaign = self._campaigns.setdefault(name, Campaign(self._me)).read(record, self._clock.now_s())
        self._campaigns[name] = campaign
        return campaign

    def _write(self, name: str, wanted: LeaseRecord) -> None:
        """Write a Lease, and take nudges off it.

        If the outcome is unknown, the next write meets a conflict, and reads it again; so does one after a
        nudge was written.
        """
        began_s, campaign = self._clock.now_s(), self._campaigns[name]
        wanted, guests = taken(wanted)
        record = self._leases.write_lease(wanted)
        self._campaigns[name] = campaign.wrote(record, began_s, self._clock.now_s())
        self._nudge(name, guests)

    def _nudge(self, name: str, guests: Sequence[str]) -> None:
        """Have guests read live next that hooks on other hosts have named."""
        ports = [self._hypervisors[endpoint] for endpoint in self._endpoints(name)]
        for guest in guests:
            log.debug("lease %s: nudge of %s", name, guest)
            for port in ports:
                port.nudge(guest)
        if guests:
            self._clock.wake()

    def release(self) -> None:
        """Give back what is held, so that another agent need not wait. No order may follow."""
        self._ended = True
        for name, campaign in tuple(self._campaigns.items()):
            wanted = campaign.released(self._wall())
            if wanted is not None:
                self._try(name, partial(self._give_back, name, wanted))


def name_of(endpoint: str, told: EndpointInfo) -> str:
    """Return the name of a hypervisor's Lease.

    Args:
        endpoint: Its name in the configuration: that counts where it has none of its own.
        told: Who it says it is.
    """
    return lease_name(told.kind, told.identity or f"named {endpoint}")


def _said(endpoint: str, tenure: Tenure, now_s: float) -> str:
    """Say who gives a hypervisor its orders; empty: that is not clear."""
    if tenure.seat is Seat.UNFILLED:
        return f"{endpoint}: no agent gives it orders: {tenure.why}; `fencer check` says what mends that"
    if tenure.holds(now_s):
        return f"{endpoint}: this agent gives its orders"
    return f"{endpoint}: {tenure.holder} gives its orders" if tenure.seat is Seat.STANDBY else ""


def _waits(record: LeaseRecord) -> str:
    return "" if record.holder else f"nobody holds lease {record.name} yet"
