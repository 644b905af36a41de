"""Keeps known secrets out of texts that others wrote: errors of servers, logs, findings. Pure.

What the configuration holds is shown by a list of what is harmless (`fencer.config.redact`). That is not
possible for a sentence of a server. But what such a sentence could repeat is known: what was sent to it. So
every secret of this machine is taken out, also a part of one, and also encoded.
"""

from __future__ import annotations

import base64
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from fencer.core.text import printable

LEFT_OUT = "(left out)"
PART_CHARS = 8
"""So many characters of a secret in a row are a part of it, and not a word that it happens to hold."""
FEWEST_CHARS = 4
"""What is shorter stands in every sentence; as a secret it would keep nothing."""
SHOWN_CHARS = 60
"""Messages about the configuration repeat so much of a value: `fencer.config.document.SHOWN_CHARS`."""
EVERYWHERE = frozenset({"admin", "fencer", "kubernetes", "root", "system"})
"""Names that are no secret: without them no sentence could be read."""

_LOOKS_SECRET = re.compile(
    r"(?<![\w-])eyJ[\w-]{8,}(?:\.[\w-]*){1,4}"  # a token of Kubernetes: JSON, in base64
    r"|(?i:bearer|basic)\s+(?=[\w.~+/-]*[0-9=])[\w.~+/=-]{8,}"  # and not "basic authentication"
    r"|PVE(?:APIToken|AuthCookie)?[=:][^\s\"',;]+"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?"
    r"|(?<=//)[^/?#@\s\"']*:[^/?#@\s\"']*(?=@)"
)
"""Secrets that this machine does not have any more, such as an old token in a log."""


class Sieve:
    """Takes secrets out of texts.

    Args:
        secrets: None of these passes, nor a part of one.
        words: What was left out of the configuration: these do not pass as a whole, or shortened.
        harmless: Those of them that are shown elsewhere.
    """

    def __init__(
        self, secrets: Iterable[str], words: Iterable[str] = (), harmless: Iterable[str] = ()
    ) -> None:
        forms = {form for secret in secrets if len(secret) >= FEWEST_CHARS for form in _forms(secret)}
        long = {form for form in forms if len(form) >= PART_CHARS}
        self._parts = {
            form[at : at + PART_CHARS] for form in long for at in range(len(form) - PART_CHARS + 1)
        }
        kept = EVERYWHERE | set(harmless)
        left = {word for word in words if len(word) >= FEWEST_CHARS and word not in kept}
        left |= {f"{word[:SHOWN_CHARS]}…" for word in left if len(word) > SHOWN_CHARS}
        self._wholes = defaultdict[str, list[str]](list)
        """Words by their first characters, the longest first: a shorter one may be the beginning of it."""
        wholes = (forms - long) | {form for word in left for form in (word, _escaped(word), printable(word))}
        for word in sorted(wholes, key=len, reverse=True):
            self._wholes[word[:FEWEST_CHARS]].append(word)

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        kept, done = list[str](), 0
        for begin, end in sorted(self._found(text)):
            if begin > done or not kept:
                kept += [text[done:begin], LEFT_OUT]
            done = max(done, end)
        return "".join([*kept, text[done:]])

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where something is to be taken out; places may overlap."""
        yield from (found.span() for found in _LOOKS_SECRET.finditer(text))
        for at in range(len(text) - FEWEST_CHARS + 1):
            if text[at : at + PART_CHARS] in self._parts:
                yield at, at + PART_CHARS
            for word in self._wholes.get(text[at : at + FEWEST_CHARS], ()):
                if text.startswith(word, at) and _stands_alone(text, at, at + len(word)):
                    yield at, at + len(word)
                    break

    def data(self, value: Any) -> Any:
        """Return data without secrets, in the same shape: its texts, and its keys."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.text(str(name)): self.data(one) for name, one in value.items()}
            case list() | tuple():
                return [self.data(one) for one in value]
        return value


def _stands_alone(text: str, begin: int, end: int) -> bool:
    """Whether what is there is no part of another word. What is long need not stand alone."""
    around = text[max(0, begin - 1) : begin] + text[end : end + 1]
    return end - begin >= PART_CHARS or not any(character.isalnum() for character in around)


def _forms(secret: str) -> Iterator[str]:
    """Yield a secret in the ways in which it may be repeated."""
    yield from (secret, printable(secret), _escaped(secret), repr(secret)[1:-1], quote(secret, safe=""))
    raw = secret.encode("utf-8", "surrogateescape")
    for ahead in range(3):  # in base64 it depends on what stands before it
        encoded = base64.b64encode(b"\0" * ahead + raw).decode()
        yield encoded[ahead + bool(ahead) : len(encoded) - 4]


def _escaped(text: str) -> str:
    return json.dumps(text)[1:-1]
