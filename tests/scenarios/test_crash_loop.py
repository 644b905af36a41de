"""A VM that dies soon after each boot, and is started again: one alarm meanwhile, and what a person can set.

The table in docs/design.md, M6, is what `TestWhatAPersonCanSet` measures.
"""

from dataclasses import replace

import pytest

from fencer.core.model import Reason
from fencer.core.policy import Mode
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import ARMED, Scenario
from fencer.simulation.stage import Stage
from tests.scenarios.recipes import RECIPES, real_agent
from tests.scenarios.ways.case import passes, row
from tests.scenarios.ways.ends import healthy
from tests.scenarios.ways.steps import in_a_loop, types

VM, LOOP = "k8s-2", "crash loop"
SECONDS = RECIPES["seconds"]


def loop(times, every_s=30.0, off_s=2.0, from_s=30.0):
    """It is killed so often, and each time started again a moment later."""
    return [
        fault
        for number in range(times)
        for fault in (
            Fault(from_s + number * every_s, What.CRASH, VM, death=number == 0),
            Fault(from_s + number * every_s + off_s, What.START, VM),
        )
    ]


def deeds(script, policy=ARMED, lasts_s=1500.0):
    """What is done to the node, in this order: (what, when)."""
    script = tuple(sorted(script, key=lambda fault: fault.at_s))
    world = Scenario(*("crash-loop", "", (), script, (), None), duration_s=lasts_s, policy=policy)
    stage = Stage(world, real_agent, seed=3, strict=True)
    return [
        (LOOP if LOOP in event.text else event.data["action"], event.t_s)
        for event in stage.play()
        if event.node == VM and event.data.get("action") and event.data.get("ok")
    ]


def done(*args, **facts):
    return [deed for deed, _ in deeds(*args, **facts) if deed != "BindNode"]


@pytest.mark.parametrize("mode", Mode)
def test_killed_every_half_minute_for_ten_minutes_there_is_one_alarm_and_no_fence(mode):
    found = [one for one in deeds(loop(20), replace(ARMED, mode=mode)) if one[0] != "BindNode"]
    assert found == [(LOOP, pytest.approx(122.0, abs=3.0))]


@pytest.mark.parametrize("every_s", [20.0, 60.0, 120.0, 190.0])
def test_however_long_it_lives(every_s):
    assert done(loop(6, every_s), lasts_s=1400.0).count(LOOP) == 1


def test_two_loops_with_a_calm_time_between_them_are_two_alarms():
    assert done([*loop(4), *loop(4, from_s=1000.0)], lasts_s=1300.0) == [LOOP, LOOP]


@pytest.mark.parametrize(
    "script",
    [
        loop(2, every_s=120.0),
        loop(3),
        loop(8, every_s=210.0),
        [Fault(30.0 + 60.0 * number, What.MIGRATE, VM, death=number == 0) for number in range(8)],
        [
            fault
            for number in range(5)
            for fault in (
                Fault(30.0 + 80.0 * number, What.SAVE, VM, death=number == 0),
                Fault(32.0 + 80.0 * number, What.RESTORE, VM),
            )
        ],
        [Fault(30.0, What.BACK_UP, VM, death=True), Fault(200.0, What.BACK_UP, VM)],
        [
            Fault(20.0, What.SNAPSHOT, VM, death=True),
            Fault(60.0, What.REVERT, VM),
            Fault(120.0, What.REBOOT, VM),
        ],
    ],
    ids=["two reboots", "three", "every 210 s", "moved", "saved and restored", "backed up", "reverted"],
)
def test_what_happens_on_ordinary_days_is_no_crash_loop(script):
    assert LOOP not in done(script, lasts_s=1800.0)


@pytest.mark.parametrize(
    "held",
    [
        [Fault(20.0, What.FENCING_PAUSED)],
        [Fault(20.0, What.NODE_PAUSED, VM)],
        [Fault(20.0, What.NODE_EXCLUDED, VM)],
    ],
    ids=["paused", "node paused", "excluded"],
)
def test_nothing_that_holds_fencer_back_holds_the_alarm_back(held):
    assert done([*held, *loop(6)], lasts_s=400.0) == [LOOP]


def test_starts_are_counted_while_the_api_server_is_away():
    away = [Fault(40.0, What.API_DOWN), Fault(230.0, What.API_UP)]
    assert (LOOP, pytest.approx(232.0, abs=6.0)) in deeds([*away, *loop(6)], lasts_s=400.0)


def test_an_agent_that_restarts_counts_from_the_first_again():
    killed = Fault(100.0, What.AGENT_KILLED, "fencer-1", for_s=1.0)
    assert (LOOP, pytest.approx(212.0, abs=3.0)) in deeds([killed, *loop(8)], lasts_s=400.0)


class TestWhatAPersonCanSet:
    """By when a crash loop is fenced: how long the VM is off each time, for how long it runs, what is set."""

    @pytest.mark.parametrize(
        ("every_s", "off_s", "policy", "fenced"),
        [
            (30.0, 2.0, ARMED, False),
            (60.0, 20.0, ARMED, False),
            (90.0, 45.0, ARMED, True),
            (60.0, 20.0, replace(ARMED, lease_silent_s=0.0), False),
            (60.0, 5.0, SECONDS, False),
            (60.0, 6.0, SECONDS, True),
            (30.0, 6.0, SECONDS, True),
            (60.0, 1.0, replace(SECONDS, confirm_s=0.0), True),
        ],
        ids=[
            "by default, off for a moment",
            "by default, for less than the silence takes",
            "by default, for longer",
            "without silence, and Ready still counts",
            "seconds, off for less than confirm_s and a poll",
            "seconds, off for longer",
            "seconds, and it lives for less than a boot",
            "seconds, and nothing to confirm",
        ],
    )
    def test_when_it_is_fenced(self, every_s, off_s, policy, fenced):
        found = done(loop(6, every_s, off_s), policy, lasts_s=700.0)
        assert ("TaintNode" in found, LOOP in found) == (fenced, True)

    @pytest.mark.parametrize(
        ("typed", "code", "pods"),
        [
            (("drain", VM), 0, 0),
            (("shutdown", VM), 0, 0),
            (("fence", VM, "--stop-guest"), 1, 4),
        ],
        ids=["drain", "shutdown", "fence --stop-guest"],
    )
    def test_what_a_person_types(self, typed, code, pods):
        case = row(Reason.NODE_HEALTHY, (in_a_loop,), passes("", to=healthy)).reached()
        types(*typed, code=code)(case)
        case.watched(100.0)
        assert len(self.pods(case)) == pods
        assert not case.api_node.out_of_service
        assert case.whole

    def test_a_cordon_leaves_the_pods_where_they_are(self):
        case = row(Reason.NODE_HEALTHY, (in_a_loop,), passes("", to=healthy)).reached()
        before = self.pods(case)
        case.breaks(What.CORDON_BY_HAND, VM)
        case.watched(100.0)
        assert before
        assert self.pods(case) == before

    @staticmethod
    def pods(case):
        """Those that a drain would move."""
        return sorted(pod.name for pod in case.simulation.api.pods_on(VM))

    def test_once_nothing_starts_it_again_it_is_fenced(self):
        found = done(loop(6)[:-1], lasts_s=400.0)
        assert found == [LOOP, "TaintNode", "ClearPods"]
