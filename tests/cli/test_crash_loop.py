"""A crash loop in `status`, `explain` and `history`: one look sees none of it, an agent that watches does."""

import json
import re

import pytest

from fencer.core.policy import Mode, Policy
from fencer.simulation.faults import What
from tests.cli.lab import Lab

VM = "k8s-2"
HELPS = "`fencer drain k8s-2` moves its pods away: type it while the VM is up"


def crashes(lab, times):
    """Let the VM crash every half minute, and start again two seconds later."""
    for number in range(times):
        lab.breaks(What.CRASH, VM, in_s=30.0 * number + 1.0)
        lab.breaks(What.START, VM, in_s=30.0 * number + 3.0)


@pytest.fixture
def lab(tmp_path):
    """An agent watches a VM that has crashed five times."""
    lab = Lab()
    lab.journal = tmp_path / "journal.db"
    crashes(lab, 5)
    lab.passes(140.0, watched=True)
    return lab


def one_line(text):
    return " ".join(text.split())


def test_status_shows_the_node_in_alarm_between_two_crashes(lab):
    shown = lab.run("status").output
    assert "1 in alarm" in shown
    [row] = [line for line in shown.splitlines() if line.startswith(VM)]
    assert row.split()[1] == "yes"
    assert row.endswith("in alarm  its VM is in a crash loop: `fencer explain k8s-2`")
    data = json.loads(lab.run("status", "-o", "json").output)
    assert data["summary"]["in_alarm"] == 1
    assert data["nodes"][0]["node"] == VM, "what needs a person comes first"
    assert data["nodes"][0]["why"] == "its VM is in a crash loop"
    assert data["agents"][0]["loops"] == [VM]


def test_explain_shows_which_agent_sees_it_and_what_helps(lab):
    result = lab.run("explain", VM)
    told = one_line(result.output)
    assert result.exit_code == 0
    assert "k8s-2 is in alarm: its VM is in a crash loop" in told
    assert "crash loop fencer@pve1 saw it start 4 times or more within 10m00s" in told
    assert HELPS in told
    assert "in alarm" not in one_line(lab.run("explain", "k8s-1").output)


def test_what_an_agent_saw_that_is_gone_is_not_shown(lab):
    lab.passes(60.0)
    assert "in alarm" not in lab.run("status").output


def test_history_names_it_once_and_when_it_was_over(lab):
    goes_on = lab.run("history").output
    assert len(re.findall("alarm: its VM is in a crash loop, goes on", goes_on)) == 1
    [incident] = json.loads(lab.run("history", "-o", "json").output)
    [alarm] = incident["alarms"]
    assert HELPS in alarm["text"]
    assert re.fullmatch(r"started 4 times in 1m\d\ds", alarm["checks"][0]["seen"])
    shown = one_line(lab.run("history", incident["id"]).output)
    assert "ALARM" in shown
    assert "crash loop" in shown


def test_two_reboots_are_not_shown(tmp_path):
    lab = Lab()
    lab.journal = tmp_path / "journal.db"
    crashes(lab, 2)
    lab.passes(140.0, watched=True)
    assert "in alarm" not in lab.run("status").output
    assert "alarm" not in lab.run("history").output


def test_status_says_so_too_while_the_vm_is_down():
    lab = Lab()
    crashes(lab, 5)
    lab.breaks(What.CRASH, VM, in_s=131.0)
    lab.passes(140.0, watched=True)
    [row] = [line for line in lab.run("status").output.splitlines() if line.startswith(VM)]
    assert " stopped " in row
    assert row.endswith("its VM is in a crash loop: `fencer explain k8s-2`")


def test_a_drain_while_the_vm_is_up_ends_and_the_alarm_recommends_none_then(lab):
    assert lab.run("drain", VM, "--yes").exit_code == 0
    told = one_line(lab.run("explain", VM).output)
    assert "Its VM is in a crash loop; " in told
    assert "`fencer drain` cordoned it: new pods stay away" in told
    assert HELPS not in told
    assert re.search(r"drain k8s-2 → done in .*1 ALARM from \d\d:\d\d", lab.run("history").output)


def test_a_drain_while_the_vm_is_down_goes_as_the_alarm_says(lab):
    told = one_line(lab.run("explain", VM).output)
    assert "or add `--even-if-blocked` while it is down" in told
    lab.breaks(What.CRASH, VM)
    lab.passes(4.0)
    assert lab.run("drain", VM, "--yes").exit_code == 1
    lab.breaks(What.START, VM, in_s=20.0)
    assert lab.run("drain", VM, "--yes", "--even-if-blocked").exit_code == 0


class TestOnlyObserved:
    """An agent that only observes writes nothing in the cluster: its journal shows the loop."""

    @pytest.fixture
    def lab(self, tmp_path):
        lab = Lab(Policy(mode=Mode.OBSERVE))
        lab.journal = tmp_path / "journal.db"
        crashes(lab, 5)
        lab.passes(140.0, watched=True)
        return lab

    def test_status_and_explain_show_it(self, lab):
        assert "1 in alarm" in lab.run("status").output
        assert not json.loads(lab.run("status", "-o", "json").output)["agents"]
        told = one_line(lab.run("explain", VM).output)
        assert re.search(r"crash loop started [45] times in 1m\d\ds, as fencer@pve1 saw \d+ s ago", told)
        assert "once the VM stays off, its node can be fenced" in told

    def test_it_is_over_after_ten_minutes_without_another_start(self, lab):
        lab.passes(400.0)
        assert "in alarm" in lab.run("status").output
        lab.passes(220.0)
        assert "in alarm" not in lab.run("status").output

    def test_or_once_the_vm_stays_off(self, lab):
        lab.breaks(What.POWER_OFF, VM)
        lab.passes(10.0)
        assert "in alarm" in lab.run("status").output
        lab.passes(120.0)
        assert "in alarm" not in lab.run("status").output

    def test_without_a_journal_nothing_is_known(self, lab):
        lab.journal = lab.journal.with_name("none.db")
        assert "in alarm" not in lab.run("status").output
        lab.journal = None
        assert "in alarm" not in lab.run("status").output

    def test_what_a_person_typed_meanwhile_hides_nothing(self, lab):
        lab.run("drain", VM, "--yes")
        assert "in alarm" in lab.run("status").output
