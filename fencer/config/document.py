"""YAML text as plain values that remember their lines.

Only what a configuration needs is read: mappings with plain keys, lists, text, whole numbers, decimals,
``true``, ``false`` and nothing, by the core schema of YAML 1.2. So ``no`` and ``12:30`` are text, and a wrong
type is reported instead of guessed. Tags and aliases are refused: a configuration does not need them, and an
attacker could use them. The text is read as a stream of events, so that its depth is bounded beforehand.

Source: YAML 1.2.2, section 10.3.2, the core schema's tag resolution.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml

from fencer.core.text import printable
from fencer.errors import ConfigError

Place: TypeAlias = tuple[str | int, ...]
"""Where in the document: keys and list indices from the top."""

MAX_BYTES = 1 << 20
"""Three times what 5,000 mapped nodes take."""
MAX_ENTRIES = 20_000
"""Keys and list items; four times as many as 5,000 mapped nodes have."""
MAX_DEPTH = 16
"""Four times what the schema needs."""

SHOWN_CHARS = 60
"""How much of a wrong value a message repeats."""

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser where PyYAML was built with it: ten times as fast."""

_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_DECIMAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_CONTROL = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PLAIN_KEY = re.compile(r"[\w-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with the configuration.

    Attributes:
        line: The line to look at, from 1; None: no line is to blame.
        text: What is wrong and what would be right, one sentence that begins with the key.
    """

    line: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file.

    Attributes:
        name: The file's name for messages.
        root: Its values: dict, list, str, int, float, bool, None.
        lines: The line of each key and list item.
        problems: Errors so far, although the rest could be read.
    """

    name: str
    root: Any
    lines: Mapping[Place, int]
    problems: tuple[Problem, ...] = ()

    def at(self, place: Place) -> Any:
        """Return the value at a place; None: there is none."""
        value = self.root
        for part in place:
            try:
                value = value[part]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def line(self, place: Place) -> int | None:
        """Return the line of a place, or of the nearest written thing around it; None for the whole."""
        for length in range(len(place), 0, -1):
            if (line := self.lines.get(place[:length])) is not None:
                return line
        return None


def spell(place: Place) -> str:
    """Write a place as people do: ``hypervisors[0].uri``."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f'["{printable(part)}"]'
    return text


def quoted(text: str) -> str:
    """Quote a text that was seen, printable and shortened."""
    return f'"{printable(text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…")}"'


def refusal(name: str, problems: tuple[Problem, ...], *, most: int = 100) -> ConfigError:
    """Put problems into one error, a line each, by the lines they are on.

    Args:
        name: The file's name.
        problems: At least one.
        most: How many are spelled out at most (count).
    """
    ordered = sorted(problems, key=lambda problem: problem.line or 0)
    where = printable(name)
    lines = [
        f"{where}:{problem.line}: {problem.text}" if problem.line else f"{where}: {problem.text}"
        for problem in ordered[:most]
    ]
    if len(ordered) > most:
        lines.append(f"{where}: and {len(ordered) - most} more")
    return ConfigError("\n".join(lines))


def parse(data: bytes, name: str, loader: Any = LOADER) -> Document:
    """Read YAML.

    Args:
        data: The file's content.
        name: The file's name, for messages.
        loader: PyYAML's loader whose parser is used.

    Raises:
        ConfigError: it is not YAML, or nothing that a configuration may be.
    """
    text = _decoded(data, name)
    events = yaml.parse(text, Loader=loader)
    try:
        return _Builder(name, events).document()
    except yaml.MarkedYAMLError as error:
        raise refusal(name, (_syntax(error, text),)) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # the latter: \U escapes of no character
        raise refusal(name, (Problem(None, f"not YAML: {printable(str(error))}"),)) from error


def scalar(text: str) -> str | int | float | bool | None:
    """Return what an unquoted word means in YAML 1.2's core schema (decimal numbers only)."""
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return float(text)
    return text


def _decoded(data: bytes, name: str) -> str:
    if len(data) > MAX_BYTES:
        raise refusal(name, (Problem(None, f"larger than {MAX_BYTES:,} bytes: is it the right file?"),))
    if data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        text = "begins with a byte-order mark: save it as UTF-8 without BOM"
        raise refusal(name, (Problem(1, text),))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        said = f"the byte 0x{data[error.start]:02x} is not UTF-8: save the file as UTF-8"
        raise refusal(name, (Problem(line, said),)) from error
    if found := _CONTROL.search(text):
        line = text.count("\n", 0, found.start()) + 1
        said = (
            f"the control character {printable(found[0])} may only be written as an escape, in double quotes"
        )
        raise refusal(name, (Problem(line, said),))
    return text


def _syntax(error: yaml.MarkedYAMLError, text: str) -> Problem:
    simple_key = error.context_mark if "simple key" in (error.context or "") else None
    mark = simple_key or error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else None
    written = text.splitlines()[line - 1] if line and line <= len(text.splitlines()) else ""
    if "\t" in written[: len(written) - len(written.lstrip())]:
        return Problem(line, "indented with a tab: YAML wants spaces")
    said = ", ".join(printable(part) for part in (error.context, error.problem) if part)
    if error.context_mark and line and error.context_mark.line + 1 < line:
        said += f" (begun on line {error.context_mark.line + 1})"
    return Problem(line, f"not YAML: {said}")


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


@dataclass(slots=True)
class _Builder:
    """Builds a `Document` from parser events, following no alias and never deeper than `MAX_DEPTH`."""

    name: str
    events: Iterator[Any]
    lines: dict[Place, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def document(self) -> Document:
        root: Any = None
        documents = 0
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self.complain(_line(event), (), "a second document begins: one file, one document")
                    break
            elif isinstance(event, yaml.NodeEvent):
                root = self.value(event, ())
        return Document(self.name, root, self.lines, tuple(self.problems))

    def value(self, event: Any, place: Place) -> Any:
        line = _line(event)
        if len(place) > MAX_DEPTH:
            raise refusal(self.name, (Problem(line, f"nested deeper than {MAX_DEPTH} levels"),))
        if len(self.lines) > MAX_ENTRIES:
            raise refusal(self.name, (Problem(line, f"more than {MAX_ENTRIES:,} keys and list items"),))
        if isinstance(event, yaml.AliasEvent):
            self.complain(line, place, "aliases (a name after *) are not read: write the value out")
            return None
        if event.tag is not None:
            self.complain(
                line, place, "tags (a word after !) are not read: leave it out, or put it in quotes"
            )
        if isinstance(event, yaml.MappingStartEvent):
            return self.mapping(place)
        if isinstance(event, yaml.SequenceStartEvent):
            return self.sequence(place)
        return scalar(event.value) if event.implicit[0] else event.value

    def mapping(self, place: Place) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for event in self.events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            line = _line(event)
            if not isinstance(event, yaml.ScalarEvent):
                self.complain(line, place, "a key must be a plain word")
                self.value(event, (*place, "?"))
                self.value(next(self.events), (*place, "?"))
                continue
            here = (*place, event.value)
            if event.value in result:
                self.complain(line, here, f"written twice; first on line {self.lines[here]}")
                self.value(next(self.events), (*place, "?"))
            else:
                self.lines[here] = line
                result[event.value] = self.value(next(self.events), here)
        return result

    def sequence(self, place: Place) -> list[Any]:
        result: list[Any] = []
        for event in self.events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            here = (*place, len(result))
            self.lines[here] = _line(event)
            result.append(self.value(event, here))
        return result

    def complain(self, line: int, place: Place, text: str) -> None:
        where = spell(place)
        self.problems.append(Problem(line, f"{where}: {text}" if where else text))
