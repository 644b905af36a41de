"""Which incidents people know of: from what there is after each look to what is to be told now. Pure.

One message when an incident begins, one for each change that matters, one when it is over. What comes and
goes again and again is told more and more seldom: a node that flaps, or a kubelet that lies, must not wear
out whoever is told.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from fencer.core.starts import LOOP_S
from fencer.notify.cases import Case, Look
from fencer.notify.message import Message
from fencer.notify.settings import REMIND_S
from fencer.wording import notices
from fencer.wording.occasions import Occasion

CALM_S: dict[Occasion, float] = {
    Occasion.FENCED: 0.0,
    Occasion.ALARM: 60.0,
    Occasion.REFUSED: 60.0,
    Occasion.BLIND: 30.0,
}
"""So long all has to be well before an incident is over. A fence that was lifted is over at once."""

QUIET_S = 30.0
"""So long after a message nobody is told of details."""

RESTLESS_S = 6 * 3600.0
LONGEST_REST_S: dict[Occasion, float] = {Occasion.REFUSED: 1800.0, Occasion.BLIND: 300.0}
"""What has opened before within this time has to stand longer before it is told: twice as long each time, up
to this. An outage that lasts is told soon all the same: nothing is fenced meanwhile."""

MOST_REMEMBERED = 10_000
"""So many nodes and endpoints at most are remembered for that; then all are new."""


KEYS_KEPT = 1000
"""So many incidents that are over are known by their keys."""


@dataclass(slots=True)
class _Open:
    """An incident that goes on.

    Attributes:
        case: As it is now.
        since_s: Since when it has been of this occasion.
        began_s: When it began.
        began: The same, by the time of day.
        told: The newest message of it; None: people do not know of it yet.
        well_s: Since when all is well; None: it is not.
        told_s: When that was.
        loud_s: When people were last told something that they should look at.
        loops_until_s: Until then a crash loop goes on that an agent before this one saw: this one counts its
            starts from the first again.
    """

    case: Case
    since_s: float
    began_s: float
    began: datetime
    told: Message | None = None
    well_s: float | None = None
    told_s: float = 0.0
    loud_s: float = 0.0
    loops_until_s: float = float("-inf")

    def loops_on(self, now_s: float, case: Case | None) -> bool:
        """Whether a crash loop goes on, as far as is known, although this is all there is of the node."""
        return now_s < self.loops_until_s and (case is None or case.occasion is Occasion.REFUSED)


@dataclass(slots=True)
class Book:
    """Keeps the incidents.

    Args:
        standing: The newest message of each incident that people were told of by an agent before this one.
        remind_s: While somebody does not answer, people are told again so often.
    """

    standing: Sequence[Message] = ()
    remind_s: float = REMIND_S
    _open: dict[str, _Open] = field(init=False, default_factory=dict)
    _opened_s: dict[tuple[str, Occasion], deque[float]] = field(init=False, default_factory=dict)
    _last: dict[str, int] = field(init=False, default_factory=dict)
    _first: bool = field(init=False, default=True)

    def look(self, found: Look, now_s: float, at: datetime) -> list[Message]:
        """Take in what there is, and return what is to be told now.

        Args:
            found: What there is.
            now_s: A monotonic clock.
            at: The time of day.
        """
        if self._first:
            self._first = False
            self._remember(now_s, at)
        self._rename(found)
        left = self._open.keys() - found.cases.keys()
        messages = (
            *(
                self._stands(ident, case, now_s, at)
                for ident, case in found.cases.items()
                if ident not in self._open or not self._open[ident].loops_on(now_s, case)
            ),
            *(self._gone(ident, found, now_s, at) for ident in sorted(left)),
        )
        return [message for message in messages if message is not None]

    def _remember(self, now_s: float, at: datetime) -> None:
        """Go on where an agent before this one has ended."""
        for message in self.standing:
            if message.over:
                continue
            case = Case(
                message.occasion,
                message.about,
                message.title,
                message.text,
                message.reason,
                message.guest,
                message.done,
            )
            began_s = now_s - max(0.0, (at - message.began).total_seconds())
            one = _Open(case, now_s, began_s, message.began, message, told_s=now_s, loud_s=now_s)
            if case.occasion is Occasion.ALARM and not case.reason:  # a crash loop: see `of_node`
                one.loops_until_s = now_s + LOOP_S
            self._open[message.key.rpartition("-")[0]] = one

    def _rename(self, found: Look) -> None:
        """Let what is known of a node go on under another id: it has booted, and is down again or still."""
        left = {one.case.subject: ident for ident, one in self._open.items() if ident not in found.cases}
        for ident, case in found.cases.items():
            if ident not in self._open and case.occasion is not Occasion.BLIND:
                before = left.pop(case.subject, None)
                if before is not None:
                    self._open[ident] = self._open.pop(before)

    def _stands(self, ident: str, case: Case, now_s: float, at: datetime) -> Message | None:
        one = self._open.get(ident)
        if one is None:
            one = _Open(case, now_s, now_s - case.for_s, at - timedelta(seconds=case.for_s))
            self._open[ident] = one
        if case.occasion is not one.case.occasion:
            one.since_s = now_s
        one.case, one.well_s = case, None
        if one.told is None or case.occasion is not one.told.occasion:
            if now_s - one.since_s < self._opens_s(case, now_s):
                return None
            self._note_opening(case, now_s)
            return self._tell(ident, one, now_s, at)
        worse = case.occasion is Occasion.ALARM and case.reason and not one.told.reason  # than a crash loop
        if worse or (case.done and not one.told.done):
            return self._tell(ident, one, now_s, at)
        if case.occasion is Occasion.BLIND and now_s - one.loud_s >= self.remind_s:
            one.case = replace(case, title=notices.still(case.title, now_s - one.began_s))
            return self._tell(ident, one, now_s, at)
        if case.reason != one.told.reason and now_s - one.told_s >= QUIET_S:
            return self._tell(ident, one, now_s, at, loud=False)
        return None

    def _gone(self, ident: str, found: Look, now_s: float, at: datetime) -> Message | None:
        """Take in that there is no such case any more: it may be over."""
        one = self._open[ident]
        if found.known is None or _may_go_on(one.case, found) or one.loops_on(now_s, None):
            one.well_s = None
            return None
        if one.told is None:
            del self._open[ident]
            return None
        one.well_s = now_s if one.well_s is None else one.well_s
        if now_s - one.well_s < CALM_S[one.case.occasion]:
            return None
        del self._open[ident]
        title, text = _over(one, found, at - timedelta(seconds=now_s - one.well_s))
        return replace(
            one.told, title=title, text=text, at=at, number=one.told.number + 1, over=True, loud=True
        )

    def _new_key(self, ident: str, began: int) -> str:
        """Return the key of an incident: not that of one that is over and began at the same time.

        A node may be excluded, and included again, in one and the same outage.
        """
        self._last[ident] = began = max(began, self._last.pop(ident, began - 1) + 1)
        if len(self._last) > KEYS_KEPT:
            del self._last[next(iter(self._last))]
        return f"{ident}-{began:x}"

    def _tell(self, ident: str, one: _Open, now_s: float, at: datetime, *, loud: bool = True) -> Message:
        case, before = one.case, one.told
        text = case.text
        if before is not None and before.occasion is Occasion.ALARM and case.occasion is not Occasion.ALARM:
            text = f"The alarm is over.\n{text}"
        key = before.key if before is not None else self._new_key(ident, int(one.began.timestamp()))
        number = before.number + 1 if before is not None else 1
        one.told = Message(
            key,
            case.occasion,
            case.about,
            case.title,
            text,
            case.reason,
            case.guest,
            one.began,
            at,
            number,
            done=case.done or (before is not None and before.done),
            loud=loud,
        )
        one.told_s, one.loud_s = now_s, now_s if loud else one.loud_s
        return one.told

    def _opens_s(self, case: Case, now_s: float) -> float:
        """Return how long a case has to stand before it is told."""
        if case.occasion in {Occasion.FENCED, Occasion.ALARM}:
            return case.opens_s
        times = self._opened_s.get((case.about, case.occasion), ())
        lately = sum(now_s - opened_s < RESTLESS_S for opened_s in times)
        return min(case.opens_s * float(2**lately), max(LONGEST_REST_S[case.occasion], case.opens_s))

    def _note_opening(self, case: Case, now_s: float) -> None:
        if len(self._opened_s) >= MOST_REMEMBERED:
            self._opened_s.clear()
        self._opened_s.setdefault((case.about, case.occasion), deque(maxlen=16)).append(now_s)


def _may_go_on(case: Case, found: Look) -> bool:
    """Whether nobody can say that it is over, although there is no such case any more."""
    missing = not found.whole and case.subject not in (found.known or ())
    fenced = case.occasion in {Occasion.FENCED, Occasion.ALARM} and case.about in found.tainted
    return missing or fenced or case.subject in found.unclear


def _over(one: _Open, found: Look, ended: datetime) -> tuple[str, str]:
    case = one.case
    title = notices.back(case.occasion, case.reason)
    if case.subject not in (found.known or ()):
        title = notices.GONE[case.occasion is Occasion.BLIND]
    elif case.about in found.excluded and case.occasion is not Occasion.BLIND:
        title = notices.EXCLUDED
    began = ended - timedelta(seconds=(one.well_s or one.began_s) - one.began_s)
    told = case.text.partition("\n")[0] if case.occasion is Occasion.FENCED else ""
    return notices.over(title, case.about, told, began, ended)
