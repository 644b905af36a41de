"""A topic of an ntfy server, as JSON.

Source: docs.ntfy.sh/publish, "Publish as JSON" and "Updating notifications"; ntfy v2.13,
server/server.go:transformBodyJSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from fencer.notify.hidden import bearer
from fencer.notify.message import Message
from fencer.notify.post import Address, post
from fencer.notify.receiver import DEADLINE_S, Manner
from fencer.notify.settings import NtfySettings
from fencer.notify.texts import plain, subject
from fencer.wording.occasions import Occasion

_PRIORITY = {
    Occasion.FENCED: 4,
    Occasion.REFUSED: 4,
    Occasion.ALARM: 5,
    Occasion.BLIND: 4,
    Occasion.BACK: 3,
}
"""5 goes on and on, and may pierce "do not disturb"; 4 vibrates for long; 3 is any message.

Source: docs.ntfy.sh/publish, "Message priority"."""
_QUIET = 2
"""No sound and no vibration, but still in the drawer. At 1 it would be hidden there, although it takes the
place of a message that was not."""

_SIGN = {
    Occasion.FENCED: "lock",
    Occasion.REFUSED: "no_entry",
    Occasion.ALARM: "rotating_light",
    Occasion.BLIND: "see_no_evil",
    Occasion.BACK: "white_check_mark",
}
"""Tags that are shown as a picture. Source: docs.ntfy.sh/emojis."""

_TITLE_BYTES = 250
"""Source: our choice; Firebase takes 4 KB for all of a message."""
_TEXT_BYTES = 3500
"""Source: ntfy's message-size-limit, 4,096 bytes. Longer texts become an attachment, or are refused. The JSON
may have twice as many, which escaped characters could reach: so it is measured as JSON."""


class Ntfy:
    """Sends to one topic.

    An older server than 2.16 ignores that a message takes another one's place. It shows in its answer: from
    then on no quiet messages are sent there, or each would be one more on somebody's phone.

    Args:
        settings: Which topic of which server.
        source: Which fencer.
        page_url: Opened by a tap; empty: nothing is.
        deadline_s: Seconds for all of it.
    """

    def __init__(
        self, settings: NtfySettings, source: str, page_url: str, deadline_s: float = DEADLINE_S
    ) -> None:
        self.name = settings.name
        self.manner = Manner(replaces=True)
        self._settings, self._source, self._page_url = settings, source, page_url
        self._deadline_s = deadline_s
        self._replaces = True

    def send(self, messages: Sequence[Message]) -> None:
        """See `Receiver.send`."""
        for message in messages:
            if message.loud or self._replaces:
                self._send(message)

    def _send(self, message: Message) -> None:
        settings = self._settings
        token, headers = bearer(settings.token_file)
        address = Address(
            f"{settings.server.rstrip('/')}/",
            token,
            settings.ca_file,
            settings.token_file,
            hidden=(settings.topic,),  # on a server that anybody may read it is all that is secret
        )
        answer = post(address, self._document(message), headers, self._deadline_s)
        self._replaces = _sequence(answer) == message.key

    def _document(self, message: Message) -> dict[str, object]:
        told_as = message.told_as
        document: dict[str, object] = {
            "topic": self._settings.topic,
            "title": subject(self._source, message.title, _TITLE_BYTES),
            "message": _fitting(message.text),
            "priority": _PRIORITY[told_as] if message.loud else _QUIET,
            "tags": [_SIGN[told_as], told_as.value],
            "sequence_id": message.key,
        }
        return document | ({"click": self._page_url} if self._page_url else {})


def _fitting(text: str) -> str:
    """Cut a text so that it is neither as such nor as JSON too long."""
    most = _TEXT_BYTES
    while len(json.dumps(fitting := plain(text, most), ensure_ascii=False).encode()) > _TEXT_BYTES:
        most = most * 9 // 10
    return fitting


def _sequence(answer: bytes) -> str | None:
    try:
        said: Any = json.loads(answer)
        return str(said["sequence_id"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
