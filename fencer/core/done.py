"""The result of an action, as values; and the one place where it is put into words.

Nobody parses these words: code that wants to know more looks at the value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from fencer.core.model import GuestRef, PowerState, Proof
from fencer.core.text import count
from fencer.core.wire import wire


@wire("text ok changed unanswered", name="Happened")
@dataclass(frozen=True, slots=True)
class Happened:
    """A result that one sentence tells.

    Attributes:
        text: The sentence.
        ok: It was done, as far as its call tells.
        changed: It was not, because somebody changed the object meanwhile: worth another look at once.
        unanswered: No answer came: it may be done, or be done yet.
    """

    text: str
    ok: bool = True
    changed: bool = False
    unanswered: bool = False

    def __str__(self) -> str:
        """Return the sentence."""
        return self.text


@wire("gone held changed failed", name="PodsCleared")
@dataclass(frozen=True, slots=True)
class PodsCleared:
    """What became of a batch of pods. Pods are named as kubectl names them.

    Attributes:
        gone: Those that are gone.
        held: Those that have failed and are deleted, and what holds the object.
        changed: Those that somebody changed meanwhile: they are looked at again.
        failed: Those that could not be cleared, and why.
    """

    gone: tuple[str, ...] = ()
    held: dict[str, str] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many pods it was about."""
        return len(self.gone) + len(self.held) + len(self.changed) + len(self.failed)

    @property
    def ok(self) -> bool:
        """Whether anything was done.

        That a pod changed meanwhile is no failure: the taint eviction controller marks the same pods in the
        same moment, and the next step looks again at once. A finalizer that holds a failed pod is no failure
        either.
        """
        return len(self.failed) < self.count

    @property
    def cleared(self) -> str:
        """How many are gone, and which."""
        names = f": {', '.join(self.gone)}" if self.gone else ""
        return f"{len(self.gone)} of {self.count}{names}"

    @property
    def only_changed(self) -> bool:
        """Whether nothing came of it but that all of them have to be looked at again."""
        return len(self.changed) == self.count

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of each that is not gone."""
        many = count(len(self.changed), "pod")
        again = f"{many} changed meanwhile, looking again: {', '.join(self.changed)}"
        return (
            *(f"{pod}: {why}" for pod, why in self.held.items()),
            *((again,) if self.changed else ()),
            *(f"{pod}: {why}" for pod, why in self.failed.items()),
        )

    def __str__(self) -> str:
        """Tell all of it in a line."""
        number, *names = self.cleared.split(": ", 1)
        cleared = () if self.only_changed else (": ".join((f"{number} pods cleared", *names)),)
        return "; ".join((*cleared, *self.notes))


@wire("power_state proof off_s pods volumes ok", name="Tainted")
@dataclass(frozen=True, slots=True)
class Tainted:
    """That a node was tainted, and what the fence began with.

    Attributes:
        power_state: What the guest read.
        proof: Why that counts.
        off_s: For how long this agent had seen the guest like that; None: it did not see its end.
        pods: How many pods there were to clear.
        volumes: How many volumes were to be released.
    """

    power_state: PowerState
    proof: Proof
    off_s: float | None
    pods: int
    volumes: int
    ok: bool = True

    def __str__(self) -> str:
        """Tell it as kubectl writes taints."""
        return "tainted node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"


@wire("guest power_state raw ok error sent", name="GuestStopped")
@dataclass(frozen=True, slots=True)
class GuestStopped:
    """What became of a guest whose power was to be cut.

    Attributes:
        guest: Whom.
        power_state: What it reads afterwards.
        raw: The same in its hypervisor's words.
        ok: It is gone.
        error: What the order was answered; empty: nothing. It may have failed, and the guest be off.
        sent: The order was sent. It is not sent if the guest is in another run than the order is for.
    """

    guest: GuestRef
    power_state: PowerState
    raw: str
    ok: bool
    error: str = ""
    sent: bool = True

    def __str__(self) -> str:
        """Tell it in a sentence."""
        if not self.sent:
            return f"did not stop it: {self.error}. It reads {self.power_state} now: {self.raw}"
        did = "stopped" if self.ok else "tried to stop"
        said = f" (its answer was: {self.error})" if self.error else ""
        return f"{did} {self.guest}; it reads {self.power_state} now: {self.raw}{said}"


Done: TypeAlias = Happened | PodsCleared | Tainted | GuestStopped
