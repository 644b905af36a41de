"""`fencer fence` and `fencer unfence` as a person types them, on real parts, while fencer only observes."""

import json

import pytest

from tests.e2e.lab import Lab, stays
from tests.e2e.operator import Operator
from tests.support import wait_until

pytestmark = pytest.mark.usefixtures("sound")


@pytest.mark.smoke
def test_observed_then_fenced_and_unfenced_by_hand(lab: Lab, operator: Operator) -> None:
    """Observing writes nothing at all, and says what it would do; a person then does it with one command."""
    armed = operator.configure()
    with operator.watching(armed):  # writes the bindings, for the commands below to read
        name = lab.busiest()
    config = operator.configure(mode="observe")
    began, writes = len(operator.journal(name)), len(operator.writes(events=True))
    with operator.watching(config) as watch:
        lab.nodes[name].guest.destroy()
        wait_until(lambda: "refuse/observe_mode" in operator.story(name)[began:], "decision")
        stays(lambda: not lab.is_fenced(name), f"{name} is not fenced", for_s=3.0)
        assert len(operator.writes(events=True)) == writes
        assert "would fence now: " in watch.log

        dry = operator.run("fence", name, "--dry-run", "-c", str(config))
        assert (dry.returncode, "would fence" in dry.stdout) == (0, True), dry
        assert len(operator.writes(events=True)) == writes

        alone = operator.run("fence", name, "-c", str(config))
        assert (alone.returncode, "--yes" in alone.stderr) == (2, True), alone
        assert not lab.is_fenced(name)

        done = operator.run("fence", name, "--yes", "-c", str(config))
        assert done.returncode == 0, done
        assert lab.is_fenced(name)
        assert "by hand" in json.loads(lab.annotations(name)["fencer.dev/mark"])["by"]
        lab.wait_elsewhere(name)

        too_early = operator.run("unfence", name, "--yes", "--timeout", "4", "-c", str(config))
        assert too_early.returncode == 1, too_early
        assert lab.is_fenced(name), "its guest is off: what came off now would come back with nothing proven"

        lab.nodes[name].guest.start()
        lifted = operator.run("unfence", name, "--yes", "-c", str(config))
        assert lifted.returncode == 0, lifted
        assert not lab.is_fenced(name)
        assert lab.is_cordoned(name)
    with operator.watching(operator.configure()):
        wait_until(lambda: not lab.is_cordoned(name), "uncordon by the agent")


def test_status_and_check_of_a_sound_cluster(lab: Lab, operator: Operator) -> None:
    """Nothing to object to: all nodes with their guests, all rights, exit code 0."""
    config = operator.configure()
    with operator.watching(config):
        checked = operator.run("check", "-c", str(config))
        assert checked.returncode == 0, checked
        rows = json.loads(operator.run("status", "-c", str(config), "-o", "json").stdout)
        nodes = rows["nodes"] if isinstance(rows, dict) else rows
        assert {row["node"]: (row["guest"]["uuid"], row["reason"]) for row in nodes} == {
            name: (node.guest.uuid, "node_healthy") for name, node in lab.nodes.items()
        }
