"""Typed access to fields of JSON from outside: anything unexpected raises `ClusterProtocol`.

The API leaves out what is empty, so a missing field and a null are the same.
"""

from __future__ import annotations

from reprlib import Repr
from typing import Any, TypeVar

from fencer.errors import ClusterProtocol

T = TypeVar("T")

_SHOWN = 80
_LONGEST_VERSION = 20
"""Digits. Source: k8s.io/apiserver pkg/storage/api_object_versioner.go: a resourceVersion is a uint64."""
_brief = Repr()
_brief.maxlevel, _brief.maxdict, _brief.maxlist = 2, 4, 4
_brief.maxstring = _brief.maxother = _brief.maxlong = _SHOWN
_WORDS: dict[type, str] = {
    str: "text",
    dict: "an object",
    list: "a list",
    bool: "true or false",
    int: "a whole number",
}


def expect(value: Any, kind: type[T], place: str) -> T:
    """Return `value` if it is of that kind; `place` names it in the error."""
    # JSON's true is no number, although Python's is.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ClusterProtocol(f"{place}: expected {_WORDS[kind]}, not {shown(value)}")
    return value


def required(data: Any, *path: str) -> str:
    """Return the text at a path, which must not be empty."""
    value = _at(data, path)
    if value is None or value == "":
        raise ClusterProtocol(f"{'.'.join(path)} is missing")
    return expect(value, str, ".".join(path))


def text(data: Any, *path: str) -> str:
    """Return the text at a path; missing reads ""."""
    value = _at(data, path)
    return "" if value is None else expect(value, str, ".".join(path))


def version(data: Any) -> int:
    """Return the resourceVersion of an object or a list as a number; 0: it has none that is a number."""
    seen = text(data, "metadata", "resourceVersion")
    return int(seen) if seen.isdecimal() and len(seen) <= _LONGEST_VERSION else 0


def flag(data: Any, *path: str) -> bool:
    """Return the truth value at a path; missing reads False."""
    value = _at(data, path)
    return False if value is None else expect(value, bool, ".".join(path))


def number(data: Any, *path: str) -> int | None:
    """Return the whole number at a path; missing reads None."""
    value = _at(data, path)
    return None if value is None else expect(value, int, ".".join(path))


def mapping(data: Any, *path: str) -> dict[str, Any]:
    """Return the object at a path; missing reads {}."""
    value = _at(data, path)
    return {} if value is None else expect(value, dict, ".".join(path))


def sequence(data: Any, *path: str) -> list[Any]:
    """Return the list at a path; missing reads []."""
    value = _at(data, path)
    return [] if value is None else expect(value, list, ".".join(path))


def texts(data: Any, *path: str) -> dict[str, str]:
    """Return the map of texts at a path (labels, annotations); missing reads {}."""
    value = _at(data, path)
    place = ".".join(path)
    entries = {} if value is None else expect(value, dict, place)
    for key, entry in entries.items():
        if not isinstance(entry, str):
            expect(entry, str, f"{place}[{shown(key)}]")
    return entries


def items(data: Any, kind: str) -> list[Any]:
    """Return the items of a list answer. An answer of another kind never counts as an empty list."""
    if (seen := text(data, "kind")) != kind:
        raise ClusterProtocol(f"expected a {kind}, not {shown(seen or data)}")
    return sequence(data, "items")


def named(data: Any) -> str:
    """Return namespace and name of an object that may be malformed, for people."""
    try:
        parts = (text(data, "metadata", "namespace"), text(data, "metadata", "name"))
    except ClusterProtocol:
        return "(no name)"
    return "/".join(shown(part)[1:-1] for part in parts if part) or "(no name)"


def shown(value: Any) -> str:
    """Return a value from outside for people: escaped, on one line, shortened."""
    return _brief.repr(value)


def _at(data: Any, path: tuple[str, ...]) -> Any:
    for depth, key in enumerate(path):
        if data is None and depth:
            return None
        data = expect(data, dict, ".".join(path[:depth]) or "the object").get(key)
    return data
