"""What the pipeline itself needs: people to tell, calls under deadlines, time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from fencer.core.done import Done
from fencer.core.election import Tenure
from fencer.core.kept import Kept
from fencer.core.model import (
    Decision,
    Deed,
    Judged,
    NodeView,
    Observation,
)
from fencer.core.requests import Request
from fencer.errors import FencerError

T = TypeVar("T")


class Reporter(Protocol):
    """Tells people. No decision asks it; it never raises."""

    def decided(self, node: NodeView, decision: Decision) -> None:
        """A node's decision changed (verdict, reason or guest)."""
        ...

    def acted(self, node: NodeView, action: Deed, done: Done) -> None:
        """An action was carried out, or failed."""
        ...

    def said(self, text: str, *, warning: bool) -> None:
        """Something that concerns no single node: an endpoint lost, the API found again."""
        ...


class Recorder(Protocol):
    """Keeps what decisions were made on, and what was about to be done, for people who look back.

    No decision asks it. It never raises, and never waits long: a fence goes on without it.
    """

    def judged(self, seen: Observation, decision: Decision) -> None:
        """A node's decision changed; this is all that was known."""
        ...

    def intends(self, seen: Observation, action: Deed) -> None:
        """An action is about to be carried out: comes back once that is kept, or cannot be kept soon."""
        ...


class StateStore(Protocol):
    """Keeps what an agent has seen and could not write on Nodes yet, over restarts. One agent writes it."""

    def load(self) -> Kept:
        """Return what was kept, as far as this disk alone can tell that it is ours. Asks nobody else.

        Raises:
            StateError: it cannot be read, is damaged, or was not signed by an agent of this machine. It is
                left alone, and `save` refuses to overwrite it. The text says why, and what a person can do.
        """
        ...

    def confirm(self) -> bool:
        """Return whether what was loaded was signed for this cluster, now that its API server answers.

        If not, it is set aside, and must be forgotten.

        Raises:
            ClusterError: the cluster's key cannot be read; or there is none, and what was loaded needs one.
        """
        ...

    def save(self, kept: Kept) -> None:
        """Replace what is kept; it is signed, and on the disk when this returns.

        Raises:
            StateError: it could not be written, another agent uses it, or nothing is there to sign it with.
        """
        ...


@dataclass(frozen=True, slots=True)
class Sight:
    """All nodes, as one pass has left them.

    Attributes:
        judged: By the name of the node.
        endpoints: All hypervisors, by name.
        errors: Endpoint → why it gave no answer that can be used.
        malformed: Nodes that could not be read, each with why.
        paused_why: Set when an operator paused fencing for the whole cluster, with their words and its end.
        windows: The maintenance windows that are open, for people.
        utc: The API server's clock.
        at_s: The agent's clock.
        requests: What other controllers of the cluster ask of fencer.
        pursued: Nodes that are still being pursued: they are told as they were judged before this pass.
        tenures: Endpoint → what this agent is to it; empty: no other agent is thought of.
    """

    judged: Mapping[str, Judged]
    endpoints: Sequence[str]
    errors: Mapping[str, str] = field(default_factory=dict)
    malformed: Sequence[str] = ()
    paused_why: str | None = None
    windows: Sequence[str] = ()
    utc: str = ""
    at_s: float = 0.0
    requests: Sequence[Request] = ()
    pursued: Collection[str] = ()
    tenures: Mapping[str, Tenure] = field(default_factory=dict)


class Viewer(Protocol):
    """Is shown every pass, for metrics, pages and messages. No decision asks it.

    It never raises, and never waits for anybody: the next pass is due.
    """

    def passed(self, seen: Sight) -> None:
        """A pass has ended."""
        ...

    def failed(self, why: str) -> None:
        """There was no pass: the API server gave no answer that can be used."""
        ...


class Asker(Protocol):
    """Runs calls that may hang, each under a deadline. Threads live; inline in the simulation."""

    def ask(self, endpoint: str, call: Callable[[], T], deadline_s: float) -> T:
        """Run one call on the endpoint's worker.

        Args:
            endpoint: The worker's endpoint; a hung endpoint never delays another.
            call: What to run. Abandoned, not interrupted, when late.
            deadline_s: Seconds from now.

        Raises:
            HypervisorUnreachable: late, or no worker left there.
            FencerError: what the call raised.
        """
        ...

    def ask_all(
        self, calls: Mapping[str, Callable[[], T]], deadline_s: float, *, patient: bool = False
    ) -> dict[str, T | FencerError]:
        """Run one call per endpoint, all at once.

        Args:
            calls: What to run, by endpoint.
            deadline_s: Seconds from now.
            patient: Wait for every answer until the deadline. Otherwise slow endpoints may read unreachable
                sooner, and answer the next time they are asked: for looks that are repeated anyway.

        Returns:
            For each endpoint the answer, or the error that `ask` would have raised; by key, in no order.
        """
        ...

    def turn(self) -> AbstractContextManager[None]:
        """Be the only one of the runs `side_by_side` that goes on, but while one asks here."""
        ...

    def side_by_side(self, runs: Sequence[Callable[[], None]], patience_s: float) -> None:
        """Let these go on at the same time, each in its turns: while one asks, others go on.

        Args:
            runs: A bug in one of them ends that one alone.
            patience_s: Return after so long, even if some have not ended: those go on beside whatever the
                caller does next.
        """
        ...

    def alone(self, what: str) -> AbstractContextManager[None]:
        """Wait until none of the others is at this, and be the only one."""
        ...


class Clock(Protocol):
    """Time, and waiting for something to happen."""

    def now_s(self) -> float:
        """Monotonic seconds; only differences mean anything."""
        ...

    def wait(self, timeout_s: float) -> bool:
        """Wait for a wake-up, `timeout_s` at most. True: woken."""
        ...

    def wake(self) -> None:
        """End the current or the next `wait`, from any thread."""
        ...
