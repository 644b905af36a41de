"""Which machines rest from sweeps, because they do not answer.

One that is not answered for once says nothing: VBoxManage itself stands still for some 10 s now and then,
whatever the machine does. Twice in a row, it is its process that hangs.
"""

from __future__ import annotations

import threading
from typing import Final

IN_A_ROW: Final = 2
"""After this many questions without an answer a machine is left alone."""


class Silence:
    """Counts unanswered askings, machine by machine. Safe from any thread.

    Args:
        rest_s: How long a machine rests.
    """

    def __init__(self, rest_s: float) -> None:
        self._rest_s = rest_s
        self._missed: dict[str, tuple[int, float]] = {}
        self._lock = threading.Lock()

    def answered(self, uuid: str) -> None:
        """Take note that it answered."""
        with self._lock:
            self._missed.pop(uuid, None)

    def missed(self, uuid: str, now_s: float) -> None:
        """Take note that it did not, while the endpoint itself did."""
        with self._lock:
            count, _ = self._missed.get(uuid, (0, now_s))
            self._missed[uuid] = (count + 1, now_s)

    def hangs(self, uuid: str) -> bool:
        """Whether it went on for so long that its process must hang."""
        return self._missed.get(uuid, (0, 0.0))[0] >= IN_A_ROW

    def rests_for_s(self, uuid: str, now_s: float) -> float | None:
        """Return how long ago it was asked in vain, if it rests now; None: it may be asked."""
        _, since_s = self._missed.get(uuid, (0, now_s))
        silent_s = now_s - since_s
        return silent_s if self.hangs(uuid) and silent_s < self._rest_s else None
