"""What the sieve keeps back, and what it lets through."""

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencer.core.text import printable
from fencer.support.sieve import LEFT_OUT, PART_CHARS, Sieve
from tests.support.amounts import examples

TOKEN = "0f3c1d9a-77aa-4b1e-9d55-CANARY52ab10"  # noqa: S105 - of nobody
TEXT = "home: 401: the token {} was refused"


@given(st.text(min_size=4), st.text(), st.text())
@settings(max_examples=examples())
def test_a_secret_never_passes(secret, before, after):
    passed = Sieve([secret]).text(before + secret + after)
    assert len(secret) < PART_CHARS or secret not in passed


@given(st.integers(0, len(TOKEN) - PART_CHARS), st.integers(PART_CHARS, len(TOKEN)))
@settings(max_examples=examples())
def test_no_part_of_a_secret_passes(begin, length):
    part = TOKEN[begin : begin + length]
    assert Sieve([TOKEN]).text(TEXT.format(part)) == TEXT.format(LEFT_OUT)


@pytest.mark.parametrize("secret", ['pa"ss\\wörd-CANARY', "tab\tCANARY-and-more", TOKEN])
@pytest.mark.parametrize(
    "encode",
    [
        json.dumps,
        lambda secret: quote(secret, safe=""),
        printable,
        repr,
        lambda secret: base64.b64encode(secret.encode()).decode(),
        lambda secret: base64.b64encode(f"me:{secret}".encode()).decode(),
        lambda secret: base64.b64encode(f"user:{secret} ".encode()).decode(),
    ],
    ids=["json", "percent", "printable", "repr", "base64", "basic", "basic, shifted"],
)
def test_a_secret_passes_in_no_other_form(secret, encode):
    encoded = encode(secret)
    passed = Sieve([secret]).text(TEXT.format(encoded))
    parts = {encoded[at : at + PART_CHARS] for at in range(4, len(encoded) - PART_CHARS - 3)}
    assert not any(part in passed for part in parts)


@pytest.mark.parametrize("secret", ["hunt", "hunter2"])
def test_a_short_secret_is_taken_out_where_it_is_a_word(secret):
    sieve = Sieve([secret])
    assert sieve.text(f"password={secret}, no hunters") == f"password={LEFT_OUT}, no hunters"


def test_what_is_too_short_to_be_a_secret_spoils_nothing():
    assert Sieve(["", "a", "off"]).text("a node is off") == "a node is off"


def test_what_was_left_out_of_the_configuration_appears_nowhere_else():
    long = "x" * 200
    sieve = Sieve([], ["fencer", "me@box", long, "lab"], ["lab"])
    assert sieve.text("box: ssh me@box VBoxManage") == f"box: ssh {LEFT_OUT} VBoxManage"
    assert sieve.text(f"not {long[:60]}…, not {long}") == f"not {LEFT_OUT}, not {LEFT_OUT}"
    assert sieve.text("fencer: lab ok, 7 nodes") == "fencer: lab ok, 7 nodes"


@pytest.mark.parametrize(
    "text",
    [
        "401: {} eyJhbGciOiJSUzI1NiJ9.eyJDQU5BUlkiOjF9.CANARY was refused",
        "Authorization: Bearer 7CANARY-old-token",
        "PVEAPIToken=fencer@pve!agent=CANARY",
        "Cookie: PVEAuthCookie=PVE:root@pam:CANARY::CANARY==",
        "proxy http://me:CANARY@proxy:3128 refused",
        "-----BEGIN PRIVATE KEY-----\nCANARY\n-----END PRIVATE KEY-----",
    ],
)
def test_an_old_secret_that_nobody_knows_any_more_is_seen_by_its_looks(text):
    passed = Sieve([]).text(text)
    assert "CANARY" not in passed
    assert LEFT_OUT in passed


def test_data_keeps_its_shape():
    data = {"a": [1, None, True, f"x {TOKEN}"], TOKEN: {"b": TOKEN}}
    assert Sieve([TOKEN]).data(data) == {"a": [1, None, True, f"x {LEFT_OUT}"], LEFT_OUT: {"b": LEFT_OUT}}


def test_ordinary_sentences_pass():
    text = "lab: qemu+ssh://fencer@lab1/system: permission denied (publickey), basic authentication failed"
    assert Sieve([TOKEN], ["other"]).text(text) == text


def test_a_word_that_stands_in_a_secret_does_not_save_the_rest_of_it():
    sieve = Sieve([TOKEN], [TOKEN[4:12], TOKEN[:9] + "z"])
    assert sieve.text(TEXT.format(TOKEN)) == TEXT.format(LEFT_OUT)


@pytest.mark.parametrize(
    "text",
    [
        "eyJ" * 700_000,
        "basic " + " " * 2_000_000,
        "//" * 1_000_000,
        "//a:" * 500_000,
        "-----BEGIN " * 200_000,
    ],
    ids=["tokens", "spaces", "slashes", "users", "keys"],
)
def test_large_texts_of_any_kind_pass_with_many_words_left_out(text):
    """Each takes half a second; trying every word everywhere, the test would not end."""
    words = [f"guest {number}" for number in range(5000)]
    assert len(Sieve([TOKEN], words).text(text)) >= len(text) // 2
