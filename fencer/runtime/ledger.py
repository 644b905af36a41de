"""The ledger that all agents of a cluster share: read, and written before what it is about is done."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from fencer.core.election import CLUSTER_LEASE, LeaseRecord
from fencer.core.ledger import MOST_SLOTS, Ledger, PowerOrder, read_ledger, written
from fencer.core.model import Unreadable
from fencer.core.times import Moment
from fencer.errors import ClusterConflict, ClusterDenied, ClusterNotFound, ClusterProtocol
from fencer.runtime.cluster_calls import ClusterCalls
from fencer.runtime.world import API, World

log = logging.getLogger(__name__)

WORKER = f"{API}/counting"
"""As whoever counts: what one node waits for keeps no other one waiting."""
TRIES = 8
"""How often a write is tried while others write at the same time."""


@dataclass(frozen=True, slots=True)
class _Page:
    """The Lease as it was last read or written, and what it says."""

    record: LeaseRecord
    ledger: Ledger


class SharedLedger:
    """Reads and writes the ledger.

    Where there is none, or it cannot be read or written, an agent counts for itself: that brake and window
    are not shared must keep nobody from being fenced. But then it stops no guest: another agent may have
    just done so, and a ledger that cannot be read may be a newer fencer's.

    Args:
        world: For the Leases; without them nothing is shared.
        api: Calls to the cluster.
    """

    def __init__(self, world: World, api: ClusterCalls) -> None:
        self._leases, self._api, self._clock = world.leases, api, world.clock
        self._page: _Page | None = None
        self._unshared = ""
        """Why nothing is shared, and what would change that; empty: all is."""
        self._absent = False
        """It is because there is no ledger, or not for us: no agent has one."""
        self._order: tuple[PowerOrder, float] | None = None
        """The newest power order, and since when this agent knows of it, by its own clock."""

    def slots(self, now: Moment) -> frozenset[str]:
        """Return the slots of the brake that are reserved, as far as this agent knows."""
        page = self._page
        return frozenset(page.ledger.at(now).slots) if page else frozenset()

    def power_age_s(self, now: Moment) -> float | None:
        """Return how long ago any agent's last power order was, as far as this one knows; None: none was."""
        page = self._page
        return self.power_age_on(page.ledger, now) if page else None

    def power_age_on(self, ledger: Ledger, now: Moment) -> float | None:
        """Return how long ago the last power order on a ledger was at least; None: none was.

        What this agent has known for a minute is a minute old, whatever clocks show: or the window would last
        as much longer as they are apart.
        """
        ago_s, known = ledger.power_age_s(now), self._order
        if ago_s is None or known is None or known[0] != ledger.power:
            return ago_s
        return max(ago_s, self._clock.now_s() - known[1])

    def look(self, now: Moment) -> None:
        """Read the ledger.

        Args:
            now: Slots that are too old by then are forgotten.

        Raises:
            ClusterUnreachable, ClusterProtocol: nothing may be done.
        """
        self._page = self._read(now)

    def reserve(
        self,
        slots: Sequence[str],
        now: Moment,
        fits: Callable[[str, Ledger], bool],
        beside: Collection[str] = (),
    ) -> None:
        """Reserve a slot of the brake; and with the same write for those that wait for one, if there is.

        Where the ledger cannot be read or written, and that is certain, an agent counts for itself.

        Args:
            slots: Those that the node needs which is about to be fenced.
            now: By two clocks.
            fits: Whether a slot can still be had, once others have written.
            beside: Slots of the nodes that this agent is about to fence next.

        Raises:
            ClusterConflict: there is none any more.
            ClusterUnreachable: it is not known whether there is one.
        """

        def entry(ledger: Ledger) -> Ledger | None:
            for one in (*slots, *sorted(beside)):
                if ledger.has_slot(one, now):
                    continue
                if len(ledger.at(now).slots) < MOST_SLOTS and fits(one, ledger):
                    ledger = ledger.with_slot(one, now)
                elif one in slots:
                    return None
            return ledger

        page = self._page
        if page is not None and all(page.ledger.has_slot(one, now) for one in slots):
            return
        try:
            self._write(entry, now, "other agents have used up what max_fenced allows")
        except (ClusterDenied, ClusterNotFound, ClusterProtocol) as error:  # it was not written
            log.warning("the brake is not shared with other agents: %s", error)

    def take_window(
        self, order: PowerOrder, now: Moment, fits: Callable[[Ledger], bool], *, by_hand: bool = False
    ) -> PowerOrder | None:
        """Note a power order before it is given.

        Args:
            order: Whose, to whom.
            now: By two clocks.
            fits: Whether it may still be given, once others have written.
            by_hand: It is a person's: without a ledger it may be given all the same.

        Returns:
            The order that was noted before; None: there was none.

        Raises:
            ClusterConflict: another agent has just given one.
            ClusterError: any other of its subclasses: that could not be told, or not be written.
        """
        before: list[PowerOrder | None] = [None]

        def entry(ledger: Ledger) -> Ledger | None:
            before[0] = ledger.power
            return Ledger(order, ledger.at(now).slots) if fits(ledger) else None

        self._write(entry, now, "another agent has just stopped a guest")
        if self._unshared and not (by_hand and self._absent):
            raise ClusterProtocol(self._unshared)
        return before[0]

    def give_back_window(self, order: PowerOrder, before: PowerOrder | None, now: Moment) -> None:
        """Take note that an order was not carried out: the next one need not wait for it.

        Raises:
            As `take_window`.
        """

        def entry(ledger: Ledger) -> Ledger | None:
            return Ledger(before, ledger.slots) if ledger.power == order else None

        self._write(entry, now, "another agent has stopped a guest since")

    def _write(self, entry: Callable[[Ledger], Ledger | None], now: Moment, otherwise: str) -> None:
        for _ in range(TRIES):
            page = self._page = self._page or self._read(now)
            if page is None:
                return
            wanted = entry(page.ledger)
            if wanted is None:
                raise ClusterConflict(otherwise)
            try:
                self._page = self._put(page, wanted)
            except ClusterConflict:
                self._page = None
            else:
                return
        raise ClusterConflict(f"lease {CLUSTER_LEASE} was written by others {TRIES} times meanwhile")

    def _put(self, page: _Page, wanted: Ledger) -> _Page:
        leases = self._leases
        assert leases is not None  # noqa: S101 - there is a page of it
        self._page = None  # if the outcome is not known, it has to be read again
        record = self._api(lambda: leases.write_lease(written(page.record, wanted)), WORKER)
        return self._noted(_Page(record, wanted))

    def _noted(self, page: _Page) -> _Page:
        """Take note since when this agent knows of the newest power order."""
        order = page.ledger.power
        if order is not None and (self._order is None or self._order[0] != order):
            self._order = (order, self._clock.now_s())
        return page

    def _read(self, now: Moment) -> _Page | None:
        """Return what is shared; None: nothing is, because nobody has set that up."""
        leases = self._leases
        if leases is None:
            return None
        try:
            record = self._api(lambda: leases.read_lease(CLUSTER_LEASE), WORKER)
        except (ClusterNotFound, ClusterDenied) as error:  # `fencer check` fails for it
            self._absent = True
            self._unshared = f"{error}. What would change this: `fencer setup kubernetes -c` applied again"
            return None
        ledger, self._absent = read_ledger(record), False
        if isinstance(ledger, Unreadable):
            self._unshared = f"{ledger.text}. What would change this: that annotation taken off"
            return None
        self._unshared = ""
        return self._noted(_Page(record, ledger.at(now)))
