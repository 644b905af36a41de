"""The state file as bytes: what comes back is what went in, and every change of it is noticed."""

import json
import re
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.core.kept import Kept
from fencer.core.model import Binding, Note, Unreadable
from fencer.state import form
from fencer.state.form import (
    LARGEST_BYTES,
    MAGIC,
    SCHEMA,
    DamagedContentError,
    ForeignContentError,
    Signer,
    derive_signer,
    pack,
    pack_signers,
    require_known,
    unpack,
    unpack_signers,
)
from tests.core.build import GUEST, OTHER, doubt, node

SIGNER = derive_signer(b"the key of a cluster, 32 bytes..")
LOCAL = Signer(b"a random key of this machine....", local=True)
BOUND = Binding(GUEST, ("boot-1", "boot-2"))
NOTE = Note("k8s-2", "uid-2", (doubt(),), BOUND, replace(BOUND, guest=OTHER))
KEPT = Kept(
    (node(binding=BOUND), node(binding=Unreadable("torn", forged=True))), (NOTE,), "2026-11-29T02:14:30Z"
)
CONTENT = pack(KEPT, SIGNER)


def signed(text, signer=SIGNER, schema=SCHEMA):
    """Return a state file with this text, rightly signed."""
    body = text.encode() + b"\n"
    signature = form._signature(signer, schema, body)
    return b'%s%d, "signature": "%s"}\n%s' % (MAGIC, schema, signature, body)


def read(content, signers=(SIGNER,)):
    """Return what a state file contains."""
    return unpack(content, signers)[0]


def test_what_is_packed_comes_back():
    assert read(CONTENT) == KEPT
    assert read(pack(Kept(), SIGNER)) == Kept()


def test_times_without_an_end_and_names_with_half_a_character_come_back():
    kept = Kept((node(name="k8s-\ud800\n\x1b[2J", deaf_s=float("inf")),), (Note("\ud800", "uid"),), "\u202e")
    assert read(pack(kept, SIGNER)) == kept


@given(st.text(), st.text(), st.lists(st.text(), max_size=3))
def test_any_text_comes_back(name, utc, boots):
    note = Note(name, utc, binding=Binding(GUEST, tuple(boots)))
    kept = Kept((node(name=name),), (note,), utc)
    assert read(pack(kept, SIGNER)) == kept


def test_any_json_reader_can_look_at_it():
    head, body = map(json.loads, CONTENT.decode().splitlines())
    assert (head["fencer"], head["schema"]) == ("state", SCHEMA)
    assert {*body["value"]} == {one.name for one in fields(Kept)}


def test_each_byte_that_changes_is_noticed():
    for at in range(len(CONTENT)):
        changed = bytearray(CONTENT)
        changed[at] ^= 1
        with pytest.raises((DamagedContentError, ForeignContentError)):
            read(bytes(changed))


def test_each_cut_and_each_addition_is_noticed():
    for at in range(len(CONTENT)):
        with pytest.raises(DamagedContentError):
            read(CONTENT[:at])
    for more in (b"\n", b" ", b"{}", b"\0"):
        with pytest.raises(DamagedContentError):
            read(CONTENT + more)


@given(st.binary(max_size=200), st.integers(0, len(CONTENT)))
def test_whatever_is_in_it_is_refused(noise, at):
    content = CONTENT[:at] + noise + CONTENT[at + len(noise) :]
    if content != CONTENT:
        with pytest.raises((DamagedContentError, ForeignContentError)):
            read(content)


def test_what_another_key_signed_is_forged():
    forged = pack(KEPT, derive_signer(b"the key of another cluster......"))
    with pytest.raises(DamagedContentError, match="has a wrong signature"):
        read(forged)


def test_without_a_key_nothing_is_believed():
    with pytest.raises(DamagedContentError, match="the key beside it is missing"):
        read(CONTENT, ())


def test_the_clusters_own_key_does_not_sign():
    """A signature on a Node and one in a state file never stand for each other."""
    key = b"the key of a cluster, 32 bytes.."
    assert derive_signer(key).key != key
    with pytest.raises(DamagedContentError):
        read(CONTENT, (Signer(key),))


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, MAGIC[:7], MAGIC[:7] + b"\0\0"])
def test_what_a_power_failure_leaves_is_damaged_and_not_foreign(content):
    with pytest.raises(DamagedContentError, match="cut off"):
        read(content)


@pytest.mark.parametrize("content", [b"root:x:0:0\n", b'{"fencer": "notified", "version": 1}\n', b"\n"])
def test_what_is_not_fencers_is_foreign(content):
    with pytest.raises(ForeignContentError, match="no state file of fencer's"):
        read(content)


@pytest.mark.parametrize("schema", [SCHEMA + 1, 999_999_999])
def test_a_newer_schema_is_left_alone_whatever_its_first_line_looks_like(schema):
    for rest in (b"}\n", b', "cipher": "rot13"}\nsecrets'):
        with pytest.raises(
            ForeignContentError, match=f"newer fencer \\(schema {schema}; this one reads {SCHEMA}"
        ):
            require_known(MAGIC + b"%d" % schema + rest)


@pytest.mark.parametrize("number", [b"0", b"-1", b"01", b"1.5", b"x", b"9999999999", b"1"])
def test_a_schema_that_is_no_number_is_damage(number):
    with pytest.raises(DamagedContentError, match="its first line"):
        read(MAGIC + number + b"}\n")


def test_a_field_that_came_later_has_its_default():
    text = re.sub(r'"utc":"[^"]*"', '"unheard_of":[1]', CONTENT.decode().splitlines()[1])
    assert '"instead_of"' in text
    older = re.sub(r',"instead_of":\{.*?\}(?=\}\],"unheard_of)', "", text)
    assert '"instead_of"' not in older
    found = read(signed(older))
    assert found == replace(KEPT, utc="", notes=(replace(NOTE, instead_of=None),))


@pytest.mark.parametrize(
    "text", ["", "[]", '{"value":7}', '{"value":{"notes":[{}]}}', "[" * 100_000, "\x1b[2J"]
)
def test_what_is_signed_and_cannot_be_read_is_damage_and_its_text_is_harmless(text):
    with pytest.raises(DamagedContentError, match="cannot be read") as caught:
        read(signed(text))
    assert str(caught.value).isprintable()


def test_one_that_is_too_large_is_damage():
    with pytest.raises(DamagedContentError, match="larger than any"):
        read(MAGIC + b"1, " + b" " * LARGEST_BYTES)


def test_five_thousand_nodes_are_some_megabytes():
    nodes = tuple(node(name=f"k8s-{number}", binding=BOUND) for number in range(5000))
    notes = tuple(replace(NOTE, node=one.name) for one in nodes)
    content = pack(Kept(nodes, notes, "2026-11-29T02:14:30Z"), SIGNER)
    assert 5_000_000 < len(content) < LARGEST_BYTES / 4
    assert len(read(content).nodes) == 5000


# -- the key -----------------------------------------------------------------------------------------------


KEYS = {
    "derived": (SIGNER,),
    "local": (LOCAL,),
    "derived and local": (SIGNER, LOCAL),
    "two local ones": (LOCAL, Signer(bytes(32), local=True)),
}


@pytest.mark.parametrize("signers", KEYS.values(), ids=KEYS)
def test_keys_come_back(signers):
    assert unpack_signers(pack_signers(signers)) == signers


@pytest.mark.parametrize("signers", KEYS.values(), ids=KEYS)
def test_each_change_of_keys_is_noticed(signers):
    content, first = pack_signers(signers), pack_signers(signers[:1])
    for at in range(len(content)):
        for changed in (content[:at], content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]):
            if changed != first:  # a whole key, and it alone
                with pytest.raises(DamagedContentError, match="is damaged"):
                    unpack_signers(changed)
    for more in (b"\n", first + first):
        with pytest.raises(DamagedContentError):
            unpack_signers(content + more)


def test_a_local_key_is_never_taken_for_a_derived_one():
    with pytest.raises(DamagedContentError):
        unpack_signers(pack_signers([LOCAL]).replace(b" local", b""))
    with pytest.raises(DamagedContentError):
        unpack_signers(pack_signers([SIGNER]).replace(b"key 1", b"key 1 local"))


def test_either_of_two_keys_may_have_signed():
    for signer in (SIGNER, LOCAL):
        assert unpack(pack(KEPT, signer), (SIGNER, LOCAL)) == (KEPT, signer)


def test_a_key_is_in_no_text():
    assert "random" not in repr(LOCAL)
