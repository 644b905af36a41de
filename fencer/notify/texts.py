"""Texts for receivers: on lines that are plainly visible, and no longer than they may be."""

from __future__ import annotations

from fencer.core.text import printable

_CUT = "…"


def plain(text: str, most_bytes: int) -> str:
    """Return a text with nothing in it but visible characters and ends of lines, cut where it is too long.

    Messages are printable already. Receivers make sure of it: what a node is called is what others chose.

    Args:
        text: Any text.
        most_bytes: As UTF-8.
    """
    return cut("\n".join(printable(line) for line in text.split("\n")), most_bytes)


def line(text: str, most_bytes: int) -> str:
    """Return a text as one line, cut where it is too long.

    Args:
        text: Any text.
        most_bytes: As UTF-8.
    """
    return cut(printable(text), most_bytes)


def cut(text: str, most_bytes: int) -> str:
    """Return the beginning of a text, with ``…`` at its end if there was more.

    Args:
        text: Without lone surrogates.
        most_bytes: As UTF-8, the ``…`` counted in.
    """
    raw = text.encode()
    if len(raw) <= most_bytes:
        return text
    return raw[: most_bytes - len(_CUT.encode())].decode(errors="ignore") + _CUT


def subject(source: str, title: str, most_bytes: int) -> str:
    """Return the line that a person reads first: which fencer it is, and what is the matter.

    Args:
        source: Which fencer.
        title: Of the message.
        most_bytes: As UTF-8.
    """
    return line(f"[{source}] {title}", most_bytes)
