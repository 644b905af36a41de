"""The report for a ticket: what others have named cannot become anything but text in it."""

import re

import pytest

from fencer.report.markdown import escaped, markdown
from tests.report.build import HOSTILE, LONG, by_hand, crashed, spoiled, told


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("demo/db-1", "demo/db-1"),
        ("a|b", r"a\|b"),
        ("`rm`", r"\`rm\`"),
        ("<b>", r"\<b\>"),
        ("two\nlines", r"two\\nlines"),
        ("*_~", r"\*\_\~"),
        ("[x](y)", r"\[x\](y)"),
        ("# head", r"\# head"),
        ("- item", r"\- item"),
        ("1. item", r"1\. item"),
        ("1) item", r"1\) item"),
        ("=", r"\="),
        ("&lt;", r"\&lt;"),
        ("https://evil.example", r"https\://evil.example"),
        ("tell @team", "tell @\u2060team"),
        ("fencer@pve1", "fencer@pve1"),
        ("\u202eevil", r"\\u202eevil"),
        ("back\\slash", r"back\\slash"),
        ("${x} $y$", r"\$\{x\} \$y\$"),
    ],
)
def test_every_sign_that_means_something_is_shown_as_it_is(text, expected):
    assert escaped(text) == expected


def test_the_text_tells_what_the_page_tells():
    text = markdown(told(crashed()))
    assert text.startswith(
        "# k8s-2, incident dd0fab59\n\nstopped → fenced in 55 s, 4 pods cleared, 3 volumes"
    )
    assert "\n| 01:02:06 | 2 s | volumes released | Kubernetes to detach them |\n" in text
    assert "\n| demo/db-1 | StatefulSet/db | 01:02:06 | 53 s |\n" in text
    assert "\n- 01:02:06 **to be fenced** its guest is proven off\n" in text
    assert "\n  - ✓ held: read off 38 times over 53 s\n" in text


def test_a_persons_words_stand_in_it():
    assert "over-brake: the rack is gone; exit code 0" in markdown(told(by_hand()))


def unescaped(sign, line):
    return len(re.findall(rf"(?<!\\)(?:\\\\)*{re.escape(sign)}", line))


@pytest.mark.parametrize("words", [HOSTILE, LONG, "`", "``|``", "\n\n- [ ] do it"], ids=range(5))
def test_names_from_outside_break_out_of_nothing(words):
    plain, spoilt = (markdown(told(one)).splitlines() for one in (crashed(), spoiled(crashed(), words)))
    assert len(plain) == len(spoilt)  # no line more, and each is of the same sort
    for before, after in zip(plain, spoilt, strict=True):
        lead = re.match(r"[#|\-\s✓✗]*", before)[0]
        assert after.startswith(lead)
        assert unescaped("|", after) == unescaped("|", before)
        assert unescaped("<", after) == 0
        assert not re.search(r"(?<!\\)\]\(", after)
