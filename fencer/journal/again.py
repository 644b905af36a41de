"""Recorded observations through today's rules: the same verdicts, or what is another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fencer.core.decide import decide
from fencer.core.model import Decision
from fencer.errors import JournalError
from fencer.journal.codec import policy_from
from fencer.journal.rows import UNKEPT, Entry, Kind
from fencer.wording.reports import action_word


@dataclass(frozen=True, slots=True)
class Again:
    """One decision, made again.

    Attributes:
        entry: As it was recorded.
        now: As it is today; None: it could not be made.
        why_not: Why not; empty: it could.
    """

    entry: Entry
    now: Decision | None
    why_not: str = ""

    @property
    def same(self) -> bool:
        """Whether verdict, reason and actions are the same."""
        return self.now is not None and all(
            self.entry.body.get(key) == value for key, value in outcome(self.now).items()
        )


def outcome(decision: Decision) -> dict[str, object]:
    """Return what makes two decisions the same, as rows have it."""
    return {
        "verdict": decision.verdict.value,
        "reason": decision.reason.value,
        "actions": [action_word(action, ok=True) for action in decision.actions],
    }


def policies(entries: Iterable[Entry]) -> Mapping[str, str]:
    """Return the policy of each session, as it was recorded."""
    return {one.session: str(one.body.get("policy", "")) for one in entries if one.kind is Kind.SESSION}


def again(entry: Entry, policy: str | None) -> Again:
    """Make one recorded decision again.

    Args:
        entry: Its row.
        policy: The policy of its session, as it was recorded; None: that is not kept any more.
    """
    try:
        seen = entry.seen
        if seen is None and UNKEPT in entry.body:
            return Again(entry, None, "what was known was too large to be kept")
        if seen is None:
            return Again(entry, None, "what was known is kept with another row")
        if policy is None:
            return Again(entry, None, "the policy of that time is not kept any more")
        return Again(entry, decide(seen, policy_from(policy)))
    except JournalError as error:
        return Again(entry, None, str(error))
