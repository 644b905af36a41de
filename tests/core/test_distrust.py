"""When an endpoint is distrusted for all its VMs, and what ends that."""

from dataclasses import replace

import pytest

from fencer.core.decide import decide
from fencer.core.distrust import against, answered_for, distrusted, ends_distrust, proven, with_proof
from fencer.core.doubt import LOOK_EVERY_S, due
from fencer.core.model import (
    Binding,
    Doubted,
    Fleet,
    GuestHistory,
    Heard,
    Note,
    PowerState,
    Reason,
    RecordDoubts,
    Unreadable,
)
from fencer.core.naming import UNIDENTIFIED
from tests.core.build import ARMED, BOOT, GUEST, NEW_BOOT, OTHER, doubt, evidence, healthy, node, observation

HERE = replace(GUEST, host="lab1")
DOUBT = doubt(guest=HERE)
PROVEN = replace(DOUBT, boot_id=BOOT)
PAIRED = replace(PROVEN, paired=True)
WRONG = node(ready=True, lease_age_s=3.0, doubts=(DOUBT,), binding=Binding(HERE, (BOOT,)))
HEARD = Heard(HERE, "test:lab", "run-1", "", renewals=2, boot_id=BOOT)
SEVERAL = Fleet(7, 1, proven_wrong=frozenset({"lab"}))


def named(*nodes):
    return [replace(one, name=f"k8s-{number}") for number, one in enumerate(nodes)]


class TestWhatCounts:
    def test_a_doubt_of_a_node_that_shows_a_known_boot(self):
        assert against(named(WRONG, WRONG)) == {"lab": {"k8s-0": DOUBT, "k8s-1": DOUBT}}

    def test_a_vm_that_was_moved_cold_runs_another_boot(self):
        assert against([replace(WRONG, boot_id=NEW_BOOT)]) == {}

    def test_a_boot_that_is_proven_counts_whatever_runs_now(self):
        assert against([replace(WRONG, doubts=(PROVEN,), boot_id=NEW_BOOT)]) == {"lab": {"k8s-2": PROVEN}}

    @pytest.mark.parametrize(
        "changed",
        [
            {"doubts": (replace(PROVEN, kind=Doubted.MIGRATED),)},
            {"doubts": (replace(PROVEN, trusted="anna: it is well"),)},
            {"doubts": Unreadable("schema 9")},
            {"doubts": ()},
            {"gone": True},
            {"binding": Binding(OTHER, (BOOT,))},
            {"binding": Binding(replace(HERE, id="another"), (BOOT,))},
            {"binding": Binding(replace(HERE, host="lab2"), (BOOT,))},
        ],
        ids=lambda changed: next(iter(changed)),
    )
    def test_nothing_else_does(self, changed):
        assert against([replace(WRONG, **{"doubts": (PROVEN,)} | changed)]) == {}

    @pytest.mark.parametrize("binding", [None, Unreadable("broken"), Unreadable("", forged=True)])
    def test_a_proof_does_not_depend_on_a_binding_that_cannot_be_read(self, binding):
        assert against([replace(WRONG, doubts=(PROVEN,), binding=binding)]) == {"lab": {"k8s-2": PROVEN}}
        assert against([replace(WRONG, binding=binding)]) == {}

    def test_where_doubts_cannot_be_read_what_this_agent_noted_counts(self):
        node = replace(WRONG, doubts=Unreadable("", forged=True))
        assert against([node], {node.uid: Note(node.name, node.uid, doubts=(PROVEN,))}) == {
            "lab": {"k8s-2": PROVEN}
        }
        assert against([node], {"another": Note(node.name, "another", doubts=(PROVEN,))}) == {}

    def test_an_endpoint_that_cannot_report_its_identity_may_be_the_one_that_was_wrong(self):
        there = replace(HERE, endpoint=f"{UNIDENTIFIED}lab")
        doubt, binding = replace(PROVEN, guest=there), Binding(there, (BOOT,))
        assert against([replace(WRONG, doubts=(doubt,), binding=binding)]) == {"lab": {"k8s-2": doubt}}


class TestDistrusted:
    def test_by_two_and_not_by_one(self):
        assert not distrusted([])
        assert not distrusted([DOUBT])
        assert distrusted([DOUBT, PROVEN])

    def test_it_is_proven_by_two_that_are(self):
        assert not proven([DOUBT, PROVEN])
        assert proven([PROVEN, PROVEN])

    def test_it_lasts_until_each_of_them_has_ended(self):
        assert distrusted([PAIRED])
        assert proven([PAIRED])


class TestProof:
    """What is added to a doubt that is on the Node."""

    def seen(self, noted=DOUBT, **facts):
        history = GuestHistory(heard=facts.pop("heard", HEARD))
        return observation(node=replace(WRONG, doubts=(noted,)), history=history, **facts)

    def test_the_boot_in_which_this_agent_has_proven_the_kubelet_alive(self):
        assert with_proof(self.seen(), DOUBT) == PROVEN
        assert with_proof(self.seen(heard=replace(HEARD, boot_id="")), DOUBT) == DOUBT
        assert with_proof(self.seen(heard=None), DOUBT) == DOUBT

    def test_though_its_node_shows_another_one_by_now(self):
        seen = self.seen()
        assert with_proof(replace(seen, node=replace(seen.node, boot_id=NEW_BOOT)), DOUBT) == PROVEN

    def test_another_agents_proof_stays(self):
        assert with_proof(self.seen(heard=replace(HEARD, boot_id=NEW_BOOT)), PROVEN) == PROVEN

    @pytest.mark.parametrize(
        "other",
        [
            replace(DOUBT, witness="another"),
            replace(DOUBT, guest=OTHER),
            replace(DOUBT, guest=replace(HERE, host="lab2")),
            doubt(Doubted.SAVED),
        ],
    )
    def test_of_this_vm_by_this_hypervisor_only(self, other):
        assert with_proof(self.seen(fleet=SEVERAL), other) == other

    def test_that_others_count_beside_it_once_they_are_proven(self):
        assert with_proof(self.seen(fleet=SEVERAL), DOUBT) == PAIRED
        assert with_proof(self.seen(heard=None, fleet=SEVERAL), DOUBT) == DOUBT
        elsewhere = Fleet(7, 1, proven_wrong=frozenset({"home"}))
        assert with_proof(self.seen(fleet=elsewhere), PROVEN) == PROVEN

    def test_not_of_a_vm_that_is_bound_elsewhere_by_now(self):
        seen = self.seen(fleet=SEVERAL)
        moved = replace(seen.node, binding=Binding(replace(HERE, host="lab2"), (BOOT,)))
        assert with_proof(replace(seen, node=moved), PROVEN) == PROVEN

    def test_nothing_once_a_person_has_answered_for_it(self):
        trusted = replace(DOUBT, trusted="anna: it is well")
        assert with_proof(self.seen(fleet=SEVERAL), trusted) == trusted

    def test_it_is_written_on_the_node(self):
        off = evidence(PowerState.UNKNOWN, guest=HERE, doubt=DOUBT)
        seen = self.seen(evidence=off)
        assert due(seen) == (PROVEN,)
        assert decide(seen, ARMED).actions[0] == RecordDoubts((PROVEN,))

    @pytest.mark.parametrize(
        ("noted", "facts", "looks"),
        [
            (DOUBT, {}, True),
            (PROVEN, {}, False),
            (replace(DOUBT, trusted="anna"), {}, False),
            (DOUBT, {"boot_id": NEW_BOOT}, False),
            (DOUBT, {"lease_age_s": 40.0}, False),
            (replace(DOUBT, witness="another"), {}, False),
        ],
        ids=["open", "proven", "trusted", "moved cold", "silent", "another's"],
    )
    def test_live_looks_go_on_until_it_is_proven_or_cannot_be(self, noted, facts, looks):
        off = evidence(PowerState.UNKNOWN, guest=HERE, doubt=noted)
        alive = replace(WRONG, doubts=(noted,), **facts)
        seen = healthy(node=alive, evidence=off, history=GuestHistory(), close=False, looked_s=LOOK_EVERY_S)
        assert decide(seen, ARMED).look is looks
        assert not decide(replace(seen, looked_s=LOOK_EVERY_S - 1), ARMED).look
        beside = replace(alive, doubts=(doubt(Doubted.SAVED, guest=OTHER), noted))
        assert decide(replace(seen, node=beside), ARMED).look is looks

    def test_not_for_a_reading_that_this_doubt_is_not_about(self):
        off = evidence(PowerState.UNKNOWN, guest=replace(HERE, host="lab2"), doubt=DOUBT)
        seen = healthy(node=WRONG, evidence=off, history=GuestHistory(), close=False, looked_s=LOOK_EVERY_S)
        assert not decide(seen, ARMED).look
        assert not decide(replace(seen, evidence=replace(off, guest=HERE, doubt=None)), ARMED).look
        answered = replace(DOUBT, trusted="anna")
        both = replace(WRONG, doubts=(answered, replace(DOUBT, witness="another")))
        read = replace(off, guest=HERE, doubt=answered)
        assert not decide(replace(seen, node=both, evidence=read), ARMED).look


class TestTrust:
    def test_a_person_answers_for_what_counts_against_this_endpoint(self):
        others = (doubt(Doubted.SAVED, guest=HERE), replace(PROVEN, guest=OTHER))
        seen = replace(WRONG, doubts=(PAIRED, *others))
        answered = answered_for(seen, seen.doubts[0], "anna: it is well")
        assert answered == (replace(PAIRED, trusted="anna: it is well"), *others)
        assert against([replace(seen, doubts=answered)]) == {}

    def test_also_before_its_boot_is_proven(self):
        assert answered_for(WRONG, DOUBT, "anna") == (replace(DOUBT, trusted="anna"),)

    def test_another_endpoint_and_what_cannot_be_read_stay_as_they_are(self):
        assert answered_for(WRONG, replace(DOUBT, guest=OTHER), "anna") == (DOUBT,)
        answered = replace(DOUBT, trusted="bob: libvirtd is right again")
        assert answered_for(replace(WRONG, doubts=(answered,)), answered, "anna") == (answered,)
        assert answered_for(WRONG, replace(DOUBT, since_utc="earlier"), "anna") == (DOUBT,), "found out since"
        assert answered_for(replace(WRONG, doubts=Unreadable("schema 9")), DOUBT, "anna") == ()


def test_the_refusal_names_the_nodes_and_the_command():
    fleet = Fleet(
        7,
        1,
        contradicted_endpoints=frozenset({"lab"}),
        contradicted_by=frozenset({("lab", "k8s-10"), ("lab", "k8s-9"), ("home", "k8s-1")}),
    )
    decision = decide(observation(fleet=fleet), ARMED)
    assert decision.reason is Reason.WITNESS_CONTRADICTED
    assert "lab is distrusted: it reported the VMs of k8s-9, k8s-10 as off" in decision.objection.seen
    assert "`fencer trust lab --why WHY`" in decision.objection.needs


@pytest.mark.parametrize(
    ("by", "of"), [({("lab", "k8s-9")}, "the VM of k8s-9"), (set(), "several VMs")], ids=["one", "an old row"]
)
def test_it_names_what_is_known_of_them(by, of):
    fleet = Fleet(7, 1, contradicted_endpoints=frozenset({"lab"}), contradicted_by=frozenset(by))
    assert f"lab is distrusted: it reported {of}" in decide(observation(fleet=fleet), ARMED).objection.seen


@pytest.mark.parametrize(
    ("by", "who"),
    [
        ([("lab", "k8s-9")], "that VM reported running"),
        (
            [("lab", "k8s-9"), ("lab", "k8s-10"), ("home", "k8s-8")],
            "each of these VMs reported running",
        ),
    ],
)
def test_what_ends_it_names_the_command(by, who):
    fleet = Fleet(7, 1, contradicted_endpoints=frozenset({"lab"}), contradicted_by=frozenset(by))
    text = ends_distrust("lab", fleet)
    assert text.startswith(f"{who} again, there or on another host; or, ")
    assert text.endswith("`fencer trust lab --why WHY`")
