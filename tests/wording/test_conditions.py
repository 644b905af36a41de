"""The condition of a node in a word, its count and its order."""

from dataclasses import replace

import pytest

from fencer.core.model import OUT_OF_SERVICE, Alarm, Cordon, Decision, Doubted, Judged, Reason, Taint, Verdict
from fencer.wording.conditions import Condition, condition, problems_first, tally, tally_text
from tests.core.build import BOOT, NOW_UTC, doubt, evidence, fenced, healthy, node, observation

FOREIGN = (Taint(OUT_OF_SERVICE, "nodeshutdown", "NoExecute", NOW_UTC),)
WELL = Decision(Verdict.HEALTHY, Reason.NODE_HEALTHY)
REFUSED = Decision(Verdict.REFUSE, Reason.GUEST_RUNNING)
UNSCHEDULABLE = {"unschedulable": True, "cordon": Cordon("drain", BOOT, NOW_UTC), "cordoner": "fencer"}


def judged(verdict, reason, seen=None, **more):
    return Judged(seen or observation(), Decision(verdict, reason), **more)


def named(name, decision=WELL, **facts):
    seen = healthy() if decision is WELL else observation()
    return Judged(replace(seen, node=replace(seen.node, name=name, **facts)), decision)


@pytest.mark.parametrize(
    ("seen", "word"),
    [
        (Judged(healthy(), WELL), Condition.HEALTHY),
        (Judged(healthy(node=node(ready=True, **UNSCHEDULABLE)), WELL), Condition.CORDONED),
        (
            Judged(healthy(evidence=evidence(doubt=doubt(Doubted.CONTRADICTED))), WELL),
            Condition.UNPROTECTED,
        ),
        (judged(Verdict.HEALTHY, Reason.BLIND), Condition.BLIND),
        (judged(Verdict.REFUSE, Reason.NO_GUEST, healthy()), Condition.UNPROTECTED),
        (judged(Verdict.REFUSE, Reason.NO_GUEST), Condition.REFUSED),
        (judged(Verdict.REFUSE, Reason.BINDING_UNPROVEN), Condition.REFUSED),
        (judged(Verdict.REFUSE, Reason.BINDING_UNPROVEN, untold="would fence"), Condition.WAITING),
        (judged(Verdict.REFUSE, Reason.GUEST_RUNNING), Condition.REFUSED),
        (judged(Verdict.REFUSE, Reason.OBSERVE_MODE), Condition.ONLY_OBSERVED),
        (judged(Verdict.REFUSE, Reason.NOTHING_TO_CLEAR), Condition.NOTHING_TO_CLEAR),
        (judged(Verdict.WAIT, Reason.COUNTING_SILENCE), Condition.WAITING),
        (judged(Verdict.STOP_FIRST, Reason.GUEST_PAUSED), Condition.TO_BE_FENCED),
        (judged(Verdict.OFF, Reason.PLANNED_STOP), Condition.SHUT_DOWN),
        (judged(Verdict.HEALTHY, Reason.SETTLING, healthy()), Condition.RECOVERING),
        (judged(Verdict.RECOVERING, Reason.AWAITING_BOOT, fenced()), Condition.FENCED),
        (judged(Verdict.RECOVERING, Reason.OLD_MEMORY, fenced()), Condition.ALARM),
        (judged(Verdict.STOP_FIRST, Reason.OLD_MEMORY, fenced()), Condition.ALARM),
        (Judged(healthy(), replace(WELL, actions=(Alarm("an older boot is heard"),))), Condition.ALARM),
        (Judged(healthy(node=node(ready=True, taints=FOREIGN)), WELL), Condition.UNPROTECTED),
        (judged(Verdict.REFUSE, Reason.FENCING_PAUSED, fenced()), Condition.FENCED),
        (judged(Verdict.REFUSE, Reason.FENCING_PAUSED, healthy()), Condition.PAUSED),
        (judged(Verdict.REFUSE, Reason.FENCING_PAUSED), Condition.REFUSED),
        (judged(Verdict.REFUSE, Reason.NODE_EXCLUDED, healthy()), Condition.EXCLUDED),
        (judged(Verdict.REFUSE, Reason.NODE_EXCLUDED), Condition.REFUSED),
    ],
)
def test_a_node_is_in_one_condition(seen, word):
    assert condition(seen) is word


def test_problems_come_first_and_names_are_sorted_as_people_do():
    names = [
        named("k8s-10"),
        named("k8s-2"),
        named("k8s-30", REFUSED),
        named("k8s-4", REFUSED, ready=True),
        named("k8s-9", Decision(Verdict.FENCE, Reason.PROVEN_OFF)),
    ]
    found = [item.observation.node.name for item in problems_first(names)]
    assert found == ["k8s-30", "k8s-4", "k8s-9", "k8s-2", "k8s-10"]


def test_the_count_is_complete_and_its_sentence_names_only_what_there_is():
    seen = [named("k8s-1"), named("k8s-2", REFUSED), named("k8s-3")]
    assert tally_text(seen) == "3 nodes: 2 healthy, 1 refused"
    assert tally_text(seen[:1]) == "1 node: 1 healthy"
    assert set(tally(seen)) == set(Condition)
    assert sum(tally(seen).values()) == 3
