"""How long the processes of one call of the port may take together."""

from __future__ import annotations

import time

from fencer.errors import HypervisorUnreachable


class Budget:
    """Seconds that get less, counted from here.

    Args:
        endpoint: The endpoint's name, for people.
        total_s: For all processes together.
        each_s: For one of them.
    """

    def __init__(self, endpoint: str, total_s: float, each_s: float) -> None:
        self._endpoint = endpoint
        self._each_s = each_s
        self._until_s = time.monotonic() + total_s

    def next_s(self, most_s: float | None = None) -> float:
        """Return the seconds that the next process may take.

        Args:
            most_s: At most this many; None: as many as one of them may take.

        Raises:
            HypervisorUnreachable: none are left.
        """
        left_s = self.left_s()
        if left_s <= 0:
            raise HypervisorUnreachable(
                f"{self._endpoint}: no time was left to ask; other machines hang there"
            )
        return min(self._each_s if most_s is None else most_s, left_s)

    def left_s(self) -> float:
        """Return the seconds that are left; negative: it is over."""
        return self._until_s - time.monotonic()
