"""What an agent keeps in memory: from pass to pass (memory), and within one pass (the scene)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fencer.core import pause
from fencer.core.history import LeaseTrack
from fencer.core.identity import Directory
from fencer.core.model import Evidence, Fleet, GuestHistory, GuestRef, Judged, NodeView, OrderedRun
from fencer.core.requests import Request
from fencer.core.times import earlier, later


@dataclass(frozen=True, slots=True)
class Calm:
    """A node about which nothing is to be done, and all that this rests on.

    Attributes:
        view: The node as it was told from afar: this very object, until something about it changes.
        node: The same with what this agent knows of it.
        evidence: What was read of its guest.
        judged: What was decided.
    """

    view: NodeView
    node: NodeView
    evidence: Evidence
    judged: Judged


@dataclass(slots=True)
class Memory:
    """What this process remembers. Losing it only causes delays.

    Attributes:
        leases: By the UID of the node.
        guests: By the UID of the node.
        last_stop_s: When this agent last cut a guest's power.
        killed: Guests, by key, that it stopped: whether that must have taken a kill of their process.
        stops_failed: Guests, by key, that it could not stop: when it last tried, how often, the answer, and
            whether it was to throw saved memory away.
        ran_since: Nodes, by UID, whose guests ran again after a stop that was claimed: the id of that claim.
        due: Nodes, by UID, that wait for their turn to be fenced.
        asked: When it asked the guest of a node (by the node's UID and boot id) to shut down or to start.
        ordered_runs: Nodes, by UID: see `fencer.core.model.Observation.ordered_run`.
        stalls: When each endpoint's storage was last seen stalled.
        fenced: Nodes, by UID, as they were last seen with our taint and mark, in case one is deleted.
        looked: When a node (by UID) was last looked at closely.
        live: Nodes, by UID, as they were last read live, and when: a list may lag behind that.
        running: Guests, by key, that were last read running, in case their endpoint fails.
        not_found: What was read of guests, by key, that their endpoint did not know when it was asked for
            them, and has not named since, while it answers. A guest that is missing from a sweep says less.
        calm: By the name of the node, and only while it is known which guest each node may be.
        words: Nodes, by UID, that carry a mark by an operator's word: its incident, and since when this agent
            has known of it.
        pursued: Nodes, by UID, that are being pursued now, with the endpoint of each: what is read of them
            meanwhile is left to that.
    """

    leases: dict[str, LeaseTrack] = field(default_factory=dict)
    guests: dict[str, GuestHistory] = field(default_factory=dict)
    last_stop_s: float | None = None
    killed: dict[tuple[str, str, str], bool] = field(default_factory=dict)
    stops_failed: dict[tuple[str, str, str], tuple[float, int, str, bool]] = field(default_factory=dict)
    ran_since: dict[str, str] = field(default_factory=dict)
    due: set[str] = field(default_factory=set)
    asked: dict[tuple[str, str], float] = field(default_factory=dict)
    ordered_runs: dict[str, OrderedRun] = field(default_factory=dict)
    stalls: dict[str, float] = field(default_factory=dict)
    fenced: dict[str, NodeView] = field(default_factory=dict)
    looked: dict[str, float] = field(default_factory=dict)
    live: dict[str, tuple[NodeView, float]] = field(default_factory=dict)
    running: dict[tuple[str, str, str], GuestRef] = field(default_factory=dict)
    not_found: dict[tuple[str, str, str], Evidence] = field(default_factory=dict)
    calm: dict[str, Calm] = field(default_factory=dict)
    words: dict[str, tuple[str, float]] = field(default_factory=dict)
    pursued: dict[str, str] = field(default_factory=dict)

    def ordered_run(self, uid: str, evidence: Evidence | None) -> OrderedRun | None:
        """Return the run that a person's order for a node was for, with what a newer reading shows of it."""
        first = self.ordered_runs.get(uid)
        off = evidence is not None and evidence.conclusive and evidence.gone
        if first is not None and off and evidence is not None and evidence.guest.key == first.guest.key:
            first = self.ordered_runs[uid] = replace(first, ended=True)
        return first


@dataclass(slots=True)
class Scene:
    """One pass seen from afar: every node, every guest.

    Attributes:
        nodes: By name, with lease data.
        evidence: The newest reading of each guest, by its key.
        errors: Endpoint → why it did not answer.
        malformed: Nodes that could not be read, each with why.
        directory: Which guest may be which node.
        utc: The API server's clock.
        now_s: The agent's clock when the cluster had answered.
        pause_note: The text of the pause annotation on kube-system; None: there is none. See `paused_why`.
        windows: The maintenance windows that are open, for people.
        fleet: The summary; None: it has to be made again.
        lost: Endpoints of one host each that do not answer, while all others do.
        waited: A guest whose reading had hung was asked again in this pass: once is enough.
        requests: What other controllers ask of fencer.
        since_last_s: How long after the look before this one began.
        looked_again: A node that was known well enough was looked at again in this pass: once is enough.
        tried_again: A node whose looks fail slowly was looked at again in this pass, in vain: the same.
        views: Nodes as they were told from afar, by name.
        calm: What was decided before about nodes of which everything is as it was, by name.
        counted_s: When the nodes were last counted again: when that began.
        apart_s: How far this machine's clock was ahead of `utc` when that came, in seconds.
    """

    nodes: dict[str, NodeView]
    evidence: dict[tuple[str, str, str], Evidence]
    errors: dict[str, str]
    malformed: tuple[str, ...]
    directory: Directory
    utc: str
    now_s: float
    pause_note: str | None
    windows: tuple[str, ...] = ()
    fleet: Fleet | None = None
    lost: frozenset[str] = frozenset()
    waited: bool = False
    since_last_s: float = 0.0
    requests: tuple[Request, ...] = ()
    looked_again: bool = False
    tried_again: bool = False
    views: dict[str, NodeView] = field(default_factory=dict)
    calm: dict[str, Judged] = field(default_factory=dict)
    counted_s: float = float("-inf")
    apart_s: float = 0.0

    @property
    def earliest_utc(self) -> str:
        """The slower of both clocks; see `fencer.core.model.Observation.earliest_utc`."""
        return earlier(self.utc, self.apart_s)

    @property
    def latest_utc(self) -> str:
        """The faster of both clocks; see `fencer.core.model.Observation.latest_utc`."""
        return later(self.utc, self.apart_s)

    @property
    def paused_why(self) -> str | None:
        """Why fencing is paused for the whole cluster, and until when, for people; None: it is not."""
        return pause.told(self.pause_note, self.earliest_utc, self.latest_utc)
