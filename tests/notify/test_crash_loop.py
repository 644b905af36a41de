"""A crash loop is one message while it lasts, and one when it is over: each boot is another incident."""

from dataclasses import replace

from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import ARMED, Scenario
from tests.notify.test_book import ALARM, WELL, Night, of, short
from tests.notify.told import Told

VM = "k8s-2"
LOOP = replace(ALARM, title="ALARM: k8s-2: its VM is in a crash loop", reason="")


def told(times, every_s=30.0, off_s=2.0, lasts_s=1500.0):
    """What people are told of a VM that is killed so often."""
    script = [
        fault
        for number in range(times)
        for fault in (
            Fault(30.0 + number * every_s, What.CRASH, VM, death=number == 0),
            Fault(30.0 + number * every_s + off_s, What.START, VM),
        )
    ]
    world = Scenario(*("crash-loop", "", (), tuple(script), (), None), duration_s=lasts_s, policy=ARMED)
    return [(str(one.told_as), one.title, one.loud) for one in Told(world).messages]


RAISED = ("alarm", "ALARM: k8s-2: its VM is in a crash loop", True)
OVER = ("back", "k8s-2: the alarm is over", True)


def test_killed_every_half_minute_for_ten_minutes_it_is_told_once_and_once_that_it_is_over():
    assert told(20) == [RAISED, OVER]


def test_two_reboots_are_no_news():
    assert told(2, every_s=120.0, lasts_s=900.0) == []


def test_also_where_each_death_is_fenced():
    """Off for longer than the silence takes: fenced and lifted between two alarms, if there were two."""
    found = told(6, every_s=150.0, off_s=60.0, lasts_s=1800.0)
    assert found.count(RAISED) == 1
    assert found[-1] == OVER


def test_it_hides_no_other_alarm():
    """Old memory that comes back in a crash loop is told at once, and once."""
    night = Night()
    assert short(night.see(of(LOOP), 40.0)) == [("alarm", "k8s-2", True)]
    assert [(one.title, one.loud) for one in night.see(of(ALARM), 40.0)] == [(ALARM.title, True)]
    assert [one.loud for one in night.see(of(LOOP), 40.0)] == [False]
    assert [one.over for one in night.see(WELL, 100.0)] == [True]
