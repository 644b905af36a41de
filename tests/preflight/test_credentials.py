"""Tokens and certificates: when they end."""

from datetime import timedelta

import pytest

from fencer.errors import ConfigError
from fencer.ports import Credential
from fencer.preflight.credentials import judge
from fencer.preflight.finding import Level
from fencer.simulation.clock import EPOCH
from tests.cli.lab import RENEWAL, Lab
from tests.preflight.lab import findings


@pytest.mark.parametrize(
    ("left", "level", "about"),
    [
        (timedelta(days=67), "ok", "ends in 67 days"),
        (timedelta(days=31), "ok", "ends in 31 days"),
        (timedelta(days=23), "warn", "ends in 23 days"),
        (timedelta(hours=5), "warn", "ends in 5 hours"),
        (timedelta(minutes=7, seconds=20), "warn", "ends in 7 minutes"),
        (timedelta(seconds=3), "warn", "ends in less than a minute"),
        (timedelta(hours=-1), "warn", "ended 1 hour ago"),
    ],
)
def test_when_a_token_ends_is_always_told_and_soon_with_the_command_that_makes_another(left, level, about):
    lab = Lab()
    lab.own.ends = lab.wall() + left
    rows, _ = findings(lab)
    assert (rows["token"]["level"], rows["token"]["about"]) == (level, about)
    assert rows["token"]["try"] == ([RENEWAL] if level == "warn" else [])
    assert bool(rows["token"]["note"]) is (level == "warn")


def test_a_token_for_a_day_is_no_warning_on_its_first_morning():
    lab, ends = Lab(), Lab().wall() + timedelta(hours=20)
    lab.own.others = [Credential("token", ends, RENEWAL, ends - timedelta(hours=24))]
    assert findings(lab)[0]["token"]["level"] == "ok"


def test_a_client_certificate_is_a_row_of_its_own():
    lab = Lab()
    lab.own.ends = lab.wall() + timedelta(days=60)
    lab.own.others = [Credential("certificate", lab.wall() + timedelta(days=3), RENEWAL)]
    rows, _ = findings(lab)
    assert (rows["token"]["level"], rows["certificate"]["level"]) == ("ok", "warn")
    assert rows["certificate"]["about"] == "ends in 3 days"
    assert rows["certificate"]["note"].startswith("then this fencer can neither fence")
    assert rows["certificate"]["try"] == [RENEWAL]


def test_who_has_no_token_is_told_nothing_of_one():
    rows, _ = findings(Lab())
    assert "token" not in rows


def test_credentials_that_do_not_say_when_they_end_are_passed_over():
    assert list(judge([Credential("token", None, RENEWAL)], EPOCH)) == []


def test_credentials_that_cannot_be_read_are_a_warning():
    [finding] = judge(ConfigError("kubeconfig: no such file"), EPOCH)
    assert (finding.level, finding.note) == (
        Level.WARN,
        "when they end is not known: kubeconfig: no such file",
    )
