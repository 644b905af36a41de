"""Reads the commands that the pages tell people to type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.docs.citations import ROOT

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_PROGRAMS = """
./dev apt apt-get cd chmod chown curl export fencer fencer-guest ha-manager install journalctl kubectl
echo mkdir pgrep pip pipx pytest python3 qm rm runuser scp sed sha256sum ssh sudo systemctl tar umask usermod
uv vagrant VBoxManage virsh
"""
PROGRAMS = frozenset(_PROGRAMS.split())
"""What begins a line that somebody types, where no `$` in front says so."""

_INDENTED = re.compile(r"(?m)(?:^ {4}.*\n)+")
_FENCED = re.compile(r"(?ms)^```[^\n]*\n(.*?)^```")
_SPOKEN = re.compile(r"`(fencer [a-z][^`]*)`")
_COMMENT = re.compile(r"\s+#\s.*$")


@dataclass(frozen=True, slots=True)
class Typed:
    """A line that a page tells people to type.

    Attributes:
        page: Its name, with the folder.
        line: Without a prompt and without the comment behind it; lines that go on are one.
    """

    page: str
    line: str


def typed() -> list[Typed]:
    """Return every line that a page tells people to type, in the order of the pages."""
    return [
        Typed(str(page.relative_to(ROOT)), line) for page in PAGES for line in lines(page.read_text("utf-8"))
    ]


def lines(text: str) -> Iterator[str]:
    """Return the lines of a page that people type."""
    for block in blocks(text):
        session = any(line.startswith("$ ") for line in block)
        for line in block:
            plain = _COMMENT.sub("", line.removeprefix("$ ")).strip().removesuffix("&&").strip()
            begins = bool(plain) and plain.split()[0].lstrip("(") in PROGRAMS
            if line.startswith("$ ") or (begins and not session):
                yield plain


def blocks(text: str) -> Iterator[list[str]]:
    """Return the blocks of code of a page up to an empty line, without indent; a line that goes on is one."""
    fenced = _FENCED.findall(text)
    for block in (*_INDENTED.findall(_FENCED.sub("", text)), *fenced):
        kept = [line for line in block.split("\n") if line.strip()]
        indent = min((len(line) - len(line.lstrip()) for line in kept), default=0)
        joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(line[indent:] for line in kept))
        yield joined.split("\n")


def spoken() -> list[Typed]:
    """Return every command of fencer's within a sentence or a table, in the order of the pages."""
    return [
        Typed(str(page.relative_to(ROOT)), found.replace("\\|", "|"))
        for page in PAGES
        for found in _SPOKEN.findall(_FENCED.sub("", page.read_text("utf-8")))
    ]
