"""``fencer check``: its exit code, and what programs are told. What is judged: tests/preflight."""

import json

import pytest

from fencer.core.policy import Mode, Policy
from fencer.simulation.faults import What
from tests.cli.lab import Lab


def findings(lab):
    result = lab.run("check", "-o", "json")
    told = json.loads(result.stdout)
    return {one["what"]: one for one in told["findings"]}, told, result.exit_code


def test_all_is_well():
    lab = Lab()
    lab.passes(30, watched=True)
    rows, told, code = findings(lab)
    assert code == 0
    assert told["ready"] is True
    assert {row["level"] for row in rows.values()} == {"ok", "note"}


def broken_cluster(lab):
    lab.breaks(What.API_DOWN)


def broken_hypervisor(lab):
    lab.breaks(What.DENIED)


def missing_right(lab):
    lab.simulation.cluster.missing = {"delete pods"}


@pytest.mark.parametrize(
    ("breaking", "what"),
    [
        (broken_cluster, "kubernetes"),
        (missing_right, "kubernetes"),
        (broken_hypervisor, "lab"),
    ],
)
def test_a_failure_is_told_with_what_to_try_and_code_1(breaking, what):
    lab = Lab()
    breaking(lab)
    rows, told, code = findings(lab)
    assert code == 1
    assert told["ready"] is False
    assert rows[what]["level"] == "fail"
    assert rows[what]["try"]
    assert what in told["verdict"]


def test_warnings_and_notes_alone_are_code_0():
    lab = Lab(power=False)
    lab.simulation.cluster.missing = {"create pods/eviction", "get persistentvolumeclaims"}
    rows, told, code = findings(lab)
    assert {row["level"] for row in rows.values()} == {"ok", "note", "warn"}
    assert (told["ready"], code) == (True, 0)
    assert told["verdict"].startswith("0 failures, 2 warnings. ")


def test_a_configuration_that_is_wrong_is_code_2_and_its_errors_are_told():
    result = Lab().run("check", "-c", "/nowhere.yaml")
    assert result.exit_code == 2
    assert "/nowhere.yaml: cannot be read" in result.stderr


def test_observing_is_told_how_to_be_armed():
    _, told, _ = findings(Lab(Policy(mode=Mode.OBSERVE)))
    assert told["verdict"].endswith("Ready to be armed: `mode: armed` in /etc/fencer/config.yaml.")


def test_a_journal_that_cannot_be_written_is_a_warning_and_no_failure(tmp_path):
    lab = Lab()
    (tmp_path / "file").touch()
    lab.journal = tmp_path / "file" / "journal.db"
    rows, told, code = findings(lab)
    assert (code, told["ready"]) == (0, True)
    assert rows["journal"]["level"] == "warn"
    assert rows["journal"]["about"] == str(lab.journal)
    assert rows["journal"]["note"].startswith(f"cannot be written: {tmp_path}/file is no folder")
    assert rows["journal"]["try"]
