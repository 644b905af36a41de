"""Power orders as tests give them, and deadlines that are always, or never, kept."""

import math
from collections.abc import Callable

from fencer.core.model import GuestRef
from fencer.ports import Deadline

IN_TIME = Deadline(math.inf, lambda: 0.0)
TOO_LATE = Deadline(-math.inf, lambda: 0.0)


def order(
    method: Callable[[GuestRef, str | None, Deadline], None], guest: GuestRef, run: str | None = None
) -> None:
    """Give a power order in time, for whatever run the guest is in if none is named."""
    method(guest, run, IN_TIME)
