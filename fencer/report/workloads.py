"""Each pod that a fence took from its node: how long it was down at least, and who replaces it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from fencer.core.model import PowerState
from fencer.core.times import parse_utc
from fencer.journal.rows import Entry, Kind
from fencer.report.lanes import to_clear
from fencer.report.sights import Sight, done_of, left_of, names

CLEARS = "ClearPods"

PATIENT = frozenset({"", "StatefulSet", "DaemonSet"})
"""Owners that make no other pod elsewhere before the old one is gone; others do once it is being deleted."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """A pod as the cluster has it when the report is written.

    Attributes:
        pod: Its name, with its namespace.
        controller: Kind and name of its owner.
        node: Where it is; empty: nowhere yet.
        created_utc: When it was made, by the API server's clock.
        ready: It is Ready now.
    """

    pod: str
    controller: str
    node: str
    created_utc: str
    ready: bool

    @property
    def created(self) -> datetime:
        """When it was made."""
        return parse_utc(self.created_utc)


@dataclass(frozen=True, slots=True)
class Workload:
    """A pod of the node.

    Attributes:
        pod: Its name, with its namespace.
        controller: Who recreates it, like ``ReplicaSet/web-6f``; empty: nobody, or not known.
        down: When it could not run any more for certain: its guest was read not to run. None: not known.
        cleared: When it was seen to be gone, or was reported to be. None: it was not, as far as is known.
        there: When it was last there for certain, with no other in its place: it was cleared then, or the
            last look still found it. None: it was not.
        held: What held it, or why it could not be cleared; empty: nothing.
        replacement: Who took its place, where the cluster was asked.
    """

    pod: str
    controller: str
    down: datetime | None
    cleared: datetime | None
    there: datetime | None
    held: str = ""
    replacement: Replacement | None = None

    @property
    def downtime_s(self) -> float | None:
        """How long it was down at least: a replacement could start no earlier. None: not known."""
        if self.down is None or self.cleared is None or self.there is None or self.there < self.down:
            return None
        return (self.there - self.down).total_seconds()


def workloads(rows: Sequence[Sight], now: Sequence[Replacement] = ()) -> tuple[Workload, ...]:
    """Return what became of each pod.

    Args:
        rows: The incident's rows, oldest first.
        now: The cluster's pods as they are now; none: nobody has asked.
    """
    controllers, cleared, held = _controllers(rows), dict[str, datetime](), dict[str, str]()
    for entry in (one.entry for one in rows):
        if _action(entry) == CLEARS:
            for pod in names(done_of(entry), "gone"):
                cleared.setdefault(pod, entry.at)
            held.update(left_of(entry))
    named = dict.fromkeys((*_asked(rows), *cleared, *held))
    gone, there = _seen(rows)
    soon = _replaced_soon(rows)
    owned = {pod: controllers[pod] for pod in named if controllers.get(pod)}
    replaced = _replacements(owned, rows[0].entry.at, now)
    return tuple(
        Workload(
            pod,
            controllers.get(pod, ""),
            down(rows),
            cleared.get(pod, gone.get(pod)),
            soon.get(pod, cleared.get(pod, there.get(pod))),
            "" if pod in cleared else held.get(pod, ""),
            replaced.get(pod),
        )
        for pod in named
    )


def down(rows: Iterable[Sight]) -> datetime | None:
    """Return since when the guest was read not to run, before its node was fenced. None: it was not."""
    for one in rows:
        run = one.seen.history.run if one.seen is not None else None
        if run is not None and run.power_state in {PowerState.PAUSED, PowerState.SAVED, PowerState.STOPPED}:
            return one.when(run.since_s)
        if _action(one.entry) == "TaintNode" and one.entry.body.get("ok"):
            return None  # by another proof than a reading
    return None


def _asked(rows: Iterable[Sight]) -> Iterator[str]:
    """Give the pods that were to be cleared or evicted."""
    for one in rows:
        if _action(one.entry) == CLEARS:
            yield from names(one.entry.body.get("on") or {}, "pods")
        if (
            one.entry.kind is Kind.DECISION
            and one.entry.body.get("verdict") == "fence"
            and one.seen is not None
        ):
            yield from map(str, to_clear(one.seen))


def _controllers(rows: Iterable[Sight]) -> dict[str, str]:
    pods = (pod for one in rows if one.seen is not None for pod in one.seen.pods or ())
    return {str(pod): pod.controller for pod in pods}


def _seen(rows: Iterable[Sight]) -> tuple[dict[str, datetime], dict[str, datetime]]:
    """Return when each pod was first seen not to be on the node any more, and when it was last seen there."""
    gone, there = dict[str, datetime](), dict[str, datetime]()
    for one in rows:
        if one.seen is None or one.seen.pods is None:
            continue
        found = set(map(str, one.seen.pods))
        for pod in there.keys() - found:
            gone.setdefault(pod, one.ago(0))
        there |= dict.fromkeys(found, one.ago(0))
    return gone, there


def _replaced_soon(rows: Iterable[Sight]) -> dict[str, datetime | None]:
    """Return the pods whose owner could replace them before they were gone, and when no look said so yet."""
    whole, soon = dict[str, datetime](), dict[str, datetime | None]()
    for one in rows:
        for pod in (one.seen.pods or ()) if one.seen is not None else ():
            if not pod.terminating and not pod.finished:
                whole[str(pod)] = one.ago(0)
            elif pod.controller.partition("/")[0] not in PATIENT:
                soon.setdefault(str(pod), whole.get(str(pod)))
    return soon


def _replacements(
    controllers: Mapping[str, str], since: datetime, now: Iterable[Replacement]
) -> dict[str, Replacement]:
    """Return who took each pod's place: a pod of the same owner, made since; of the same name, if one is."""
    later = sorted(
        (one for one in now if parse_utc(one.created_utc) > since), key=lambda one: one.created_utc
    )
    found = {one.pod: one for one in later if controllers.get(one.pod) == one.controller}
    free = [one for one in later if one.pod not in found]
    for pod, controller in controllers.items():
        fitting = next((one for one in free if one.controller == controller), None)
        if pod not in found and controller and fitting is not None:
            found[pod] = fitting
            free.remove(fitting)
    return found


def _action(entry: Entry) -> str:
    return str(entry.body.get("action", "")) if entry.kind in {Kind.ACTION, Kind.INTENT} else ""
