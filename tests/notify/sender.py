"""An outbox in a process of its own, which a test kills: it says what it does, and does what stdin says.

Usage: python -m tests.notify.sender FILE [hang]
"""

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from fencer.notify.lane import Pace
from fencer.notify.message import Message
from fencer.notify.outbox import Outbox
from fencer.notify.receiver import Manner
from fencer.notify.settings import ALL
from fencer.notify.told import Told
from fencer.notify.told_file import write
from tests.notify.boxes import message, over


class Loud:
    """A receiver that says what it got, and perhaps does not come back then."""

    name, manner = "loud", Manner()

    def __init__(self, *, hangs: bool) -> None:
        self._hangs = hangs

    def send(self, messages: Sequence[Message]) -> None:
        """Say it."""
        for one in messages:
            _say(f"sent {one.about} {one.number}")
        if self._hangs:
            time.sleep(3600)


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - to the test


def _written(path: Path, text: str) -> None:
    write(path, text)
    _say(f"kept {text.split('receivers')[1].strip()}")


def main() -> None:
    """Do what stdin says: ``open NODE``, ``over NODE``, ``close``."""
    told = Told(Path(sys.argv[1]), lambda: datetime.now(UTC), writes=_written)
    _say(f"standing {len(told.past.standing)}")
    outbox = Outbox([(Loud(hangs="hang" in sys.argv), ALL)], told, time.monotonic, Pace(gather_s=0.0))
    for line in sys.stdin:
        word, _, node = line.strip().partition(" ")
        match word:
            case "open":
                outbox.put(message(node))
            case "over":
                outbox.put(over(node))
            case "close":
                outbox.close(30.0)
                _say("closed")
                return


if __name__ == "__main__":
    main()
