"""Text from outside, made fit for a terminal or a line of a log."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from difflib import SequenceMatcher

ALIKE = 0.6
"""From here on a word may be meant by another. Source: `difflib.get_close_matches`' cutoff."""

_VARYING = re.compile(r"\b(?![45]\d\d\b(?! s\b))\w*\d\w*")
"""A number, or an id; but not an HTTP status, which says what is wrong."""


def printable(text: str) -> str:
    """Escape all that is not plainly visible: newlines, escape codes, direction marks, lone surrogates.

    Names of nodes, guests and files, and answers of APIs, are chosen by others. Unescaped they could forge a
    line of the log or drive the terminal of the person who reads it.

    Args:
        text: Any text.

    Returns:
        The same text on one line; visible characters of any script stay as they are.
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def sentence(text: str) -> str:
    """Return a text with a capital letter at the beginning."""
    return text[:1].upper() + text[1:]


def unticked(text: str) -> str:
    """Return a text that is `printable`, and in which no backtick is: between those stands what people type.

    Args:
        text: From outside, to be put into a sentence of ours that has such a command.
    """
    return printable(text).replace("`", "'")


def alike(text: str) -> str:
    """Return a text without what varies when the same is said again: numbers and ids."""
    return _VARYING.sub("#", text)


def natural(name: str) -> list[tuple[int, str]]:
    """Return the key that sorts names as people do: ``k8s-2`` before ``k8s-10``."""
    # Without leading zeros numbers are in order by length, then as text: nobody has to convert a huge one.
    parts = re.split(r"0*([0-9]+)", name)
    return [(len(part) if place % 2 else 0, part) for place, part in enumerate(parts)]


def count(number: int, noun: str) -> str:
    """Return ``1 pod``, ``3 pods``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def age(seconds: float) -> str:
    """Write a duration as people read it: ``8 s``, ``2m14s``, ``3h05m``; one without an end is not known."""
    if math.isinf(seconds):
        return "an unknown time"
    whole = round(seconds)
    if whole < 60:  # noqa: PLR2004 - seconds of a minute
        return f"{round(seconds, 1):g} s" if seconds < 10 else f"{whole} s"  # noqa: PLR2004 - below it tenths count
    if whole < 3600:  # noqa: PLR2004 - seconds of an hour
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def listing(names: Sequence[object], most: int = 8) -> str:
    """Return names in one phrase, shortened where there are many: ``a, b, c and 4 more``."""
    shown = ", ".join(printable(str(name)) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def by_likeness(word: str, known: Iterable[str]) -> list[tuple[float, str]]:
    """Return what is known, with its likeness to a word from 0 to 1; the most like it first.

    Capitals count as small letters, and ``_`` as ``-``.
    """
    plain = _plain(word)
    rated = ((SequenceMatcher(None, _plain(one), plain).ratio(), one) for one in known)
    return sorted(rated, key=lambda one: (-one[0], one[1]))


def _plain(word: str) -> str:
    return word.lower().replace("_", "-")


def near(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean …?`` if one known word is nearer than all others, otherwise nothing."""
    first, second = [*by_likeness(word, known), (0.0, ""), (0.0, "")][:2]
    return f"; did you mean {printable(first[1])}?" if first[0] >= ALIKE and first[0] > second[0] else ""


def no_such_node(name: str, known: Collection[str]) -> str:
    """Return that there is no node of that name, and the nodes whose names are nearest to it."""
    meant = near(name, known)
    nearest = listing([one for _, one in by_likeness(name, known)], 5) or "none"
    return f"{printable(name)}: no such node{meant or '.'} Nodes: {nearest}"


def of_limit(spent_s: float, limit_s: float) -> str:
    """Write how much of a limit is spent, as it was typed: ``32 s of 600 s``; without one ``32 s``."""
    spent = f"{math.floor(spent_s)} s"
    return spent if math.isinf(limit_s) else f"{spent} of {limit_s:g} s"
