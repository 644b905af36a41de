"""Sends messages: each receiver on a thread of its own, so that a slow or dead one delays nobody.

Whoever has something to tell only puts it into memory, and waits for no lock. A thread sorts it, and there it
stays until its receiver takes it, also over a restart: see `fencer.notify.told`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from fencer.core.text import count
from fencer.errors import ReceiverError
from fencer.notify.lane import Lane, Pace
from fencer.notify.message import Message
from fencer.notify.past import Past
from fencer.notify.receiver import Receiver
from fencer.notify.summary import matters
from fencer.notify.told import Told
from fencer.wording.occasions import Occasion

log = logging.getLogger(__name__)

MOST = 1000
"""So many incidents are kept at a time. Of more those go that matter least, and of these the oldest."""
FEWER = MOST * 9 // 10
"""So many are no longer too many, so that one incident more or less is not told again and again."""
LAST_S = 0.5
"""Of the patience at the end, what is left for keeping what was told."""


class Outbox:
    """Keeps what is to be told until each receiver was told.

    Args:
        receivers: Each with what it is told of.
        told: Keeps what was told over restarts; None: nobody does.
        now_s: A monotonic clock, of real time.
        pace: How fast.
    """

    def __init__(
        self,
        receivers: Sequence[tuple[Receiver, frozenset[Occasion]]],
        told: Told | None,
        now_s: Callable[[], float],
        pace: Pace | None = None,
    ) -> None:
        self._told, self._now_s = told, now_s
        self._arrived: SimpleQueue[tuple[Message, str] | None] = SimpleQueue()
        """What nobody has sorted yet, and the other agent that has told it; None: nothing follows."""
        self._lock = threading.Lock()
        self._closed = False
        past = told.past if told is not None else Past()
        self._incidents = dict(past.incidents)
        self._others = {key: name for key, name in past.others.items() if key in past.incidents}
        self._dropped, self._told_of_dropped = 0, False
        self._lanes = [
            _Serving(receiver, Lane(receiver.manner, on, pace or Pace()), threading.Condition(self._lock))
            for receiver, on in receivers
        ]
        for one in self._lanes:
            one.lane.remember(self._incidents, past.receivers.get(one.receiver.name), now_s())
        if told is not None:
            told.keeps(self._snapshot)
        for one in self._lanes:
            one.thread = threading.Thread(
                target=self._serve, args=(one,), name=f"fencer-notify-{one.receiver.name}", daemon=True
            )
            one.thread.start()
        self._sorter = threading.Thread(target=self._sort, name="fencer-notify", daemon=True)
        self._sorter.start()

    def put(self, message: Message) -> None:
        """Have a message sent to everybody who is told of such. Comes back at once: it takes no lock."""
        self._arrived.put((message, ""))

    def heard(self, message: Message, holder: str) -> None:
        """Take note that another agent has told this. Comes back at once, as `put`.

        Args:
            message: The message.
            holder: That agent, for people.
        """
        self._arrived.put((message, holder or "another agent"))

    def close(self, patience_s: float) -> None:
        """Send what waits, and keep what was told; for so long at most.

        What does not get there by then is sent by the next agent, if somebody keeps it.

        Args:
            patience_s: Seconds.
        """
        until_s = self._now_s() + patience_s
        self._arrived.put(None)
        self._sorter.join(max(0.0, patience_s - LAST_S))
        with self._lock:
            self._closed = True
            for one in self._lanes:
                one.changed.notify()
        for one in self._lanes:
            one.thread.join(max(0.0, until_s - LAST_S - self._now_s()))
        with self._lock:
            left = {one.receiver.name: len(one.lane.known().waiting) for one in self._lanes}
        kept = self._told is not None and self._told.close(max(LAST_S, until_s - self._now_s()))
        for name, number in left.items():
            if number:
                then = "the next agent sends them" if kept else "nobody keeps them"
                log.warning("%s for %s did not get there in time; %s", count(number, "message"), name, then)

    # -- On the threads ------------------------------------------------------------------------------------

    def _sort(self) -> None:
        while (arrived := self._arrived.get()) is not None:
            message, other = arrived
            with self._lock:
                self._incidents[message.key] = message
                for one in self._lanes:
                    if other:
                        self._others[message.key] = other
                        one.lane.heard(message)
                    else:
                        self._others.pop(message.key, None)
                        one.lane.offer(message, self._now_s())
                    one.changed.notify()
                self._forget_what_is_over(message.key)
                self._forget_what_is_too_much()
                dropped = self._news_of_dropped()
            self._keep()
            if dropped:
                log.log(*dropped)

    def _serve(self, one: _Serving) -> None:
        while messages := self._take(one):
            failure = None
            try:
                one.receiver.send(messages)
            except ReceiverError as error:
                failure = error
            except Exception as error:
                log.exception("%s: messages could not be sent: a bug in fencer", one.receiver.name)
                failure = ReceiverError(f"a bug in fencer: {type(error).__name__}")
            self._conclude(one, failure)

    def _take(self, one: _Serving) -> tuple[Message, ...]:
        """Wait until something is to be sent, and return it; empty: closed, and nothing is left to try."""
        lane = one.lane
        with one.changed:
            while not self._closed:
                due_s = lane.due_s(self._now_s())
                if due_s == 0.0 and (messages := lane.take(self._now_s())):
                    return messages
                if due_s != 0.0:
                    one.changed.wait(due_s)
            if one.tried_last or lane.asked or not lane.waiting:
                return ()
            return lane.take(self._now_s())

    def _conclude(self, one: _Serving, failure: ReceiverError | None) -> None:
        """Take note of what came of it; where it is news, log it, outside of the lock."""
        name, lane = one.receiver.name, one.lane
        with self._lock:
            keys = [*lane.sending]
            is_news = _noted(lane, failure, self._now_s())
            one.tried_last = self._closed and failure is not None and not failure.works
            late, waiting = lane.late, len(lane.waiting)
            if is_news and failure is None:
                lane.late = 0
            for key in keys:
                self._forget_what_is_over(key)
            dropped = self._news_of_dropped()
        self._keep()
        if dropped:
            log.log(*dropped)
        if not is_news:
            return
        if failure is None:
            log.info("%s is told again; %s late", name, _were(late))
        elif failure.works:
            log.warning("%s did not take a message: %s; it is tried again, others go out", name, failure)
        else:
            waits = f"{count(waiting, 'message')} {'waits' if waiting == 1 else 'wait'}"
            text = "%s is not told: %s; tried again until it is, %s. Fencing goes on"
            log.warning(text, name, failure, waits)

    def _keep(self) -> None:
        if self._told is not None:
            self._told.changed()

    # -- Under the lock ------------------------------------------------------------------------------------

    def _forget_what_is_over(self, key: str) -> None:
        """Forget an incident once everybody knows of its end."""
        message = self._incidents.get(key)
        if message is not None and message.over and not any(one.lane.has(key) for one in self._lanes):
            self._forget(key)

    def _forget_what_is_too_much(self) -> None:
        while len(self._incidents) > MOST:
            self._forget(max(self._incidents.values(), key=matters).key)  # the first of those: the oldest
            self._dropped += 1

    def _news_of_dropped(self) -> tuple[int, str] | None:
        """Return what to log: there are too many incidents, and all that came is sorted; or no longer."""
        incidents = count(self._dropped, "incident")
        if self._dropped and not self._told_of_dropped and self._arrived.empty():
            self._told_of_dropped = True
            text = f"there are more than {MOST:,} incidents: nobody is told of {incidents}, that matter least"
            return logging.WARNING, f"{text}. Fencing goes on"
        if self._told_of_dropped and len(self._incidents) <= FEWER:
            self._dropped, self._told_of_dropped = 0, False
            return logging.INFO, f"there are fewer incidents again; nobody was told of {incidents}"
        return None

    def _forget(self, key: str) -> None:
        del self._incidents[key]
        self._others.pop(key, None)
        for one in self._lanes:
            one.lane.forget(key)

    def _snapshot(self) -> Past:
        with self._lock:
            known = {one.receiver.name: one.lane.known() for one in self._lanes}
            return Past(dict(self._incidents), known, dict(self._others))


class _Serving:
    """A receiver, with its messages and its thread."""

    def __init__(self, receiver: Receiver, lane: Lane, changed: threading.Condition) -> None:
        self.receiver, self.lane, self.changed = receiver, lane, changed
        self.thread = threading.Thread()
        self.tried_last = False
        """It was closed, and failed after that."""


def _noted(lane: Lane, failure: ReceiverError | None, now_s: float) -> bool:
    """Let a lane take note of what came of a call; return whether that is news."""
    if failure is None:
        return lane.sent(now_s)
    return lane.refused(now_s) if failure.works else lane.failed(now_s, failure.retry_s)


def _were(number: int) -> str:
    return f"{count(number, 'message')} {'was' if number == 1 else 'were'}"
