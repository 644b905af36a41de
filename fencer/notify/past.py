"""What was told, as it is kept over a restart, and as JSON. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from fencer.core.text import printable
from fencer.notify.lane import Known, Last
from fencer.notify.message import Message
from fencer.wording.occasions import Occasion

VERSION = 1
MAGIC = '{"fencer": "notified"'
"""How a file of ours begins."""
LONGEST_TEXT = 4000
"""Characters of one text."""
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9990, 1, 1, tzinfo=UTC)
"""No time of ours is outside of these, and within them any zone and any pause can be reckoned with."""

_KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ONE_LINE = ("about", "title", "reason", "guest")


@dataclass(frozen=True, slots=True)
class Past:
    """What was told, and what has to be.

    Attributes:
        incidents: The newest message of each incident that goes on, or of whose end somebody is not told.
        receivers: By name.
        others: The agent that has told the newest message, by incident, where it was another one.
    """

    incidents: Mapping[str, Message] = field(default_factory=dict)
    receivers: Mapping[str, Known] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)

    @property
    def standing(self) -> tuple[Message, ...]:
        """The newest message of each incident that goes on."""
        return tuple(one for one in self.incidents.values() if not one.over)


def pack(past: Past) -> str:
    """Return it as JSON."""
    receivers = {
        name: {
            "told": {key: [last.number, last.occasion] for key, last in known.told.items()},
            "waiting": dict(known.waiting),
        }
        for name, known in past.receivers.items()
    }
    incidents = [_packed(message) for message in past.incidents.values()]
    data = {"fencer": "notified", "version": VERSION, "incidents": incidents, "receivers": receivers}
    data["others"] = dict(past.others)
    return json.dumps(data) + "\n"


def unpack(text: str) -> Past:
    """Read it.

    Args:
        text: What `pack` has made, and perhaps others have changed.

    Raises:
        ValueError: it is something else; the text says what.
    """
    try:
        data = json.loads(text)
        if data["version"] != VERSION:
            raise ValueError(f"version {data['version']!r}, not {VERSION}")
        messages = [_unpacked(one) for one in data["incidents"]]
        receivers = {str(name): _known(one) for name, one in data["receivers"].items()}
        others = {_key(key): printable(_text(name)) for key, name in data.get("others", {}).items()}
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
    incidents = {message.key: message for message in messages}
    waited = {key for known in receivers.values() for key in known.waiting}
    return Past(
        {key: one for key, one in incidents.items() if not one.over or key in waited}, receivers, others
    )


def _packed(message: Message) -> dict[str, Any]:
    return {
        "key": message.key,
        "occasion": message.occasion,
        "about": message.about[:LONGEST_TEXT],
        "title": message.title[:LONGEST_TEXT],
        "reason": message.reason[:LONGEST_TEXT],
        "guest": message.guest[:LONGEST_TEXT],
        "text": message.text[:LONGEST_TEXT],
        "began": message.began.isoformat(),
        "at": message.at.isoformat(),
        "number": message.number,
        "done": message.done,
        "over": message.over,
        "loud": message.loud,
    }


def _unpacked(written: Any) -> Message:
    about, title, reason, guest = (printable(_text(written[name])) for name in _ONE_LINE)
    return Message(
        key=_key(written["key"]),
        occasion=Occasion(written["occasion"]),
        about=about,
        title=title,
        text="\n".join(printable(line) for line in _text(written["text"]).split("\n")),
        reason=reason,
        guest=guest,
        began=_moment(written["began"]),
        at=_moment(written["at"]),
        number=_number(written["number"]),
        done=_flag(written["done"]),
        over=_flag(written["over"]),
        loud=_flag(written["loud"]),
    )


def _known(written: Any) -> Known:
    told = {
        _key(key): Last(_number(number), Occasion(occasion))
        for key, (number, occasion) in written["told"].items()
    }
    return Known(told, {_key(key): _flag(loud) for key, loud in written["waiting"].items()})


def _key(value: Any) -> str:
    if not isinstance(value, str) or not _KEY.fullmatch(value):
        raise ValueError("an incident's key is none")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a text is none")
    return value[:LONGEST_TEXT]


def _moment(value: Any) -> datetime:
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError("a time has no zone")
    moment = moment.astimezone(UTC)
    if not EARLIEST <= moment <= LATEST:
        raise ValueError("a time is in no year that can be")
    return moment


def _number(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ValueError("a number is none")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("true or false is neither")
    return value
