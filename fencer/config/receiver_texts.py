"""The kinds of text that `notify:` accepts, each with a check that says what is accepted."""

import re
from typing import Annotated, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator

from fencer.config.document import quoted

LONGEST_URL = 2000
"""Longer ones do not pass every proxy."""
LONGEST_SOURCE = 64

_TOPIC = re.compile(r"[-_A-Za-z0-9]{1,64}")
"""Source: ntfy, server/server.go: topicRegex."""
_MAILBOX = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}(?:@[A-Za-z0-9.-]{1,253})?")
"""Source: RFC 5321, 4.1.2: a dot-string, and a domain; quoted strings are left out."""
_MAIL_SERVER = re.compile(r"(?:\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9.-]{1,253}):(?P<port>[0-9]{1,5})")
_LAST_PORT = 65535


def _url(text: str) -> str:
    like = "be like https://ntfy.home.example or https://home.example/ntfy"
    if "@" in text:  # not shown: what stands before it may be a password
        raise ValueError(f"must not carry a user or password, but {like}; a token goes into a file")
    if "?" in text or "#" in text:  # not shown: some take their tokens there
        raise ValueError(f"must not carry parameters, but {like}; a token goes into a file")
    if not is_url(text):
        raise ValueError(f"must {like}, not {quoted(text)}")
    return text


def is_url(text: str) -> bool:
    """Whether this is the address of a server of HTTP."""
    try:
        parts = urlsplit(text)
        return (
            parts.scheme in {"https", "http"}
            and bool(parts.hostname)
            and parts.port != 0
            and len(text) <= LONGEST_URL
            and text.isascii()
            and text.isprintable()
            and not re.search(r"[\s\\\"<>]", text)
        )
    except ValueError:
        return False


def _topic(text: str) -> str:
    if not _TOPIC.fullmatch(text):
        raise ValueError(
            "must be the topic's name alone, of letters, digits, - and _, 64 at most. "
            "What is written there is not shown here: who knows the topic reads along"
        )
    return text


def _mailbox(text: str) -> str:
    if not _MAILBOX.fullmatch(text) or text.startswith("-"):
        raise ValueError(f"must be a mailbox, like root or admin@example.org, not {quoted(text)}")
    return text


def _mail_server(text: str) -> str:
    found = _MAIL_SERVER.fullmatch(text)
    if found is None or not 0 < int(found["port"]) <= _LAST_PORT:
        raise ValueError(f"must be HOST:PORT, like localhost:25 or [fd00::25]:25, not {quoted(text)}")
    return text


def _one_line(text: str) -> str:
    if not text.strip() or not text.isprintable() or len(text) > LONGEST_SOURCE:
        raise ValueError(f"must be a few words, {LONGEST_SOURCE} characters at most, not {quoted(text)}")
    return text


Url: TypeAlias = Annotated[str, AfterValidator(_url)]
Topic: TypeAlias = Annotated[str, AfterValidator(_topic)]
Mailbox: TypeAlias = Annotated[str, AfterValidator(_mailbox)]
MailServer: TypeAlias = Annotated[str, AfterValidator(_mail_server)]
OneLine: TypeAlias = Annotated[str, AfterValidator(_one_line)]
