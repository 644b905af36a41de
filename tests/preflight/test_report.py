"""What a check comes to."""

from pathlib import Path

import pytest

from fencer.core.policy import Mode
from fencer.preflight.finding import Finding, Level
from fencer.preflight.report import Report

PATH = Path("/etc/fencer/config.yaml")
WELL, NOTED = Finding("config", "it"), Finding("shutdown", "it", Level.NOTE)
DOUBTFUL, WRONG = Finding("power", "it", Level.WARN), Finding("lab", "it", Level.FAIL, "no answer")


@pytest.mark.parametrize(
    ("mode", "findings", "verdict"),
    [
        (Mode.ARMED, (WELL, NOTED), "0 failures, 0 warnings. Ready, and armed: `fencer watch` acts."),
        (
            Mode.OBSERVE,
            (WELL, DOUBTFUL),
            "0 failures, 1 warning. Ready to be armed: `mode: armed` in /etc/fencer/config.yaml.",
        ),
        (Mode.ARMED, (WRONG, DOUBTFUL, WRONG), "2 failures, 1 warning. Not ready to be armed: lab."),
        (
            None,
            (Finding("config", "it", Level.FAIL),),
            "1 failure, 0 warnings. Not ready to be armed: config.",
        ),
    ],
)
def test_the_verdict_counts_and_names_each_failure_once(mode, findings, verdict):
    report = Report(PATH, mode, findings)
    assert report.verdict == verdict
    assert report.data()["verdict"] == verdict
    assert report.data()["ready"] is verdict.startswith("0 failures")


def test_programs_are_told_all_of_each_finding():
    [row] = Report(PATH, None, (Finding("lab", "it", Level.FAIL, "no answer", ("ask",), ("one",)),)).data()[
        "findings"
    ]
    assert row == {
        "what": "lab",
        "about": "it",
        "level": "fail",
        "note": "no answer",
        "points": ["one"],
        "try": ["ask"],
    }
