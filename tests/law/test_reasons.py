"""Whoever silences a tool says why, in the same line."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [path for folder in ("fencer", "tests", "docs") for path in sorted((ROOT / folder).rglob("*.py"))]
_SILENCED = re.compile(r"#\s*(?:ruff:\s*)?noqa\b|#\s*type:\s*ignore\b", re.IGNORECASE)
_CODE = r"[A-Z]+[0-9]+"
_NOQA = re.compile(rf"# (?:ruff: )?noqa: {_CODE}(?:, {_CODE})* - [^\s#][^#]*")
_IGNORED = re.compile(r"# type: ignore\[[a-z-]+(?:, [a-z-]+)*\]  # (?!noqa)\w.*")


def unexplained(text: str) -> Iterator[str]:
    """Name the comments that silence a tool: wholly, or without a reason."""
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type is tokenize.COMMENT:
            for found in _SILENCED.finditer(token.string):
                said = token.string[found.start() :]
                if not (_NOQA.match(said) or _IGNORED.match(said)):
                    yield f"{token.start[0]}: {said}"


def test_no_tool_is_silenced_without_a_reason() -> None:
    found = {str(path.relative_to(ROOT)): [*unexplained(path.read_text(encoding="utf-8"))] for path in FILES}
    assert {path: comments for path, comments in found.items() if comments} == {}


@pytest.mark.parametrize(
    "comment",
    [
        *("# noqa", "# noqa: S101", "# noqa: S101 -", "# noqa: S101, S102", "#noqa:S101", "# NOQA: S101"),
        *("# noqa: S101 whoever drains has one", "# noqa - all of it is fine", "# ruff: noqa: S101"),
        *("# type: ignore", "# type: ignore[misc]", "# type: ignore  # all of it", "# type:ignore[misc]"),
        *("# type: ignore[misc] - mypy takes no such reason", "# type: ignore[misc]  # noqa: S101 - a test"),
        "# noqa: S101 - a test  # type: ignore[misc]",
    ],
)
def test_what_says_no_reason_is_found(comment: str) -> None:
    assert [*unexplained(f"x = 1  {comment}\n")] != []


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa: S101 - whoever drains has one",
        "# noqa: S101, S102 - both",
        "# ruff: noqa: S101 - everywhere here",
        "# type: ignore[misc]  # xdist publishes no types",
        "# type: ignore[misc]  # none are published  # noqa: S101 - a test",
        "# nothing is silenced here: noqa",
    ],
)
def test_what_says_one_is_not(comment: str) -> None:
    assert [*unexplained(f"x = 1  {comment}\n")] == []


def test_a_text_is_no_comment() -> None:
    assert [*unexplained("x = '# noqa'\n")] == []
