"""Answers for programs: JSON, or the same in simple YAML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import click

from fencer.cli.render import say

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_WORDS_WITH_MEANING = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""Words that some version of YAML reads as something else than text."""


def emit(data: Any, form: str) -> None:
    """Write data to stdout.

    Args:
        data: Dictionaries, lists, texts, numbers, booleans and None.
        form: ``json`` or ``yaml``.
    """
    if form == "json":
        # ASCII only, so that any terminal and any locale carries it.
        click.echo(json.dumps(data, indent=2))
    else:
        for line in _yaml(data, 0):
            say(line)


def _yaml(data: Any, depth: int) -> Iterator[str]:
    pad = "  " * depth
    if isinstance(data, dict) and data:
        for key, value in data.items():
            if isinstance(value, dict | list) and value:
                yield f"{pad}{_word(key)}:"
                yield from _yaml(value, depth + 1)
            else:
                yield f"{pad}{_word(key)}: {_word(value)}"
    elif isinstance(data, list) and data:
        for value in data:
            first, *rest = _yaml(value, depth + 1)
            yield f"{pad}- {first.lstrip()}"
            yield from rest
    else:
        yield f"{pad}{_word(data)}"


def _word(value: Any) -> str:
    """Write a scalar: bare if it cannot be read as anything else, otherwise quoted, in ASCII."""
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS_WITH_MEANING:
        return value
    return f'"{"".join(map(_escaped, value))}"'


def _escaped(character: str) -> str:
    code = ord(character)
    if character in '"\\':
        return f"\\{character}"
    if 0x20 <= code < 0x7F:  # noqa: PLR2004 - ASCII's visible part
        return character
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - four digits' worth
