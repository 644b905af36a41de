"""Builds `fencer-guest`, one file that runs wherever there is a Python: `python -m fencer.guest.build`.

The same sources give the same bytes, on every machine: files in order, one date, nothing compressed, because
compressors differ. Instead docstrings, comments, types, and spaces that only people need are left out. Lines
stay, so that tracebacks still name the lines of the sources.
"""

from __future__ import annotations

import argparse
import ast
import importlib.metadata
import re
import sys
import tokenize
from io import BytesIO, StringIO
from pathlib import Path
from typing import Iterator, Sequence
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from fencer import DISTRIBUTION
from fencer.guest.facts import DRAIN_UNIT, UNCORDON_UNIT

SHEBANG = b"#!/usr/bin/env python3\n"
_HERE = Path(__file__).parent
_UNIT_FOLDERS = (_HERE / "units", _HERE.parent.parent / "systemd")
"""In an installed package; in a checkout."""
_NOT_INSIDE = {"__main__.py", "build.py"}
_BEGINS_TEXT, _ENDS_TEXT = (
    {getattr(tokenize, f"{kind}STRING_{end}", None) for kind in "FT"} for end in ("START", "END")
)
"""Since Python 3.12 (and 3.14) a text with names in it is several tokens."""
_TOGETHER = re.compile(r"\w[\w'\"]|['\"]\w")
"""Characters that would become one word without a space between them."""
_PUTS_OFF = "from __future__ import annotations"
_DATE = (1980, 1, 1, 0, 0, 0)
_MAIN = """\
import sys

if sys.version_info < (3, 8):
    sys.stderr.write("fencer-guest needs Python 3.8 or newer; this is %s\\n" % sys.version.split()[0])
    sys.exit(126)

from fencer.guest.cli import main

sys.exit(main())
"""


def units() -> dict[str, str]:
    """Return the texts of the units, by name."""
    return {name: _unit(name).read_text(encoding="utf-8") for name in (DRAIN_UNIT, UNCORDON_UNIT)}


def build() -> bytes:
    """Return the program's bytes."""
    contents = {"__main__.py": _MAIN, "fencer/__init__.py": f'__version__="{version()}"\n'}
    for source in sorted((*_HERE.glob("*.py"), *(_HERE.parent / "evicting").glob("*.py"))):
        if source.name not in _NOT_INSIDE:
            contents[f"fencer/{source.parent.name}/{source.name}"] = outdented(
                unspaced(without_docs(without_types(source.read_text(encoding="utf-8"))))
            )
    for name, text in units().items():
        contents[f"fencer/guest/units/{name}"] = text
    packed = BytesIO()
    with ZipFile(packed, "w", ZIP_STORED) as archive:
        for name in sorted(contents):
            entry = ZipInfo(name, _DATE)
            entry.create_system = 3  # Unix, wherever it is built
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, contents[name])
    # All offsets count from the archive's begin, so `install` may put another first line before it.
    return SHEBANG + packed.getvalue()


def version() -> str:
    """Return the version of what is built."""
    try:
        project = (_HERE.parent.parent / "pyproject.toml").read_text(encoding="utf-8")
    except OSError:
        return importlib.metadata.version(DISTRIBUTION)
    found = re.search(r'^version = "(.+)"$', project, re.MULTILINE)
    return found.group(1) if found else "0"


def without_docs(source: str) -> str:
    """Return a module without its docstrings and comments, every statement on its line."""
    lines = source.split("\n")
    for body in _bodies(ast.parse(source)):
        texts = [statement for statement in body if _is_text(statement)]
        for text in texts:
            last = text.end_lineno or text.lineno
            # A body may have nothing else; an empty text is a statement too.
            alone = text is texts[0] and len(texts) == len(body)
            kept = " " * text.col_offset + '""' if alone else ""
            lines[text.lineno - 1 : last] = [kept] + [""] * (last - text.lineno)
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            at, column = token.start[0] - 1, token.start[1]
            lines[at] = lines[at][:column].rstrip()
    return "\n".join(lines)


def without_types(source: str) -> str:
    """Return a module without types, which nothing asks for where it runs; a `0` is left of a field's."""
    lines = source.encode().split(b"\n")  # columns of a syntax tree count bytes
    for line, begin, end, instead in sorted(_types(ast.parse(source), lines), reverse=True):
        lines[line - 1] = lines[line - 1][:begin] + instead + lines[line - 1][end:]
    untyped = _without_unused(b"\n".join(lines).decode())
    # What puts off the reading of types is not needed where none is left.
    return untyped if _typed(ast.parse(untyped)) else untyped.replace(_PUTS_OFF, "", 1)


def unspaced(source: str) -> str:
    """Return a module without the spaces within lines that Python does not need; texts stay as they are."""
    lines = source.split("\n")
    tokens = list(tokenize.generate_tokens(StringIO(source).readline))
    within_text, gaps = 0, []
    for token, following in zip(tokens, tokens[1:]):
        within_text += (token.type in _BEGINS_TEXT) - (token.type in _ENDS_TEXT)
        (line, begin), (other_line, end) = token.end, following.start
        beside = token.string[-1:] + following.string[:1]
        if line == other_line and not within_text and begin < end and not _TOGETHER.fullmatch(beside):
            gaps.append((line, begin, end))
    for line, begin, end in reversed(gaps):
        lines[line - 1] = lines[line - 1][:begin] + lines[line - 1][end:]
    return "\n".join(lines)


def outdented(source: str) -> str:
    """Return a module with one space a level, and none where a statement goes on; texts stay as they are."""
    lines = source.split("\n")
    depth, begins, seen = 0, True, 0
    for token in tokenize.generate_tokens(StringIO(source).readline):
        depth += (token.type == tokenize.INDENT) - (token.type == tokenize.DEDENT)
        if token.type in (tokenize.INDENT, tokenize.DEDENT, tokenize.NL):
            continue
        if token.start[0] > seen:
            at = token.start[0] - 1
            lines[at] = " " * (depth if begins else 0) + lines[at].lstrip(" ")
        # The other lines of a text of several lines are part of it.
        seen, begins = token.end[0], token.type == tokenize.NEWLINE
    return "\n".join(lines)


def _without_unused(source: str) -> str:
    """Return a module without what it imports of `typing` for types alone."""
    tree, lines = ast.parse(source), source.split("\n")
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "typing" and node.lineno == node.end_lineno:
            names = ", ".join(alias.name for alias in node.names if alias.name in used)
            lines[node.lineno - 1] = f"from typing import {names}" if names else ""
    return "\n".join(lines)


def _bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            yield body


def _types(tree: ast.AST, lines: Sequence[bytes]) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield where types are that stand in one line: the line, the columns, and what comes instead."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.annotation and node.annotation.end_lineno == node.lineno:
            begin = node.col_offset + len(node.arg.encode())
            yield node.lineno, begin, node.annotation.end_col_offset or begin, b""
        if isinstance(node, ast.AnnAssign) and node.annotation.end_lineno == node.annotation.lineno:
            begin = node.annotation.col_offset
            yield node.annotation.lineno, begin, node.annotation.end_col_offset or begin, b"0"
        result = node.returns if isinstance(node, ast.FunctionDef) else None
        if result and result.end_lineno == result.lineno:
            begin = lines[result.lineno - 1].rindex(b" ->", 0, result.col_offset)
            yield result.lineno, begin, result.end_col_offset or begin, b""


def _typed(tree: ast.AST) -> bool:
    return any(
        getattr(node, "annotation", None) or getattr(node, "returns", None)
        for node in ast.walk(tree)
        if isinstance(node, (ast.arg, ast.FunctionDef))
    )


def _is_text(node: ast.stmt) -> bool:
    constant = node.value if isinstance(node, ast.Expr) else None
    return isinstance(constant, ast.Constant) and isinstance(constant.value, str)


def main(arguments: list[str] | None = None) -> int:
    """Write the program to a file."""
    parser = argparse.ArgumentParser(prog="python -m fencer.guest.build", description="Build fencer-guest.")
    parser.add_argument("--output", "-o", type=Path, default=Path("fencer-guest"), metavar="FILE")
    path: Path = parser.parse_args(arguments).output
    path.write_bytes(build())
    path.chmod(0o755)
    size = path.stat().st_size
    sys.stdout.write(f"{path}: {size} bytes; copy it to the node, and there as root: {path.name} install\n")
    return 0


def _unit(name: str) -> Path:
    return next(folder / name for folder in _UNIT_FOLDERS if (folder / name).is_file())


if __name__ == "__main__":
    sys.exit(main())
