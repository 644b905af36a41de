"""What is known already spares a close look; and what a pod that stays on a fenced node keeps there."""

from dataclasses import replace

import pytest

from fencer.core.decide import decide
from fencer.core.model import Fleet, Intent, PowerState, Reason, Verdict
from fencer.core.pods import keeping_volumes
from fencer.core.policy import SavedGuest
from tests.core.build import (
    ARMED,
    POD,
    VOLUME,
    changed,
    fenced,
    in_state,
    node,
    observation,
    returned,
)


class TestBeforeTheCloserLook:
    """What a look from afar tells already costs no close one, or many nodes would keep each other waiting."""

    def afar(self, **facts):
        return observation(**{"close": False, "pods": None, "attachments": None} | facts)

    def test_what_is_on_it_is_looked_at_where_nobody_knows(self):
        assert decide(self.afar(), ARMED).reason is Reason.CLOSER_LOOK

    def test_a_node_that_is_known_to_be_empty_is_not(self):
        empty = decide(self.afar(pods=(), attachments=(), looked_s=12.0), ARMED)
        assert (empty.verdict, empty.reason) == (Verdict.REFUSE, Reason.NOTHING_TO_CLEAR)
        assert "as of 12 s ago" in empty.objection.seen

    def test_one_with_something_left_is(self):
        assert decide(self.afar(pods=(POD,), attachments=()), ARMED).reason is Reason.CLOSER_LOOK

    def test_nor_is_one_beyond_the_brake(self):
        assert decide(self.afar(fleet=Fleet(7, 4, young_fences=3)), ARMED).reason is Reason.BRAKE

    @pytest.mark.parametrize("state", [PowerState.PAUSED, PowerState.SAVED])
    def test_nor_one_whose_power_would_be_cut_for_nothing(self, state):
        policy = replace(ARMED, saved_guest=SavedGuest.DISCARD)
        base = in_state(state, close=False, pods=(), attachments=(), looked_s=12.0)
        assert decide(base, policy).reason is Reason.NOTHING_TO_CLEAR
        assert decide(changed(base, pods=None), policy).reason is Reason.CLOSER_LOOK

    def test_a_guest_that_runs_is_told_before_the_brake(self):
        running = in_state(PowerState.RUNNING, close=False, pods=None, fleet=Fleet(7, 4, young_fences=3))
        assert decide(running, ARMED).reason is Reason.GUEST_RUNNING

    def test_a_fence_with_nothing_left_to_do_is_not_looked_at(self):
        cleared = decide(fenced(close=False, pods=(), attachments=(), looked_s=7.0), ARMED)
        assert (cleared.verdict, cleared.reason, cleared.look) == (Verdict.FENCED, Reason.PODS_CLEARED, False)
        assert "7 s ago" in cleared.objection.seen

    @pytest.mark.parametrize(
        "facts",
        [
            {"pods": None, "attachments": None},
            {"pods": (POD,), "attachments": ()},
            {"pods": (), "attachments": (VOLUME,)},
            {"pods": (), "attachments": (), "intent": Intent.FENCE},
        ],
        ids=["not known", "a pod", "a volume", "by hand"],
    )
    def test_one_with_something_left_or_asked_for_by_hand_is_looked_at(self, facts):
        left = decide(fenced(close=False, looked_s=7.0, **facts), ARMED)
        assert left.reason is Reason.CLOSER_LOOK


class TestPodsThatStay:
    """A pod that tolerates the taint stays on a fenced node, and its volume with it."""

    STAYS = replace(POD, name="agent-0", uid="pod-uid-2", tolerates_out_of_service=True, claims=("data",))
    THEIRS = replace(VOLUME, name="csi-2", uid="va-uid-2", volume="pv-agent-0")

    def on_it(self, base, *volumes, **facts):
        return changed(
            base,
            pods=(self.STAYS,),
            attachments=volumes,
            **{"kept_volumes": frozenset({"pv-agent-0"})} | facts,
        )

    def test_it_alone_is_nothing_to_fence_for(self):
        assert decide(self.on_it(observation(), self.THEIRS), ARMED).reason is Reason.NOTHING_TO_CLEAR
        both = decide(self.on_it(observation(), self.THEIRS, VOLUME), ARMED)
        assert both.verdict is Verdict.FENCE

    def test_its_volume_is_not_waited_for(self):
        assert decide(self.on_it(fenced(), self.THEIRS), ARMED).reason is Reason.PODS_CLEARED
        assert decide(self.on_it(fenced(), self.THEIRS, VOLUME), ARMED).reason is Reason.RELEASING_VOLUMES

    def test_it_holds_no_fence(self):
        lifted = decide(self.on_it(returned(), self.THEIRS), ARMED)
        assert lifted.verdict is Verdict.UNFENCE
        assert decide(self.on_it(returned(), self.THEIRS, VOLUME), ARMED).reason is Reason.VOLUMES_REMAIN

    def test_where_its_volumes_cannot_be_told_it_is_said_why(self):
        unread = self.on_it(returned(), self.THEIRS, kept_volumes=frozenset(), kept_unread="no right to")
        assert "no right to" in decide(unread, ARMED).objection.seen

    @pytest.mark.parametrize(
        ("facts", "keeps"),
        [
            ({}, True),
            ({"tolerates_out_of_service": False, "mirror": True}, True),
            ({"tolerates_out_of_service": False}, False),
            ({"phase": "Succeeded"}, False),
            ({"claims": ()}, False),
        ],
        ids=["tolerates it", "the kubelet's own", "will be cleared", "over", "without a volume"],
    )
    def test_which_pods_keep_their_volumes(self, facts, keeps):
        pod = replace(self.STAYS, **facts)
        assert keeping_volumes(node(), (pod,)) == ((pod,) if keeps else ())
