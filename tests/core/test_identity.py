"""Who is who: UUIDs in every spelling, maps, clones, and what the Node says of itself."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.core.identity import Admission, Directory, Rules, canonical, new_binding, resolve, swapped
from fencer.core.model import Binding, GuestHistory, GuestRef, PowerState, Unreadable, Via
from tests.core.build import BOOT, GUEST, NEW_BOOT, OTHER, UUID, evidence, healthy, node, observation, run

UNBOUND = node(binding=None)
STRANGER = GuestRef("lab", "s", "99999999-0000-4000-8000-000000000001", "k8s-2")


def found(node_, guests, rules=None, nodes=()):
    return Directory(guests, (node_, *nodes), rules or Rules()).candidates(node_)


@pytest.mark.parametrize("spelling", [UUID, UUID.upper(), f" {UUID} ", UUID.replace("-", "")])
def test_a_uuid_is_found_in_every_spelling(spelling):
    [candidate] = found(replace(UNBOUND, system_uuid=spelling), (GUEST, STRANGER))
    assert (candidate.guest, candidate.via) == (GUEST, Via.UUID)


def test_virtualbox_byte_order_counts_only_where_no_straight_match_is():
    turned = replace(UNBOUND, system_uuid=swapped(UUID))
    [candidate] = found(turned, (GUEST,))
    assert candidate.via is Via.UUID_SWAPPED
    straight = replace(GUEST, uuid=swapped(UUID), id="straight")
    [candidate] = found(turned, (GUEST, straight))
    assert (candidate.guest, candidate.via) == (straight, Via.UUID)


@pytest.mark.parametrize(
    "nothing",
    ["", "Not Settable", "00000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"],
)
def test_what_firmware_says_without_a_uuid_matches_nothing(nothing):
    same = replace(GUEST, uuid=nothing.lower())
    assert found(replace(UNBOUND, system_uuid=nothing), (same,)) == ()


def test_a_name_alone_never_counts():
    assert found(replace(UNBOUND, system_uuid=""), (replace(STRANGER, name="k8s-2"),)) == ()


@pytest.mark.parametrize("label", [GUEST.uuid, "k8s-2"])
def test_a_map_names_a_guest_by_uuid_or_name(label):
    rules = Rules(nodes={"k8s-2": ("lab", label)})
    [candidate] = found(replace(UNBOUND, system_uuid=""), (GUEST,), rules)
    assert candidate.via is Via.MAP
    assert found(UNBOUND, (GUEST,), Rules(nodes={"k8s-2": ("elsewhere", label)})) == ()


def test_a_map_by_a_name_that_two_guests_bear_is_ambiguous():
    twins = (GUEST, replace(STRANGER, name=GUEST.name))
    rules = Rules(nodes={"k8s-2": ("lab", GUEST.name)})
    assert len(found(UNBOUND, twins, rules)) == 2


def test_the_bound_guest_comes_first_and_is_known_even_when_it_is_gone():
    bound = node(binding=Binding(OTHER, (BOOT,)))
    assert [item.guest for item in found(bound, (GUEST, OTHER))] == [OTHER, GUEST]
    assert [item.guest for item in found(node(), ())] == [GUEST]
    mapped = Rules(nodes={"k8s-2": ("lab", "k8s-2")})
    assert [item.guest for item in found(node(), (), mapped)] == [GUEST]


def test_the_nodes_own_word_never_widens_the_choice():
    lying = node(binding=Binding(STRANGER, (BOOT,)))
    assert [item.guest for item in found(lying, (GUEST, STRANGER))] == [GUEST]
    assert found(replace(lying, system_uuid=""), (STRANGER,)) == ()
    mapped_elsewhere = Rules(nodes={"k8s-2": ("home", "105")})
    assert found(lying, (STRANGER,), mapped_elsewhere) == ()


def test_power_is_admitted_by_uuid_or_by_the_map_and_by_nothing_else():
    def admitted(rules):
        return found(UNBOUND, (GUEST,), rules)[0].power_admitted

    mapped = {"k8s-2": ("lab", "k8s-2")}
    assert admitted(Rules(admitted={"lab": Admission(uuids=frozenset({UUID}))}))
    assert admitted(Rules(nodes=mapped, admitted={"lab": Admission(mapped=True)}))
    assert not admitted(Rules(admitted={"lab": Admission(mapped=True)}))
    assert not admitted(Rules(nodes=mapped))
    assert not admitted(Rules(admitted={"home": Admission(uuids=frozenset({UUID}))}))


def test_nodes_that_report_the_same_uuid_are_rivals_unless_the_map_tells():
    twin = node(name="k8s-9", uid="n9", system_uuid=UUID.upper())
    assert Directory((GUEST,), (UNBOUND, twin), Rules()).rivals(UNBOUND) == ("k8s-9",)
    mapped = Rules(nodes={"k8s-2": ("lab", "k8s-2")})
    assert Directory((GUEST,), (UNBOUND, twin), mapped).rivals(UNBOUND) == ()


@pytest.mark.parametrize("via", list(Via))
def test_a_resolution_says_how_it_was_found(via):
    seen = observation(candidates=(replace(observation().candidates[0], via=via),))
    assert resolve(seen).seen.startswith("lab/k8s-2, ")


class TestNewBinding:
    def test_none_without_a_boot_id_a_reading_or_a_readable_annotation(self):
        assert new_binding(healthy(node=replace(healthy().node, boot_id="", binding=None)), GUEST) is None
        assert new_binding(healthy(evidence=None), GUEST) is None
        assert new_binding(healthy(node=replace(healthy().node, binding=Unreadable("x"))), GUEST) is None
        assert new_binding(healthy(evidence=evidence(PowerState.STOPPED)), GUEST) is None

    def test_a_move_to_another_host_is_written_down(self):
        moved = replace(GUEST, host="lab2")
        binding = new_binding(healthy(evidence=evidence(PowerState.RUNNING, guest=moved)), GUEST)
        assert binding.guest.host == "lab2"

    def test_the_first_binding_knows_one_boot(self):
        first = new_binding(healthy(node=replace(healthy().node, binding=None)), GUEST)
        assert first == Binding(GUEST, (BOOT,))

    def test_only_the_last_boots_are_kept(self):
        many = Binding(GUEST, tuple(f"b{n}" for n in range(16)))
        alive = replace(healthy().node, binding=many, boot_id=NEW_BOOT)
        history = GuestHistory(run(PowerState.RUNNING, boot_id=NEW_BOOT))
        binding = new_binding(healthy(node=alive, history=history), GUEST)
        assert (len(binding.boot_ids), binding.boot_ids[0], binding.boot_ids[-1]) == (16, "b1", NEW_BOOT)


@given(st.uuids())
def test_turning_bytes_twice_changes_nothing(uuid):
    assert swapped(swapped(str(uuid))) == str(uuid)


@given(st.text())
def test_any_text_is_a_uuid_or_nothing(text):
    assert canonical(text) == "" or len(canonical(text)) == 36


def test_guests_are_told_apart_by_endpoint_id_and_uuid_and_named_for_people():
    assert GUEST.key != replace(GUEST, id="other").key
    assert (str(GUEST), str(OTHER)) == ("lab/k8s-2", "home/105 on pve1")
