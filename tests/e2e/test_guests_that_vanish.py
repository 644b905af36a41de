"""Guests that vanish, come in two, or come back as they were: what proves an end, and what is no new boot."""

import json
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.e2e.lab import Lab, stays
from tests.e2e.operator import Operator
from tests.support import wait_until
from tests.support.guest import Guest
from tests.support.guests import running_guest_host

pytestmark = pytest.mark.usefixtures("sound")

WATCHED_S = 4.0
"""How long a refusal must last: the careful recipe fences within that time after Ready became Unknown."""


@pytest.mark.parametrize("first", [Guest.undefine, Guest.destroy], ids=["while-it-runs", "after-its-stop"])
def test_a_guest_that_is_undefined_is_fenced_where_its_end_was_seen(
    lab: Lab, operator: Operator, afterwards: ExitStack, first: Callable[[Guest], None]
) -> None:
    """Undefined while it runs it runs on, and is left alone. Once off it is unknown to libvirt, on record."""
    with operator.watching(operator.configure()):
        name = lab.busiest()
        lab.wait_settled()
        guest, writes = lab.nodes[name].guest, len(operator.writes())
        afterwards.callback(lab.bring_back, name)
        first(guest)
        if first is Guest.undefine:
            stays(lambda: lab.is_ready(name) and len(operator.writes()) == writes, "all is well", for_s=2.0)
            guest.destroy()
        else:
            guest.undefine()
        assert guest.power() is None
        wait_until(lambda: lab.is_fenced(name), f"fence of {name}")
        assert json.loads(lab.annotations(name)["fencer.dev/mark"])["proof"] == "absence"
        lab.wait_elsewhere(name)
        lab.see_back(name)


def test_a_guest_whose_end_nobody_saw_is_fenced_on_a_persons_word_alone(
    lab: Lab, operator: Operator, afterwards: ExitStack
) -> None:
    """When fencer looks again it is gone: it may have been moved, and run on somewhere else."""
    config = operator.configure()
    with operator.watching(config):
        name = lab.busiest()
        lab.wait_settled()
    began, writes = len(operator.journal(name)), len(operator.writes())
    afterwards.callback(lab.bring_back, name)
    lab.nodes[name].guest.destroy()
    lab.nodes[name].guest.undefine()
    with operator.watching(config):
        wait_until(lambda: "refuse/absence_unproven" in operator.story(name)[began:], "refusal")
        stays(lambda: not lab.is_fenced(name), f"{name} is not fenced", for_s=WATCHED_S)
        alone = operator.run("fence", name, "--yes", "-c", str(config))
        assert (alone.returncode, len(operator.writes())) == (1, writes), alone
        assert "--confirm-guest-off" in alone.stdout + alone.stderr
        word = ("--confirm-guest-off", "deleted by me, on this host")
        given = operator.run("fence", name, "--yes", *word, "-c", str(config))
        assert given.returncode == 0, given
        assert json.loads(lab.annotations(name)["fencer.dev/mark"])["proof"] == "operator"
        lab.wait_elsewhere(name)
        lab.see_back(name)


def test_memory_of_before_the_fence_is_told_at_once_and_lifts_nothing(
    lab: Lab, operator: Operator, afterwards: ExitStack
) -> None:
    """Somebody reverts the fenced guest to a snapshot of its memory: its old containers write on."""
    with operator.watching(operator.configure()) as watch:
        name = lab.busiest()
        guest, began = lab.nodes[name].guest, len(operator.journal(name))
        afterwards.callback(lab.bring_back, name)
        snapshot = f"early-{began}"  # a second try finds that of the first
        guest.take_snapshot(snapshot)
        guest.destroy()
        wait_until(lambda: "fenced/pods_cleared" in operator.story(name)[began:], "fence")
        lab.wait_elsewhere(name)
        guest.revert_to_snapshot(snapshot)
        wait_until(lambda: "Alarm" in operator.story(name)[began:], "alarm")
        assert "came back with its old memory" in watch.log
        wait_until(lambda: lab.is_ready(name), "Ready node")
        stays(lambda: lab.is_fenced(name), f"{name} is still fenced", for_s=WATCHED_S)
        told = operator.run("explain", name, "-c", str(operator.configure()))
        assert "old memory" in told.stdout, told
        guest.destroy()
        lab.see_back(name)


def test_a_copy_with_the_same_uuid_is_in_the_way_while_it_runs(
    lab: Lab, operator: Operator, afterwards: ExitStack
) -> None:
    """It may be the very guest, started on the other host: which one the node is cannot be told.

    Nor can it afterwards: the guest was last seen running there, and may have gone on from there, too.
    """
    with running_guest_host() as elsewhere:
        config = operator.configure(further={"elsewhere": {"uri": elsewhere.uri}})
        with operator.watching(config):
            name = lab.busiest()
            guest, began = lab.nodes[name].guest, len(operator.journal(name))
            afterwards.callback(lab.bring_back, name)
            copy = elsewhere.define(name, guest.uuid)
            copy.start()
            guest.destroy()
            wait_until(lambda: "refuse/guest_ambiguous" in operator.story(name)[began:], "refusal")
            wait_until(lambda: lab.ready_status(name) == "Unknown", f"Ready=Unknown of {name}")
            stays(lambda: not lab.is_fenced(name), f"{name} is not fenced", for_s=WATCHED_S)
            told = operator.run("explain", name, "-c", str(config))
            assert f"fits lab/{name}" in told.stdout, told
            assert f"elsewhere/{name}" in told.stdout, told
            copy.destroy()
            wait_until(lambda: "refuse/guest_left" in operator.story(name)[began:], "doubt")
            stays(lambda: not lab.is_fenced(name), f"{name} is not fenced", for_s=WATCHED_S)
            word = ("--confirm-guest-off", "I have looked: both are off")
            by_hand = operator.run("fence", name, "--yes", *word, "-c", str(config))
            assert by_hand.returncode == 0, by_hand
            lab.wait_elsewhere(name)
            lab.see_back(name)
