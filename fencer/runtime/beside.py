"""What goes on beside the passes of an agent, on threads of its own: neither waits for the other."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

BUG_REST_S = 2.0
"""How long a step rests that has raised what nobody expected."""

log = logging.getLogger(__name__)


class Beside:
    """Runs steps on threads of their own, until it is closed.

    Args:
        steps: Each returns in how many seconds it is to be called again.
    """

    def __init__(self, steps: Sequence[Callable[[], float]]) -> None:
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(step,), name=f"fencer-beside-{number}", daemon=True)
            for number, step in enumerate(steps)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, step: Callable[[], float]) -> None:
        while not self._over.is_set():
            try:
                rest_s = step()
            except Exception:
                log.exception("a bug beside the passes; it goes on")
                rest_s = BUG_REST_S
            self._over.wait(rest_s)

    def close(self, patience_s: float) -> None:
        """Begin no step any more, and wait for those that go on, for so long at most."""
        self._over.set()
        for thread in self._threads:
            thread.join(patience_s)
