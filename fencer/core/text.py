"""Text from outside, made fit for a terminal or a line of a log."""

from __future__ import annotations


def printable(text: str) -> str:
    """Escape whatever is not plainly visible: newlines, escape codes, direction marks, lone surrogates.

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
