"""YAML as values with lines: what is read, what is refused, and how it is said."""

import pytest
import yaml

from fencer.config.document import MAX_BYTES, MAX_DEPTH, parse, quoted, spell
from fencer.errors import ConfigError

LOADERS = [yaml.SafeLoader, *([yaml.CSafeLoader] if yaml.__with_libyaml__ else [])]
"""Installations differ in which of them is used; people must not notice."""


@pytest.fixture(params=LOADERS, ids=lambda loader: loader.__name__)
def loader(request):
    return request.param


def refused(data: bytes, loader) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(data, "f.yaml", loader)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("0", 0),
        ("5.5", 5.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1e999", float("inf")),
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ('"5"', "5"),
        ("'true'", "true"),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("12:30", "12:30"),
        ("010", "010"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("2024-01-01", "2024-01-01"),
        ("12345678123456781234567812345678", "12345678123456781234567812345678"),
        ("=", "="),
        ("|-\n  two\n  lines", "two\nlines"),
        ('"\\U0001f600\\e"', "\U0001f600\x1b"),
    ],
)
def test_scalars_mean_what_they_look_like(loader, text, value):
    assert parse(f"key: {text}\n".encode(), "f.yaml", loader).root == {"key": value}


def test_lines_are_those_of_keys_and_items(loader):
    document = parse(b"\n# comment\na: 1\nb:\n  - x\n  - c: 2\n    d: [3,\n      4]\n", "f.yaml", loader)
    assert document.root == {"a": 1, "b": ["x", {"c": 2, "d": [3, 4]}]}
    assert dict(document.lines) == {
        ("a",): 3,
        ("b",): 4,
        ("b", 0): 5,
        ("b", 1): 6,
        ("b", 1, "c"): 6,
        ("b", 1, "d"): 7,
        ("b", 1, "d", 0): 7,
        ("b", 1, "d", 1): 8,
    }
    assert document.line(("b", 1, "missing")) == 6
    assert document.line(("missing",)) is None


def test_windows_line_ends_are_lines(loader):
    assert parse(b"a: 1\r\nb: 2\r\n", "f.yaml", loader).lines == {("a",): 1, ("b",): 2}


def test_keys_are_always_text(loader):
    assert parse(b"1: a\ntrue: b\n~: c\n", "f.yaml", loader).root == {"1": "a", "true": "b", "~": "c"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a: 1\n\tb: 2\n", "f.yaml:2: indented with a tab: YAML wants spaces"),
        (b"a:\n\t- 1\n", "f.yaml:2: indented with a tab: YAML wants spaces"),
        (b"\xef\xbb\xbfa: 1\n", "f.yaml:1: begins with a byte-order mark: save it as UTF-8 without BOM"),
        ("a: 1\n".encode("utf-16"), "f.yaml:1: begins with a byte-order mark: save it as UTF-8 without BOM"),
        (b"a: 1\nb: \xff\n", "f.yaml:2: the byte 0xff is not UTF-8: save the file as UTF-8"),
        (
            b"a: 1\nb: \x1b[2J\n",
            "f.yaml:2: the control character \\x1b may only be written as an escape, in double quotes",
        ),
        (
            b"a: 1\nb: \x00\n",
            "f.yaml:2: the control character \\x00 may only be written as an escape, in double quotes",
        ),
        (b"a: " + b"x" * MAX_BYTES, "f.yaml: larger than 1,048,576 bytes: is it the right file?"),
        (b"a: [" + b"b," * 30_000 + b"]", "f.yaml:1: more than 20,000 keys and list items"),
        (b"[" * 10_000, f"f.yaml:1: nested deeper than {MAX_DEPTH} levels"),
        (b"- " * 10_000, f"f.yaml:1: nested deeper than {MAX_DEPTH} levels"),
        (b"? " * 10_000, f"f.yaml:1: nested deeper than {MAX_DEPTH} levels"),
    ],
)
def test_what_is_no_text_for_a_configuration_is_refused(loader, data, said):
    assert refused(data, loader) == said


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"a: b: c\n", 1),
        (b"a: 1\nb\n", 2),
        (b"a: 1\nb: @x\n", 2),
        (b"a: 1\nb: {c: 1\n", 3),
        (b"a: 1\nb: 'x\n", 3),
    ],
)
def test_broken_yaml_names_the_line(loader, data, line):
    assert refused(data, loader).startswith(f"f.yaml:{line}: not YAML: ")


def test_an_unclosed_bracket_names_where_it_began(loader):
    assert "(begun on line 2)" in refused(b"a: 1\nb: {c: 1\nd: 2\ne: 3\n", loader)


def test_an_escape_for_no_character_is_refused(loader):
    assert "not YAML" in refused(b'a: "\\UFFFFFFFF"\n', loader)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a: 1\nb: 2\na: 3\n", [(3, "a: written twice; first on line 1")]),
        (
            b"a: {b: 1, b: {b: 2, b: 3}}\n",
            [(1, 'a["?"].b: written twice; first on line 1'), (1, "a.b: written twice; first on line 1")],
        ),
        (b"a: &x 1\nb: *x\n", [(2, "b: aliases (a name after *) are not read: write the value out")]),
        (
            b"a: !!python/name:os.system x\n",
            [(1, "a: tags (a word after !) are not read: leave it out, or put it in quotes")],
        ),
        (b"? [a]\n: 1\nb: 2\n", [(1, "a key must be a plain word")]),
        (b"a: 1\n---\nb: 2\n", [(2, "a second document begins: one file, one document")]),
    ],
)
def test_what_yaml_allows_and_a_configuration_needs_not_is_a_problem(loader, data, said):
    problems = parse(data, "f.yaml", loader).problems
    assert sorted((problem.line, problem.text) for problem in problems) == sorted(said)


def test_the_first_of_two_equal_keys_counts(loader):
    assert parse(b"a: 1\na: 2\n", "f.yaml", loader).root == {"a": 1}


def test_an_alias_bomb_costs_nothing(loader):
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 64))
    document = parse(bomb.encode(), "f.yaml", loader)
    assert len(document.problems) == 126
    assert len(document.lines) == 64 * 3


def test_places_are_spelled_as_people_write_them():
    assert spell(("hypervisors", 0, "token-file")) == "hypervisors[0].token-file"
    assert spell(("nodes", "a.b")) == 'nodes["a.b"]'
    assert spell(("nodes", "\x1b[2J")) == 'nodes["\\x1b[2J"]'
    assert spell(()) == ""


def test_values_seen_are_escaped_and_shortened():
    assert quoted("a\nb\x1b") == '"a\\nb\\x1b"'
    assert len(quoted("x" * 1000)) == 63
