"""Reads the YAML that kubelets and their installers write, and refuses everything else.

Block mappings, block sequences, plain and quoted scalars on one line, and lists of them in brackets on one
line; comments; one document. No anchors, tags, block scalars or nested flow: a node has no YAML library, and
half-understood credentials are worse than none. Every scalar is text: ``true`` reads "true", nothing "".
"""

from __future__ import annotations

import json
import re
from typing import Any, Tuple

Line = Tuple[int, int, str]
"""Number in the file, indentation, the rest without comment."""

_MAX_DEPTH = 30
_PLAIN_STARTS_NOT_WITH = "&*!|>%@`?,[]{}#'\""
_KEY = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[A-Za-z0-9_][A-Za-z0-9_./-]*)[ ]*:(?:[ ]+(.*))?$""")
_QUOTED = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*""")
_ODD = re.compile("[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
"""Unprintable characters: YAML forbids some, treats some as line ends, and our files need none."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class YamlError(ValueError):
    """Not the YAML that is read here; names the line, never its content: it may be secret."""


def document(text: str) -> Any:
    """Read YAML or JSON.

    Raises:
        ValueError: it is neither, or needs more of YAML than we read.
    """
    try:
        return json.loads(text) if text.lstrip().startswith("{") else read(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read(text: str) -> Any:
    """Read one document: a dict, a list, or "" for none.

    Raises:
        YamlError: it is broken, or uses more of YAML than is read here.
    """
    text = text.replace("\r\n", "\n")
    odd = _ODD.search(text)
    if odd:
        number = text.count("\n", 0, odd.start()) + 1
        raise YamlError(f"line {number}: a character that is not read here (U+{ord(odd.group()):04X})")
    lines = _lines(text)
    if not lines:
        return ""
    value, rest = _block(lines, 0, lines[0][1], 0)
    if rest < len(lines):
        raise _refused(lines[rest], "indented as nothing before it")
    return value


def _lines(text: str) -> list[Line]:
    found: list[Line] = []
    begun = False
    for number, raw in enumerate(text.split("\n"), 1):
        content = raw.strip(" ")
        if not content or content.startswith("#"):
            continue
        if raw.rstrip(" ") == "---" and not begun:
            begun = True
            continue
        if raw.startswith(("---", "...", "%")):
            raise YamlError(f"line {number}: more than one plain document")
        begun = True
        found.append((number, len(raw) - len(raw.lstrip(" ")), content))
    return found


def _block(lines: list[Line], at: int, indent: int, depth: int) -> tuple[Any, int]:
    """Read the mapping or sequence that begins at a line; return it and the line after it."""
    if depth > _MAX_DEPTH:
        raise _refused(lines[at], "nested too deeply")
    if _is_item(lines[at]):
        return _sequence(lines, at, indent, depth)
    return _mapping(lines, at, indent, depth)


def _sequence(lines: list[Line], at: int, indent: int, depth: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    while at < len(lines) and lines[at][1] == indent and _is_item(lines[at]):
        number, _, content = lines[at]
        inner = content[1:].lstrip(" ")
        if not inner or inner.startswith("#"):
            value, at = _nested(lines, at, indent, depth, flush=False)
        elif inner == "-" or inner.startswith("- ") or _key_of(inner):
            # After the dash begins the first line of a new block, with its column as indentation.
            lines[at] = (number, indent + len(content) - len(inner), inner)
            value, at = _block(lines, at, lines[at][1], depth + 1)
        else:
            value, at = _scalar(lines[at], inner), at + 1
        items.append(value)
    return items, at


def _mapping(lines: list[Line], at: int, indent: int, depth: int) -> tuple[Any, int]:
    found = {}
    while at < len(lines) and lines[at][1] == indent and not _is_item(lines[at]):
        entry = _key_of(lines[at][2])
        if entry is None:
            raise _refused(lines[at], "expected `key: value`")
        key, inner = _scalar(lines[at], entry[0]), entry[1]
        if not isinstance(key, str) or key in found or key == "<<":
            raise _refused(lines[at], "a key that is there twice, or is none")
        if not inner or inner.startswith("#"):
            found[key], at = _nested(lines, at, indent, depth, flush=True)
        else:
            found[key], at = _scalar(lines[at], inner), at + 1
    return found, at


def _nested(lines: list[Line], at: int, indent: int, depth: int, *, flush: bool) -> tuple[Any, int]:
    """Read the block below a line that ends there; `flush`: a sequence need not be indented further."""
    below = at + 1
    if below == len(lines):
        return "", below
    deeper = lines[below][1] > indent
    if deeper or (flush and lines[below][1] == indent and _is_item(lines[below])):
        return _block(lines, below, lines[below][1], depth + 1)
    return "", below


def _is_item(line: Line) -> bool:
    return line[2] == "-" or line[2].startswith("- ")


def _key_of(content: str) -> tuple[str, str] | None:
    """Split `key: value`; None: the line is not one."""
    if content[0] in "[{":
        return None
    matched = _KEY.match(content)
    return (matched.group(1), matched.group(2) or "") if matched else None


def _scalar(line: Line, text: str) -> Any:
    if text[0] in "'\"":
        quoted = _QUOTED.match(text)
        if not quoted or not _only_comment(text[len(quoted.group(1)) :]):
            raise _refused(line, "a quoted text that does not end, or more behind it")
        return _unquoted(line, quoted.group(1))
    text = re.split(r" +#", text, maxsplit=1)[0].rstrip(" ")
    if text == "{}":
        return {}
    if text.startswith("["):
        return _flow_list(line, text)
    if text[0] in _PLAIN_STARTS_NOT_WITH or text in ("-", "---", "...") or text.startswith("- "):
        raise _refused(line, "more of YAML than is read here")
    if ": " in text or text.endswith(":"):
        raise _refused(line, "a second `:`")
    return text


def _flow_list(line: Line, text: str) -> list[Any]:
    if not text.endswith("]"):
        raise _refused(line, "a list that does not end on its line")
    inner, items = text[1:-1].strip(" "), []
    while inner:
        quoted = _QUOTED.match(inner)
        if quoted:
            items.append(_unquoted(line, quoted.group(1)))
            inner, found = inner[quoted.end() :], quoted.group(1)
        else:
            found = inner.split(",", 1)[0].strip(" ")
            if not found or re.search(r"[\[\]{}'\"#&*!|>%@`?:]|^-( |$)", found):
                raise _refused(line, "more in a list than is read here")
            items.append(found)
            inner = inner[len(inner.split(",", 1)[0]) :]
        if inner and not inner.startswith(","):
            raise _refused(line, "a list without commas")
        inner = inner[1:].strip(" ")
    return items


def _unquoted(line: Line, quoted: str) -> str:
    if quoted.startswith("'"):
        return quoted[1:-1].replace("''", "'")
    try:
        # Only the escapes that JSON has too are read; they mean the same in both.
        text = json.loads(quoted) if not _SURROGATE.search(quoted) else None
    except ValueError:
        text = None
    if text is None:
        raise _refused(line, "an escape that is not read here")
    return str(text)


def _only_comment(rest: str) -> bool:
    return not rest.strip(" ") or re.match(r" +#", rest) is not None


def _refused(line: Line, why: str) -> YamlError:
    return YamlError(f"line {line[0]}: {why}")  # never its content: it may be a token
