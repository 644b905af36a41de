"""Text from outside, fit for a terminal."""

import pytest

from fencer.core.text import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("k8s-1", "k8s-1"),
        ("Zürich 東京 😀", "Zürich 東京 😀"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x1b[2J\x7f\x9b", "\\x1b[2J\\x7f\\x9b"),
        ("\u202egnp\u200b\u2028", "\\u202egnp\\u200b\\u2028"),
        ("\ud800", "\\ud800"),
        ("", ""),
    ],
)
def test_only_what_can_be_seen_stays(text, shown):
    assert printable(text) == shown
    assert printable(text).isprintable()
