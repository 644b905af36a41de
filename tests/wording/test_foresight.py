"""What a command says that looked once: what would follow, and on what that hangs."""

from dataclasses import replace

import pytest

from fencer.core.decide import decide
from fencer.core.model import GuestHistory, PowerState, Reason
from fencer.core.policy import Mode, Policy, SavedGuest
from fencer.wording.foresight import foretold, past_untold, untold
from tests.core.build import ARMED, NOW_S, evidence, fenced, in_state, node, observation, returned, run

OBSERVING = Policy()
LEFT = "1 pod to clear, 1 volume attached"
UNTELLABLE = "; one look cannot tell whether that is so"
ONCE = run(readings=1, since_s=NOW_S - 1)
UNBOUND = node(binding=None)
AT_ONCE = replace(ARMED, lease_silent_s=0.0, require_not_ready=False)
FRESH = replace(node(), lease_age_s=5.0, ready=False)


def paused(**facts):
    history = GuestHistory(replace(ONCE, power_state=PowerState.PAUSED))
    return in_state(PowerState.PAUSED, history=history, **facts)


def saved():
    history = GuestHistory(replace(ONCE, power_state=PowerState.SAVED))
    return in_state(PowerState.SAVED, history=history)


@pytest.mark.parametrize(
    ("seen", "policy", "reason", "words"),
    [
        (
            observation(history=GuestHistory(ONCE)),
            ARMED,
            Reason.NOT_HELD,
            f"will fence, once its guest has been off for 5 s: {LEFT}{UNTELLABLE}",
        ),
        (
            observation(history=GuestHistory(ONCE)),
            OBSERVING,
            Reason.NOT_HELD,
            f"would fence, once its guest has been off for 5 s: {LEFT}{UNTELLABLE}",
        ),
        (
            observation(history=GuestHistory(ONCE), killed=True),
            ARMED,
            Reason.NOT_HELD,
            f"will fence, once its guest has been off for 30 s: {LEFT}{UNTELLABLE}",
        ),
        (
            paused(),
            ARMED,
            Reason.PAUSE_TOO_SHORT,
            f"will stop its guest, once its guest has been paused for 60 s, then fence: {LEFT}{UNTELLABLE}",
        ),
        (
            saved(),
            replace(ARMED, saved_guest=SavedGuest.DISCARD),
            Reason.NOT_HELD,
            "will throw its guest's saved memory away, once its guest has been saved for 5 s, then fence: "
            f"{LEFT}{UNTELLABLE}",
        ),
        (
            observation(history=GuestHistory(ONCE), node=FRESH),
            AT_ONCE,
            Reason.FALL_UNSEEN,
            "will fence, if its guest was seen running before, once its guest has been off for 5 s: "
            f"{LEFT}{UNTELLABLE}",
        ),
        (
            observation(history=GuestHistory(ONCE), node=UNBOUND),
            OBSERVING,
            Reason.BINDING_UNPROVEN,
            "would fence, if the agent has seen its guest alive with it, "
            f"once its guest has been off for 5 s: {LEFT}{UNTELLABLE}",
        ),
        (
            returned(node=replace(returned().node, lease_renewals=5)),
            ARMED,
            Reason.AWAITING_RENEWALS,
            "will lift the fence, once its kubelet has been heard 2 times since the boot; "
            "one look cannot tell whether that is so",
        ),
    ],
    ids=lambda value: value.value if isinstance(value, Reason) else "",
)
def test_what_would_follow_is_said_with_what_it_hangs_on(seen, policy, reason, words):
    decision = decide(seen, policy)
    assert decision.reason is reason
    assert foretold(seen, decision, policy)[0] == words


def test_where_something_else_is_in_the_way_that_is_said_first():
    seen = observation(history=GuestHistory(ONCE), node=UNBOUND, evidence=evidence(PowerState.RUNNING))
    text, _ = foretold(seen, decide(seen, OBSERVING), OBSERVING)
    assert text == (
        "its guest runs (running (by test): the node may only be cut off); and one look cannot tell whether "
        "its guest was seen alive with it"
    )


def test_without_a_reading_that_is_said():
    seen = observation(node=UNBOUND, evidence=None, evidence_error="lab: no answer")
    assert foretold(seen, decide(seen, OBSERVING), OBSERVING)[0].startswith(
        "its hypervisor does not answer for its guest (lab: no answer); and one look cannot tell "
    )


def test_what_only_a_closer_look_could_tell_is_in_nobodys_way():
    seen = observation(history=GuestHistory(ONCE), node=UNBOUND, close=False)
    text, _ = foretold(seen, decide(seen, OBSERVING), OBSERVING)
    assert text.startswith("stopped (by test); one look cannot tell ")


def test_without_a_guest_there_is_nothing_to_foretell():
    seen = observation(history=GuestHistory(ONCE))
    lost = replace(seen, candidates=())
    assert "; one look cannot tell for how long" in foretold(lost, decide(seen, ARMED), ARMED)[0]


def test_of_a_pause_that_has_just_begun_the_whole_limit_is_left():
    assert decide(paused(), ARMED).recheck_s == ARMED.paused_for_s


@pytest.mark.parametrize("mode", Mode)
def test_that_its_guest_was_seen_alive_is_written_on_the_node_unless_fencer_only_observes(mode):
    policy = Policy(mode=mode)
    assert (Reason.BINDING_UNPROVEN in untold(policy, first_look=True)) is (mode is Mode.OBSERVE)
    assert (Reason.BINDING_UNPROVEN in untold(policy, first_look=False)) is (mode is Mode.OBSERVE)


def test_what_only_time_tells_a_second_look_begins_to_count():
    assert Reason.NOT_HELD in untold(ARMED, first_look=True)
    assert Reason.NOT_HELD not in untold(ARMED, first_look=False)


def test_of_a_fenced_node_it_is_known_what_follows_once_its_guest_has_been_off_for_long_enough():
    young = GuestHistory(run(since_s=NOW_S - 1, readings=1))
    seen = fenced(history=young, pods=(), attachments=())
    assert decide(seen, ARMED).reason is Reason.NOT_HELD
    found = past_untold(seen, ARMED)
    assert found is not None
    assert found.reason is Reason.PODS_CLEARED
    assert past_untold(fenced(candidates=()), ARMED) is None
