"""The configuration in force: every key with its value or default, and where each came from."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import yaml

from fencer.config.document import Document, Place, scalar
from fencer.config.keys import Section, sections_in
from fencer.config.load import Loaded, load_document
from fencer.config.redact import LEFT_OUT, redact
from fencer.core.text import printable

_PLAIN = re.compile(r"[A-Za-z/](?:[\w./@+-]|:(?=[\w/]))*", re.ASCII)
_OTHER_YAML_READS = {"y", "n", "yes", "no", "on", "off"}
"""Words that YAML 1.1 takes for true or false."""


def show(path: Path) -> str:
    """Return the configuration in force as YAML that reads back as the same configuration.

    Secrets cannot appear: the configuration holds paths of files with secrets, never what is in them.

    Args:
        path: The file.

    Raises:
        ConfigError: as `fencer.config.load.load`.
    """
    return render(load_document(path))


def show_redacted(path: Path) -> str:
    """Return the same without all that is not known to be harmless; arguments and errors as `show`."""
    loaded = load_document(path)
    return _render(redact(_filled(loaded.file)).root, loaded.document)


def render(loaded: Loaded) -> str:
    """Return a loaded configuration as YAML; a comment after each value says where it came from."""
    return _render(_filled(loaded.file), loaded.document)


def _render(values: dict[str, Any], document: Document) -> str:
    lines = _mapping(values, (), document)
    return "\n".join([f"# {printable(document.name)}", *lines, ""])


def _filled(section: Section) -> dict[str, Any]:
    """Return a section's values with the defaults of missing sections and lists."""
    values: dict[str, Any] = {}
    for name, known in type(section).model_fields.items():
        value = getattr(section, name)
        values[name] = _empty(known.annotation) if value is None else _plain(value)
    return values


def _plain(value: Any) -> Any:
    if isinstance(value, Section):
        return _filled(value)
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _empty(annotation: Any) -> Any:
    containers = {get_origin(argument) for argument in get_args(annotation)}
    if found := next((container for container in (list, dict) if container in containers), None):
        return found()
    sections = list(sections_in(annotation))
    return _filled(sections[0]()) if sections else None


def _mapping(values: dict[str, Any], place: Place, document: Document) -> Iterator[str]:
    pad = "  " * len(place)
    for name, value in values.items():
        here = (*place, name)
        if isinstance(value, dict) and value:
            yield f"{pad}{_word(name)}:"
            yield from _mapping(value, here, document)
        elif isinstance(value, list) and value:
            yield f"{pad}{_word(name)}:"
            yield from _items(value, here, document)
        else:
            yield f"{pad}{_word(name)}: {_word(value)}  # {_origin(here, value, document)}"


def _items(values: list[Any], place: Place, document: Document) -> Iterator[str]:
    pad = "  " * len(place)
    for index, value in enumerate(values):
        here = (*place, index)
        if isinstance(value, dict):
            first, *rest = _mapping(value, here, document)
            yield f"{pad}- {first.lstrip()}"
            yield from rest
        else:
            yield f"{pad}- {_word(value)}  # {_origin(here, value, document)}"


def _origin(place: Place, value: Any, document: Document) -> str:
    written = document.at(place) is not None or value == LEFT_OUT  # which may stand for several keys
    return f"line {document.line(place)}" if written else "default"


def _word(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return repr(value).removesuffix(".0")
        case int():
            return str(value)
        case str():
            return value if _is_plain(value) else _quoted(value)
    return "{}" if isinstance(value, dict) else "[]"


def _is_plain(text: str) -> bool:
    return bool(_PLAIN.fullmatch(text)) and scalar(text) == text and text.lower() not in _OTHER_YAML_READS


def _quoted(text: str) -> str:
    return str(yaml.safe_dump(text, default_style='"', width=1 << 30)).rstrip("\n")
