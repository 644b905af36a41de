"""Execute: carry out one action, and say what happened. This code does not ask whether it is right.

Every write is guarded by the version or UID that was observed, so that an action on outdated facts fails
instead of harming. An error after sending means "outcome unknown": the caller observes again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar, assert_never

from fencer.core import brake
from fencer.core.done import Done, GuestStopped, Happened, PodsCleared, Tainted
from fencer.core.doubt import WORDS, without_saved
from fencer.core.election import Seat
from fencer.core.holds import writes_notes
from fencer.core.kept import must_outlive, standing
from fencer.core.ledger import FRESH_S, Ledger, PowerOrder
from fencer.core.model import (
    Action,
    Alarm,
    Binding,
    BindNode,
    ClearPods,
    CordonNode,
    DeleteAttachments,
    DiscardSaved,
    Doubt,
    Doubted,
    EvictPods,
    Evidence,
    FenceMark,
    ForgetMark,
    GuestRef,
    Intent,
    Left,
    NodeView,
    Observation,
    OrderedRun,
    PodView,
    PowerState,
    Proof,
    RecordDoubts,
    ShutdownGuest,
    StartGuest,
    StopGuest,
    TaintNode,
    Uncordon,
    UntaintNode,
)
from fencer.core.pods import clearable, to_release
from fencer.core.policy import SEEMS_KILLED_S, Policy
from fencer.core.times import Moment
from fencer.errors import (
    ClusterConflict,
    ClusterError,
    ClusterTooLate,
    ClusterUnreachable,
    FencerError,
    GuestChanged,
    HypervisorDenied,
    HypervisorError,
)
from fencer.evicting.answers import Answer, grace_for
from fencer.ports import Cleared, Deadline
from fencer.runtime.shared import Shared
from fencer.runtime.world import API, World

T = TypeVar("T")

TRIES = 5
"""For a note that others' writes may conflict with."""

IN_MIND = ", only on this agent's disk"
"""Added to the text of a note that was not written on the Node."""

EVICTION_DEADLINE_S = 25.0
"""For one eviction: the API server itself may try for 10 s, and gets twice that."""

NOT_ITS_OWN = frozenset({Proof.OPERATOR, Proof.HOST_POWER})
"""Proof that is not the word of the VM's own hypervisor, which may not answer at all."""

LONGEST_ACTION_S = 70.0
"""No action takes longer: a batch of pods, four calls per lane; or a claim, two readings and an order."""


class Executor:
    """Carries out actions through the ports.

    Args:
        world: The ports.
        policy: Deadlines and parallelism.
        shared: What it shares with the observer.
    """

    def __init__(self, world: World, policy: Policy, shared: Shared) -> None:
        self._world = world
        self._policy = policy
        self._api, self._memory = shared.api, shared.memory
        self._notes, self._keeper, self._finder = shared.notes, shared.keeper, shared.finder
        self._ledger, self._names = shared.ledger, shared.names
        self._cordons = shared.cordons

    def carry_out(
        self, observation: Observation, action: Action, counts: Callable[[], None] = lambda: None
    ) -> Done:
        """Carry out one action on what was observed. Never raises: the result tells of a failure.

        Args:
            observation: What the action was decided on.
            action: What to do.
            counts: Called once the ledger tells of it, so that it counts for whoever is about to act next
                while it goes on.
        """
        if not isinstance(action, Alarm):
            self._world.recorder.intends(observation, action)
        try:
            return self._do(observation, action, counts)
        except ClusterTooLate as error:
            return Happened(f"too late, looking again: {error}", ok=False, changed=True)
        except ClusterConflict as error:
            return Happened(f"changed meanwhile, looking again: {error}", ok=False, changed=True)
        except FencerError as error:
            return Happened(str(error), ok=False, unanswered=isinstance(error, ClusterUnreachable))
        finally:
            self._api.worked(LONGEST_ACTION_S)

    def _do(self, observation: Observation, action: Action, counts: Callable[[], None]) -> Done:  # noqa: C901, PLR0911, PLR0912 - one row an action
        node, cluster, api = observation.node, self._world.cluster, self._api
        match action:
            case BindNode(binding):
                named = self._names.binding(binding)
                written = self._note(observation, action, lambda: cluster.bind(node, named))
                return _noted(observation, action, written=written)
            case RecordDoubts(doubts):
                listed = self._names.doubts(doubts)
                written = self._note(observation, action, lambda: cluster.record_doubts(node, listed))
                return _noted(observation, action, written=written)
            case TaintNode(mark):
                told = self._names.mark(mark)
                began_s = self._world.clock.now_s()
                self._reserve(observation)
                counts()
                if changed := self._reads_otherwise(observation, mark, began_s):
                    return Happened(f"not tainted: {changed}", ok=False, changed=True)
                self._in_time(lambda: cluster.taint(node, told), f"{node.name} is not tainted")
                return _tainted(observation, mark)
            case ClearPods(pods):
                return self._clear(observation, pods)
            case UntaintNode(cordon):
                if cordon:
                    self._cordons.set(node, cordon)
                self._while_fresh(observation, lambda: cluster.untaint(node, cordon))
                kept = "kept cordoned for a moment" if cordon else "left cordoned, as it was"
                return Happened(f"out-of-service taint taken off; {kept}")
            case CordonNode(cordon):
                self._cordons.set(node, cordon)
                api(lambda: cluster.cordon(node, cordon))
                return Happened("cordoned, to be drained")
            case Uncordon():
                self._while_fresh(observation, lambda: cluster.uncordon(node))
                return Happened("uncordoned")
            case ForgetMark():
                api(lambda: cluster.forget_mark(node))
                return Happened("mark of an older fence taken off: the node has booted again")
            case StopGuest() | DiscardSaved() | ShutdownGuest() | StartGuest():
                return self._do_power(observation, action, counts)
            case DeleteAttachments(attachments):
                for attachment in attachments:
                    self._while_fresh(observation, partial(cluster.delete_attachment, attachment))
                self._finder.attachments_changed()
                volumes = ", ".join(attachment.volume for attachment in attachments)
                return Happened(f"deleted the attachments that the deleted node left: {volumes}")
            case Alarm(text):
                return Happened(text)
            case _:
                assert_never(action)

    def note(self, observation: Observation, action: BindNode | RecordDoubts) -> Done | None:
        """Take a note while the API server does not answer; None: it was noted before."""
        before = self._notes.of(observation.node.uid)
        now = self._notes.note(observation.node, action, ends=False)
        return None if now == before else _noted(observation, action, written=False)

    def _note(
        self, observation: Observation, action: BindNode | RecordDoubts, write: Callable[[], None]
    ) -> bool:
        """Take a note, and write it on the Node, if it may be written there.

        Until it is there it counts all the same, and lies on this agent's disk.

        Returns:
            It was written.
        """
        node, writes = observation.node, writes_notes(observation, self._policy)
        note = self._notes.note(node, action, ends=not writes)
        if must_outlive(note):
            self._keeper.save_notes()
        if not writes:
            return False
        try:
            self._api(write)
        except ClusterError:
            self._notes.failed(node.uid)
            raise
        self._notes.written(node, action)
        if must_outlive(note):
            self._keeper.save_notes()  # or an agent that is killed now would find it there, and repeat it
        return True

    def _do_power(
        self,
        observation: Observation,
        action: StopGuest | DiscardSaved | ShutdownGuest | StartGuest,
        counts: Callable[[], None],
    ) -> Done:
        guest, port = action.guest, self._world.hypervisors[action.guest.endpoint]
        match action:
            case StopGuest():
                return self._stop(observation, action, counts)
            case DiscardSaved():
                return self._discard(observation, action, counts)
            case ShutdownGuest(incarnation=incarnation):
                with self._for_one_run(observation, action):
                    self._order(
                        guest, lambda until: port.shutdown(guest, incarnation, until), observation, ends=False
                    )
                self._remember_asking(observation)
                return Happened(f"asked {guest} to shut down")
            case StartGuest():
                return self._start(observation, action)
            case _:
                assert_never(action)

    def evict(self, action: EvictPods) -> list[tuple[PodView, Answer | FencerError]]:
        """Ask for the eviction of pods, and return each answer: a no is no failure."""
        evictor = self._world.evictor
        assert evictor is not None  # noqa: S101 - whoever drains has one
        return self._in_lanes(
            action.pods, lambda pod: evictor.evict(pod, grace_for(pod, action.grace_s)), EVICTION_DEADLINE_S
        )

    def _clear(self, observation: Observation, pods: Sequence[PodView]) -> Done:
        """Clear a batch of pods, until what was seen is too old: the rest needs another look (G9)."""
        why = (
            f"fencer: {observation.candidates[0].guest} is proven off" if observation.candidates else "fencer"
        )

        def clear(pod: PodView) -> Cleared | None:
            return None if self._too_late(observation) else self._world.cluster.clear(pod, why)

        answers = self._in_lanes(pods, clear, self._policy.call_deadline_s)
        results = [(pod, answer) for pod, answer in answers if answer is not None]
        if not results:
            return Happened(f"no pod is cleared: {self._too_late(observation)}", ok=False, changed=True)
        return _cleared(results)

    def _while_fresh(self, seen: Observation, write: Callable[[], None]) -> None:
        """Write to the cluster, unless what was seen is too old when that begins (G9).

        Raises:
            ClusterTooLate: it is. This agent may have stood still.
        """

        def begin() -> None:
            if late := self._too_late(seen):
                raise ClusterTooLate(late)
            write()

        self._api(begin)

    def _too_late(self, seen: Observation) -> str:
        """Say that what was seen of a node is too old to be acted on; empty: it is not."""
        passed_s, limit_s = self._world.clock.now_s() - seen.now_s, self._policy.evidence_max_age_s
        if passed_s <= limit_s:
            return ""
        seconds = f"{passed_s:.0f} s ago, and the limit is {limit_s:g} s"
        return f"{seen.node.name} was looked at {seconds}{self._api.slowness}"

    def _in_lanes(
        self, pods: Sequence[PodView], call: Callable[[PodView], T], deadline_s: float
    ) -> list[tuple[PodView, T | FencerError]]:
        """Make one call per pod in bounded parallel: several lanes, each on its own worker.

        Args:
            pods: The pods.
            call: What to do with each.
            deadline_s: How long one call may take.
        """
        width = min(self._policy.clear_parallel, len(pods))
        lanes = {f"{API}/{n}": pods[n::width] for n in range(width)}
        deadline_s *= max(map(len, lanes.values()), default=0)
        until = self._deadline(deadline_s)
        calls = {worker: _lane(lane, call, until) for worker, lane in lanes.items()}
        try:
            answers = self._world.asker.ask_all(calls, deadline_s, patient=True)
        finally:
            until.give_up()
        results: list[tuple[PodView, T | FencerError]] = []
        for worker, lane in lanes.items():
            answer = answers[worker]
            if isinstance(answer, FencerError):
                results.extend((pod, answer) for pod in lane)
            else:
                results.extend(zip(lane, answer, strict=True))
        return results

    def _stop(self, observation: Observation, action: StopGuest, counts: Callable[[], None]) -> Done:
        """Claim the incident, read the guest again, cut its power, and read the result.

        The power window is taken first, so that nobody else's stop has to wait for this one to be counted.
        """
        guest, incarnation, memory = action.guest, action.incarnation, self._memory
        give_back = self._take_window(observation, guest)
        counts()
        try:
            changed = self._claim(observation, action)
        except FencerError:
            give_back()
            raise
        if changed:
            give_back()
            return Happened(changed, ok=False)
        port, began_s = self._world.hypervisors[guest.endpoint], self._world.clock.now_s()
        said, sent, denied = "", True, False
        try:
            with self._for_one_run(observation, action):
                self._order(guest, lambda until: port.stop(guest, incarnation, until), observation)
        except HypervisorError as error:
            # libvirt's destroy may raise and yet have killed: only the state counts.
            said, sent = str(error), not isinstance(error, GuestChanged)
            denied = isinstance(
                error, HypervisorDenied
            )  # any other order may have been carried out, or may still be
        slow = self._world.clock.now_s() - began_s >= SEEMS_KILLED_S
        if sent:
            self._note_failure(guest, began_s, said or "it reads as before")
        after = self._read(guest)
        if sent and (slow or after.gone):  # else it may be another agent that ends it, and how is not known
            memory.killed[guest.key] = memory.killed.get(guest.key, False) or slow
        if after.gone:
            memory.stops_failed.pop(guest.key, None)
        elif denied or not sent:
            give_back()  # nothing was stopped: the next one need not wait
        if after.gone and not said and observation.intent is Intent.WATCH and after.incarnation is not None:
            self._note_left(observation, Left(after.incarnation))
        return GuestStopped(guest, after.power_state, after.raw, ok=after.gone, error=said, sent=sent)

    def _claim(self, observation: Observation, action: StopGuest) -> str:
        """Claim the incident, and read the guest again; return why it may not be stopped, or nothing."""
        node, cluster, incident = observation.node, self._world.cluster, observation.incident
        guest = action.guest
        self._api(lambda: cluster.claim(node, incident, observation.by))
        before = self._read(guest)
        seen = observation.evidence
        meant = seen and (action.incarnation, seen.power_state, seen.powered_off)
        if (before.incarnation, before.power_state, before.powered_off) != meant:
            return f"{guest} changed before it was stopped: {before.raw}"
        if not observation.candidates[0].still_admitted(before):
            return f"{guest}: the configuration does not admit power actions any more"
        return ""

    def _reads_otherwise(self, observation: Observation, mark: FenceMark, reserved_s: float) -> str:
        """Read the VM once more, right before its node is tainted; return what is not as it was, or nothing.

        What was counted and reserved since may have taken seconds (G9).

        Args:
            observation: What the fence was decided on.
            mark: What will be written.
            reserved_s: When a slot of the brake was about to be reserved.
        """
        first, changed = observation.evidence, ""
        if mark.proof not in NOT_ITS_OWN:
            try:
                now = self._read(mark.guest)
            except HypervisorError as error:
                return f"{mark.guest} cannot be read any more: {error}"
            if first is None or not now.confirms(first):
                changed = f"{mark.guest} reads otherwise by now: {now.raw}"
        if self._world.clock.now_s() - reserved_s > FRESH_S:
            return changed or f"its slot of the brake was reserved too long ago{self._api.slowness}"
        return changed

    def _read(self, guest: GuestRef) -> Evidence:
        """Read a VM live, just before or after an action on it."""
        port = self._world.hypervisors[guest.endpoint]
        return self._world.asker.ask(guest.endpoint, lambda: port.read(guest), self._policy.call_deadline_s)

    def _reserve(self, observation: Observation) -> None:
        """Reserve a slot of the brake, so that other agents count this fence before they can see it.

        Raises:
            ClusterConflict: others have used them up meanwhile.
            ClusterError: that could not be told.
        """
        fleet, node = observation.fleet, observation.node
        now = _moment(observation).later(self._world.clock.now_s() - observation.now_s)
        by_word = observation.word.over_brake_why is not None

        mine = brake.slots_for(node, observation.evidence)

        def fits(slot: str, ledger: Ledger) -> bool:
            slots = ledger.at(now).slots
            if slot in mine:
                return by_word or brake.fits(fleet, self._policy, node, observation.evidence, slots)
            return brake.fits(fleet, self._policy, replace(node, uid=slot), None, slots)

        self._ledger.reserve(mine, now, fits, self._memory.due)

    def _take_window(self, observation: Observation, guest: GuestRef) -> Callable[[], None]:
        """Note a power order before it is given: all agents wait for the window then.

        Returns:
            What lets the next one be as soon as if there had been none, unless one was since.

        Raises:
            ClusterConflict: another agent has just given one.
            ClusterError: that could not be told.
        """
        memory, window_s, now = self._memory, self._policy.power_window_s, _moment(observation)
        order = PowerOrder(now.latest_utc, observation.by, str(guest))
        known_s = observation.fleet.last_stop_age_s
        waits = known_s is None or known_s >= window_s  # else it was decided to go on all the same

        def fits(ledger: Ledger) -> bool:
            ago_s = self._ledger.power_age_on(ledger, now)
            return not waits or ago_s is None or ago_s >= window_s

        by_hand = observation.intent is not Intent.WATCH
        before = self._ledger.take_window(order, now, fits, by_hand=by_hand)
        last_s, memory.last_stop_s = memory.last_stop_s, (taken_s := self._world.clock.now_s())

        def give_back() -> None:
            if memory.last_stop_s == taken_s:
                memory.last_stop_s = last_s
            with suppress(ClusterError):  # then the next one waits
                self._ledger.give_back_window(order, before, now)

        return give_back

    def _start(self, observation: Observation, action: StartGuest) -> Done:
        """Power a guest on. If it was off by an agent's own stop and its start fails, try again later."""
        guest, port = action.guest, self._world.hypervisors[action.guest.endpoint]
        left = observation.node.left if observation.intent is Intent.WATCH else None
        if left is not None:
            left = replace(left, starts=left.starts + 1, started_utc=observation.latest_utc)
            self._api(lambda: self._note_claim(observation, observation.node, left))
        self._memory.ordered_runs.pop(observation.node.uid, None)  # what runs then is wanted
        try:
            self._order(
                guest, lambda until: port.start(guest, action.incarnation, until), observation, ends=False
            )
        except GuestChanged:
            raise
        except HypervisorError:
            if left is not None:
                self._note_failed_start(observation, guest, left)
            raise
        self._remember_asking(observation)
        return Happened(f"started {guest}")

    def _note_failed_start(self, observation: Observation, guest: GuestRef, left: Left) -> None:
        """Note how a start that has failed left the guest: one that is on record changes its incarnation."""
        with suppress(HypervisorError):
            after = self._read(guest)
            if after.power_state is PowerState.STOPPED and after.incarnation not in {None, left.incarnation}:
                self._note_left(observation, replace(left, incarnation=str(after.incarnation)))

    def _note_left(self, observation: Observation, left: Left) -> None:
        """Note on the Node how a guest was left. Without that nobody starts it again, which does no harm."""
        cluster, name = self._world.cluster, observation.node.name
        with suppress(ClusterError):
            for _ in range(TRIES):
                node = self._api(lambda: cluster.fact(name)).node
                if node.claim != observation.incident:
                    return  # another agent's since
                with suppress(ClusterConflict):
                    self._api(partial(self._note_claim, observation, node, left))
                    return

    def _note_claim(self, observation: Observation, node: NodeView, left: Left) -> None:
        self._world.cluster.claim(node, observation.incident, observation.by, left)

    def _discard(self, observation: Observation, action: DiscardSaved, counts: Callable[[], None]) -> Done:
        """Throw a guest's saved memory away: like a stop, it takes the window, and rests after a failure."""
        guest, memory, port = action.guest, self._memory, self._world.hypervisors[action.guest.endpoint]
        give_back, began_s = self._take_window(observation, guest), self._world.clock.now_s()
        counts()
        try:
            self._order(guest, lambda until: port.discard(guest, action.incarnation, until), observation)
        except HypervisorError as error:
            if isinstance(error, GuestChanged | HypervisorDenied):
                give_back()
            if not isinstance(error, GuestChanged):
                self._note_failure(guest, began_s, str(error), discard=True)
            raise
        memory.stops_failed.pop(guest.key, None)
        return self._discarded(observation, guest)

    def _note_failure(self, guest: GuestRef, tried_s: float, why: str, *, discard: bool = False) -> None:
        """Remember that this guest could not be stopped, or its saved memory not be thrown away."""
        failed = self._memory.stops_failed
        times = failed[guest.key][1] + 1 if guest.key in failed else 1
        failed[guest.key] = (tried_s, times, why, discard)

    def _discarded(self, observation: Observation, guest: GuestRef) -> Done:
        """Take note that we discarded this guest's saved memory: its off may be believed."""
        node, evidence, cluster = observation.node, observation.evidence, self._world.cluster
        for _ in range(TRIES):  # nobody else knows that it is gone: this has to be written
            if evidence is None or (left := without_saved(node, evidence)) == node.doubts:
                break
            try:
                self._api(partial(cluster.record_doubts, node, self._names.doubts(left)))
                break
            except ClusterConflict:
                node = self._names.read(self._api(partial(cluster.fact, node.name)).node)
        return Happened(f"threw the saved memory of {guest} away")

    def _order(
        self, guest: GuestRef, order: Callable[[Deadline], None], seen: Observation, *, ends: bool = True
    ) -> None:
        """Give a power order that cannot begin any more after it was given up here.

        Nor, if it ends a guest, once what was seen of the node is too old: this agent may have stood still,
        and the node may be heard again. Nor, in `watch`, once this agent's Lease may be another one's.
        """
        patience_s, clock = self._policy.stop_deadline_s, self._world.clock

        def may() -> bool:
            return clock.now_s() < self._lease_ends_s(guest, seen)

        until = Deadline(min(clock.now_s() + patience_s, self._lease_ends_s(guest, seen)), clock.now_s, may)

        def begin() -> None:
            passed_s, limit_s = clock.now_s() - seen.now_s, self._policy.evidence_max_age_s
            if ends and passed_s > limit_s:
                raise GuestChanged(
                    f"{guest}: too late: its node was looked at {passed_s:.0f} s ago, and may be alive again"
                    f". An order that ends a VM is given within {limit_s:g} s{self._api.slowness}"
                )
            if not may():
                raise GuestChanged(f"{guest}: too late: another agent may hold its hypervisor's Lease by now")
            order(until)

        try:
            self._world.asker.ask(guest.endpoint, begin, patience_s)
        finally:
            until.give_up()

    def _lease_ends_s(self, guest: GuestRef, seen: Observation) -> float:
        """Return until when this agent may give orders to a guest's hypervisor, by its own clock."""
        election = self._world.election
        if election is None or seen.intent is not Intent.WATCH:
            return float("inf")
        tenure = election.tenure(guest.endpoint)
        return tenure.until_s if tenure.seat is Seat.HOLDER else float("-inf")

    def _in_time(self, write: Callable[[], None], otherwise: str) -> None:
        """Write to the cluster, unless that was given up here before it began."""
        until = self._deadline(self._policy.call_deadline_s)

        def begin() -> None:
            if until.over:
                raise ClusterUnreachable(f"too late: {otherwise}")
            write()

        try:
            self._api(begin)
        finally:
            until.give_up()

    def _deadline(self, seconds: float) -> Deadline:
        return Deadline(self._world.clock.now_s() + seconds, self._world.clock.now_s)

    @contextmanager
    def _for_one_run(self, seen: Observation, order: StopGuest | ShutdownGuest) -> Iterator[None]:
        """Keep which run a person's first order is for, unless it was never sent (S12).

        Before it is sent: it may be carried out, and its answer lost.
        """
        runs, uid = self._memory.ordered_runs, seen.node.uid
        first = seen.intent is not Intent.WATCH and uid not in runs
        if first:
            runs[uid] = OrderedRun(order.guest, order.incarnation, seen.node.boot_id)
        try:
            yield
        except (GuestChanged, HypervisorDenied):
            if first:
                del runs[uid]
            raise

    def _remember_asking(self, observation: Observation) -> None:
        node = observation.node
        self._memory.asked[node.uid, node.boot_id] = self._world.clock.now_s()


def _moment(seen: Observation) -> Moment:
    return Moment(seen.earliest_utc, seen.latest_utc)


def _lane(
    pods: Sequence[PodView], call: Callable[[PodView], T], until: Deadline
) -> Callable[[], list[T | FencerError]]:
    def call_each() -> list[T | FencerError]:
        return [call_one(pod) for pod in pods]

    def call_one(pod: PodView) -> T | FencerError:
        if until.over:
            return ClusterUnreachable("too late: it was given up")
        try:
            return call(pod)
        except ClusterError as error:
            return error

    return call_each


def _cleared(results: Sequence[tuple[PodView, Cleared | FencerError]]) -> PodsCleared:
    gone, changed = [], []
    held, failed = {}, {}
    for pod, result in results:
        if isinstance(result, Cleared) and result.gone:
            gone.append(str(pod))
        elif isinstance(result, Cleared):
            held[str(pod)] = result.note
        elif isinstance(result, ClusterConflict):
            changed.append(str(pod))
        else:
            failed[str(pod)] = str(result)
    return PodsCleared(tuple(gone), held, tuple(changed), failed)


def _tainted(observation: Observation, mark: FenceMark) -> Tainted:
    """Return what a fence begins with; how long ago its guest ended is known only to who saw that."""
    history, evidence = observation.history, observation.evidence
    seen = history.run is not None and history.running_seen and mark.proof is not Proof.OPERATOR
    off_s = observation.now_s - history.run.since_s if history.run is not None and seen else None
    pods, volumes = clearable(observation.pods or ()), to_release(observation)
    state = evidence.power_state if evidence else PowerState.UNKNOWN  # then a person has spoken
    return Tainted(state, mark.proof, off_s, len(pods), len(volumes))


def _noted(seen: Observation, action: BindNode | RecordDoubts, *, written: bool) -> Done:
    """Say what was noted, and where."""
    if isinstance(action, RecordDoubts):
        noted = "noted on the Node" if written else f"noted{IN_MIND}"
        return Happened(_doubts_told(action.doubts, standing(seen.node, seen.note), noted))
    binding, note = action.binding, seen.note
    was = seen.node.binding if note is None or note.binding is None else note.instead_of
    moved = isinstance(was, Binding) and replace(was, guest=binding.guest) == binding
    why = "it runs there now" if moved else "seen running while the lease advanced"
    why = "as this agent noted before" if was is None and note is not None and note.binding else why
    return Happened(f"bound to {binding.guest}: {why}{'' if written else IN_MIND}")


def _doubts_told(doubts: Sequence[Doubt], before: Sequence[Doubt], noted: str) -> str:
    if not doubts:
        hibernated = any(doubt.kind is Doubted.HIBERNATED for doubt in before)
        back = "its kubelet is alive" if hibernated else "its VM is reported running"
        return f"{back} again: the distrust about this VM is over"
    newest = doubts[-1]
    endpoint = newest.guest.endpoint
    if newest.paired:
        return f"{noted}: {endpoint} was wrong about other VMs, too, so it is distrusted for all"
    if newest.boot_id:
        return f"{noted}: {endpoint} was wrong: the kubelet is alive in boot {newest.boot_id}"
    return f"{noted}: when {endpoint} reports its VM as off, that is distrusted: {WORDS[newest.kind]}"
