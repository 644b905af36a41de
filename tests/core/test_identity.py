"""Who is who: UUIDs in every spelling, maps, clones, and what the Node says of itself."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.core.decide import decide
from fencer.core.identity import (
    Admission,
    Directory,
    Rules,
    bound,
    canonical,
    leftover,
    may_have_become,
    moved_binding,
    new_binding,
    subject_of,
    swapped,
)
from fencer.core.model import (
    Binding,
    BindNode,
    Candidate,
    GuestHistory,
    GuestRef,
    PowerState,
    Reason,
    Unreadable,
    Via,
)
from fencer.core.rung import Objection
from tests.core.build import (
    ARMED,
    BOOT,
    GUEST,
    NEW_BOOT,
    OTHER,
    UUID,
    evidence,
    healthy,
    node,
    observation,
    run,
)

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


class TestGroups:
    """Power is admitted on guests of a group as long as the newest reading counts them among it."""

    RULES = Rules(admitted={"lab": Admission(groups=frozenset({"tag:fencer", "pool:k8s"}))})

    def admitted(self, *readings, rules=RULES):
        (candidate,) = Directory((GUEST,), (UNBOUND,), rules, readings=readings).candidates(UNBOUND)
        return candidate.admitted_by

    @pytest.mark.parametrize(
        ("groups", "by"),
        [
            ({"tag:fencer"}, ("tag:fencer",)),
            ({"pool:k8s", "tag:fencer", "tag:web"}, ("pool:k8s", "tag:fencer")),
            ({"pool:fencer", "tag:k8s", "tag:Fencer"}, ()),
            (set(), ()),
        ],
    )
    def test_one_of_its_groups_is_enough_and_each_is_named(self, groups, by):
        assert self.admitted(evidence(groups=frozenset(groups))) == by

    def test_a_guest_of_which_nothing_was_read_is_in_no_group(self):
        assert self.admitted() == ()

    def test_groups_of_another_endpoint_and_of_a_copy_count_for_nobody_else(self):
        tagged = frozenset({"tag:fencer"})
        copy = replace(GUEST, id="copy")
        assert self.admitted(evidence(guest=copy, groups=tagged)) == ()
        elsewhere = Rules(admitted={"home": self.RULES.admitted["lab"]})
        assert self.admitted(evidence(groups=tagged), rules=elsewhere) == ()

    def test_a_newer_reading_takes_back_and_gives(self):
        tagged = evidence(groups=frozenset({"tag:fencer"}))
        there = Directory((GUEST,), (UNBOUND,), self.RULES, readings=(tagged,))
        assert there.candidates(UNBOUND)[0].power_admitted
        there.note(replace(tagged, groups=frozenset()))
        assert not there.candidates(UNBOUND)[0].power_admitted
        there.note(tagged)
        there.note(tagged)
        assert there.candidates(UNBOUND)[0].power_admitted

    @given(
        st.sets(st.sampled_from(["tag:fencer", "pool:k8s", "pool:k8s/lab", "tag:web"])),
        st.sets(st.sampled_from(["tag:fencer", "pool:k8s", "pool:k8s/lab", "tag:web"])),
        st.sampled_from(Via),
        st.booleans(),
    )
    def test_leaving_groups_never_admits_by_a_word_more(self, written, groups, via, mapped):
        admission = Admission(mapped, frozenset(), frozenset(written))
        before = admission.admits(GUEST, via, frozenset(groups))
        for left in groups:
            after = admission.admits(GUEST, via, frozenset(groups - {left}))
            assert set(after) <= set(before)
        assert admission.nobody is not (mapped or bool(written))

    def test_who_admits_nobody_is_told_from_who_admits_somebody(self):
        assert Admission().nobody
        some = (Admission(mapped=True), Admission(uuids=frozenset({UUID})), self.RULES.admitted["lab"])
        assert not any(admission.nobody for admission in some)


@pytest.mark.parametrize(
    ("facts", "nobodys"),
    [
        ({}, True),
        ({"lease_age_s": None}, True),
        ({"ready": True}, False),
        ({"lease_renewals": 1}, False),
        ({"lease_age_s": 39.0}, False),
        ({"binding": Binding(GUEST, (BOOT,))}, False),
    ],
    ids=["silent all along", "no lease", "Ready", "heard", "not for long", "bound"],
)
def test_a_node_object_that_a_machine_left_behind_is_told_from_one_that_died(facts, nobodys):
    left = {"ready": None, "binding": None, "lease_renewals": 0, "lease_age_s": 40.0}
    assert leftover(node(**(left | facts))) is nobodys


def test_nodes_that_report_the_same_uuid_are_rivals_unless_the_map_tells():
    twin = node(name="k8s-9", uid="n9", system_uuid=UUID.upper(), binding=None)
    assert Directory((GUEST,), (UNBOUND, twin), Rules()).rivals(UNBOUND) == ("k8s-9",)
    mapped = Rules(nodes={"k8s-2": ("lab", "k8s-2")})
    assert Directory((GUEST,), (UNBOUND, twin), mapped).rivals(UNBOUND) == ()


def directory(*nodes, guests=(GUEST,), rules=None):
    """Return the directory of a pass."""
    return Directory(guests, nodes, rules or Rules())


class TestTaken:
    """A guest that is bound to a node is nobody else's, whatever other nodes say of themselves."""

    OWNER = node()

    @pytest.mark.parametrize("told", [UUID, swapped(UUID), UUID.upper()], ids=["same", "turned", "upper"])
    def test_a_node_that_reports_its_uuid_gets_nothing(self, told):
        liar = node(name="k8s-3", uid="n3", system_uuid=told, binding=None)
        both = directory(self.OWNER, liar)
        assert both.candidates(liar) == ()
        assert both.taken_by(liar) == "k8s-2"
        assert both.rivals(self.OWNER) == ()

    def test_nor_does_one_that_claims_to_be_bound_to_it_without_matching(self):
        owner = node(system_uuid="99999999-0000-4000-8000-000000000001")
        other = node(name="k8s-3", uid="n3", binding=None)
        assert directory(owner, other).taken_by(other) == ""
        assert [item.guest for item in directory(owner, other).candidates(other)] == [GUEST]

    def test_two_nodes_that_are_both_bound_to_it_are_rivals(self):
        """As after a node was given another name: the older Node object is to be deleted."""
        again = node(name="k8s-2b", uid="n2b")
        both = directory(self.OWNER, again)
        assert both.rivals(self.OWNER) == ("k8s-2b",)
        assert both.rivals(again) == ("k8s-2",)

    def test_the_map_and_its_nodes_own_uuid_outweigh_what_another_was_bound_by(self):
        """A kubelet that lied before the other node was ever seen does not keep it from being fenced."""
        liar = node(name="k8s-3", uid="n3")
        both = directory(UNBOUND, liar, rules=Rules(nodes={"k8s-2": ("lab", "k8s-2")}))
        assert [item.guest for item in both.candidates(UNBOUND)] == [GUEST]
        assert both.rivals(UNBOUND) == ()
        assert both.candidates(liar) == ()
        assert both.taken_by(liar) == "k8s-2"

    def test_a_map_and_a_uuid_that_lead_to_one_guest_make_rivals(self):
        mapped, reporting = node(name="k8s-1", uid="n1", system_uuid="", binding=None), UNBOUND
        both = directory(mapped, reporting, rules=Rules(nodes={"k8s-1": ("lab", "k8s-2")}))
        assert both.rivals(mapped) == ("k8s-2",)
        assert both.rivals(reporting) == ("k8s-1",)

    def test_a_straight_and_a_turned_uuid_that_lead_to_one_guest_make_rivals(self):
        turned = node(name="k8s-3", uid="n3", system_uuid=swapped(UUID), binding=None)
        assert directory(UNBOUND, turned).rivals(UNBOUND) == ("k8s-3",)

    def test_a_guest_without_a_node_is_said_to_be_taken(self):
        seen = replace(observation(node=UNBOUND), candidates=(), taken_by="k8s-1")
        assert bound(seen).reason is Reason.GUEST_TAKEN
        assert "k8s-1" in bound(seen).seen


class TestWhoseItIs:
    """A kubelet may say whose it is, and write what is not signed: neither takes a guest from anybody."""

    LIAR = node(name="k8s-3", uid="n3", binding=Binding(GUEST, (BOOT,), schema=1))

    def test_what_was_signed_goes_before_what_was_not(self):
        both = directory(node(), self.LIAR)
        assert both.rivals(node()) == ()
        assert both.candidates(self.LIAR) == ()

    def test_among_the_unsigned_alone_as_before_an_upgrade_nobody_goes_first(self):
        old = node(binding=Binding(GUEST, (BOOT,), schema=1))
        assert directory(old, self.LIAR).rivals(old) == ("k8s-3",)

    def test_a_copy_of_somebodys_guest_is_nobody_elses_either(self):
        copied = Directory((GUEST, OTHER), (node(), replace(UNBOUND, name="k8s-3")), Rules())
        assert copied.candidates(replace(UNBOUND, name="k8s-3")) == ()
        assert copied.taken_by(replace(UNBOUND, name="k8s-3")) == "k8s-2"
        assert [item.guest for item in copied.candidates(node())] == [GUEST, OTHER]

    def test_a_guest_that_the_map_names_is_kept_for_its_node_while_that_is_not_there(self):
        rules = Rules(nodes={"k8s-1": ("lab", "k8s-2")})
        assert directory(UNBOUND, rules=rules).candidates(UNBOUND) == ()

    def test_who_names_a_guest_is_told_though_it_is_not_theirs(self):
        renamed = replace(UNBOUND, name="k8s-2-new", uid="n9")
        assert directory(node(), renamed).claimed_by(node()) == ("k8s-2-new",)
        assert directory(node()).claimed_by(node()) == ()

    def test_a_binding_to_an_endpoint_that_is_not_configured_binds_nobody(self):
        moved = node(binding=Binding(replace(GUEST, endpoint="gone"), (BOOT,)))
        found_ = Directory((GUEST,), (moved,), Rules(), endpoints={"lab"}).candidates(moved)
        assert [item.guest for item in found_] == [GUEST]

    def test_a_node_whose_bound_guest_runs_is_no_other_guest(self):
        """Else a kubelet that reports another's UUID is bound to that one's guest in the end."""
        before = Binding(STRANGER, (BOOT,))
        still = evidence(PowerState.RUNNING, guest=STRANGER)
        seen = observation(node=node(binding=before), bound_reading=still)
        assert bound(seen).reason is Reason.GUEST_AMBIGUOUS
        off = observation(node=node(binding=before), bound_reading=evidence(guest=STRANGER))
        assert not isinstance(bound(off), Objection)

    def test_where_it_runs_is_bound_though_its_node_is_silent(self):
        there = replace(GUEST, host="lab2")
        ran = node(binding=Binding(replace(GUEST, host="lab1"), (BOOT,)))
        seen = observation(node=ran, evidence=evidence(PowerState.RUNNING, guest=there))
        assert moved_binding(seen) == Binding(there, (BOOT,))
        assert BindNode(Binding(there, (BOOT,))) in decide(seen, ARMED).actions
        assert moved_binding(observation(node=ran, evidence=evidence(guest=there))) is None
        unsigned = replace(ran, binding=replace(ran.binding, schema=1))  # we would sign what a kubelet wrote
        assert moved_binding(replace(seen, node=unsigned)) is None


def test_a_guest_that_is_named_like_anothers_number_is_not_that_one():
    number, named = replace(OTHER, id="101", name="db"), replace(OTHER, id="205", name="101")
    rules = Rules(nodes={"k8s-2": ("home", "101")})
    for guests in ((number, named), (named, number)):
        assert [item.guest for item in found(UNBOUND, guests, rules)] == [number]
    assert [item.guest for item in found(UNBOUND, (named,), rules)] == [named]


@pytest.mark.parametrize("via", list(Via))
def test_a_resolution_says_how_it_was_found(via):
    seen = observation(candidates=(replace(observation().candidates[0], via=via),))
    _, words = bound(seen)
    assert words.startswith("lab/k8s-2, ")


def bound_anew(seen):
    """Return the binding that should be written now."""
    return new_binding(subject_of(seen))


class TestNewBinding:
    def test_none_without_a_boot_id_a_reading_or_a_readable_annotation(self):
        assert bound_anew(healthy(node=replace(healthy().node, boot_id="", binding=None))) is None
        assert bound_anew(healthy(evidence=None)) is None
        assert bound_anew(healthy(node=replace(healthy().node, binding=Unreadable("x")))) is None
        assert bound_anew(healthy(evidence=evidence(PowerState.STOPPED))) is None

    def test_a_move_to_another_host_is_written_down(self):
        moved = replace(GUEST, host="lab2")
        binding = bound_anew(healthy(evidence=evidence(PowerState.RUNNING, guest=moved)))
        assert binding.guest.host == "lab2"

    def test_the_first_binding_knows_one_boot(self):
        first = bound_anew(healthy(node=replace(healthy().node, binding=None)))
        assert first == Binding(GUEST, (BOOT,))

    def test_only_the_last_boots_are_kept(self):
        many = Binding(GUEST, tuple(f"b{n}" for n in range(16)))
        alive = replace(healthy().node, binding=many, boot_id=NEW_BOOT)
        history = GuestHistory(run(PowerState.RUNNING, boot_id=NEW_BOOT))
        binding = bound_anew(healthy(node=alive, history=history))
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


@pytest.mark.parametrize(
    ("boot_id", "cold_start", "may"),
    [(BOOT, True, False), (NEW_BOOT, True, True), (BOOT, None, True), (BOOT, False, True)],
    ids=["a copy that was booted", "booted anew", "it came with its memory", "it was restored"],
)
def test_a_node_that_tells_of_a_known_boot_is_no_guest_that_was_booted_elsewhere(boot_id, cold_start, may):
    reading = evidence(PowerState.RUNNING, guest=OTHER, cold_start=cold_start)
    assert may_have_become(node(boot_id=boot_id), reading) is may


@pytest.mark.parametrize(
    ("state", "certain"),
    [
        (PowerState.STOPPED, True),
        (PowerState.ABSENT, True),
        (PowerState.SAVED, False),
        (PowerState.RUNNING, False),
    ],
)
def test_another_guest_with_that_uuid_shakes_a_binding_unless_it_holds_no_memory(state, certain):
    """Memory on disk may be the node's own: the guest may have moved there while nobody looked."""
    both = (Candidate(GUEST, Via.UUID), Candidate(OTHER, Via.UUID))
    assert (subject_of(observation(candidates=both, others=(state,))) is not None) is certain


def test_while_an_endpoint_is_silent_nobody_says_that_no_guest_is_the_node():
    lost = observation(candidates=(), node=node(binding=None), unanswered=("lab",))
    refused = decide(lost, ARMED)
    assert (refused.reason, refused.objection.needs) == (Reason.EVIDENCE_MISSING, "an answer of lab")
    assert decide(replace(lost, unanswered=()), ARMED).reason is Reason.NO_GUEST


def test_a_reading_of_another_guest_is_none_of_the_one_that_the_node_is():
    """Whom a node follows may change between the reading and the look at the node."""
    seen = observation(evidence=evidence(guest=OTHER))
    assert subject_of(seen).power_state is PowerState.UNKNOWN
    assert decide(seen, ARMED).reason is Reason.EVIDENCE_MISSING
