"""Shows each pass to those who tell of it. What goes wrong there ends no agent, and costs no pass."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from fencer.ports import Sight, Viewer

log = logging.getLogger(__name__)


class Shown:
    """`Viewer` that shows everything to others. A bug in one of them is logged once, and costs it that pass.

    Args:
        viewers: The others.
    """

    def __init__(self, *viewers: Viewer) -> None:
        self._viewers = viewers
        self._told: set[str] = set()

    def passed(self, seen: Sight) -> None:
        """See `fencer.ports.Viewer.passed`."""
        for viewer in self._viewers:
            self._show(viewer, partial(viewer.passed, seen))

    def failed(self, why: str) -> None:
        """See `fencer.ports.Viewer.failed`."""
        for viewer in self._viewers:
            self._show(viewer, partial(viewer.failed, why))

    def _show(self, viewer: Viewer, show: Callable[[], None]) -> None:
        try:
            show()
        except Exception as error:
            kind = f"{type(viewer).__name__}: {type(error).__name__}"
            if kind not in self._told:
                self._told.add(kind)
                log.exception("%s: what a pass has left could not be told: a bug in fencer", kind)
