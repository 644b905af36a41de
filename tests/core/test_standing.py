"""What of fencer's has to be ended before fencer is taken away."""

from dataclasses import replace

import pytest

from fencer.core.model import OUT_OF_SERVICE, Cordon, FenceMark, Taint, Unreadable
from fencer.core.requests import Request
from fencer.core.standing import hooked, kept, standing
from tests.core.build import BOOT, GUEST, MARK, NOW_UTC, TAINT, node

AGO = "2026-11-20T09:59:30Z"
BROKEN = Unreadable("schema 9")
CORDONED = {"unschedulable": True, "cordoner": "fencer"}
UNSIGNED = FenceMark("inc-1", TAINT.time_added, BOOT, GUEST, "fencer", schema=1)
ADMINS = Taint(OUT_OF_SERVICE, "nodeshutdown", time_added=AGO)


GONE = "kubectl delete node k8s-2   (if its machine is gone for good)"


def told(**facts):
    return [(one.text, one.ends) for one in standing([node(**facts)], NOW_UTC)]


@pytest.mark.parametrize(
    ("facts", "text", "ends"),
    [
        (
            {"taints": (TAINT,), "mark": MARK},
            "fenced 1m30s ago by fencer, as lab/k8s-2 was off",
            ("fencer unfence k8s-2", GONE),
        ),
        (
            {"taints": (TAINT,), "mark": UNSIGNED},
            "fenced 1m30s ago by fencer, as lab/k8s-2 was off",
            ("fencer unfence k8s-2 --adopt WHY", GONE),
        ),
        (
            {"taints": (TAINT,), "mark": BROKEN},
            "fenced, by a mark that cannot be read (schema 9)",
            (
                "kubectl taint nodes k8s-2 node.kubernetes.io/out-of-service-   "
                "(once its guest has booted again)",
                "kubectl annotate nodes k8s-2 fencer.dev/mark-",
            ),
        ),
        (
            {"claim": "inc-7"},
            "claimed for a power action on its guest, in incident inc-7",
            ("kubectl annotate nodes k8s-2 fencer.dev/incident-   (once no agent works on it any more)",),
        ),
        (
            {**CORDONED, "cordon": Cordon("unfence", BOOT, AGO)},
            "cordoned 30 s ago, when its fence was lifted",
            ("kubectl uncordon k8s-2",),
        ),
        (
            {**CORDONED, "cordoner": "fencer-guest", "cordon": Cordon("drain", BOOT, AGO)},
            "cordoned 30 s ago by fencer (drain)",
            ("kubectl uncordon k8s-2",),
        ),
        (
            {**CORDONED, "cordon": Cordon("hook", BOOT, AGO)},
            "cordoned 30 s ago by a drain that the hookscript asked for",
            ("kubectl uncordon k8s-2",),
        ),
        (
            {**CORDONED, "cordon": BROKEN},
            "cordoned by fencer, by a note that cannot be read (schema 9)",
            ("kubectl uncordon k8s-2",),
        ),
        (
            {**CORDONED, "cordoner": "", "cordon": Cordon("unfence", BOOT, AGO)},
            "cordoned 30 s ago, when its fence was lifted",
            ("kubectl uncordon k8s-2",),
        ),
    ],
)
def test_each_thing_is_named_with_what_ends_it(facts, text, ends):
    assert told(**facts) == [(text, ends)]


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"taints": (ADMINS,)},
        {"taints": (ADMINS,), "mark": MARK},
        {"mark": MARK},
        {"mark": BROKEN},
        {"unschedulable": True},
        {"cordon": Cordon("unfence", BOOT, AGO)},
        {**CORDONED, "cordoner": "kubectl", "cordon": Cordon("unfence", BOOT, AGO)},
    ],
    ids=[
        "nothing",
        "an admin's taint",
        "an admin's taint beside an old mark",
        "a mark without a taint",
        "a mark that cannot be read, without a taint",
        "an admin's cordon",
        "a note that a kubectl uncordon left",
        "an admin's cordon beside an old note",
    ],
)
def test_what_is_others_or_only_a_note_does_not_stand(facts):
    assert told(**facts) == []


def test_a_node_can_have_a_fence_and_a_cordon_and_its_claim_belongs_to_the_fence():
    facts = {"taints": (TAINT,), "mark": MARK, "claim": "inc-1", **CORDONED}
    texts = [text.partition(" ")[0] for text, _ in told(**facts, cordon=Cordon("drain", BOOT, AGO))]
    assert texts == ["fenced", "cordoned"]


def test_to_the_hookscript_only_its_own_cordons_matter():
    by_hook = node(name="k8s-1", **CORDONED, cordon=Cordon("hook", BOOT, AGO))
    over = node(name="k8s-2", cordon=Cordon("hook", BOOT, AGO))
    other = node(name="k8s-3", **CORDONED, cordon=Cordon("drain", BOOT, AGO))
    broken = node(name="k8s-4", **CORDONED, cordon=BROKEN)
    fenced = node(name="k8s-5", taints=(TAINT,), mark=MARK)
    assert [one.node for one in hooked([by_hook, over, other, broken, fenced], NOW_UTC)] == ["k8s-1"]


def test_a_request_that_fencer_has_taken_on_stays_until_fencer_lets_it_go():
    asked = Request("medik8s", "check-x7", "uid-1", "7", "k8s-2", asked_by="NodeHealthCheck workers")
    found = kept((asked, replace(asked, adopted=True), replace(asked, adopted=True, node="")))
    assert [one.node for one in found] == ["k8s-2", "check-x7"]
    assert found[0].text.startswith(f"{asked}: it stays")
    assert any("medik8s" in end for end in found[0].ends)
