"""An URL that takes JSON: docs/notifications.md has its fields.

A program reads it, so it gets everything, one message after the other: what is quiet, too, and no summaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from fencer.notify.hidden import bearer, parts_of, read_secret
from fencer.notify.message import Message
from fencer.notify.post import Address, post
from fencer.notify.receiver import DEADLINE_S, Manner
from fencer.notify.settings import WebhookSettings
from fencer.notify.texts import line, plain

VERSION = 1
"""Counts up when a field changes its meaning, or goes; not when there is one more."""

_LINE_BYTES = 1024
_TEXT_BYTES = 16 << 10


class Webhook:
    """Sends to one URL.

    Args:
        settings: Which one.
        source: Which fencer.
        deadline_s: Seconds for all of it.
    """

    def __init__(self, settings: WebhookSettings, source: str, deadline_s: float = DEADLINE_S) -> None:
        self.name = settings.name
        self.manner = Manner(replaces=True, each=True)
        self._settings, self._source = settings, source
        self._deadline_s = deadline_s

    def send(self, messages: Sequence[Message]) -> None:
        """See `Receiver.send`."""
        settings = self._settings
        token, headers = bearer(settings.token_file)
        url = read_secret(settings.url_file)
        address = Address(url, token, settings.ca_file, settings.token_file, parts_of(url))
        for message in messages:
            post(address, self._document(message), headers, self._deadline_s)

    def _document(self, message: Message) -> dict[str, object]:
        return {
            "version": VERSION,
            "source": line(self._source, _LINE_BYTES),
            "key": message.key,
            "number": message.number,
            "state": _state(message),
            "occasion": message.occasion.value,
            "loud": message.loud,
            "about": line(message.about, _LINE_BYTES),
            "guest": line(message.guest, _LINE_BYTES),
            "reason": message.reason,
            "title": line(message.title, _LINE_BYTES),
            "text": plain(message.text, _TEXT_BYTES),
            "began": _moment(message.began),
            "at": _moment(message.at),
        }


def _state(message: Message) -> str:
    if message.over:
        return "over"
    return "open" if message.number <= 1 else "update"


def _moment(when: datetime) -> str:
    return when.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
