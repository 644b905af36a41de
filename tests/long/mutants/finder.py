"""Finds what can be changed in a module: its text, from which byte to which."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import chain
from typing import TypeAlias

Edit: TypeAlias = tuple[int, int, str]
"""From which byte to which, and what stands there instead."""

_BOUNDARY = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
_OTHER = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Pow: "*"}
_OPPOSITE = {"max": "min", "min": "max", "any": "all", "all": "any"}
_EMPTY = {ast.Tuple: "()", ast.List: "[]", ast.Dict: "{}", ast.Set: "set()"}
_WORDING = {"__str__", "__repr__"}
_TYPING = {"TypeAlias", "TypeVar"}
_SAID = {"Alarm", "Passed"}
"""What they are made of is wording."""


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_unreachable(node: ast.stmt) -> bool:
    called = getattr(getattr(node, "value", None), "func", None)
    return getattr(called, "id", "") == "assert_never"


class Finder(ast.NodeVisitor):
    """Walks a module and notes its faults.

    Attributes:
        found: Each edit with its place, the outermost function around it, and the lines that it is about.
    """

    def __init__(self, source: bytes) -> None:
        self.found: dict[Edit, tuple[str, str, range]] = {}
        self._source = source
        self._line_starts = [0, *(match.end() for match in re.finditer(rb"\n", source))]
        self._places: list[str] = []
        self._function = ""
        self._statement: ast.stmt = ast.Pass(lineno=1, end_lineno=1)

    # --- where we are

    def visit(self, node: ast.AST) -> None:
        """Look at a node, and know the statement that it belongs to."""
        before = self._statement
        if isinstance(node, ast.stmt):
            self._statement = node
        super().visit(node)
        self._statement = before

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Defaults are there when the module is loaded, the body when it is called."""
        if node.name in _WORDING:
            return
        self._places.append(node.name)
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        outermost, self._function = self._function, self._function or ".".join(self._places)
        for statement in node.body:
            self.visit(statement)
        self._function = outermost
        self._places.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """A class is a place; its bases and decorators are none."""
        self._places.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self._places.pop()

    def visit_Assign(self, node: ast.Assign) -> None:
        """A table is a place, too; names for several things at once are no list."""
        if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
            self.generic_visit(node.value)
        else:
            self._in_table(node.targets[0], node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """The same; its annotation is left alone."""
        if node.value is not None and getattr(node.annotation, "id", "") not in _TYPING:
            self._in_table(node.target, node.value)

    def _in_table(self, target: ast.expr, value: ast.expr) -> None:
        name = target.id if isinstance(target, ast.Name) and not self._function else ""
        self._places += [name] if name else []
        self.visit(value)
        del self._places[len(self._places) - bool(name) :]

    # --- statements

    def visit_Expr(self, node: ast.Expr) -> None:
        """What is done for its effect is left out; a text, or an ellipsis, is none."""
        if not isinstance(node.value, ast.Constant):
            self._instead(node, "pass")
            self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        """It is not raised; what it says is wording."""
        self._instead(node, "pass")

    def visit_Continue(self, node: ast.Continue) -> None:
        """The rest is done all the same."""
        self._instead(node, "pass")

    visit_Break = visit_Continue

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """It is not added at all."""
        self._instead(node, "pass")
        self.generic_visit(node)

    def visit_match_case(self, node: ast.match_case) -> None:
        """A case that is never taken; one that no type leads to is for the type checker alone."""
        if _is_unreachable(node.body[0]):
            return
        if node.guard is not None:
            self._condition(node.guard)
        else:
            end = self._span(node.pattern)[1]
            self._note((end, end, " if False"))
        for statement in node.body:
            self.visit(statement)

    def visit_If(self, node: ast.If | ast.While | ast.Assert) -> None:
        """It is always taken, or never; what is there for the type checker alone never is."""
        if getattr(node.test, "id", "") == "TYPE_CHECKING":
            return
        self._condition(node.test)
        for statement in chain.from_iterable((getattr(node, "body", ()), getattr(node, "orelse", ()))):
            self.visit(statement)

    visit_While = visit_Assert = visit_If

    # --- expressions

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """The same; but what chooses between two texts is wording."""
        if not (_is_text(node.body) or _is_text(node.orelse)):
            self._condition(node.test)
            self.visit(node.body)
            self.visit(node.orelse)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """All are taken, or none."""
        self.visit(node.iter)
        for test in node.ifs:
            self._condition(test)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Each operand is left out; by the first one the others are. A value for nothing is no condition."""
        neutral = "True" if isinstance(node.op, ast.And) else "False"
        if isinstance(node.op, ast.Or) and isinstance(node.values[-1], ast.Constant | ast.Tuple | ast.Dict):
            for operand in node.values[:-1]:
                self._instead(operand, neutral)
                self.visit(operand)
            return
        for index, operand in enumerate(node.values):
            self._condition(operand, None if index == 0 else neutral)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """What is denied is a condition."""
        if isinstance(node.op, ast.Not):
            self._condition(node.operand)
        else:
            self.visit(node.operand)

    def visit_Compare(self, node: ast.Compare) -> None:
        """A comparison is a condition wherever it stands."""
        self._condition(node)

    def _condition(self, node: ast.expr, only: str | None = None) -> None:
        if isinstance(node, ast.BoolOp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
            self.visit(node)
            return
        for value in (only,) if only else ("True", "False"):
            self._instead(node, value)
        if isinstance(node, ast.Compare):
            left = node.left
            for operator, right in zip(node.ops, node.comparators, strict=True):
                if type(operator) in _BOUNDARY:
                    self._between(left, right, _BOUNDARY[type(operator)])
                left = right
            self.generic_visit(node)
        else:
            super().visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """The other way round, or without its right side; of a union, without either."""
        if _is_text(node.left) or _is_text(node.right):
            return
        if isinstance(node.op, ast.BitOr | ast.BitAnd):
            self._instead(node, self._text(node.left))
            self._instead(node, self._text(node.right))
        elif type(node.op) in _OTHER:
            self._between(node.left, node.right, _OTHER[type(node.op)])
            self._instead(node, self._text(node.left))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """The opposite; a time twice as long, or half; one more, or one less."""
        if isinstance(node.value, bool):
            self._instead(node, str(not node.value))
        elif isinstance(node.value, float) and node.value:
            self._instead(node, repr(node.value * 2))
            self._instead(node, repr(node.value / 2))
        elif isinstance(node.value, int | float):
            self._instead(node, repr(node.value + 1))
            if node.value > 0:
                self._instead(node, repr(node.value - 1))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Wording."""

    def visit_Call(self, node: ast.Call) -> None:
        """Without an argument that may have a default, or the opposite of the usual function."""
        name = getattr(node.func, "id", "")
        if name in _TYPING | _SAID:
            return
        if name in _OPPOSITE:
            self._instead(node.func, _OPPOSITE[name])
        optional = [keyword for keyword in node.keywords if keyword.arg]
        last = node.args[-1:] if len(node.args) > 1 and not isinstance(node.args[-1], ast.Starred) else []
        for argument in (*last, *optional):
            if not _is_text(argument.value if isinstance(argument, ast.keyword) else argument):
                self._without(argument)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """What is looked up stays; a slice has numbers."""
        self.visit(node.value)
        if not isinstance(node.slice, ast.Tuple):
            self.visit(node.slice)

    def visit_Tuple(self, node: ast.Tuple | ast.List | ast.Set) -> None:
        """Without each of its elements."""
        if isinstance(getattr(node, "ctx", None), ast.Store):
            return
        if any(_is_text(element) for element in node.elts):  # a record, or a list of words
            self.generic_visit(node)
            return
        for element in node.elts:
            self.visit(element)
        self._cut_each(node, [self._span(element) for element in node.elts])

    visit_List = visit_Set = visit_Tuple

    def visit_Dict(self, node: ast.Dict) -> None:
        """The same."""
        spans = []
        for key, value in zip(node.keys, node.values, strict=True):
            start, end = self._span(value)
            start = self._span(key)[0] if key is not None else self._source.rfind(b"**", 0, start)
            spans.append((start, end))
            self.visit(value)
        self._cut_each(node, spans)

    def _cut_each(self, node: ast.expr, spans: Sequence[tuple[int, int]]) -> None:
        if len(spans) == 1:
            self._instead(node, _EMPTY[type(node)])
        for span in spans if len(spans) > 1 else ():
            self._cut(*span)

    # --- notes

    def _span(self, node: ast.AST) -> tuple[int, int]:
        start = self._line_starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]  # what was parsed has a place
        return start, self._line_starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]  # what was parsed has a place

    def _text(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return f"({self._source[start:end].decode()})"

    def _instead(self, node: ast.AST, text: str) -> None:
        start, end = self._span(node)
        if self._source[start:end].decode() != text:
            self._note((start, end, text))

    def _between(self, left: ast.AST, right: ast.AST, operator: str) -> None:
        """Replace an operator, and leave the brackets around it."""
        start, end = self._span(left)[1], self._span(right)[0]
        found = re.search(rb"[^\s()]+", self._source[start:end])
        if found:
            self._note((start + found.start(), start + found.end(), operator))

    def _without(self, argument: ast.AST) -> None:
        self._cut(*self._span(argument))

    def _cut(self, start: int, end: int) -> None:
        """Leave out an element or an argument with the comma behind it."""
        comma = re.match(rb"\s*,[ \t]*", self._source[end:])
        self._note((start, end + (comma.end() if comma else 0), ""))

    def _note(self, edit: Edit) -> None:
        lines = range(self._statement.lineno, max(_head(self._statement), self._line(edit[1])) + 1)
        self.found.setdefault(edit, (".".join(self._places), self._function, lines))

    def _line(self, position: int) -> int:
        return bisect_right(self._line_starts, position)


def _head(node: ast.stmt) -> int:
    """Return the last line of a statement, without the statements in it."""
    inner = [child.lineno for child in ast.walk(node) if isinstance(child, ast.stmt) and child is not node]
    return max(node.lineno, min(inner) - 1) if inner else node.end_lineno or node.lineno
