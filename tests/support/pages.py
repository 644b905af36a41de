"""Pages of the documentation of which tests make a part, and hold the page to it."""

from __future__ import annotations

import os
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def hold(page: Path, name: str, made: str) -> None:
    """Require that a part of a page is what was made; with ``FENCER_WRITE_DOCS`` write it first.

    Args:
        page: The page. Two comments in it say where the part begins and ends.
        name: Of the part.
        made: What it has to be, in Markdown.
    """
    if os.environ.get("FENCER_WRITE_DOCS"):
        page.write_text(_put_in(page.read_text(encoding="utf-8"), name, made), encoding="utf-8")
    written = part(page.read_text(encoding="utf-8"), name)
    assert written == made.strip(), "FENCER_WRITE_DOCS=1 writes it again; then read what has changed"


def part(text: str, name: str) -> str:
    """Return a made part of a page; empty: there is none of that name."""
    return text.partition(_begin(name))[2].partition(_end(name))[0].strip("\n")


def _put_in(text: str, name: str, made: str) -> str:
    before, _, rest = text.partition(_begin(name))
    return f"{before}{_begin(name)}\n\n{made.strip()}\n\n{_end(name)}{rest.partition(_end(name))[2]}"


def _begin(name: str) -> str:
    return f"<!-- {name}: made by a test, see the end of this page -->"


def _end(name: str) -> str:
    return f"<!-- end of {name} -->"
