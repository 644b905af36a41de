"""What the words of a command tell ssh. Pure.

Source: ssh(1); ssh_config(5); OpenSSH, ssh.c, main (options come before the host, and once more after it),
readconf.c, process_config_line_depth, and misc.c, strdelim and argv_split (what `-o` takes for a setting).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePath

_VALUED = frozenset("BDEFIJLOPQRSWbceilmopw")
"""Options with a value. One that a newer ssh has is taken for a switch."""


def options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Find the options of each ssh among the words, on this machine and beyond, and inside scripts.

    Args:
        words: A command: ``("timeout", "9", "ssh", "-o", "BatchMode=yes", "me@box", "VBoxManage")``.

    Yields:
        An option's letter, and its value: ``("o", "BatchMode=yes")``. Switches are left out.
    """
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if is_ssh(word):
            yield from _take(rest)
        elif len(script := _split(word)) > 1:
            yield from options(script)


def own_options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Find the options of the first ssh, the only one that surely runs on this machine; as `options`."""
    for index, word in enumerate(words):
        if is_ssh(word):
            return _take(list(words[index + 1 :]))
    return iter(())


def is_ssh(word: str) -> bool:
    """Whether this runs ssh, in any folder."""
    return PurePath(word).name == "ssh"


def setting(value: str) -> tuple[str, str]:
    """Read the text after `-o`.

    Returns:
        The setting's name in lower case, and its value without quotes; the latter as it is if ssh would not
        understand it.
    """
    text = value.lstrip(" \t\r\n=")
    name = text.split("=", 1)[0].split(maxsplit=1)[0] if text.strip('"') else ""
    rest = text[len(name) :].strip()
    return name.strip('"').lower(), " ".join(_split(rest.removeprefix("=").strip()))


def _take(rest: list[str]) -> Iterator[tuple[str, str]]:
    """Yield options, and remove them and the host: what is left runs on the other side."""
    named = False
    while rest:
        word = rest.pop(0)
        if word == "--":
            del rest[: not named]
            return
        if word.startswith("-") and word != "-":
            yield from _letters(word[1:], rest)
        elif named:
            rest.insert(0, word)
            return
        named = named or not word.startswith("-")


def _letters(letters: str, rest: list[str]) -> Iterator[tuple[str, str]]:
    """Read ``Tv``, ``oNAME=VALUE`` or ``To``, whose value is the next word."""
    for index, letter in enumerate(letters):
        if letter in _VALUED:
            joined = letters[index + 1 :]
            if joined or rest:
                yield letter, joined or rest.pop(0)
            return


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:
        return text.split()
