"""Observations and policies as bytes: what comes back is what went in, and what is damaged is said."""

import json
import zlib
from dataclasses import replace

import pytest
from hypothesis import given, settings

from fencer.core.policy import Mode, PausedGuest, Policy
from fencer.errors import JournalError
from fencer.journal.codec import pack, policy_from, policy_text, unpack
from tests.core.build import GUEST, evidence, node, observation
from tests.core.test_properties import observations


@given(observations)
@settings(max_examples=150)
def test_an_observation_comes_back_as_it_was(seen):
    assert unpack(pack(seen)) == seen


def test_the_silence_of_a_node_that_was_never_looked_at_is_infinite_still():
    seen = observation(looked_s=float("inf"))
    assert unpack(pack(seen)).looked_s == float("inf")


def test_names_with_half_a_character_come_back():
    name = "k8s-\ud800\n\x1b[2J\u202e"
    seen = observation(node=node(name=name), evidence=evidence(guest=replace(GUEST, name=name)))
    assert unpack(pack(seen)) == seen


def changed(change):
    """An observation of another fencer: packed, changed, and packed again."""
    text = json.loads(zlib.decompress(pack(observation())))
    change(text["value"])
    return zlib.compress(json.dumps(text).encode())


def test_what_an_older_fencer_did_not_know_has_its_default():
    packed = changed(lambda seen: seen.pop("stopped_as"))
    assert unpack(packed) == observation()


def test_what_only_a_newer_fencer_knows_is_left_out():
    packed = changed(lambda seen: seen.update(phase_of_the_moon="full"))
    assert unpack(packed) == observation()


def test_an_observation_without_what_has_no_default_says_what_is_missing():
    packed = changed(lambda seen: seen["node"].pop("boot_id"))
    with pytest.raises(JournalError, match=r"value\.node\.boot_id: Field required"):
        unpack(packed)


@pytest.mark.parametrize(
    "packed",
    [b"", b"no zlib", pack(observation())[:40], zlib.compress(b"no JSON"), zlib.compress(b"[]")],
    ids=["empty", "foreign", "torn", "no JSON", "another shape"],
)
def test_a_damaged_observation_is_an_error_of_the_journal(packed):
    with pytest.raises(JournalError, match="cannot be read"):
        unpack(packed)


def test_a_policy_comes_back_as_it_was():
    policy = Policy(mode=Mode.ARMED, paused_guest=PausedGuest.TRUST, max_fenced=3, lease_silent_s=0.0)
    assert policy_from(policy_text(policy)) == policy


def test_a_policy_with_a_word_of_another_fencer_is_said():
    text = policy_text(Policy()).replace('"observe"', '"daring"')
    with pytest.raises(JournalError, match=r"a policy cannot be read: value\.mode"):
        policy_from(text)
