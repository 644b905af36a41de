"""A node in words, as `fencer status`, `explain` and `fence` tell it."""

from dataclasses import replace

import pytest

from fencer.core.model import NEVER_S, Decision, Doubted, Judged, PowerState, Reason, Verdict
from fencer.wording import nodes
from fencer.wording.conditions import fence_word
from tests.core.build import GUEST, doubt, evidence, fenced, healthy, in_state, node, observation

WAITS = Decision(Verdict.WAIT, Reason.NOT_HELD)
UNPROVEN = Decision(Verdict.REFUSE, Reason.BINDING_UNPROVEN)
HEALTHY = Decision(Verdict.HEALTHY, Reason.NODE_HEALTHY)
NOBODY_KNOWN = observation(candidates=(), evidence=None, node=node(binding=None))
UNBELIEVED = healthy(evidence=evidence(doubt=doubt(Doubted.CONTRADICTED)))


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"ready": True, "not_ready_s": None}, "yes"),
        ({"ready": None, "not_ready_s": 51.2}, "unknown, 51 s"),
        ({"ready": False, "not_ready_s": None}, "no"),
    ],
)
def test_ready_and_since_when_not(facts, told):
    assert nodes.ready(node(**facts)) == told


def test_a_guest_is_told_as_its_hypervisor_names_it_now():
    renamed = replace(GUEST, name="k8s-2-new")
    assert nodes.guest_of(Judged(observation(evidence=evidence(guest=renamed)), WAITS)) == renamed
    assert nodes.guest_of(Judged(NOBODY_KNOWN, WAITS)) is None


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        (NOBODY_KNOWN, nodes.NOBODY),
        (observation(evidence=None), "unknown"),
        (in_state(PowerState.PAUSED), "paused"),
    ],
)
def test_the_state_of_a_guest_in_a_word(seen, state):
    assert nodes.state_of(seen) == state


@pytest.mark.parametrize(
    ("judged", "word"),
    [
        (Judged(fenced(), Decision(Verdict.FENCED, Reason.CLEARING_PODS)), "fenced 1m30s ago"),
        (Judged(NOBODY_KNOWN, Decision(Verdict.REFUSE, Reason.NO_GUEST)), "refused"),
        (Judged(UNBELIEVED, HEALTHY), "unprotected"),
        (Judged(observation(), Decision(Verdict.REFUSE, Reason.OBSERVE_MODE)), "only observed"),
        (Judged(observation(), Decision(Verdict.REFUSE, Reason.BRAKE)), "refused"),
        (Judged(observation(), Decision(Verdict.REFUSE, Reason.BINDING_UNPROVEN)), "refused"),
        (
            Judged(observation(), Decision(Verdict.REFUSE, Reason.BINDING_UNPROVEN), untold="would fence"),
            "waiting",
        ),
        (Judged(healthy(), HEALTHY), nodes.NOBODY),
        (Judged(healthy(), Decision(Verdict.HEALTHY, Reason.BLIND)), "blind"),
        (Judged(healthy(), Decision(Verdict.WAIT, Reason.COUNTING_SILENCE)), "waiting"),
        (Judged(observation(), Decision(Verdict.OFF, Reason.PLANNED_STOP)), "shut down"),
    ],
)
def test_whether_it_is_fenced_or_would_be(judged, word):
    assert fence_word(judged) == word


@pytest.mark.parametrize(
    ("judged", "told"),
    [
        (Judged(healthy(), HEALTHY), "healthy"),
        (Judged(UNBELIEVED, HEALTHY), "healthy, but lab reports its VM as stopped (by test)"),
        (Judged(observation(), WAITS, untold="would fence\nnow"), "would fence\\nnow"),
    ],
)
def test_why(judged, told):
    assert nodes.why(judged) == told


@pytest.mark.parametrize(
    ("reading", "more", "told"),
    [
        (evidence(raw="stopped."), (), "Last reading from lab: stopped."),
        (None, (), "Its hypervisor now says nothing about it: there is no reading of the guest."),
        (
            None,
            ("lab: no answer.", PowerState.RUNNING),
            "Its hypervisor now says nothing about it: lab: no answer; a moment ago, from afar, it read "
            "running.",
        ),
        (
            evidence(PowerState.UNKNOWN, raw="its lock hangs", observed_at_s=NEVER_S),
            (),
            "Its hypervisor now says nothing about it: its lock hangs.",
        ),
    ],
)
def test_what_was_last_said_of_a_guest(reading, more, told):
    assert nodes.last_said(reading, *more) == told


UNANSWERED = healthy(evidence=None, evidence_error="lab: no answer\nwithin 10 s", unanswered=("lab",))
BLIND = Decision(Verdict.HEALTHY, Reason.BLIND)
NOWHERE = Decision(Verdict.REFUSE, Reason.EVIDENCE_MISSING)


@pytest.mark.parametrize(
    ("judged", "told"),
    [
        (Judged(healthy(), HEALTHY), None),
        (Judged(UNANSWERED, BLIND), "lab does not answer"),
        (Judged(replace(UNANSWERED, unanswered=("home",)), BLIND), "lab: no answer\\nwithin 10 s"),
        (
            Judged(healthy(evidence=evidence(PowerState.UNKNOWN, raw="its host\nis gone")), BLIND),
            "its guest reads its host\\nis gone",
        ),
        (
            Judged(replace(NOBODY_KNOWN, node=node(ready=True), unanswered=("home", "lab")), NOWHERE),
            "home, lab do not answer",
        ),
        (Judged(replace(NOBODY_KNOWN, unanswered=("lab",)), NOWHERE), None),
    ],
    ids=["read", "its endpoint", "one guest", "one host", "of nobody", "not heard"],
)
def test_why_nobody_would_notice_the_end_of_a_guest(judged, told):
    assert nodes.blind(judged) == told
    assert (fence_word(judged) == "blind") is (told is not None)
    assert nodes.why(judged).startswith(f"blind: {told}; nobody") is (told is not None)


def test_a_node_that_is_not_ready_since_an_unknown_time_is_not_called_young():
    assert nodes.ready(node(ready=None, not_ready_s=0.2)) == "unknown"
