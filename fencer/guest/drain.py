"""Drains this node: cordon, evict in parallel, wait until pods and volumes are gone, within a time limit."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Callable

from fencer.evicting.answers import Reply
from fencer.evicting.evacuation import Evacuation
from fencer.evicting.lots import Filters, Lot, lot
from fencer.guest.api import in_background
from fencer.guest.errors import DONE, REFUSED, Denied, GuestError, Overtaken, Unreachable, Unsure
from fencer.guest.node import ASK_WITHIN_S, MANAGER, Listed, NodeClient
from fencer.guest.notes import AGENT, DRAIN, Cordon, OwnNode
from fencer.guest.pods import Pod
from fencer.guest.rules import cordon_is_ours, cordon_passes

Say = Callable[[str], None]

PROBE_S = 10.0
"""The longest that an API server without an answer delays the shutdown."""
TIMEOUT_S = 120.0
"""With the rest of a shutdown it fits into the 180 s that Proxmox waits when a host goes down."""
PARALLEL = 10
LOOK_EVERY_S = 1.0
VOLUMES_WITHIN_S = 30.0
"""The kubelet reports every 10 s what it has unmounted; otherwise other nodes get the volume only after six
minutes.

Source: kubernetes pkg/controller/volume/attachdetach/attach_detach_controller.go, DefaultTimerConfig."""
_AGAIN_S = 1.0
"""Between two tries to reach the API server."""
STAYING_NAMES = {
    Lot.MIRROR: "static",
    Lot.DAEMON: "of DaemonSets",
    Lot.FINISHED: "finished",
    Lot.UNMANAGED: "without a controller (--force evicts them, for good)",
    Lot.LOCAL_DATA: "with an emptyDir (--delete-emptydir-data evicts them)",
}


@dataclass(frozen=True)
class Plan:
    """How to drain.

    Attributes:
        boot_id: This boot's id: the note on the cordon carries it, and the Node must have it.
        filters: Which pods are left alone.
        timeout_s: For all of it.
        probe_s: For the API server to answer at all.
        began_s: When that time began, by the monotonic clock; None: with the drain.
        start: When this system was started, from `system.started`; empty: not known.
        shutdown: The machine is going down; otherwise a person drains, and decides about the cordon.
    """

    boot_id: str
    filters: Filters
    timeout_s: float = TIMEOUT_S
    probe_s: float = PROBE_S
    began_s: float | None = None
    start: str = ""
    shutdown: bool = False


def drain(client: NodeClient, plan: Plan, say: Say) -> int:
    """Drain the node; return the exit code. What happens is said, one line each.

    If that fails, the cordon stays: a machine that goes down takes no new pods. A person who drains is told
    how to take it off.
    """
    now_s = time.monotonic()
    began_s = now_s if plan.began_s is None else plan.began_s
    deadline_s = began_s + plan.timeout_s
    by_hand = ""
    try:
        ours = _cordon(client, plan, min(deadline_s, now_s + plan.probe_s), say)
        if ours and not plan.shutdown:
            by_hand = f"; {client.name} stays cordoned: `kubectl uncordon {client.name}` undoes that"
        work = _Drain(client, plan.filters, deadline_s, say)
        left = work.run()
    except GuestError as error:
        say(f"not drained: {error}{by_hand}")
        return error.code
    took = f"{time.monotonic() - began_s:.0f} s"
    for pod, why in left:
        say(f"still here: {pod}: {why}")
    gone = f"{_count(len(work.pods.evictions.gone), 'pod')} gone"
    if left:
        say(f"gave up after {took}: {gone}, {len(left)} still here{_returned(work.pods)}{by_hand}")
        return REFUSED
    if work.uncordoned:
        say(f"not drained after {took}: {gone}, and {client.name} was uncordoned meanwhile, by somebody else")
        return REFUSED
    say(f"drained in {took}: {gone}{_returned(work.pods)}{by_hand}")
    return DONE


def _returned(pods: Evacuation[Pod]) -> str:
    number = len(pods.returned)
    return f"; {number} {'comes' if number == 1 else 'come'} back" if number else ""


def _cordon(client: NodeClient, plan: Plan, deadline_s: float, say: Say) -> bool:
    """Cordon the node, unless somebody has; without an answer, ask again until the deadline.

    Returns:
        Whether the cordon is this drain's.
    """
    utc = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    note = Cordon(DRAIN, plan.boot_id, utc, plan.start, plan.shutdown)
    may = ""
    while True:
        try:
            return _try_to_cordon(client, note, deadline_s, say)
        except (Unreachable, Overtaken) as error:
            if isinstance(error, Unsure) and not plan.shutdown:
                may = f"; {client.name} may be cordoned: `kubectl uncordon {client.name}` undoes that"
            if time.monotonic() + _AGAIN_S > deadline_s:
                raise Unreachable(
                    f"no answer from the API server within {plan.probe_s:g} s: {error}{may}"
                ) from error
        time.sleep(_AGAIN_S)


def _try_to_cordon(client: NodeClient, note: Cordon, deadline_s: float, say: Say) -> bool:
    """Try once; return whether the cordon is this drain's.

    Raises:
        Unreachable: no answer; `Unsure`: none after the cordon was asked for.
        Overtaken: the node has changed meanwhile.
        Denied: refused.
    """
    node = client.read(max(deadline_s - time.monotonic(), _AGAIN_S))
    _refuse_another(node, note.boot_id)
    if node.unschedulable and node.cordon == note:  # it was done, and the answer was lost
        say(f"{node.name} cordoned")
    elif cordon_is_ours(node, MANAGER) and not note.shutdown:
        # Otherwise an earlier drain's uncordon after boot would end a person's drain.
        client.cordon(node, note)
        say(f"{node.name} is cordoned already, by an earlier drain in this guest: this drain takes it over")
    elif cordon_passes(node):
        client.cordon(node, note)
        say(f"{node.name} is cordoned already, by fencer, for a while: this drain takes it over")
    elif node.unschedulable:
        say(f"{node.name} is cordoned already, {_whose(node)}: that stays as it is")
        return False
    else:  # a note without a cordon is left over, even if it cannot be read
        client.cordon(node, note)
        say(f"{node.name} cordoned")
    return True


def _refuse_another(node: OwnNode, boot_id: str) -> None:
    """Refuse to drain for a machine that is not that node: a clone has the same credentials."""
    if node.boot_id != boot_id:
        raise Denied(
            f"node {node.name} runs boot {node.boot_id or '(none)'}, this machine boot {boot_id}: "
            "the kubelet has not reported yet, or another machine is that node"
        )


def _whose(node: OwnNode) -> str:
    """Say who cordoned last: the note stays when somebody uncordons and cordons again."""
    if not node.recorded and isinstance(node.cordon, Cordon):
        return "by fencer, as its note says"  # C9
    return "by fencer" if node.cordoner in (MANAGER, AGENT) else "by somebody else"


class _Drain:
    """One drain under way: this thread decides, others talk to the API server; a queue is between them.

    Attributes:
        pods: The pods that it moves, and its progress.
        uncordoned: Somebody has uncordoned the node: pods come to it again.
    """

    def __init__(self, client: NodeClient, filters: Filters, deadline_s: float, say: Say) -> None:
        self._client = client
        self._filters = replace(filters, spare=True)  # the machine goes down anyway
        self._deadline_s = deadline_s
        self._say = say
        self.pods: Evacuation[Pod] = Evacuation(self._filters)
        self.uncordoned = False
        self._events: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._asking = 0
        self._looking = False
        self._next_look_s = 0.0
        self._told = False
        self._named: set[str] = set()
        self._trouble = ""
        self._mounted: tuple[str, ...] | None = None
        self._unread = "no time was left"
        self._volumes_deadline_s: float | None = None

    def run(self) -> list[tuple[Pod, str]]:
        """Evict until nothing is left, or the time is up; return what is left and why.

        Raises:
            Unreachable: the pods could never be listed.
            Denied: the pods may not be listed.
        """
        while time.monotonic() < self._deadline_s:
            if self.pods.evictions.done and self._unmounted():
                break
            if self.pods.evictions.hopeless and not self._asking:
                break
            self._start_what_is_due()
            try:
                self._events.get(timeout=self._until_next_s())()
            except Empty:
                continue
        if not self._told:
            raise Unreachable(f"the pods could not be listed: {self._trouble or 'no answer'}")
        left = self.pods.evictions.left()
        if left and self._trouble:
            self._say(f"the last look at the pods failed: {self._trouble}")
        if self._mounted:
            self._say(f"the kubelet still reports volumes in use: {', '.join(self._mounted)}")
        elif self._mounted is None and not left:
            self._say(f"whether all volumes are unmounted is not known: {self._unread}")
        return left

    def _start_what_is_due(self) -> None:
        now_s = time.monotonic()
        if not self._looking and now_s >= self._next_look_s:
            self._looking = True
            self._in_background(self._client.pods, self._looked)
        for pod in self.pods.evictions.due(now_s)[: PARALLEL - self._asking]:
            self._asking += 1
            self.pods.evictions.asked(pod)
            self._in_background(
                partial(self._client.evict, pod),
                partial(self._answered, pod),
            )

    def _in_background(self, call: Callable[[], Any], then: Callable[[Any], None]) -> None:
        in_background(call, lambda answer: self._events.put(lambda: then(answer)))

    def _until_next_s(self) -> float:
        times = [self._deadline_s]
        if not self._looking:
            times.append(self._next_look_s)
        next_s = self.pods.evictions.next_s()
        if next_s is not None and self._asking < PARALLEL:
            times.append(next_s)
        return max(min(times) - time.monotonic(), 0.0)

    def _looked(self, look: Listed | GuestError) -> None:
        self._looking = False
        self._next_look_s = time.monotonic() + LOOK_EVERY_S
        if isinstance(look, Denied):
            raise look
        if isinstance(look, GuestError):
            self._trouble = str(look)
            return
        self._trouble = ""
        if not self._told:
            self.pods = Evacuation(self._filters, look.utc)
        came_back = self.pods.saw(look.pods)
        if not self._told:
            self._told = True
            self._say(self._overview())
        for pod, why in came_back:
            if str(pod) not in self._named:  # a StatefulSet's pod keeps its name
                self._say(f"comes back: {pod} {why}")
            self._named.add(str(pod))

    def _overview(self) -> str:
        counts = Counter(lot(pod, self._filters) for pod in self.pods.staying)
        staying = ", ".join(f"{counts[it]} {name}" for it, name in STAYING_NAMES.items() if counts[it])
        going = f"{_count(len(self.pods.going), 'pod')} to go"
        return going + (f"; these stay: {staying}" if staying else "")

    def _answered(self, pod: Pod, reply: Reply) -> None:
        self._asking -= 1
        if self.pods.evictions.answered(pod, reply, time.monotonic()):
            self._say(f"waiting for {pod}: {reply.text}")

    def _unmounted(self) -> bool:
        """Whether the kubelet has reported all volumes of evicted pods as unmounted, or had time to."""
        now_s = time.monotonic()
        if self._volumes_deadline_s is None:
            self._volumes_deadline_s = now_s + VOLUMES_WITHIN_S
        kept = sum(pod.claims for pod in self.pods.staying)
        try:
            node = self._client.read(min(2 * ASK_WITHIN_S, self._deadline_s - now_s))
        except GuestError as error:
            self._unread = str(error)
        else:
            self.uncordoned = not node.unschedulable
            self._mounted = node.volumes if len(node.volumes) > kept else ()
            if self.uncordoned or not self._mounted:
                return True
        return now_s >= self._volumes_deadline_s


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
