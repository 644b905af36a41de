"""Which faults can be put into a module: one small change of its text each.

Why not mutmut or cosmic-ray: much of `fencer/core` is tables, constants, defaults and properties, which
mutmut leaves alone (it changes undecorated functions only), and either of them has pytest collect everything
for each fault. What is wording (text, and what chooses between texts) is left alone, and so are annotations,
decorators and imports.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from tests.long.mutants.finder import Edit, Finder


@dataclass(frozen=True, slots=True)
class Fault:
    """A module with one thing changed.

    Attributes:
        path: The module's file, from the checkout.
        place: The function, class or table that it is in, with those around it.
        before: The lines that change, in one.
        after: What becomes of them.
        line: The first of these lines.
        lines: All lines whose run may show it.
        function: Qualified name of the outermost function in whose body it is; empty: it is there when the
            module is loaded.
        edit: The change.
    """

    path: str
    place: str
    before: str
    after: str
    line: int
    lines: range
    function: str
    edit: Edit

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.place}\n  - {self.before}\n  + {self.after or '(nothing)'}"

    def source(self, root: Path) -> str:
        """Return the module's text with the fault in it."""
        return _edited((root / self.path).read_bytes(), self.edit).decode()


def faults_in(root: Path, path: str) -> list[Fault]:
    """Return all faults of a module, in their order; those that no Python would load are left out."""
    source = (root / path).read_bytes()
    finder = Finder(source)
    finder.visit(ast.parse(source))
    found = []
    for edit, (place, function, lines) in sorted(finder.found.items()):
        changed = _edited(source, edit)
        try:
            compile(changed, path, "exec")
        except (SyntaxError, ValueError):
            continue
        first, before = _whole_lines(source, edit[0], edit[1])
        _, after = _whole_lines(changed, edit[0], edit[0] + len(edit[2].encode()))
        found.append(Fault(path, place, before, after, first, lines, function, edit))
    return found


def _edited(source: bytes, edit: Edit) -> bytes:
    start, end, text = edit
    return source[:start] + text.encode() + source[end:]


def _whole_lines(source: bytes, start: int, end: int) -> tuple[int, str]:
    """Return the number of the first line, and all lines of a stretch as one."""
    from_, to = source.rfind(b"\n", 0, start) + 1, source.find(b"\n", end)
    return source.count(b"\n", 0, start) + 1, " ".join(source[from_:to].decode().split())
