"""What one receiver was told, and what waits for it. Pure: no clock, no thread, no I/O.

Of each incident only the newest message waits: nobody wants to read how it came to that, once it is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fencer.notify.message import Message
from fencer.notify.receiver import Manner
from fencer.notify.summary import AT_ONCE, matters, portions, summary
from fencer.wording.occasions import Occasion


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast messages go out.

    Attributes:
        gather_s: The first message waits so long for others: nodes of one rack die together.
        retry_s: After the first failure; after each further one twice as long.
        longest_s: Up to this.
        longest_asked_s: A receiver that asks to be left alone is left alone up to this.
    """

    gather_s: float = 2.0
    retry_s: float = 5.0
    longest_s: float = 300.0
    longest_asked_s: float = 3600.0

    def pause_s(self, failures: int, asked_s: float | None) -> float:
        """Return how long to wait.

        Args:
            failures: How many there were in a row; 1 at least.
            asked_s: So long the receiver asks to be left alone; None: it does not say.
        """
        pause_s = min(self.retry_s * 2.0 ** min(failures - 1, 32), self.longest_s)
        return max(pause_s, min(asked_s or 0.0, self.longest_asked_s))


@dataclass(frozen=True, slots=True)
class Last:
    """The newest message of an incident that got there.

    Attributes:
        number: Which one.
        occasion: What the incident was then.
    """

    number: int
    occasion: Occasion


@dataclass(frozen=True, slots=True)
class Refused:
    """A receiver that works has refused a message.

    Attributes:
        times: In a row.
        until_s: Until then that message is not sent again; others are.
    """

    times: int
    until_s: float


@dataclass(frozen=True, slots=True)
class Known:
    """What has to be kept of a lane over a restart.

    Attributes:
        told: What the receiver knows, by incident.
        waiting: Incidents of which a message waits, and whether that is loud.
    """

    told: Mapping[str, Last] = field(default_factory=dict)
    waiting: Mapping[str, bool] = field(default_factory=dict)


@dataclass(slots=True)
class Lane:
    """One receiver's messages.

    Args:
        manner: What the receiver is like.
        on: What it is told of.
        pace: How fast.
    """

    manner: Manner
    on: frozenset[Occasion]
    pace: Pace
    waiting: dict[str, Message] = field(init=False, default_factory=dict)
    sending: dict[str, Message] = field(init=False, default_factory=dict)
    """What is on its way now."""
    told: dict[str, Last] = field(init=False, default_factory=dict)
    lost: int = field(init=False, default=0)
    """Messages that never went out: there were too many. The next summary counts them."""
    late: int = field(init=False, default=0)
    """Messages that waited because they, or their receiver, had failed."""
    failures: int = field(init=False, default=0)
    """In a row."""
    asked: bool = field(init=False, default=False)
    """The receiver asked to be left alone for now."""
    _failed: set[str] = field(init=False, default_factory=set)
    """Incidents whose message failed because the receiver did, and has not got there yet."""
    _refused: dict[str, Refused] = field(init=False, default_factory=dict)
    """Incidents whose message alone failed, and has not got there yet."""
    _counted: int = field(init=False, default=0)
    """So many of the lost ones are counted by what is on its way."""
    _outdated: set[str] = field(init=False, default_factory=set)
    """What is on its way, and not true any more: an incident is something else now."""
    _standing: dict[str, Message] = field(init=False, default_factory=dict)
    """What a receiver that forgets was told, and is still true."""
    _gathers_until_s: float = field(init=False, default=0.0)
    _paused_until_s: float = field(init=False, default=float("-inf"))
    _renews_at_s: float | None = field(init=False, default=None)

    def remember(self, incidents: Mapping[str, Message], known: Known | None, now_s: float) -> None:
        """Go on where an agent before this one has ended.

        Args:
            incidents: The newest message of each.
            known: What was kept of this receiver; None: it is new.
            now_s: A monotonic clock.
        """
        before = known or Known()
        self._gathers_until_s = now_s + self.pace.gather_s
        for key, message in incidents.items():
            if key in before.told:
                self.told[key] = before.told[key]
            if key in before.waiting:
                self.waiting[key] = replace(message, loud=before.waiting[key])
            elif not message.over and message.occasion in self.on:
                if key in before.told:
                    self._stands(key, message)
                else:
                    self.waiting[key] = replace(message, loud=True)
        self._renews_at_s = now_s if self._standing else None

    def offer(self, message: Message, now_s: float) -> None:
        """Let a message wait, if the receiver is told of such.

        Who was not told of a beginning is not told of the end. Who asked for no ends is told one, if the
        beginning did not get there before: it is the only message then. For who was told of something that
        is now something else, of which it is not told, it has ended with that.
        """
        key = message.key
        if key in self.told and not message.over and not self._is_told_of(message):
            message = replace(message, over=True, loud=True)
        if self._is_unwanted_end(message):
            self._knows_enough(key)
            return
        before = self.waiting.get(key)
        if message.over:
            wanted = key in self.told or before is not None or key in self.sending
        else:
            wanted = message.occasion in self.on
        if not wanted:
            self._forget_waiting(key)
            self._standing.pop(key, None)
            if key in self.sending:
                self._outdated.add(key)
            return
        if not message.over:
            self._outdated.discard(key)
        if message.loud or self.manner.replaces or self.has(key):
            if message.loud:  # something else than what was refused
                self._refused.pop(key, None)
            if not self.sending and self.waiting.keys() <= self._refused.keys():
                self._gathers_until_s = now_s + self.pace.gather_s
            self.waiting[key] = replace(message, loud=message.loud or (before is not None and before.loud))

    def heard(self, message: Message) -> None:
        """Take note that another agent has told this: what follows is told as if this one had."""
        key = message.key
        if message.over or not self._is_told_of(message) or key in self.sending:
            self._knows_enough(key)
        elif message.occasion in self.on:
            self._forget_waiting(key)
            self.told[key] = Last(message.number, message.occasion)

    def _is_told_of(self, message: Message) -> bool:
        """Whether it is told of this as it is; who wants no ends is not told in any other way."""
        return message.occasion in self.on or Occasion.BACK not in self.on

    def forget(self, key: str) -> None:
        """Forget an incident: there are too many."""
        self.lost += self.has(key)
        self.sending.pop(key, None)
        self._knows_enough(key)

    def _forget_waiting(self, key: str) -> None:
        self.waiting.pop(key, None)
        if key not in self.sending:
            self._failed.discard(key)
            self._refused.pop(key, None)

    def due_s(self, now_s: float) -> float | None:
        """Return in how many seconds something is to be sent; None: nothing is."""
        times = [] if self._renews_at_s is None else [self._renews_at_s]
        if self.waiting:
            first_s = min(self._refused_until_s(key) for key in self.waiting)
            times.append(max(self._gathers_until_s, first_s))
        return max(0.0, min(times) - now_s, self._paused_until_s - now_s) if times else None

    def _refused_until_s(self, key: str) -> float:
        refused = self._refused.get(key)
        return float("-inf") if refused is None else refused.until_s

    def take(self, now_s: float) -> tuple[Message, ...]:
        """Return what is to be sent now, in one call: `sent` or `failed` follows. Empty: nothing is.

        What matters most goes first. What was refused goes last, and never with anything new: of several at
        once one may have been the reason, and a part of the receiver may have them already.
        """
        if self._renews_at_s is not None and self._renews_at_s <= now_s:
            self.waiting = {**self._standing, **self.waiting}
            self._renews_at_s = None
        ready = [one for key, one in self.waiting.items() if self._refused_until_s(key) <= now_s]
        fresh = [one for one in ready if one.key not in self._refused]
        messages = fresh if fresh and self.manner.several else self._first(fresh or ready)
        self.sending = {one.key: self.waiting.pop(one.key) for one in messages}
        is_summary = len(messages) > 1 and not self.manner.several
        self._counted = self.lost if is_summary or not self.waiting else 0
        return (summary(messages, self.lost),) if is_summary else tuple(messages)

    def _first(self, messages: list[Message]) -> list[Message]:
        """Return what goes out next of what may."""
        if not messages:
            return []
        one_by_one = self.manner.each or self.manner.several or len(messages) <= AT_ONCE
        if one_by_one:  # one that makes a receiver fail keeps no other back
            return [min(messages, key=lambda one: (one.key in self._failed, matters(one)))]
        return portions(messages)[0]

    def _is_unwanted_end(self, message: Message) -> bool:
        return message.over and message.key in self.told and Occasion.BACK not in self.on

    def _knows_enough(self, key: str) -> None:
        """Forget an incident of which nothing is to be told any more."""
        self._forget_waiting(key)
        self.told.pop(key, None)
        self._standing.pop(key, None)

    def sent(self, now_s: float) -> bool:
        """Take note that what was taken got there; return whether all that had failed has got there now."""
        was_failing, was_refused = bool(self._failed), bool(self._refused)
        self.late += len(self.sending if was_failing else self.sending.keys() & self._refused.keys())
        self.lost -= self._counted
        self._failed -= self.sending.keys()
        for key in self.sending:
            self._refused.pop(key, None)
        for key, message in self.sending.items():
            if message.over:
                self.told.pop(key, None)
                self._standing.pop(key, None)
                continue
            self.told[key] = Last(message.number, message.occasion)
            if key not in self._outdated:
                self._stands(key, message)
            newer = self.waiting.get(key)  # came while this was on its way
            if newer is not None and self._is_unwanted_end(newer):
                self._knows_enough(key)
            elif newer is not None and not (newer.loud or self.manner.replaces):
                self._forget_waiting(key)
        self._outdated.clear()
        self.sending, self.failures, self.asked = {}, 0, False
        self._paused_until_s = float("-inf")
        self._renew_later(now_s)
        return (was_failing and not self._failed) or (was_refused and not self._refused)

    def refused(self, now_s: float) -> bool:
        """Take note that a receiver that works did not take what was taken; return whether that is news."""
        is_news = not self._refused
        keys = [key for key in self.sending if key not in self.waiting or not self.waiting[key].loud]
        self._return()
        self._failed.difference_update(keys)
        for key in keys:
            if key in self.waiting:
                times = self._refused[key].times + 1 if key in self._refused else 1
                self._refused[key] = Refused(times, now_s + self.pace.pause_s(times, None))
        self.failures, self.asked = 0, False
        self._paused_until_s = float("-inf")
        self._renew_later(now_s)
        return is_news

    def failed(self, now_s: float, asked_s: float | None) -> bool:
        """Take note that what was taken did not get there; return whether that is news.

        Args:
            now_s: A monotonic clock.
            asked_s: So long the receiver asks to be left alone.
        """
        is_news = not self._failed
        keys = [*self.sending]
        self._return()
        self._failed.update(key for key in keys if key in self.waiting)
        self.failures, self.asked = self.failures + 1, bool(asked_s)
        self._paused_until_s = now_s + self.pace.pause_s(self.failures, asked_s)
        self._renew_later(now_s)
        return is_news

    def _return(self) -> None:
        """Let what was taken wait again, or what is newer of it."""
        for key, message in self.sending.items():
            if key in self._outdated:
                if key not in self.told:  # it heard of no beginning, so of no end either
                    self._knows_enough(key)
                continue
            newer = self.waiting.get(key, message)
            self.waiting[key] = replace(newer, loud=newer.loud or message.loud)
        gone, self._outdated, self.sending = self._outdated - self.waiting.keys(), set(), {}
        for key in gone:
            self._forget_waiting(key)

    def _stands(self, key: str, message: Message) -> None:
        if self.manner.renew_s is not None:
            self._standing[key] = replace(message, loud=False)

    def _renew_later(self, now_s: float) -> None:
        if self.manner.renew_s is None or not self._standing:
            self._renews_at_s = None
        elif self._renews_at_s is None:
            self._renews_at_s = now_s + self.manner.renew_s

    def has(self, key: str) -> bool:
        """Whether a message of an incident waits, or is on its way."""
        return key in self.waiting or key in self.sending

    def known(self) -> Known:
        """Return what has to be kept over a restart. What is on its way may not get there."""
        waiting = {**self.sending, **self.waiting}
        for key in self._outdated - self.told.keys():
            waiting.pop(key, None)
        return Known(dict(self.told), {key: message.loud for key, message in waiting.items()})
