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
    nothing_read,
    still_bound,
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
    fenced,
    healthy,
    node,
    observation,
    run,
)

NAMED = frozenset({"lab", "home"})
"""Where the map may name guests by name."""

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
    rules = Rules(nodes={"k8s-2": ("lab", label)}, by_name=NAMED)
    [candidate] = found(replace(UNBOUND, system_uuid=""), (GUEST,), rules)
    assert candidate.via is Via.MAP
    assert found(UNBOUND, (GUEST,), Rules(nodes={"k8s-2": ("elsewhere", label)}, by_name=NAMED)) == ()


def test_a_map_by_a_name_that_two_guests_bear_is_ambiguous():
    twins = (GUEST, replace(STRANGER, name=GUEST.name))
    rules = Rules(nodes={"k8s-2": ("lab", GUEST.name)}, by_name=NAMED)
    assert len(found(UNBOUND, twins, rules)) == 2


def test_the_bound_guest_comes_first_and_is_known_even_when_it_is_gone():
    bound = node(binding=Binding(OTHER, (BOOT,)))
    assert [item.guest for item in found(bound, (GUEST, OTHER))] == [OTHER, GUEST]
    assert [item.guest for item in found(node(), ())] == [GUEST]
    mapped = Rules(nodes={"k8s-2": ("lab", "k8s-2")}, by_name=NAMED)
    assert [item.guest for item in found(node(), (), mapped)] == [GUEST]


def test_the_bound_guest_is_told_as_it_is_named_now():
    """Its name and its host may have changed since it was written down."""
    now = replace(GUEST, name="renamed", host="lab2")
    for rules in (Rules(), Rules(nodes={"k8s-2": ("lab", "renamed")}, by_name=NAMED)):
        assert [item.guest for item in found(node(), (now,), rules)] == [now]


@pytest.mark.parametrize(
    ("label", "is_it"),
    [
        (("home", UUID), True),
        (("home", "105"), True),
        (("home", "k8s-2-clone"), True),
        (("home", "another"), False),
        (("lab", "105"), False),
    ],
    ids=str,
)
def test_a_bound_guest_that_nobody_names_now_has_to_be_the_one_that_the_map_means(label, is_it):
    """Though its UUID be the node's."""
    bound = node(binding=Binding(OTHER, (BOOT,)))
    rules = Rules(nodes={"k8s-2": label}, by_name=NAMED)
    assert [item.guest for item in found(bound, (), rules)] == [OTHER] * is_it


def test_a_bound_guest_that_nobody_names_now_is_known_by_its_uuid_turned_round_too():
    turned = replace(GUEST, uuid=swapped(UUID))
    assert [item.guest for item in found(node(binding=Binding(turned, (BOOT,))), ())] == [turned]


def test_a_bound_guest_that_nobody_names_now_is_known_while_its_endpoint_is_configured():
    told = [
        Directory((), (node(),), Rules(), endpoints={name}).candidates(node()) for name in ("lab", "home")
    ]
    assert [len(candidates) for candidates in told] == [1, 0]


def test_a_node_that_tells_something_else_amid_a_pass_is_looked_up_again():
    there = Directory((GUEST, OTHER, STRANGER), (UNBOUND,), Rules())
    reborn = replace(UNBOUND, system_uuid=STRANGER.uuid)
    followed = node(binding=Binding(OTHER, (BOOT,)))
    for told, guests in ((reborn, [STRANGER]), (UNBOUND, [GUEST, OTHER]), (followed, [OTHER, GUEST])):
        assert [item.guest for item in there.candidates(told)] == guests


def test_the_nodes_own_word_never_widens_the_choice():
    lying = node(binding=Binding(STRANGER, (BOOT,)))
    assert [item.guest for item in found(lying, (GUEST, STRANGER))] == [GUEST]
    assert found(replace(lying, system_uuid=""), (STRANGER,)) == ()
    mapped_elsewhere = Rules(nodes={"k8s-2": ("home", "105")}, by_name=NAMED)
    assert found(lying, (STRANGER,), mapped_elsewhere) == ()


def test_power_is_admitted_by_uuid_or_by_the_map_and_by_nothing_else():
    def admitted(rules):
        return found(UNBOUND, (GUEST,), rules)[0].power_admitted

    mapped = {"k8s-2": ("lab", "k8s-2")}
    assert admitted(Rules(admitted={"lab": Admission(uuids=frozenset({UUID}))}))
    assert admitted(Rules(nodes=mapped, admitted={"lab": Admission(mapped=True)}, by_name=NAMED))
    assert not admitted(Rules(admitted={"lab": Admission(mapped=True)}))
    assert not admitted(Rules(nodes=mapped, by_name=NAMED))
    assert not admitted(Rules(admitted={"home": Admission(uuids=frozenset({UUID}))}))


class TestGroups:
    """Power is admitted on guests of a group as long as the newest reading counts them among it."""

    RULES = Rules(admitted={"lab": Admission(groups=frozenset({"tag:fencer", "pool:k8s"}))})

    APPROVED = replace(UNBOUND, approved=GUEST.uuid)

    def candidate(self, *readings, rules=RULES, node=APPROVED):
        (candidate,) = Directory((GUEST,), (node,), rules, readings=readings).candidates(node)
        return candidate

    def admitted(self, *readings, rules=RULES):
        return self.candidate(*readings, rules=rules).admitted_by

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

    @pytest.mark.parametrize("approved", ["", "11111111-7b1e-4d39-9a5f-3f0d6f1c2ae2"])
    def test_a_group_gives_no_power_over_a_vm_that_no_person_has_approved(self, approved):
        """C3: which VM it is, a node reports itself; neither a binding nor an equal name changes that."""
        tagged, named = evidence(groups=frozenset({"tag:fencer"})), node(name=GUEST.name, approved=approved)
        for one in (replace(UNBOUND, approved=approved), named):
            found = self.candidate(tagged, node=one)
            assert (found.power_admitted, found.unapproved) == (False, ("tag:fencer",))

    def test_no_uuid_is_none_that_a_person_has_approved(self):
        """Proxmox has VMs without one, and a Node without an approval has none either."""
        bare, tagged = replace(GUEST, uuid=""), frozenset({"tag:fencer"})
        rules = replace(self.RULES, nodes={UNBOUND.name: (GUEST.endpoint, GUEST.id)})
        reading = evidence(guest=bare, groups=tagged)
        (found,) = Directory((bare,), (UNBOUND,), rules, readings=(reading,)).candidates(UNBOUND)
        assert (found.power_admitted, found.unapproved) == (False, ())
        mapped = replace(rules, admitted={"lab": Admission(mapped=True)})
        (found,) = Directory((bare,), (UNBOUND,), mapped, readings=(reading,)).candidates(UNBOUND)
        assert found.admitted_by == ("mapped",)

    def test_what_is_admitted_by_its_uuid_waits_for_nothing(self):
        rules = Rules(
            admitted={
                "lab": Admission(uuids=frozenset({GUEST.uuid}), groups=self.RULES.admitted["lab"].groups)
            }
        )
        found = self.candidate(evidence(groups=frozenset({"tag:fencer"})), rules=rules, node=UNBOUND)
        assert (found.admitted_by, found.unapproved) == (("uuids",), ())

    @pytest.mark.parametrize("admission", [{"uuids": frozenset({GUEST.uuid})}, {"mapped": True}])
    def test_what_names_the_vm_itself_needs_no_approval(self, admission):
        rules = Rules({UNBOUND.name: (GUEST.endpoint, GUEST.uuid)}, {"lab": Admission(**admission)})
        assert self.candidate(rules=rules, node=UNBOUND).power_admitted

    def test_a_guest_of_which_nothing_was_read_is_in_no_group(self):
        assert self.admitted() == ()

    def test_groups_of_another_endpoint_and_of_a_copy_count_for_nobody_else(self):
        tagged = frozenset({"tag:fencer"})
        copy = replace(GUEST, id="copy")
        assert self.admitted(evidence(guest=copy, groups=tagged)) == ()
        elsewhere = Rules(admitted={"home": self.RULES.admitted["lab"]})
        assert self.admitted(evidence(groups=tagged), rules=elsewhere) == ()

    def test_a_newer_reading_with_the_same_groups_changes_nothing(self):
        directory = Directory((GUEST,), (node(),), Rules())
        assert not directory.note(evidence())
        assert directory.note(evidence(groups=frozenset({"k8s"})))
        assert not directory.note(evidence(groups=frozenset({"k8s"})))

    def test_a_newer_reading_takes_back_and_gives(self):
        tagged = evidence(groups=frozenset({"tag:fencer"}))
        there = Directory((GUEST,), (self.APPROVED,), self.RULES, readings=(tagged,))
        assert there.candidates(self.APPROVED)[0].power_admitted
        there.note(replace(tagged, groups=frozenset()))
        assert not there.candidates(self.APPROVED)[0].power_admitted
        there.note(tagged)
        there.note(tagged)
        assert there.candidates(self.APPROVED)[0].power_admitted

    def test_an_approval_counts_as_soon_as_it_is_read_and_until_it_is_withdrawn(self):
        there = Directory((GUEST,), (UNBOUND,), self.RULES, readings=(evidence(groups={"tag:fencer"}),))
        shown = [there.candidates(one)[0].power_admitted for one in (UNBOUND, self.APPROVED, UNBOUND)]
        assert shown == [False, True, False]

    @given(
        st.sets(st.sampled_from(["tag:fencer", "pool:k8s", "pool:k8s/lab", "tag:web"])),
        st.sets(st.sampled_from(["tag:fencer", "pool:k8s", "pool:k8s/lab", "tag:web"])),
        st.sampled_from(Via),
        st.booleans(),
    )
    def test_leaving_groups_never_admits_by_a_word_more(self, written, groups, via, mapped):
        admission = Admission(mapped, frozenset(), frozenset(written))
        mapping = {UNBOUND.name: (GUEST.endpoint, GUEST.uuid)} if via is Via.MAP else {}
        rules = Rules(mapping, {"lab": admission})
        before = self.admitted(evidence(groups=frozenset(groups)), rules=rules)
        for left in groups:
            after = self.admitted(evidence(groups=frozenset(groups - {left})), rules=rules)
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
    mapped = Rules(nodes={"k8s-2": ("lab", "k8s-2")}, by_name=NAMED)
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
        both = directory(UNBOUND, liar, rules=Rules(nodes={"k8s-2": ("lab", "k8s-2")}, by_name=NAMED))
        assert [item.guest for item in both.candidates(UNBOUND)] == [GUEST]
        assert both.rivals(UNBOUND) == ()
        assert both.candidates(liar) == ()
        assert both.taken_by(liar) == "k8s-2"

    def test_a_map_and_a_uuid_that_lead_to_one_guest_make_rivals(self):
        mapped, reporting = node(name="k8s-1", uid="n1", system_uuid="", binding=None), UNBOUND
        both = directory(mapped, reporting, rules=Rules(nodes={"k8s-1": ("lab", "k8s-2")}, by_name=NAMED))
        assert both.rivals(mapped) == ("k8s-2",)
        assert both.rivals(reporting) == ("k8s-1",)

    def test_a_straight_and_a_turned_uuid_that_lead_to_one_guest_make_rivals(self):
        turned = node(name="k8s-3", uid="n3", system_uuid=swapped(UUID), binding=None)
        assert directory(UNBOUND, turned).rivals(UNBOUND) == ("k8s-3",)

    def test_who_has_taken_it_is_told_of_others_only_and_of_each_guest_that_it_could_be(self):
        assert directory(self.OWNER).taken_by(self.OWNER) == ""
        twin = replace(STRANGER, name=GUEST.name)
        mapped = node(name="k8s-1", uid="n1", system_uuid="", binding=None)
        rules = Rules(nodes={"k8s-1": ("lab", "k8s-2")}, by_name=NAMED)
        both = directory(self.OWNER, mapped, guests=(twin, GUEST), rules=rules)
        assert both.taken_by(mapped) == "k8s-2"

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

    def test_of_two_copies_that_are_bound_each_is_its_own_nodes(self):
        first, second = node(), node(name="k8s-3", uid="n3", binding=Binding(OTHER, (BOOT,)))
        both = directory(first, second, guests=(GUEST, OTHER))
        assert [item.guest for item in both.candidates(first)] == [GUEST]
        assert [item.guest for item in both.candidates(second)] == [OTHER]

    def test_a_guest_that_the_map_names_is_kept_for_its_node_while_that_is_not_there(self):
        rules = Rules(nodes={"k8s-1": ("lab", "k8s-2")}, by_name=NAMED)
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
        itself = observation(bound_reading=evidence(PowerState.RUNNING))
        assert not isinstance(bound(itself), Objection)
        known = fenced(node=replace(fenced().node, binding=before), bound_reading=still)
        assert not isinstance(bound(known), Objection)  # a fence says by itself whose it is

    def test_where_it_runs_is_bound_though_its_node_is_silent(self):
        there = replace(GUEST, host="lab2")
        ran = node(binding=Binding(replace(GUEST, host="lab1"), (BOOT,)))
        seen = observation(node=ran, evidence=evidence(PowerState.RUNNING, guest=there))
        assert moved_binding(seen) == Binding(there, (BOOT,))
        assert BindNode(Binding(there, (BOOT,))) in decide(seen, ARMED).actions
        assert moved_binding(observation(node=ran, evidence=evidence(guest=there))) is None
        assert moved_binding(replace(seen, evidence=replace(seen.evidence, conclusive=False))) is None
        another = replace(seen.evidence, guest=replace(there, id="copy"))
        assert moved_binding(replace(seen, evidence=another)) is None
        unsigned = replace(ran, binding=replace(ran.binding, schema=1))  # we would sign what a kubelet wrote
        assert moved_binding(replace(seen, node=unsigned)) is None


def test_a_guest_that_is_named_like_anothers_number_is_not_that_one():
    number, named = replace(OTHER, id="101", name="db"), replace(OTHER, id="205", name="101")
    rules = Rules(nodes={"k8s-2": ("home", "101")}, by_name=NAMED)
    for guests in ((number, named), (named, number)):
        assert [item.guest for item in found(UNBOUND, guests, rules)] == [number]
    assert found(UNBOUND, (named,), rules) == ()


@pytest.mark.parametrize(
    ("label", "by_name"),
    [("101", frozenset()), ("101", NAMED), (OTHER.uuid, NAMED)],
    ids=["number", "number where names count", "UUID"],
)
def test_what_the_map_names_is_no_guest_that_is_only_called_so(label, by_name):
    """Once no VM has that number or UUID: neither for a node that no agent has seen, nor for a bound one."""
    called = replace(OTHER, id="900", uuid=STRANGER.uuid, name=label)
    rules = Rules(nodes={"k8s-2": ("home", label)}, by_name=by_name)
    assert found(replace(UNBOUND, system_uuid=""), (called,), rules) == ()
    assert found(node(system_uuid="", binding=Binding(called, (BOOT,))), (called,), rules) == ()


def test_a_name_counts_only_at_an_endpoint_where_names_do():
    rules = Rules(nodes={"k8s-2": ("home", "worker-a")}, by_name=frozenset())
    called = replace(OTHER, id="900", name="worker-a")
    assert found(UNBOUND, (called,), rules) == ()
    assert [one.guest for one in found(UNBOUND, (called,), replace(rules, by_name=NAMED))] == [called]


def test_two_vms_without_a_uuid_are_no_copies_of_each_other():
    first, second = replace(GUEST, id="101", uuid=""), replace(GUEST, id="102", uuid="")
    one, two = node(name="k8s-1", binding=Binding(first, (BOOT,))), node(name="k8s-2", binding=None)
    rules = Rules(nodes={"k8s-1": ("lab", "101"), "k8s-2": ("lab", "102")})
    directory = Directory((first, second), (one, two), rules)
    assert [item.guest for item in directory.candidates(two)] == [second]
    assert directory.taken_by(two) == ""


@pytest.mark.parametrize("via", list(Via))
def test_a_resolution_says_how_it_was_found(via):
    seen = observation(candidates=(replace(observation().candidates[0], via=via),))
    _, words = bound(seen)
    assert words.startswith("lab/k8s-2, ")


def binding_to_write(seen):
    """Return the binding that should be written now."""
    return new_binding(subject_of(seen))


class TestNewBinding:
    @pytest.mark.parametrize(
        "without",
        [
            {
                "node": replace(healthy().node, boot_id="", binding=None),
                "history": GuestHistory(run(PowerState.RUNNING, boot_id="")),
            },
            {"evidence": None},
            {"evidence": evidence(PowerState.UNKNOWN)},
            {"evidence": evidence(PowerState.STOPPED)},
            {"node": replace(healthy().node, binding=Unreadable("schema 9"))},
        ],
        ids=["boot id", "reading", "knowing", "running", "a readable annotation"],
    )
    def test_none_without(self, without):
        unbound = healthy(node=replace(healthy().node, binding=None))
        assert binding_to_write(unbound) is not None
        assert binding_to_write(replace(unbound, **without)) is None

    def test_one_that_somebody_forged_is_written_over(self):
        forged = replace(healthy().node, binding=Unreadable("not signed", forged=True))
        assert binding_to_write(healthy(node=forged)) == Binding(GUEST, (BOOT,))

    def test_a_move_to_another_host_is_written_down(self):
        moved = replace(GUEST, host="lab2")
        binding = binding_to_write(healthy(evidence=evidence(PowerState.RUNNING, guest=moved)))
        assert binding.guest.host == "lab2"

    def test_the_first_binding_knows_one_boot(self):
        first = binding_to_write(healthy(node=replace(healthy().node, binding=None)))
        assert first == Binding(GUEST, (BOOT,))

    def test_only_the_last_boots_are_kept(self):
        many = Binding(GUEST, tuple(f"b{n}" for n in range(16)))
        alive = replace(healthy().node, binding=many, boot_id=NEW_BOOT)
        history = GuestHistory(run(PowerState.RUNNING, boot_id=NEW_BOOT))
        binding = binding_to_write(healthy(node=alive, history=history))
        assert (len(binding.boot_ids), binding.boot_ids[0], binding.boot_ids[-1]) == (16, "b1", NEW_BOOT)


def test_a_fence_that_cannot_be_read_knows_no_boot():
    assert node(mark=Unreadable("schema 9")).known_boot_ids == {BOOT}


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
    ("boot_id", "cold_start", "called", "may"),
    [
        pytest.param(BOOT, True, GUEST.name, False, id="a copy that was booted"),
        pytest.param(NEW_BOOT, True, GUEST.name, True, id="booted again"),
        pytest.param(BOOT, False, GUEST.name, True, id="it came with its memory"),
        pytest.param(BOOT, False, OTHER.name, True, id="it came with its memory, and was renamed"),
        pytest.param(BOOT, None, GUEST.name, True, id="the hypervisor does not say, under its name"),
        pytest.param(BOOT, None, OTHER.name, False, id="the hypervisor does not say, under another name"),
        pytest.param(NEW_BOOT, None, OTHER.name, True, id="booted again under another name"),
    ],
)
def test_a_node_that_shows_a_known_boot_is_no_vm_that_was_booted_elsewhere(boot_id, cold_start, called, may):
    elsewhere = replace(OTHER, name=called)
    reading = evidence(PowerState.RUNNING, guest=elsewhere, cold_start=cold_start)
    bound = node(boot_id=boot_id, binding=Binding(GUEST, (BOOT,)))
    assert may_have_become(bound, reading) is may


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


class TestCertain:
    """Two guests fit: only a binding to one of them tells which, and only while the other is off."""

    BOTH = (Candidate(GUEST, Via.UUID), Candidate(OTHER, Via.UUID))

    @pytest.mark.parametrize(
        ("binding", "certain"),
        [(Binding(GUEST, (BOOT,)), True), (Binding(STRANGER, (BOOT,)), False), (None, False)],
        ids=["to one of them", "to another", "none"],
    )
    def test_by_a_binding(self, binding, certain):
        seen = observation(node=node(binding=binding), candidates=self.BOTH, others=(PowerState.STOPPED,))
        assert (subject_of(seen) is not None) is certain

    @pytest.mark.parametrize(
        ("binding", "history", "alive"),
        [
            (Binding(GUEST, (BOOT,)), GuestHistory(), True),
            (Binding(STRANGER, (BOOT,)), GuestHistory(), False),
            (None, GuestHistory(guest=GUEST.key), False),
            (None, GuestHistory(guest=GUEST.key, proven=True), True),
            (None, GuestHistory(guest=STRANGER.key, proven=True), False),
        ],
        ids=["bound", "bound to another", "looked at", "seen", "another seen"],
    )
    def test_which_guest_was_seen_alive_with_the_node(self, binding, history, alive):
        seen = observation(node=node(binding=binding), history=history)
        assert subject_of(seen).seen_alive is alive

    def test_what_was_not_read_is_neither_known_nor_settled_nor_proof(self):
        reading = subject_of(observation(evidence=None)).evidence
        assert (reading.power_state, reading.settled, reading.conclusive) == (
            PowerState.UNKNOWN,
            False,
            False,
        )


def test_while_an_endpoint_is_silent_nobody_says_that_no_guest_is_the_node():
    lost = observation(candidates=(), node=node(binding=None), unanswered=("lab",))
    refused = decide(lost, ARMED)
    assert (refused.reason, refused.objection.needs) == (Reason.EVIDENCE_MISSING, "an answer from lab")
    nobody = decide(replace(lost, unanswered=()), ARMED)
    assert nobody.reason is Reason.NO_GUEST
    assert UUID in nobody.objection.seen


def test_a_reading_of_another_guest_is_none_of_the_one_that_the_node_is():
    """Whom a node follows may change between the reading and the look at the node."""
    seen = observation(evidence=evidence(guest=OTHER))
    assert subject_of(seen).power_state is PowerState.UNKNOWN
    assert decide(seen, ARMED).reason is Reason.EVIDENCE_MISSING


@pytest.mark.parametrize(
    ("why", "raw"), [("lab: no answer", "lab: no answer"), ("", "no reading of the guest")]
)
def test_a_guest_that_could_not_be_read_says_why(why, raw):
    assert nothing_read(GUEST, why).raw == raw


class TestStillBound:
    """Who the map means may be another machine than the one that the node is bound to."""

    NEW = "6f1c8c1e-0000-4000-8000-0000000000ff"
    REMADE = replace(GUEST, uuid=NEW, id=NEW)
    BOTH = (Candidate(GUEST, Via.MAP), Candidate(REMADE, Via.MAP))

    def test_a_machine_that_was_made_again_under_the_mapped_name_is_not_the_bound_one(self):
        assert still_bound(observation(candidates=self.BOTH)) == GUEST

    def test_nor_is_it_where_the_node_still_reports_the_uuid_of_the_first(self):
        candidates = (Candidate(GUEST, Via.UUID), Candidate(self.REMADE, Via.MAP))
        assert still_bound(observation(candidates=candidates)) == GUEST

    @pytest.mark.parametrize(
        "facts",
        [
            {"candidates": (Candidate(GUEST, Via.MAP),)},
            {"candidates": (Candidate(GUEST, Via.UUID), Candidate(REMADE, Via.UUID))},
            {"candidates": (Candidate(REMADE, Via.MAP),)},
            {"candidates": BOTH, "node": node(binding=None)},
        ],
        ids=["the map means it", "no map", "it is not among them", "not bound"],
    )
    def test_else_there_is_none(self, facts):
        assert still_bound(observation(**facts)) is None
