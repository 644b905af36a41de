"""`mode: observe` as a person meets it: one sentence for one situation, whoever says it."""

import json
from dataclasses import replace

import pytest

from fencer.core.policy import Mode, Policy
from fencer.simulation.faults import What
from tests.cli.lab import Lab
from tests.cli.test_watch import watched


class Mapped(Lab):
    """A lab whose configuration names the guest, and where two readings at once are enough."""

    def load(self, path):
        return replace(super().load(path), nodes={"k8s-2": ("lab", "k8s-2")})


def test_watch_status_and_explain_say_what_would_be_done_in_the_same_words():
    lab = Mapped(Policy(mode=Mode.OBSERVE, confirm_s=0.0))
    lab.breaks(What.POWER_OFF, "k8s-2", in_s=5)
    log = watched(lab, for_s=100)
    [told] = [line for line in log.splitlines() if "reason=observe_mode" in line]
    sentence = told.partition('text="')[2].partition(";")[0]
    assert sentence.startswith("would fence now: ")
    assert sentence in lab.run("status").output
    assert f"k8s-2 is only observed: {sentence}." in lab.run("explain", "k8s-2").output.replace("\n", " ")


@pytest.mark.parametrize(("mode", "verb"), [(Mode.OBSERVE, "would"), (Mode.ARMED, "will")])
def test_what_one_look_cannot_tell_is_said_with_what_would_follow_in_every_mode(mode, verb):
    lab = Lab()
    lab.passes(30, watched=True)
    lab.policy = Policy(mode=mode)
    lab.breaks(What.POWER_OFF, "k8s-3")
    lab.passes(70)
    sentence = (
        f"{verb} fence, once its guest has been off for 5 s: 3 pods to clear, 2 volumes attached; one look "
        "cannot tell whether that is so"
    )
    assert sentence in lab.run("status").output
    explained = lab.run("explain", "k8s-3").output.replace("\n", " ")
    assert f"fencer waits before it decides about k8s-3: {sentence}." in explained


def test_a_fence_that_stands_is_not_called_none_where_fencer_only_observes():
    """Somebody fenced it by hand; what is left of it would be lifted."""
    lab = Lab()
    lab.passes(30, watched=True)
    lab.policy = Policy(mode=Mode.OBSERVE)
    lab.breaks(What.POWER_OFF, "k8s-3")
    lab.passes(70)
    assert lab.run("fence", "k8s-3", "--yes").exit_code == 0
    lab.breaks(What.START, "k8s-3")
    log = watched(lab, for_s=90)
    assert 'text="would lift the fence now; ' in log
    said = lab.run("explain", "k8s-3").output
    assert "refuses" not in said


def test_a_node_whose_guest_no_command_has_seen_alive_is_waiting_and_not_refused():
    """The agent writes nothing on the Node, so only its own log knows."""
    lab = Lab(Policy(mode=Mode.OBSERVE))
    lab.breaks(What.POWER_OFF, "k8s-2", in_s=30)
    log = watched(lab, for_s=110)
    assert "would fence now: " in log
    row = next(line for line in lab.run("status").output.splitlines() if line.startswith("k8s-2"))
    assert "refused" not in row
    assert "would fence, if the agent has seen its guest alive with it, " in row
    assert "Only the agent that watches knows" in lab.run("explain", "k8s-2").output.replace("\n", " ")


@pytest.mark.parametrize(("what", "would"), [(What.POWER_OFF, "fence"), (What.PAUSE, "stop its guest")])
def test_watch_and_status_announce_the_same_of_one_dead_node_in_one_minute(what, would):
    lab = Lab(Policy(mode=Mode.OBSERVE))
    lab.breaks(what, "k8s-2", in_s=30)
    log = watched(lab, for_s=110)
    watch = [line for line in log.splitlines() if "node=k8s-2 " in line][-1].partition('text="')[2]
    status = next(line for line in lab.run("status").output.splitlines() if line.startswith("k8s-2"))
    left = ": 4 pods to clear, 3 volumes attached"
    assert watch.startswith(f"would {would} now")
    assert f"would {would}, if the agent has seen its guest alive with it, once its guest has been" in status
    assert watch.partition(";")[0].endswith(left)
    assert f"{left}; one look cannot tell whether that is so" in status
    assert "never seen alive" not in status
    told = json.loads(lab.run("status", "k8s-2", "-o", "json").stdout)["nodes"][0]
    assert told["one_look_cannot_tell"] == "whether its guest was seen alive with it"
