"""The schema's objections, for people: the key, what was seen, what is accepted."""

import re
from collections.abc import Iterable
from typing import Any

from pydantic_core import ErrorDetails

from fencer.config.document import Document, Place, Problem, quoted, spell
from fencer.config.schema import OTHERS, OWN, File, sections_at, type_of
from fencer.core.text import near, printable
from fencer.hypervisors.adapters import installed

_ACCEPTED = {
    "model_type": "a mapping (`key: value` lines)",
    "model_attributes_type": "a mapping (`key: value` lines)",
    "dict_type": "a mapping (`key: value` lines)",
    "list_type": "a list (lines that begin with a dash)",
    "string_type": "text",
    "float_type": "a number",
    "finite_number": "a number",
    "int_type": "a whole number",
    "bool_type": "true or false",
}
_IN_SECONDS = {"ms": 0.001, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600}
_DURATION = re.compile(rf"\s*([0-9]+(?:\.[0-9]+)?)\s*({'|'.join(_IN_SECONDS)})\s*")


def complaints(errors: Iterable[ErrorDetails], document: Document) -> tuple[Problem, ...]:
    """Translate pydantic's errors.

    Args:
        errors: As pydantic lists them.
        document: What was validated.
    """
    return tuple(_complaint(error, document) for error in errors)


def place_in(document: Document, loc: tuple[str | int, ...]) -> Place:
    """Turn pydantic's location into a place of the document.

    pydantic adds the name of a union's member and "[key]", which nobody wrote. The last part is kept: a
    missing key is named by it.
    """
    place: Place = ()
    loc = tuple(part for part in loc if part not in {OWN, OTHERS})
    for index, part in enumerate(loc):
        within = document.at(place)
        written = part in within if isinstance(within, dict) else isinstance(within, list)
        if written or (index == len(loc) - 1 and part != "[key]"):
            place = (*place, part)
    return place


def _complaint(error: ErrorDetails, document: Document) -> Problem:
    loc = (*error["loc"], "type") if error["type"].startswith("union_tag") else error["loc"]
    place = place_in(document, loc)
    where = spell(place) or "the file"
    return Problem(document.line(place), f"{where}: {_sentence(error, place, document)}")


def _sentence(error: ErrorDetails, place: Place, document: Document) -> str:
    match error["type"]:
        case "extra_forbidden":
            said = f"unknown key{_known(place, document)}"
        case "missing" | "union_tag_not_found":
            said = f"missing{_example(place)}"
        case "union_tag_invalid":
            said = _type(error["ctx"]["expected_tags"], document.at(place), place)
        case "too_short":
            said = "must not be empty"
        case "value_error":
            said = str(error["ctx"]["error"])
        case "enum" | "literal_error":
            said = _one_of(error["ctx"]["expected"], error["input"])
        case kind if kind in _ACCEPTED:
            said = _wrong_type(kind, error["input"], place)
        case _:
            said = printable(error["msg"])
    return said


def _known(place: Place, document: Document) -> str:
    word = str(place[-1])
    sections = sections_at(place[:-1], lambda at: document.at((*at, "type")))
    here = [name for section in sections for name in section.model_fields]
    if hint := near(word, here):
        return hint
    others = [section for section in sections_at(place[:-1]) if word in section.model_fields]
    if types := [type_ for section in others if (type_ := type_of(section)) not in {"", OTHERS}]:
        return f"; it is of type {' or '.join(types)}"
    if [type_of(section) for section in sections] == [OTHERS]:
        return "; what the adapter wants to know belongs under `settings:`"
    if any(type_of(section) == OTHERS for section in others):
        return "; it is for hypervisors whose adapter another package brings"
    homes: list[Place] = [(), *((name,) for name in File.model_fields)]
    for home in homes:
        if any(word in section.model_fields for section in sections_at(home)):
            return f"; it belongs under `{spell(home)}:`" if home else "; it belongs at the top level"
    return f"; known here: {', '.join(here)}"


def _example(place: Place) -> str:
    for section in sections_at(place[:-1]):
        known = section.model_fields.get(str(place[-1]))
        if known is not None and known.examples and not isinstance(known.examples[0], list | dict):
            example = known.examples[0]
            shown = str(example).lower() if isinstance(example, bool) else example
            return f"; for example `{place[-1]}: {shown}`"
    return ""


def _one_of(expected: str, value: Any) -> str:
    words = re.findall(r"'([^']*)'", expected)
    hint = near(value, words) if isinstance(value, str) else ""
    return f"must be {' or '.join(words)}, {_seen(value)}{hint}"


def _type(own: str, value: Any, place: Place) -> str:
    """Name the types that there are; of hypervisors also those of installed packages."""
    if place[0] != "hypervisors":
        return _one_of(own, value)
    others = installed()
    said = _one_of(", ".join([own, *(f"'{printable(name)}'" for name in others)]), value)
    if not isinstance(value, str) or "did you mean" in said:
        return said
    if others:
        return f"{said}; if another package brings its adapter, install that beside fencer"
    return f"{said}; no adapter of another package is installed beside fencer"


def _wrong_type(kind: str, value: Any, place: Place) -> str:
    accepted = _ACCEPTED[kind]
    in_seconds = accepted == "a number" and str(place[-1]).endswith("_s")
    if in_seconds:
        accepted = "a plain number of seconds"
        if isinstance(value, str) and (found := _DURATION.fullmatch(value)):
            return f"is in seconds: write {float(found[1]) * _IN_SECONDS[found[2]]:g}, not {quoted(value)}"
    if place == ("journal",) and isinstance(value, str):  # as it was before it was a section
        return (
            "is a section now, and no file of JSON lines is written any more: leave it out, or write "
            "`journal: {file: /srv/fencer/journal.db}`; `fencer journal export` writes JSON"
        )
    if place == ("journal",) and isinstance(value, bool):
        return f"is a section: write `journal: {{enabled: {str(value).lower()}}}`"
    if kind in {"model_type", "model_attributes_type", "dict_type", "list_type"}:
        return f"must be {accepted}, {_seen_kind(value)}"
    hint = ": put it in quotes" if kind == "string_type" and isinstance(value, int | float) else ""
    return f"must be {accepted}, {_seen(value)}{hint}"


def _seen(value: Any) -> str:
    if isinstance(value, bool):
        return f"not {str(value).lower()}"
    if isinstance(value, int | float):
        return f"not {value:.15g}"
    return f"not {quoted(value)}" if isinstance(value, str) else _seen_kind(value)


def _seen_kind(value: Any) -> str:
    if value is None:
        return "and is empty"
    kinds = {dict: "a mapping", list: "a list", str: "text", bool: "true or false"}
    return f"not {kinds.get(type(value), 'a number')}"
