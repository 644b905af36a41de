"""Which verdicts a function of the rules can give, for which reasons: read out of its source.

A verdict stands before its reason wherever one is given: `Objection(Verdict.WAIT, Reason.NOT_HELD, …)`, or in
a table of such pairs. What a function calls, or looks up, belongs to it.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from fencer.core.model import Reason, Verdict

Place = tuple[str, str]
"""A module of the rules, and a name at its top."""


def given_by(function: Callable[..., Any]) -> set[tuple[Verdict, Reason]]:
    """Return what a rung can answer when it objects."""
    function = function.func if isinstance(function, partial) else function
    return set(_reached((function.__module__, function.__qualname__)))


def _reached(place: Place) -> Iterator[tuple[Verdict, Reason]]:
    seen, waiting = {place}, [place]
    while waiting:
        module, name = waiting.pop()
        bodies, imported = _names(module)
        if name not in bodies:  # a type: what it is made of gives no verdict
            continue
        for node in ast.walk(bodies[name]):
            yield from _pairs(node)
            if isinstance(node, ast.Name):
                found = (module, node.id) if node.id in bodies else imported.get(node.id)
                if found is not None and found not in seen:
                    seen.add(found)
                    waiting.append(found)


def _pairs(node: ast.AST) -> Iterator[tuple[Verdict, Reason]]:
    items = node.args if isinstance(node, ast.Call) else node.elts if isinstance(node, ast.Tuple) else ()
    for one, other in pairwise(items):
        match one, other:
            case (
                ast.Attribute(ast.Name("Verdict"), verdict),
                ast.Attribute(ast.Name("Reason"), reason),
            ):
                yield Verdict[verdict], Reason[reason]


@cache
def _names(module: str) -> tuple[dict[str, ast.stmt], dict[str, Place]]:
    """Return what a module of the rules defines, and what it takes from others of them."""
    path = Path(str(importlib.import_module(module).__file__))
    bodies: dict[str, ast.stmt] = {}
    imported: dict[str, Place] = {}
    for item in ast.parse(path.read_text("utf-8")).body:
        match item:
            case ast.FunctionDef(name=name):
                bodies[name] = item
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                bodies[name] = item
            case ast.ImportFrom(module=str(source)) if source.startswith("fencer.core."):
                imported |= {one.name: (source, one.name) for one in item.names}
    return bodies, imported
