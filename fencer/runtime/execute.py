"""Execute: carry out one action, and say what happened. Whether it was right to is not asked here.

Every write is guarded by the version or UID that was observed, so that an action on outdated facts fails
instead of harming. An error after sending means "outcome unknown": the caller observes anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar, assert_never

from fencer.core.evictions import Answer
from fencer.core.model import (
    Action,
    Alarm,
    BindNode,
    ClearPods,
    CordonNode,
    DeleteAttachments,
    DiscardSaved,
    EvictPods,
    ForgetMark,
    GuestRef,
    Observation,
    PodView,
    ShutdownGuest,
    StartGuest,
    StopGuest,
    TaintNode,
    Uncordon,
    UntaintNode,
)
from fencer.core.policy import Policy
from fencer.core.rungs import OFF
from fencer.errors import ClusterConflict, ClusterError, FencerError, HypervisorError
from fencer.ports import Cleared
from fencer.runtime.observe import API, Observer, World

T = TypeVar("T")

EVICTION_DEADLINE_S = 25.0
"""For one eviction: the API server itself may try for 10 s, and is given twice that."""

KILLED_AFTER_S = 9.0
"""A power-off that took so long ended by SIGKILL.

Source: libvirt's destroy sends SIGTERM, and SIGKILL 10 s later.
"""


@dataclass(frozen=True, slots=True)
class Step:
    """What became of an action.

    Attributes:
        ok: It was done, as far as its call tells.
        text: What happened, in a sentence.
    """

    ok: bool
    text: str


class Executor:
    """Carries out actions through the ports.

    Args:
        world: The ports.
        observer: For the cluster's deadline, and to remember power-offs.
        policy: Deadlines and parallelism.
    """

    def __init__(self, world: World, observer: Observer, policy: Policy) -> None:
        self._world = world
        self._observer = observer
        self._policy = policy

    def carry_out(self, observation: Observation, action: Action) -> Step:
        """Carry out one action on what was observed. Never raises: a failure is a Step that is not ok."""
        try:
            return self._do(observation, action)
        except ClusterConflict as error:
            return Step(ok=False, text=f"changed meanwhile, looking again: {error}")
        except FencerError as error:
            return Step(ok=False, text=str(error))

    def _do(self, observation: Observation, action: Action) -> Step:  # noqa: C901, PLR0911, PLR0912 - one row an action
        node, cluster, api = observation.node, self._world.cluster, self._observer.api
        match action:
            case BindNode(binding):
                api(lambda: cluster.bind(node, binding))
                return Step(ok=True, text=f"bound to {binding.guest}: seen running while the lease advanced")
            case TaintNode(mark):
                api(lambda: cluster.taint(node, mark))
                return Step(ok=True, text="tainted node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
            case ClearPods(pods):
                return self._clear(observation, pods)
            case UntaintNode(cordon):
                api(lambda: cluster.untaint(node, cordon))
                kept = "kept cordoned for a moment" if cordon else "left cordoned, as it was"
                return Step(ok=True, text=f"out-of-service taint taken off; {kept}")
            case CordonNode(cordon):
                api(lambda: cluster.cordon(node, cordon))
                return Step(ok=True, text="cordoned, to be drained")
            case EvictPods(pods, grace_s):
                self.evict(pods, grace_s)
                return Step(ok=True, text="asked for their eviction")
            case Uncordon():
                api(lambda: cluster.uncordon(node))
                return Step(ok=True, text="uncordoned")
            case ForgetMark():
                api(lambda: cluster.forget_mark(node))
                return Step(ok=True, text="mark of an older fence taken off: the node has booted anew")
            case StopGuest() | DiscardSaved() | ShutdownGuest() | StartGuest():
                return self._do_power(observation, action)
            case DeleteAttachments(attachments):
                for attachment in attachments:
                    api(partial(cluster.delete_attachment, attachment))
                volumes = ", ".join(attachment.volume for attachment in attachments)
                return Step(ok=True, text=f"deleted the attachments that the deleted node left: {volumes}")
            case Alarm(text):
                return Step(ok=True, text=text)
            case _:
                assert_never(action)

    def _do_power(
        self, observation: Observation, action: StopGuest | DiscardSaved | ShutdownGuest | StartGuest
    ) -> Step:
        guest = action.guest
        match action:
            case StopGuest(incarnation=incarnation):
                return self._stop(observation, guest, incarnation)
            case DiscardSaved():
                self._power(guest, "discard")
                return Step(ok=True, text=f"threw the saved memory of {guest} away")
            case ShutdownGuest():
                self._power(guest, "shutdown")
                self._remember_asking(observation)
                return Step(ok=True, text=f"asked {guest} to shut down")
            case StartGuest():
                self._observer.memory.started.add(observation.incident)
                self._power(guest, "start")
                self._remember_asking(observation)
                return Step(ok=True, text=f"started {guest}")
            case _:
                assert_never(action)

    def evict(
        self, pods: Sequence[PodView], grace_s: float | None = None
    ) -> list[tuple[PodView, Answer | FencerError]]:
        """Ask for the eviction of pods, and return what each was answered.

        Args:
            pods: Which.
            grace_s: How long each may take to end; None: as long as its own spec says.
        """
        evictor = self._world.evictor
        assert evictor is not None  # noqa: S101 - whoever drains has one
        return self._in_lanes(pods, lambda pod: evictor.evict(pod, grace_s), EVICTION_DEADLINE_S)

    def _clear(self, observation: Observation, pods: Sequence[PodView]) -> Step:
        """Clear a batch of pods."""
        why = (
            f"fencer: {observation.candidates[0].guest} is proven off" if observation.candidates else "fencer"
        )
        cluster, deadline_s = self._world.cluster, self._policy.call_deadline_s
        return _told(self._in_lanes(pods, lambda pod: cluster.clear(pod, why), deadline_s))

    def _in_lanes(
        self, pods: Sequence[PodView], call: Callable[[PodView], T], deadline_s: float
    ) -> list[tuple[PodView, T | FencerError]]:
        """Make one call a pod in bounded parallel: several lanes, each on a worker of its own.

        Args:
            pods: The pods.
            call: What to do with each.
            deadline_s: How long one call may take.
        """
        lanes = [pods[start :: self._policy.clear_parallel] for start in range(self._policy.clear_parallel)]
        calls = {f"{API}/{n}": _lane(lane, call) for n, lane in enumerate(lanes) if lane}
        deadline_s *= max(len(lane) for lane in lanes)
        results: list[tuple[PodView, T | FencerError]] = []
        for lane, answer in zip(
            filter(None, lanes),
            self._world.asker.ask_all(calls, deadline_s, patient=True).values(),
            strict=True,
        ):
            if isinstance(answer, FencerError):
                results.extend((pod, answer) for pod in lane)
            else:
                results.extend(zip(lane, answer, strict=True))
        return results

    def _stop(self, observation: Observation, guest: GuestRef, incarnation: str | None) -> Step:
        """Claim the incident, read the guest once more, cut its power, and read what became of it."""
        node, cluster, incident = observation.node, self._world.cluster, observation.incident
        self._observer.api(lambda: cluster.claim(node, incident, observation.by))
        port = self._world.hypervisors[guest.endpoint]
        deadline_s = self._policy.call_deadline_s
        before = self._world.asker.ask(guest.endpoint, lambda: port.read(guest), deadline_s)
        expected = observation.evidence.power_state if observation.evidence else None
        if before.incarnation != incarnation or before.power_state is not expected:
            return Step(ok=False, text=f"{guest} changed before it was stopped: {before.raw}")
        self._observer.memory.last_stop_s = began_s = self._world.clock.now_s()
        said = ""
        try:
            self._power(guest, "stop")
        except HypervisorError as error:
            # libvirt's destroy may raise and yet have killed: only the state counts.
            said = f" (its answer was: {error})"
        took_s = self._world.clock.now_s() - began_s
        killed = self._observer.memory.killed
        killed[guest.key] = killed.get(guest.key, False) or took_s >= KILLED_AFTER_S
        after = self._world.asker.ask(guest.endpoint, lambda: port.read(guest), deadline_s)
        off = after.power_state in OFF
        did = f"stopped {guest}" if off else f"tried to stop {guest}"
        return Step(ok=off, text=f"{did}; it reads {after.power_state} now: {after.raw}{said}")

    def _remember_asking(self, observation: Observation) -> None:
        node = observation.node
        self._observer.memory.asked[node.uid, node.boot_id] = self._world.clock.now_s()

    def _power(self, guest: GuestRef, verb: str) -> None:
        port = self._world.hypervisors[guest.endpoint]
        calls = {
            "stop": port.stop,
            "shutdown": port.shutdown,
            "start": port.start,
            "discard": port.discard,
        }
        self._world.asker.ask(guest.endpoint, lambda: calls[verb](guest), self._policy.stop_deadline_s)


def _lane(pods: Sequence[PodView], call: Callable[[PodView], T]) -> Callable[[], list[T | FencerError]]:
    def call_each() -> list[T | FencerError]:
        results: list[T | FencerError] = []
        for pod in pods:
            try:
                results.append(call(pod))
            except ClusterError as error:
                results.append(error)
        return results

    return call_each


def _told(results: Sequence[tuple[PodView, Cleared | FencerError]]) -> Step:
    """Say what became of a batch of pods. It failed where the request of every pod did.

    That a pod changed meanwhile is no failure: the taint eviction controller marks the same pods in the same
    moment, and the next step looks again at once. Nor is it one that a finalizer holds what has failed.
    """
    gone = [str(pod) for pod, result in results if isinstance(result, Cleared) and result.gone]
    changed = [str(pod) for pod, result in results if isinstance(result, ClusterConflict)]
    held = [
        f"{pod}: {result.note}" for pod, result in results if isinstance(result, Cleared) and not result.gone
    ]
    failed = [
        f"{pod}: {result}"
        for pod, result in results
        if isinstance(result, FencerError) and not isinstance(result, ClusterConflict)
    ]
    parts = [f"{len(gone)} of {len(results)} pods cleared: {', '.join(gone) or 'none'}", *held]
    if changed:
        parts.append(f"changed meanwhile, looking again: {', '.join(changed)}")
    return Step(ok=len(failed) < len(results), text="; ".join([*parts, *failed]))
