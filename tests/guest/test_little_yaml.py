"""The small YAML reader: whatever it reads, it reads as PyYAML does; everything else it refuses by line."""

import re
from contextlib import suppress

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fencer.guest.little_yaml import YamlError, read
from tests.support.amounts import examples

_PIECES = [
    *"\n\n\n:-#'\"{}[]|&*!,?~.%>\\ab1\t\u2028\x85\ufeff",
    *(
        "  ",
        "    ",
        ": ",
        "- ",
        " #",
        "''",
        '""',
        "---",
        "...",
        "key: ",
        "{}",
        "[]",
        "\\n",
        "\\u00e9",
        "null",
        "<<: ",
    ),
]
_fragments = st.lists(st.sampled_from(_PIECES), max_size=24).map("".join)
_words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)
_documents = st.recursive(
    _words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_words, inner, max_size=4),
    max_leaves=12,
)


def _by_pyyaml(text: str) -> object:
    return yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - makes nothing but text, lists and dicts


@settings(max_examples=examples(500))
@given(_fragments)
@example("a: 'b' #c\nd:\n- e\n-  f: g\n   h: {}\n- - i\n  - j\n")
@example("a: [\"b\", c d , 'e''f']\n")
@example('a: "\\ud83d\\ude00"\n')
def test_what_it_reads_pyyaml_reads_the_same(text: str) -> None:
    """Half-understood credentials are worse than none."""
    try:
        found = read(text)
    except YamlError:
        return
    expected = _by_pyyaml(text)
    assert found == ("" if expected is None else expected)


@given(st.dictionaries(_words, _documents, min_size=1, max_size=4))
def test_what_pyyaml_writes_is_read_or_refused(document: dict[str, object]) -> None:
    text = yaml.safe_dump(document)
    try:
        found = read(text)
    except YamlError:
        return
    assert found == _by_pyyaml(text)


@settings(max_examples=examples(200))
@given(st.text(max_size=200))
def test_no_text_makes_it_stumble(text: str) -> None:
    with suppress(YamlError):
        assert isinstance(read(text), str | list | dict)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: b\n  c: d\n", "line 2: indented"),
        ("a: &anchor b\n", "line 1: more of YAML"),
        ("a: |\n  b\n", "line 1: more of YAML"),
        ("a: b\na: c\n", "line 2: a key that is there twice"),
        ("a: 'b\n", "line 1: a quoted text that does not end"),
        ("a: b: c\n", "line 1: a second `:`"),
        ("a:\n\tb: c\n", "line 2: a character"),
        ("a: {b: c}\n", "line 1: more of YAML"),
        ("a: b\n---\nc: d\n", "line 2: more than one"),
        ("token: !secret abc\n", "line 1"),
        ("- " * 60 + "a\n", "nested too deeply"),
    ],
)
def test_a_refusal_names_the_line_and_tells_no_secret(text: str, says: str) -> None:
    with pytest.raises(YamlError, match=re.escape(says)) as refusal:
        read(text)
    assert "secret" not in str(refusal.value)
