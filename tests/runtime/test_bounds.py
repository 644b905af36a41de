"""Whatever stays as it is, is decided within its bound: with any admitted policy, however seldom sweeps look.

The endpoint is as Proxmox VE is: a sweep reads a guest that is not as usual every 10 s, repeats that in
between, and lets nothing of it count; and a live reading may take as long as one of a QEMU that is stuck.
"""

from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from fencer.core.model import Intent, Reason, Verdict, Word
from fencer.core.policy import ANSWER_S, AfterStop, Mode, PausedGuest, Policy, SavedGuest
from fencer.runtime.reconcile import Agent
from fencer.simulation.asker import InlineAsker
from tests.runtime.stagehand import Stagehand

AGAIN_S = 10.0
KUBERNETES_S = 60.0
"""Until the node controller has lost its patience: 40 to 50 s, and its period."""


class Seldom:
    """An endpoint whose sweeps repeat themselves, and prove nothing."""

    def __init__(self, port, clock):
        self._port, self._clock = port, clock
        self._swept, self._told = float("-inf"), ()

    def __getattr__(self, name):
        return getattr(self._port, name)

    def sweep(self):
        if self._clock.now_s() - self._swept >= AGAIN_S:
            self._swept = self._clock.now_s()
            self._told = [replace(reading, conclusive=False) for reading in self._port.sweep()]
        return self._told


def staged(policy, answer_s):
    """Set the scene, with an agent that has seen every node alive; then sweeps begin to be seldom."""
    stage = Stagehand(policy)
    simulation = stage.simulation
    stage.run(4 * max(10.0, policy.poll_s))
    [(name, port)] = simulation.hypervisors.items()
    seldom = Seldom(port, simulation.clock)
    stage.world.hypervisors[name] = seldom
    simulation.asker = InlineAsker(simulation.clock, lambda endpoint: answer_s if endpoint == name else 0.005)
    object.__setattr__(stage.world, "asker", simulation.asker)
    return stage


@st.composite
def admitted(draw):
    """Draw a policy that the configuration admits."""
    seconds = {
        "poll_s": st.floats(0.5, 20),
        "evidence_max_age_s": st.floats(4.5, 60),
        "lease_silent_s": st.floats(16, 90),
        "confirm_s": st.one_of(st.just(0.0), st.floats(1, 40)),
        "paused_for_s": st.floats(1, 200),
    }
    drawn = {name: draw(values) for name, values in seconds.items()}
    policy = Policy(
        mode=Mode.ARMED,
        require_not_ready=draw(st.booleans()),
        after_stop=AfterStop.LEAVE,
        paused_guest=draw(st.sampled_from(PausedGuest)),
        saved_guest=draw(st.sampled_from(SavedGuest)),
        **drawn,
    )
    poll_s = policy.poll_s
    return replace(
        policy,
        evidence_max_age_s=max(policy.evidence_max_age_s, 2 * poll_s, ANSWER_S),
        confirm_s=policy.confirm_s and max(policy.confirm_s, 2 * poll_s),
    )


def refused(policy, state):
    """Say with what a guest in that state is left alone; None: it is fenced."""
    if state == "pause" and policy.paused_guest is PausedGuest.REFUSE:
        return Reason.GUEST_PAUSED
    if state == "save" and policy.saved_guest is SavedGuest.REFUSE:
        return Reason.GUEST_SAVED
    return Reason.ABSENCE_UNPROVEN if state == "delete" else None


@pytest.mark.slow
@settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])  # whole incidents take too long to shrink
@given(
    policy=admitted(),
    state=st.sampled_from(["crash", "pause", "save", "delete"]),
    answer_s=st.floats(0, 3.5),
)
def test_what_stays_as_it_is_is_decided_within_its_bound(policy, state, answer_s):
    """Fenced, or left alone for the one reason that the policy names; never "a moment ago" for ever."""
    assert policy.violations() == ()
    stage = staged(policy, answer_s)
    stage.happen(state)
    pass_s = policy.poll_s + 6 * ANSWER_S
    held_s = policy.paused_for_s if state == "pause" else policy.confirm_s
    bound_s = KUBERNETES_S + policy.lease_silent_s + held_s + policy.confirm_s + 6 * pass_s
    stage.run(bound_s)
    reason = refused(policy, state)
    if reason is None:
        assert stage.node().out_of_service is not None
    else:
        told = [(verdict, why) for node, verdict, why in stage.notes.decided_ if node == "k8s-2"]
        assert told[-1] == (Verdict.REFUSE, reason)


def test_by_hand_a_paused_guest_is_decided_within_seconds_also_where_nothing_is_done():
    """As `fencer fence --dry-run` asks: it has no agent's memory, only what it reads by itself."""
    stage = staged(Policy(mode=Mode.ARMED), answer_s=3.0)
    stage.happen("pause")
    stage.run(60)
    world, policy = stage.world, stage.policy
    fresh = Agent(world, policy, stage.simulation.rules())
    began_s = stage.simulation.clock.now_s()
    judged = fresh.pursue("k8s-2", Intent.FENCE, Word(), 120.0, act=False)
    assert (judged.decision.verdict, judged.decision.reason) == (Verdict.STOP_FIRST, Reason.GUEST_PAUSED)
    lease_s = 1.5 * policy.lease_period_s
    assert stage.simulation.clock.now_s() - began_s < lease_s + policy.confirm_s + 4 * (policy.poll_s + 6)
