"""Readings of guests: by sweep for all, live for one; and what power witnesses add if a host is silent."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fencer.core.host_power import by_host_power
from fencer.core.model import (
    Candidate,
    Evidence,
    FenceMark,
    GuestHistory,
    GuestRef,
    NodeView,
)
from fencer.core.policy import Policy
from fencer.errors import FencerError, GuestNotFound, HypervisorError, HypervisorUnreachable
from fencer.runtime.memory import Scene
from fencer.runtime.witnesses import Witnesses
from fencer.runtime.world import World


@dataclass(frozen=True, slots=True)
class Late:
    """A guest whose last reading hung.

    Attributes:
        words: The error.
        tried_s: When that was given up.
    """

    words: str
    tried_s: float


class Reader:
    """Asks hypervisors, each on its own worker under a deadline.

    The deadline is that of any call, also where an endpoint could answer later (a Proxmox server waits 30 s
    for a host that hangs): an answer that comes later than `Policy.evidence_max_age_s` after it was asked for
    is too old to act upon, so waiting for it would only hold up the other nodes of the pass.

    It must not hold them up again and again either: readings of a guest that are too far apart do not add up,
    so a guest that hangs in every pass would keep every other from being proven off. Only its first reading
    gets the whole deadline. After that it is asked again with the patience of one poll, one such guest per
    pass, each in its turn.

    Args:
        world: The ports.
        policy: Deadlines.
    """

    def __init__(self, world: World, policy: Policy) -> None:
        self._world = world
        self._policy = policy
        self._witnesses = Witnesses(world.witnesses, world.clock, policy.evidence_max_age_s)
        self._late: dict[tuple[str, str, str], Late] = {}

    def sweep(
        self, beside: Mapping[str, Callable[[], Any]]
    ) -> tuple[dict[str, Sequence[Evidence] | FencerError], dict[str, Any]]:
        """Sweep every endpoint, and ask the power witnesses of hosts that are silent, all at once.

        Args:
            beside: What else is to be asked meanwhile, by worker.

        Returns:
            What each endpoint answered, and what those did.
        """
        deadline_s, world = self._policy.call_deadline_s, self._world
        sweeps = {name: port.sweep for name, port in world.hypervisors.items()}
        calls: dict[str, Callable[[], Any]] = {**self._witnesses.begin(), **sweeps, **beside}
        answers = world.asker.ask_all(calls, deadline_s)
        found = {name: answers.pop(name) for name in sweeps}
        others = {name: answers.pop(name) for name in beside}
        for answer in found.values():
            if not isinstance(answer, FencerError):
                self._witnesses.notice(answer)
        self._witnesses.notice_endpoints(self.lost(found))
        if questions := self._witnesses.questions():
            answers |= world.asker.ask_all(questions, deadline_s)
        self._witnesses.end(answers)
        return found, others

    def lost(self, sweeps: Mapping[str, object]) -> frozenset[str]:
        """Return the endpoint of one host that does not answer; none if others do not answer either.

        A guest may have left for another endpoint since it was last seen: that one would have to tell.
        """
        failed = {name for name, answer in sweeps.items() if isinstance(answer, FencerError)}
        silent = {name for name in failed if isinstance(sweeps[name], HypervisorUnreachable)}
        return frozenset(silent & self._world.one_host) if len(failed) == 1 else frozenset()

    def by_host_power(
        self, node: NodeView, evidence: Evidence | None, history: GuestHistory
    ) -> Evidence | None:
        """Combine a reading with what witnesses said about the power of a silent host."""
        if evidence is None or not evidence.host_silent:
            return evidence
        self._witnesses.notice((evidence,))
        return by_host_power(evidence, self._witnesses.reading(evidence), node, history)

    def _on_lost_host(self, scene: Scene, guest: GuestRef, at_s: float) -> Evidence | None:
        """Return what is known of a guest whose endpoint is one silent host with a witness."""
        if guest.endpoint not in scene.lost or not self._witnesses.watch(guest.endpoint, guest.host):
            return None
        silent = Evidence.unknown(guest, scene.errors[guest.endpoint], "no answer", at_s)
        return replace(silent, settled=True, host_silent=True)

    def read(self, scene: Scene, guest: GuestRef, within_s: float = math.inf) -> tuple[Evidence | None, str]:
        """Read one VM; "not found" is a reading too, for core to judge.

        Args:
            scene: Of this pass.
            guest: The VM.
            within_s: After how many seconds an answer would be of no use any more.
        """
        port = self._world.hypervisors.get(guest.endpoint)
        if port is None:
            return None, f"{guest.endpoint}: no such endpoint in the configuration"
        began_s = self._world.clock.now_s()
        lost = self._on_lost_host(scene, guest, began_s)
        if lost is not None:
            return lost, ""  # it was asked a moment ago, and to be waited for again would cost the pass
        late = self._late.get(guest.key)
        if late is not None and not self._turn(scene, late, began_s):
            return None, late.words
        deadline_s = min(within_s, self._policy.call_deadline_s if late is None else self._policy.poll_s)
        try:
            answer = self._world.asker.ask(guest.endpoint, lambda: port.read(guest), deadline_s)
        except GuestNotFound as error:
            answer = Evidence.absent(guest, str(error), "not found", began_s)
        except HypervisorError as error:
            now_s = self._world.clock.now_s()
            if late is not None or now_s - began_s >= self._policy.poll_s:
                self._late[guest.key] = Late(str(error), now_s)
            return None, str(error)
        self._late.pop(guest.key, None)
        return answer, ""

    def _turn(self, scene: Scene, late: Late, now_s: float) -> bool:
        """Whether to ask a guest again in this pass whose last reading hung."""
        if scene.waited or now_s - late.tried_s < 2 * self._policy.poll_s * len(self._late):
            return False
        scene.waited = True
        return True

    def from_afar(self, scene: Scene, candidates: tuple[Candidate, ...]) -> tuple[Evidence | None, str]:
        """Return the sweep's reading of the first candidate; or None, and why."""
        if not candidates:
            return None, "no guest"
        guest = candidates[0].guest
        if guest.key in scene.evidence:
            return scene.evidence[guest.key], ""
        if guest.endpoint in scene.errors:
            lost = self._on_lost_host(scene, guest, scene.now_s)
            return (lost and replace(lost, conclusive=False)), scene.errors[guest.endpoint]
        if guest.endpoint not in self._world.hypervisors:
            return None, f"{guest.endpoint}: no such endpoint in the configuration"
        return _not_listed(scene, guest), ""

    def fenced_from_afar(
        self, scene: Scene, node: NodeView, candidates: tuple[Candidate, ...]
    ) -> Evidence | None:
        """Return the reading from afar of the fenced guest, if another one is the node now."""
        guest = _replaced(node, candidates)
        if guest is None or guest.endpoint in scene.errors:
            return None
        found = scene.evidence.get(guest.key)
        return found or _not_listed(scene, guest)

    def read_fenced(self, scene: Scene, node: NodeView, candidates: tuple[Candidate, ...]) -> Evidence | None:
        """Read the fenced guest live, if another one is the node now."""
        guest = _replaced(node, candidates)
        return None if guest is None else self.read(scene, guest)[0]


def _replaced(node: NodeView, candidates: tuple[Candidate, ...]) -> GuestRef | None:
    """Return the fenced guest, if another one is the node now, or no known one."""
    if not isinstance(node.mark, FenceMark):
        return None
    same = bool(candidates) and candidates[0].guest.key == node.mark.guest.key
    return None if same else node.mark.guest


def _not_listed(scene: Scene, guest: GuestRef) -> Evidence:
    """Return the reading of a guest that a sweep does not list: it says no more than that."""
    absent = Evidence.absent(guest, f"{guest.endpoint} does not list it", "not found", scene.now_s)
    return replace(absent, conclusive=False)
