"""People told without asking, while the agent runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fencer.cli.wire import Parts, Wiring
from fencer.config.settings import usual_source
from fencer.ports import Election, Viewer

if TYPE_CHECKING:
    from fencer.notify.message import Message

log = logging.getLogger(__name__)

CLOSING_S = 2.0
"""How long the end of an agent may wait for its last messages."""


@contextmanager
def notified(wiring: Wiring, parts: Parts, election: Election | None = None) -> Iterator[tuple[Viewer, ...]]:
    """Give what is shown every pass, so that people are told; it ends with this.

    Args:
        wiring: Builds the receivers.
        parts: The working parts, with the configuration.
        election: What this agent is to each hypervisor; None: it tells everything.
    """
    settings = parts.config.notify
    if not settings.receivers:
        yield ()
        return
    from fencer.notify.outbox import Outbox  # noqa: PLC0415 - not everybody has receivers
    from fencer.notify.teller import Others, Teller  # noqa: PLC0415 - as above
    from fencer.notify.told import Told  # noqa: PLC0415 - as above

    source = settings.source or usual_source(parts.path, wiring.host())
    receivers = [(wiring.receiver(one, source, settings.page_url), one.on) for one in settings.receivers]
    told = Told(settings.told_file, wiring.wall) if settings.told_file is not None else None
    outbox = Outbox(receivers, told, time.monotonic)
    standing = told.past.standing if told is not None else ()

    def heard(message: Message, holder: str) -> None:
        log.info("%s: kept: %s tells", message.title, holder)
        outbox.heard(message, holder)

    teller = Teller(
        outbox.put,
        str(parts.path.absolute()),
        parts.clock.now_s,
        wiring.wall,
        standing,
        settings.remind_s,
        Others(election.tenure if election else None, tuple(parts.hypervisors), heard),
    )
    log.info("told without asking: %s", ", ".join(one.name for one in settings.receivers))
    try:
        yield (teller,)
    finally:
        outbox.close(CLOSING_S)
