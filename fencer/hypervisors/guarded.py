"""`Guarded`: between somebody else's adapter and fencer; it accepts only what an adapter may say.

A stranger's mistake may cost a fence, but never data. So anything that cannot be understood counts as an
error, which is UNKNOWN: a foreign exception, an impossible value, an answer about another guest. A guard
cannot know whether an adapter tells the truth; the contract tests that (`fencer.contract`).
`fencer.runtime.workers` deals with late answers.
"""

from __future__ import annotations

import logging
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path

from fencer.core.model import Evidence, GuestRef
from fencer.core.text import printable
from fencer.errors import (
    GuestChanged,
    GuestNotFound,
    HypervisorDenied,
    HypervisorProtocol,
    HypervisorUnreachable,
)
from fencer.hints import Hints
from fencer.hypervisors import plausible
from fencer.hypervisors.plausible import Implausible, words
from fencer.hypervisors.repeated import Repeated
from fencer.ports import Deadline, EndpointInfo, Hypervisor, StopSettings

ERRORS = (HypervisorUnreachable, HypervisorDenied, GuestNotFound, GuestChanged, HypervisorProtocol)
ASIDE_S = 2.0
"""How long fencer waits for a call that nothing depends on."""
NUDGE_S = 0.2
"""And if a hypervisor's hook waits for fencer."""

MOST_GUESTS = 100_000
"""More than any endpoint has: a longer list may never end."""

log = logging.getLogger(__name__)


class Guarded:
    """Somebody else's adapter behind a guard. Implements `fencer.ports.Hypervisor`.

    Args:
        endpoint: The endpoint's name in the configuration, whatever the adapter calls it.
        adapter: The adapter to guard.
        now_s: The agent's monotonic clock.
        one_host: Whether the configuration says that the endpoint is one host.
    """

    def __init__(
        self, endpoint: str, adapter: Hypervisor, now_s: Callable[[], float], *, one_host: bool = False
    ) -> None:
        self._endpoint = endpoint
        self._one_host = one_host
        self._adapter = adapter
        self._now_s = now_s
        self._attended: frozenset[GuestRef] = frozenset()
        self._repeated = Repeated()

    @property
    def endpoint(self) -> str:
        """The endpoint's name in the configuration."""
        return self._endpoint

    def describe(self) -> EndpointInfo:
        """Ask the adapter; raises as the port."""
        with self._translated("describe"):
            info: object = self._adapter.describe()
            return plausible.info(info)

    def sweep(self) -> Sequence[Evidence]:
        """Ask the adapter; raises as the port.

        A statement that cannot be accepted makes only its own guest UNKNOWN, if it names it. Otherwise the
        whole sweep is refused: it is not known which guest it was about.
        """
        began_s = self._now_s()
        with self._translated("sweep"):
            answer: Iterable[object] = self._adapter.sweep()
            told = list(islice(answer, MOST_GUESTS + 1))
            if len(told) > MOST_GUESTS:
                raise Implausible(f"it reports more than {MOST_GUESTS} guests, and may never end")
            taken = [self._taken_from_sweep(one, began_s) for one in told]
        self._repeated.forget_if_over(len(told))
        times = Counter(one.guest.key for one in taken)
        return [
            one if times[one.guest.key] == 1 else _unknown(one.guest, "reported more than once", began_s)
            for one in {one.guest.key: one for one in taken}.values()
        ]

    def read(self, guest: GuestRef) -> Evidence:
        """Ask the adapter; raises as the port."""
        began_s = self._now_s()
        with self._translated("read"):
            statement: object = self._adapter.read(guest)
            evidence = plausible.evidence(statement, self._endpoint, one_host=self._one_host)
            if evidence.guest.key != guest.key:
                raise Implausible(f"asked for {guest.key}, it answered about {evidence.guest.key}")
        return _dated(evidence, began_s)

    def stop_settings(self, guest: GuestRef) -> StopSettings | None:
        """Ask the adapter; raises as the port."""
        with self._translated("stop_settings"):
            settings: object = self._adapter.stop_settings(guest)
            return plausible.stop_settings(settings)

    def shutdown(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Have the adapter ask the guest to shut down; raises as the port."""
        with self._ordered("shutdown", guest, not_after):
            self._adapter.shutdown(guest, incarnation, not_after)

    def stop(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Have the adapter cut the guest's power; raises as the port."""
        with self._ordered("stop", guest, not_after):
            self._adapter.stop(guest, incarnation, not_after)

    def discard(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Have the adapter throw saved memory away; raises as the port."""
        with self._ordered("discard", guest, not_after):
            self._adapter.discard(guest, incarnation, not_after)

    def start(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        """Have the adapter power the guest on; raises as the port."""
        with self._ordered("start", guest, not_after):
            self._adapter.start(guest, incarnation, not_after)

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Let the adapter report events. They are hints: none does no harm, and neither do too many."""
        hints = Hints(wake, self._now_s)
        self._aside("subscribe", lambda: self._adapter.subscribe(hints))

    def nudge(self, guest: str) -> None:
        """Pass a hook's hint on."""
        self._aside("nudge", lambda: self._adapter.nudge(guest), NUDGE_S)

    def attend(self, guests: Collection[GuestRef]) -> None:
        """Tell the adapter which of its guests are nodes, whenever others are."""
        attended = frozenset(guest for guest in guests if guest.endpoint == self._endpoint)
        if attended != self._attended:
            self._attended = attended
            self._aside("attend", lambda: self._adapter.attend(attended), NUDGE_S)

    def close(self) -> None:
        """Have the adapter close what it holds, and go on if it does not return."""
        self._aside("close", self._adapter.close)

    @contextmanager
    def _translated(self, call: str) -> Iterator[None]:
        """Turn any exception of an adapter into one that the port names, with the endpoint's name in it.

        Raises:
            HypervisorError: as the port; `HypervisorProtocol` for what the port does not name.
        """
        try:
            yield
        except ERRORS as error:
            said = words(error)
            kind = next(kind for kind in ERRORS if isinstance(error, kind))
            raise kind(said if self._endpoint in said else f"{self._endpoint}: {said}") from error
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # an async client's CancelledError is no Exception
            said = words(error) if isinstance(error, Implausible) else with_place(error)
            raise HypervisorProtocol(
                f"{self._endpoint}: its adapter gave an answer that cannot be understood ({call}): {said}"
            ) from error

    @contextmanager
    def _ordered(self, call: str, guest: GuestRef, not_after: Deadline) -> Iterator[None]:
        """Translate, and let nothing begin too late, whether the adapter checks that or not."""
        not_after.refuse_if_over(f"{call} {printable(str(guest))}")
        with self._translated(call):
            yield

    def _taken_from_sweep(self, statement: object, began_s: float) -> Evidence:
        if (repeated := self._repeated.take(statement, began_s)) is not None:
            return repeated
        try:
            said = plausible.evidence(statement, self._endpoint, one_host=self._one_host)
        except Implausible as error:
            guest = plausible.named(statement, self._endpoint)
            if guest is None:
                raise HypervisorProtocol(
                    f"{self._endpoint}: its adapter gave an answer that cannot be understood (sweep), about "
                    f"nobody that could be named: {printable(str(error))}"
                ) from error
            return _unknown(guest, str(error), began_s)
        taken = _dated(said, began_s)
        self._repeated.note(said, taken)
        return taken

    def _aside(self, name: str, call: Callable[[], None], wait_s: float = ASIDE_S) -> None:
        """Make a call that nothing depends on, in a new thread: it may fail, or never return."""

        def run() -> None:
            try:
                call()
            except BaseException as error:  # noqa: BLE001 - nothing depends on it
                said = with_place(error)
                log.warning("endpoint=%s the adapter's %s failed: %s", self._endpoint, name, said)

        thread = threading.Thread(target=run, name=f"fencer-{self._endpoint}-{name}", daemon=True)
        thread.start()
        thread.join(wait_s)


def with_place(error: BaseException) -> str:
    """Say what was raised, and in which line: its author has to look there."""
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    where = f" ({'/'.join(Path(frames[-1].filename).parts[-2:])}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {words(error)}{printable(where)}"


def _dated(evidence: Evidence, began_s: float) -> Evidence:
    """Return evidence that is no younger than its call, and whose words fit on a line."""
    return replace(
        evidence,
        observed_at_s=min(evidence.observed_at_s, began_s),
        raw=printable(evidence.raw),
        source=printable(evidence.source),
        told=printable(evidence.told),
        stuck=printable(evidence.stuck),
    )


def _unknown(guest: GuestRef, why: str, began_s: float) -> Evidence:
    raw = printable(f"its adapter gave an answer that cannot be understood: {why}")
    return Evidence.unknown(guest, raw, "sweep", began_s)
