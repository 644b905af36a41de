"""What signals ask of the agent: to stop, or to begin again with the configuration as it is now."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from fencer.errors import ConfigError
from fencer.ports import Clock

log = logging.getLogger(__name__)


class Stop:
    """A flag that somebody asked us to stop, or to begin again.

    Args:
        usable: Raises a `ConfigError` if nothing could begin with the configuration as it is now.
    """

    def __init__(self, usable: Callable[[], None] = lambda: None) -> None:
        self._usable = usable
        self._asked = False
        self._renewal_asked = False
        self._renews = False

    def is_set(self) -> bool:
        """Whether they did; with a configuration that is wrong, nobody begins again."""
        if self._renewal_asked and not self._asked:
            self._renewal_asked = False
            self._renews = self._is_usable()
        return self._asked or self._renews

    @property
    def renews(self) -> bool:
        """Whether we are to begin again."""
        return self._renews and not self._asked

    def ask(self, _signal: int = 0, _frame: FrameType | None = None) -> None:
        """Remember it. Runs as a signal handler, so it takes no lock."""
        self._asked = True

    def ask_renewal(self, _signal: int = 0, _frame: FrameType | None = None) -> None:
        """Remember it; as `ask`."""
        self._renewal_asked = True

    def _is_usable(self) -> bool:
        try:
            self._usable()
        except ConfigError as error:
            log.warning("the configuration is not read again, the one from before stays in force: %s", error)
            return False
        log.info("told to read the configuration again: it is right")
        return True


@contextmanager
def until_signalled(clock: Clock, usable: Callable[[], None] | None = None) -> Iterator[Stop]:
    """Make SIGTERM and SIGINT set a flag and end the clock's wait; SIGHUP, where that is asked for, as well.

    The clock's wake-up takes a lock, which the interrupted code may hold; so it is not called by the handler
    but by a thread that reads the byte which Python writes for each signal.

    Args:
        clock: Whose wait.
        usable: See `Stop`; None: SIGHUP is left alone.
    """
    stop, (reader, writer) = Stop(usable or (lambda: None)), os.pipe()
    os.set_blocking(writer, False)
    handlers = {signal.SIGTERM: stop.ask, signal.SIGINT: stop.ask}
    if usable is not None:
        handlers[signal.SIGHUP] = stop.ask_renewal
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    if usable is not None:  # what came while we began is heard now
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    waker = threading.Thread(target=_wake_for_each, args=(reader, clock), name="fencer-signals", daemon=True)
    waker.start()
    try:
        yield stop
    finally:
        signal.set_wakeup_fd(-1)
        if stop.renews:
            # Whoever begins again hears it once the configuration was read: one that comes meanwhile waits.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
            del before[signal.SIGHUP]
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(writer)
        waker.join()


def _wake_for_each(reader: int, clock: Clock) -> None:
    with os.fdopen(reader, "rb", buffering=0) as signals:
        while signals.read(1):
            clock.wake()
