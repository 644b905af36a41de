"""Whatever happens to messages on their way: in the end a receiver knows what is true."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from fencer.notify.lane import Lane, Pace
from fencer.notify.message import Message
from fencer.notify.past import Past, pack, unpack
from fencer.notify.receiver import Manner
from fencer.notify.settings import ALL
from fencer.wording.occasions import Occasion
from tests.notify.boxes import SEVERAL, message

NODES = [f"k8s-{number}" for number in range(8)]
KINDS = [Occasion.FENCED, Occasion.REFUSED, Occasion.ALARM]
MANNERS = [
    Manner(),
    Manner(replaces=True),
    Manner(replaces=True, each=True),
    SEVERAL,
    Manner(replaces=True, several=True, renew_s=30.0),
]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("tell"), st.sampled_from(NODES), st.sampled_from(KINDS), st.booleans()),
        st.tuples(st.just("ends"), st.sampled_from(NODES)),
        st.tuples(st.sampled_from(["take", "sent", "failed", "refused", "restart"])),
    ),
    max_size=80,
)


@dataclass
class World:
    """A receiver with its lane, and what is true."""

    manner: Manner
    on: frozenset[Occasion]
    now_s: float = 0.0
    lane: Lane = field(init=False)
    truth: dict[str, Message] = field(default_factory=dict)
    """By node, the newest message of the newest incident."""
    knows: dict[str, Message] = field(default_factory=dict)
    """By incident, what got there last."""
    loudest: dict[str, int] = field(default_factory=dict)
    runs: int = 0

    def __post_init__(self) -> None:
        """Begin."""
        self.lane = Lane(self.manner, self.on, Pace())

    def tell(self, node: str, kind: Occasion, loud: bool) -> None:
        """Let an incident begin or go on."""
        last = self.truth.get(node)
        if last is None or last.over:
            self.runs += 1
            new = message(node, key=f"{node}-{self.runs}", occasion=kind)
        else:
            new = message(
                node, last.number + 1, key=last.key, occasion=kind, loud=loud or kind is not last.occasion
            )
        self._offer(new)

    def ends(self, node: str) -> None:
        """Let it end."""
        last = self.truth.get(node)
        if last is not None and not last.over:
            self._offer(message(node, last.number + 1, key=last.key, occasion=last.occasion, over=True))

    def _offer(self, new: Message) -> None:
        self.truth[new.about] = new
        if new.loud:
            self.loudest[new.key] = new.number
        self.lane.offer(new, self.now_s)

    def take(self) -> None:
        """Let something go out."""
        if not self.lane.sending:
            self.lane.take(self.now_s)

    def sent(self) -> None:
        """Let it get there."""
        for key, one in self.lane.sending.items():
            assert key not in self.knows or one.number >= self.knows[key].number, "never back in time"
            assert key not in self.knows or not self.knows[key].over, "never after the end"
            self.knows[key] = one
        if self.lane.sending:
            self.lane.sent(self.now_s)

    def failed(self) -> None:
        """Let it not get there."""
        if self.lane.sending:
            self.lane.failed(self.now_s, None)

    def refused(self) -> None:
        """Let it not be taken."""
        if self.lane.sending:
            self.lane.refused(self.now_s)

    def restart(self) -> None:
        """Be another agent, with what the file has: what was on its way did not get there."""
        incidents = {one.key: one for one in self.truth.values()}
        past = unpack(pack(Past(incidents, {"it": self.lane.known()})))
        self.lane = Lane(self.manner, self.on, Pace())
        self.lane.remember(past.incidents, past.receivers["it"], self.now_s)

    def drain(self) -> None:
        """Let all get there."""
        self.sent()
        self.now_s += 1000.0
        while self.lane.take(self.now_s):
            self.sent()


@given(
    STEPS, st.sampled_from(MANNERS), st.sampled_from([ALL, ALL - {Occasion.BACK}, ALL - {Occasion.FENCED}])
)
def test_in_the_end_the_receiver_knows_what_is_true(steps, manner, on):
    world = World(manner, on)
    for name, *words in steps:
        world.now_s += 1.0
        getattr(world, name)(*words)
    world.drain()
    for last in world.truth.values():
        known = world.knows.get(last.key)
        if last.over:
            assert known is None or known.over or Occasion.BACK not in on
        elif last.occasion in on:
            assert known is not None, "what stands is told"
            assert known.number >= world.loudest[last.key]
            assert known.occasion is last.occasion
    assert not world.lane.waiting
    open_keys = {one.key for one in world.truth.values() if not one.over}
    assert set(world.lane.told) <= open_keys, "what is over is forgotten"


@given(STEPS, st.sampled_from(MANNERS))
def test_of_what_nobody_asked_for_nothing_is_told(steps, manner):
    world = World(manner, frozenset({Occasion.ALARM}))
    for name, *words in steps:
        world.now_s += 1.0
        getattr(world, name)(*words)
    world.drain()
    assert {one.occasion for one in world.knows.values()} <= {Occasion.ALARM}
