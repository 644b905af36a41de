"""What a power witness's word makes of a guest whose host is not there: as little as it can."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencer.core.decide import decide
from fencer.core.history import remember
from fencer.core.host_power import by_host_power
from fencer.core.model import (
    Binding,
    GuestHistory,
    GuestRef,
    HostReading,
    PowerState,
    Proof,
    Reason,
    TaintNode,
    Unreadable,
    Verdict,
)
from tests.core.build import ARMED, BOOT, NOW_S, UUID, evidence, node, observation, run
from tests.support.amounts import examples

GUEST = GuestRef("home", "102", UUID, "k8s-2", "pve1")
OFF = HostReading(off=True, words="off", observed_at_s=NOW_S - 2)
BOUND = node(binding=Binding(GUEST, (BOOT,)))
FRESH = GuestHistory()


def lost(**facts):
    """Return what is known of a guest whose host is not there."""
    return evidence(
        PowerState.UNKNOWN, **{"guest": GUEST, "host_silent": True, "raw": "pve1 is offline"} | facts
    )


def test_a_silent_host_that_reads_off_holds_no_guest():
    found = by_host_power(lost(), OFF, BOUND, FRESH)
    assert (found.power_state, found.proof, found.settled) == (PowerState.STOPPED, Proof.HOST_POWER, True)
    assert found.raw == "pve1 is offline; the power witness of pve1 says off"
    assert found.observed_at_s == OFF.observed_at_s


def test_where_this_agent_saw_it_run_is_enough_without_a_binding():
    history = GuestHistory(guest=GUEST.key, ran_as=GUEST)
    assert by_host_power(lost(), OFF, node(binding=None), history).power_state is PowerState.STOPPED


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        (replace(OFF, off=False, words="on"), "says on"),
        (replace(OFF, off=None, words="something else"), "says something else"),
    ],
)
def test_a_witness_that_does_not_say_off_ends_the_readings_that_did(reading, words):
    found = by_host_power(lost(conclusive=False), reading, BOUND, FRESH)
    assert (found.power_state, found.conclusive) == (PowerState.UNKNOWN, True)
    assert words in found.raw
    first = remember(FRESH, BOUND, by_host_power(lost(), OFF, BOUND, FRESH), NOW_S, 10.0)
    assert first.run.power_state is PowerState.STOPPED
    assert remember(first, BOUND, found, NOW_S, 10.0).run.power_state is PowerState.UNKNOWN


@pytest.mark.parametrize(
    ("seen", "bound", "history"),
    [
        (lost(), node(binding=None), FRESH),
        (lost(), node(binding=Unreadable("newer")), FRESH),
        (lost(), node(binding=Binding(replace(GUEST, host="pve2"), (BOOT,))), FRESH),
        (lost(), node(binding=Binding(replace(GUEST, host=None), (BOOT,))), FRESH),
        (lost(), node(binding=Binding(replace(GUEST, id="103"), (BOOT,))), FRESH),
        (lost(), BOUND, GuestHistory(guest=GUEST.key, ran_as=replace(GUEST, host="pve2"))),
        (lost(), node(binding=None), GuestHistory(guest=("home", "103", UUID), ran_as=GUEST)),
        (lost(guest=replace(GUEST, host="pve2")), BOUND, FRESH),
        (lost(guest=replace(GUEST, host=None)), BOUND, FRESH),
    ],
    ids=[
        "never seen",
        "unreadable",
        "bound elsewhere",
        "bound nowhere",
        "another number",
        "seen elsewhere since",
        "another guest seen",
        "another host",
        "no host",
    ],
)
def test_a_guest_that_last_ran_elsewhere_is_not_proven_off(seen, bound, history):
    found = by_host_power(seen, OFF, bound, history)
    assert found.power_state is PowerState.UNKNOWN
    assert "last seen running on" in found.raw
    ran_on = history.ran_as or (bound.binding.guest if isinstance(bound.binding, Binding) else None)
    assert ran_on is None or ran_on.host is None or ran_on.host in found.raw


@pytest.mark.parametrize("state", [state for state in PowerState if state is not PowerState.UNKNOWN])
def test_a_reading_of_the_guest_itself_is_never_overridden(state):
    seen = evidence(state, guest=GUEST, host_silent=True)
    assert by_host_power(seen, OFF, BOUND, FRESH) == seen


def test_without_a_witness_or_a_silent_host_nothing_changes():
    heard = lost(host_silent=False)
    assert by_host_power(heard, OFF, BOUND, FRESH) == heard
    assert by_host_power(lost(), None, BOUND, FRESH) == lost()
    assert by_host_power(None, OFF, BOUND, FRESH) is None


def observed(*readings_s):
    """Return an observation after the witness read off at these times before now."""
    history = FRESH
    for ago_s in readings_s:
        reading = replace(OFF, observed_at_s=NOW_S - ago_s)
        seen = by_host_power(lost(observed_at_s=NOW_S), reading, BOUND, history)
        history = remember(history, BOUND, seen, NOW_S, 10.0)
    return observation(node=BOUND, candidates=candidates(), evidence=seen, history=history)


def candidates():
    [first] = observation().candidates
    return (replace(first, guest=GUEST),)


def test_two_readings_are_asked_for_and_the_same_one_does_not_count_twice():
    assert decide(observed(9, 9, 9), replace(ARMED, confirm_s=0.0)).reason is Reason.NOT_HELD
    assert decide(observed(9, 6), ARMED).reason is Reason.NOT_HELD
    fenced = decide(observed(9, 3), ARMED)
    [taint] = fenced.actions
    assert isinstance(taint, TaintNode)
    assert taint.mark.proof is Proof.HOST_POWER


def test_what_outlives_the_host_is_waited_for():
    """A lock of a migration, or of memory on disk: the host's end is not the guest's."""
    seen = observed(9, 3)
    locked = replace(seen, evidence=replace(seen.evidence, settled=False))
    assert decide(locked, ARMED).reason is Reason.GUEST_UNSETTLED


def test_a_silent_host_alone_is_refused_with_the_ways_out():
    decision = decide(observation(node=BOUND, candidates=candidates(), evidence=lost()), ARMED)
    assert (decision.verdict, decision.reason) == (Verdict.REFUSE, Reason.HOST_SILENT)
    for way in ("pve1 back", "power witness", "host_power", "--confirm-guest-off"):
        assert way in decision.objection.seen


@settings(max_examples=examples(300))
@given(
    silent=st.booleans(),
    settled=st.booleans(),
    host=st.sampled_from(("pve1", "pve2", None)),
    bound=st.sampled_from((BOUND, node(binding=None), node(binding=Unreadable("newer")))),
    ran_on=st.sampled_from(("pve1", "pve2", None)),
    off=st.sampled_from((True, False, None)),
)
def test_erasing_a_fact_never_proves_a_guest_off(silent, settled, host, bound, ran_on, off):
    """But for one: that the guest was last seen elsewhere, by the binding or by this agent."""
    seen = lost(host_silent=silent, settled=settled, guest=replace(GUEST, host=host))
    reading, history = (
        replace(OFF, off=off),
        GuestHistory(guest=GUEST.key, ran_as=ran_on and replace(GUEST, host=ran_on)),
    )
    before = by_host_power(seen, reading, bound, history).power_state is PowerState.STOPPED
    less = [
        by_host_power(seen, None, bound, history),
        by_host_power(seen, replace(reading, off=None), bound, history),
        by_host_power(replace(seen, host_silent=False), reading, bound, history),
        by_host_power(replace(seen, guest=replace(GUEST, host=None)), reading, bound, history),
    ]
    if bound is not BOUND or host == "pve1":
        less.append(by_host_power(seen, reading, replace(bound, binding=None), history))
    if ran_on in {host, None}:
        less.append(by_host_power(seen, reading, bound, FRESH))
    assert before or not any(found.power_state is PowerState.STOPPED for found in less)


@pytest.mark.parametrize(
    "before", [None, run(PowerState.RUNNING, renewals_at_start=1)], ids=["nothing", "running"]
)
def test_a_guest_read_off_from_afar_alone_is_looked_at_and_not_held_against_earlier_renewals(before):
    """A renewal before the first off reading is none after it."""
    far = evidence(conclusive=False)
    seen = observation(
        evidence=far, history=GuestHistory(before, running_seen=True, boot_id=BOOT), close=False
    )
    assert decide(seen, ARMED).reason is Reason.CLOSER_LOOK


def test_the_word_of_a_witness_is_dated_by_whoever_was_asked_first():
    old = replace(OFF, observed_at_s=NOW_S - 20)
    assert by_host_power(lost(), old, BOUND, FRESH).observed_at_s == NOW_S - 20
    stale = replace(observed(9, 3), evidence=by_host_power(lost(), old, BOUND, FRESH))
    assert decide(stale, ARMED).reason is Reason.EVIDENCE_STALE


def test_where_a_guest_ran_is_remembered_until_another_guest_is_the_node():
    running = evidence(PowerState.RUNNING, guest=GUEST)
    seen = remember(FRESH, BOUND, running, NOW_S, 10.0)
    assert seen.ran_as == GUEST
    assert remember(seen, BOUND, lost(), NOW_S, 10.0).ran_as == GUEST
    other = evidence(guest=replace(GUEST, id="103"))
    assert remember(seen, BOUND, other, NOW_S, 10.0).ran_as is None
