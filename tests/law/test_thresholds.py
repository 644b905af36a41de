"""Numbers of seconds that no operator sets: each says, where it stands, what it is for."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

FENCER = Path(__file__).parents[2] / "fencer"
MODULES = sorted(FENCER.rglob("*.py"))
SECONDS = re.compile(r"_?[A-Z][A-Z0-9_]*_S")
TOGETHER = 3
"""So many may stand above one explanation."""


def unexplained(source: str) -> Iterator[str]:
    """Name the constants of a module that nothing explains: no text below them, no comment behind them."""
    lines, body = source.splitlines(), ast.parse(source).body
    for place, statement in enumerate(body):
        name = _constant(statement)
        below = body[place + 1 : place + 1 + TOGETHER]
        told = next((it for it in below if _constant(it) is None), None)
        text = isinstance(told, ast.Expr) and isinstance(told.value, ast.Constant)
        if name and not text and "#" not in lines[(statement.end_lineno or 1) - 1]:
            yield name


def _constant(statement: ast.stmt) -> str | None:
    match statement:
        case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
            return name if SECONDS.fullmatch(name) and not name.startswith("_UNITS") else None
    return None


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(FENCER)))
def test_each_says_what_it_is_for(path):
    assert list(unexplained(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("A_S = 1.0\n", ["A_S"]),
        ("A_S = 1.0\nB_S: float = 2.0\nx = 3\n", ["A_S", "B_S"]),
        ('A_S = 1.0\nB_S = 2.0\n"""Both."""\n', []),
        ("A_S = 1.0  # of a poll\n", []),
        ("A = 1.0\n", []),
    ],
)
def test_one_that_nothing_explains_is_found(source, found):
    assert list(unexplained(source)) == found
