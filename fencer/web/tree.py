"""Where everything is: endpoint, host, guest, node; and what of that a page has room for. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from fencer.core.identity import subject_of
from fencer.core.model import Judged, PowerState
from fencer.core.text import natural
from fencer.ports.runtime import Sight
from fencer.wording.conditions import PLAIN, condition, problems_first

SMALL = 50
"""So many nodes are all shown; of more, those about which there is nothing to say are folded."""
MOST_ROWS, MOST_OF_ALL = 200, 1000
"""So many nodes have a row: at first, and where everything is asked for. A row has half a kilobyte."""
MOST_NAMES = 1000
"""So many nodes are named where they are folded."""
MOST_HOSTS = 100
"""So many hosts of an endpoint are shown; more only if a node there has a row."""


@dataclass(frozen=True, slots=True)
class Room:
    """The nodes on one host.

    Attributes:
        host: Its name; empty: not known, not told, or the endpoint is one.
        shown: Nodes with a row, what needs a person first.
        folded: Names of further ones, all of them well.
        folded_count: How many those are, named or not.
        left_out: How many more there are, well or not.
    """

    host: str
    shown: tuple[Judged, ...]
    folded: tuple[str, ...] = ()
    folded_count: int = 0
    left_out: int = 0

    @property
    def count(self) -> int:
        """How many nodes are there."""
        return len(self.shown) + self.folded_count + self.left_out


@dataclass(frozen=True, slots=True)
class Branch:
    """One endpoint.

    Attributes:
        endpoint: Its name; empty: for nodes of which no guest is known.
        rooms: Its hosts.
        count: How many nodes are there.
        error: Why it gave no answer that can be used; empty: it did.
        further_hosts: How many more hosts there are.
        further_well: How many nodes on those are well.
        further_left_out: How many are not.
    """

    endpoint: str
    rooms: tuple[Room, ...]
    count: int
    error: str = ""
    further_hosts: int = 0
    further_well: int = 0
    further_left_out: int = 0


@dataclass(slots=True)
class _Budget:
    """What is left of the page."""

    rows: Collection[str]
    names: int


def tree(sight: Sight, *, every: bool = False) -> tuple[Branch, ...]:
    """Return what is where, as far as there is room; what is left out is counted.

    Args:
        sight: All nodes and endpoints.
        every: Also nodes about which there is nothing to say, of many.
    """
    by_place: dict[str, dict[str, list[Judged]]] = {name: defaultdict(list) for name in sight.endpoints}
    ranked = problems_first(sight.judged.values())
    for item in ranked:
        endpoint, host = place_of(item)
        by_place.setdefault(endpoint, defaultdict(list))[host].append(item)
    whole = every or len(ranked) <= SMALL
    wanted = ranked if whole else [item for item in ranked if condition(item) not in PLAIN]
    most = MOST_OF_ALL if every else MOST_ROWS
    budget = _Budget({item.observation.node.name for item in wanted[:most]}, MOST_NAMES)
    order = [*sight.endpoints, *sorted(by_place.keys() - set(sight.endpoints))]
    return tuple(_branch(name, by_place[name], sight.errors, budget) for name in order)


def place_of(item: Judged) -> tuple[str, str]:
    """Return endpoint and host of a node; each is empty where it is not known.

    Only a reading tells the host: a guest that once was there may have moved.
    """
    subject = subject_of(item.observation)
    if subject is None:
        return "", ""
    reading = subject.evidence
    read = reading.read and reading.power_state is not PowerState.ABSENT
    return reading.guest.endpoint, (reading.guest.host or "") if read else ""


def _branch(
    endpoint: str, by_host: Mapping[str, Sequence[Judged]], errors: Mapping[str, str], budget: _Budget
) -> Branch:
    rooms: list[Room] = []
    further: list[Room] = []
    for host in sorted(by_host, key=natural):
        room = _room(host, by_host[host], budget, named=len(rooms) < MOST_HOSTS)
        (rooms if room.shown or len(rooms) < MOST_HOSTS else further).append(room)
    return Branch(
        endpoint,
        tuple(rooms),
        sum(map(len, by_host.values())),
        errors.get(endpoint, ""),
        len(further),
        sum(room.folded_count for room in further),
        sum(room.left_out for room in further),
    )


def _room(host: str, nodes: Sequence[Judged], budget: _Budget, *, named: bool) -> Room:
    shown = tuple(item for item in nodes if item.observation.node.name in budget.rows)
    others = [item for item in nodes if item.observation.node.name not in budget.rows]
    well = [item.observation.node.name for item in others if condition(item) in PLAIN]
    names = tuple(well[: budget.names if named else 0])
    budget.names -= len(names)
    return Room(host, shown, names, len(well), len(others) - len(well))
