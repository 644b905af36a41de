"""`Repeated`: statements that only say again what was checked before need not be checked again.

Most guests are as they were in the last sweep. What is compared are the values that were checked, never the
objects that hold them: an adapter can change even frozen ones. And no value runs code of its own when it is
compared: it is the very same object, or of the same plain type. Whatever else it is, it is checked in full.
"""

from __future__ import annotations

from dataclasses import fields, replace
from operator import attrgetter

from fencer.core.model import Evidence, GuestRef
from fencer.hypervisors.plausible import LARGEST

_said = attrgetter(
    *(f"guest.{part.name}" for part in fields(GuestRef)),
    *(part.name for part in fields(Evidence) if part.name not in {"guest", "observed_at_s"}),
)


class Repeated:
    """Knows what each guest's last accepted statement said, and as what it was taken."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[object, ...], Evidence]] = {}

    def take(self, statement: object, began_s: float) -> Evidence | None:
        """Return as what a statement was taken before, with its new date; None: it has to be checked.

        Args:
            statement: What an adapter said.
            began_s: When its call began, on the agent's monotonic clock: it is no younger.
        """
        if type(statement) is not Evidence or type(statement.guest) is not GuestRef:
            return None
        guest, at_s = statement.guest, statement.observed_at_s
        if type(guest.id) is not str or type(at_s) is not float or not at_s >= -LARGEST:
            return None
        known = self._known.get(guest.id)
        if known is None or not all(map(_same, _said(statement), known[0])):
            return None
        return replace(known[1], guest=guest, observed_at_s=min(at_s, began_s))

    def note(self, said: Evidence, taken: Evidence) -> None:
        """Remember a statement that was checked, and as what it is taken."""
        self._known[said.guest.id] = _said(said), taken

    def forget_if_over(self, guests: int) -> None:
        """Forget all if it knows more than there are."""
        if len(self._known) > guests:
            self._known.clear()


def _same(value: object, checked: object) -> bool:
    """Whether a value says what one says that was checked."""
    if value is checked:
        return True
    if type(value) is str:
        return type(checked) is str and value == checked
    if type(value) is tuple or type(value) is frozenset:
        return all(type(one) is str for one in value) and value == checked
    return False
