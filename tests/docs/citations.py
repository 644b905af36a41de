"""Finds what pages, code and tests cite, and is not there: pages, decisions, paths, names, stories, links."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from fencer.simulation.scenarios import SCENARIOS

ROOT = Path(__file__).parents[2]
PAGES = (
    *sorted(ROOT.glob("docs/*.md")),
    ROOT / "tests/support/pve/README.md",
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
)
DESIGN = ROOT / "docs" / "design.md"
_SOURCES = ("fencer/**/*.py", "tests/**/*.py", "config/**/*", "systemd/*", "dev", ".ci/run", "pyproject.toml")
_SITE = ROOT / "config" / "docs" / "mkdocs.yml"
"""Names pages as they lie in docs/; mkdocs itself looks for them."""
_ROOMS = frozenset(path.name for path in (ROOT / "fencer").iterdir() if path.is_dir())

_PAGE = re.compile(r"(?<![\w/.-])docs/[\w-]+\.md\b")
_DECISION = re.compile(r"docs/design\.md, ([A-Z]\d+)")
_MENTIONED = re.compile(r"\b[A-Z]\d{1,2}\b")
_OF_ANOTHER_HOUSE = re.compile(
    r"(?<=[\s`])(?:design|ux|style|mission)\.md\b"  # in `docs/`, or of another house
    r"|\bdecision [0-9]+\b"
    r"|\bfact[s]/"
    r"|Source: fact[s]\b"
)
_CODE = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"([\w.-]+/)[\w./*-]*(?::[\w.]+)?")
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_STORIES = re.compile(r"\bstor(?:y|ies)\s+((?:`[a-z0-9-]+`(?:,\s+|\s+and\s+)?)+)")
_MARK = re.compile(r'<a id="([^"]+)"></a>')
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_NAMED = re.compile(r"^- \*\*([A-Z]\d+) ([^*]+)\.\*\*(.*?)(?=^- \*\*|^#|\Z)", re.MULTILINE | re.DOTALL)


def sources() -> Iterator[Path]:
    """Return every file, pages included, that may cite a page."""
    yield from PAGES
    for pattern in _SOURCES:
        yield from (path for path in sorted(ROOT.glob(pattern)) if path.is_file() and path != _SITE)


def decisions(text: str) -> list[tuple[str, str]]:
    """Return the decisions of a page in its order: the name of each, and what is written of it."""
    return [(name, " ".join(body.split())) for name, _, body in _NAMED.findall(text)]


def lost(text: str) -> Iterator[str]:
    """Name what any text cites, and is not there: pages, and decisions of the design."""
    yield from (page for page in _PAGE.findall(text) if not (ROOT / page).is_file())
    known = {name for name, _ in decisions(DESIGN.read_text(encoding="utf-8"))}
    yield from (f"docs/design.md, {name}" for name in _DECISION.findall(text) if name not in known)
    yield from (found.group() for found in _OF_ANOTHER_HOUSE.finditer(text))


def lost_in_page(text: str, folder: Path) -> Iterator[str]:
    """Name what a page cites, and is not there: paths and names in them, stories, links.

    Args:
        text: Of the page.
        folder: Where it lies: links begin there.
    """
    yield from (cited for cited in _CODE.findall(text) if _PATH.fullmatch(cited) and not _is_there(cited))
    named = " ".join(found.group(1) for found in _STORIES.finditer(text))
    yield from (f"story {name}" for name in _CODE.findall(named) if name not in SCENARIOS)
    yield from (link for link in _LINK.findall(text) if not _leads_somewhere(link, text, folder))


def lost_decisions(text: str) -> Iterator[str]:
    """Name what a page speaks of like a decision, and the design does not have.

    Args:
        text: Of a page whose letters with a number behind mean nothing else.
    """
    known = {name for name, _ in decisions(DESIGN.read_text(encoding="utf-8"))}
    yield from (name for name in _MENTIONED.findall(text) if name not in known)


def _is_there(cited: str) -> bool:
    """Whether a path leads somewhere, from the checkout or from ``fencer/``, and the name behind it is there.

    What only looks like a path, as the calls of an API do, has no ending and no folder of ours in front.
    """
    path, _, name = cited.partition(":")
    first = path.split("/")[0]
    ours = first in {"fencer", "tests", "config", "systemd", "docs"}
    if not ours and not (first in _ROOMS and (Path(path).suffix or path.endswith("/"))):
        return True
    found = [*(ROOT if ours else ROOT / "fencer").glob(path.rstrip("/"))]
    return bool(found) and (not name or name in _names(found[0]))


@cache
def _names(path: Path) -> frozenset[str]:
    """Return the names that a module defines: at its top, and what its classes hold as ``Class.name``.

    Tests that stand in a class go by their own name as well.
    """
    return frozenset(_defined(ast.parse(path.read_text(encoding="utf-8")).body))


def _defined(body: list[ast.stmt]) -> Iterator[str]:
    for item in body:
        match item:
            case ast.FunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name, body=inside):
                yield name
                yield from (f"{name}.{one}" for one in _defined(inside))
                yield from (one for one in _defined(inside) if one.startswith("test_"))
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def _leads_somewhere(link: str, text: str, folder: Path) -> bool:
    if "://" in link:
        return True
    path, _, anchor = link.partition("#")
    there = folder / path
    if not anchor:
        return there.exists()
    if path and not there.is_file():
        return False
    page = there.read_text(encoding="utf-8") if path else text
    return anchor in anchors(page)


def anchors(page: str) -> set[str]:
    """Return what links may lead to in a page: its headings, and rows of tables with a mark of their own."""
    return {*map(anchor, _HEADING.findall(page)), *_MARK.findall(page)}


def anchor(heading: str) -> str:
    """Return what a forge calls a heading in links."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
