"""An application of a Gotify server. It cannot replace a message: it gets only what is worth attention.

Source: github.com/gotify/server v3.0.0, model/message.go:CreateMessage and auth/authentication.go; extras:
gotify.net/docs/msgextras.
"""

from __future__ import annotations

from collections.abc import Sequence

from fencer.notify.hidden import read_secret
from fencer.notify.message import Message
from fencer.notify.post import Address, post
from fencer.notify.receiver import DEADLINE_S, Manner
from fencer.notify.settings import GotifySettings
from fencer.notify.texts import plain, subject
from fencer.wording.occasions import Occasion

_PRIORITY = {
    Occasion.FENCED: 7,
    Occasion.REFUSED: 8,
    Occasion.ALARM: 10,
    Occasion.BLIND: 8,
    Occasion.BACK: 4,
}
"""From 8 on a phone vibrates and shows it above all else, from 4 on it makes a sound, below it does not.

Source: github.com/gotify/android, README, "Message Priorities"."""
_TITLE_BYTES = 250
_TEXT_BYTES = 16 << 10


class Gotify:
    """Sends to one application.

    Args:
        settings: Which one.
        source: Which fencer.
        page_url: Opened by a tap; empty: nothing is.
        deadline_s: Seconds for all of it.
    """

    def __init__(
        self, settings: GotifySettings, source: str, page_url: str, deadline_s: float = DEADLINE_S
    ) -> None:
        self.name = settings.name
        self.manner = Manner()
        self._settings, self._source, self._page_url = settings, source, page_url
        self._deadline_s = deadline_s

    def send(self, messages: Sequence[Message]) -> None:
        """See `Receiver.send`."""
        settings = self._settings
        for message in messages:
            token = read_secret(settings.token_file)
            address = Address(
                f"{settings.server.rstrip('/')}/message", token, settings.ca_file, settings.token_file
            )
            post(address, self._document(message), {"X-Gotify-Key": token}, self._deadline_s)

    def _document(self, message: Message) -> dict[str, object]:
        extras: dict[str, object] = {"client::display": {"contentType": "text/plain"}}
        if self._page_url:
            extras["client::notification"] = {"click": {"url": self._page_url}}
        return {
            "title": subject(self._source, message.title, _TITLE_BYTES),
            "message": plain(message.text, _TEXT_BYTES) or "-",  # it wants one
            "priority": _PRIORITY[message.told_as],
            "extras": extras,
        }
