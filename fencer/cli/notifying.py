"""People told without asking, while the agent runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from fencer.cli.wire import Parts, Wiring
from fencer.config.settings import usual_source
from fencer.ports import Viewer

log = logging.getLogger(__name__)

CLOSING_S = 2.0
"""How long the end of an agent may wait for its last messages."""


@contextmanager
def notified(wiring: Wiring, parts: Parts) -> Iterator[tuple[Viewer, ...]]:
    """Give what is shown every pass, so that people are told; it ends with this.

    Args:
        wiring: Builds the receivers.
        parts: The working parts, with the configuration.
    """
    settings = parts.config.notify
    if not settings.receivers:
        yield ()
        return
    from fencer.notify.outbox import Outbox  # noqa: PLC0415 - not everybody has receivers
    from fencer.notify.teller import Teller  # noqa: PLC0415 - as above
    from fencer.notify.told import Told  # noqa: PLC0415 - as above

    source = settings.source or usual_source(parts.path, wiring.host())
    receivers = [(wiring.receiver(one, source, settings.page_url), one.on) for one in settings.receivers]
    told = Told(settings.told_file, wiring.wall) if settings.told_file is not None else None
    outbox = Outbox(receivers, told, time.monotonic)
    standing = told.past.standing if told is not None else ()
    teller = Teller(
        outbox.put, str(parts.path.absolute()), parts.clock.now_s, wiring.wall, standing, settings.remind_s
    )
    log.info("told without asking: %s", ", ".join(one.name for one in settings.receivers))
    try:
        yield (teller,)
    finally:
        outbox.close(CLOSING_S)
