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
    ("left", "level", "note"),
    [
        (timedelta(days=15), "ok", ""),
        (
            timedelta(days=13),
            "warn",
            "it ends in 13 days: then this fencer can neither fence nor lift a fence",
        ),
        (
            timedelta(hours=5),
            "warn",
            "it ends in 5 hours: then this fencer can neither fence nor lift a fence",
        ),
        (
            timedelta(minutes=7, seconds=20),
            "warn",
            "it ends in 7 minutes: then this fencer can neither fence nor lift a fence",
        ),
        (
            timedelta(seconds=3),
            "warn",
            "it ends in less than a minute: then this fencer can neither fence nor lift a fence",
        ),
        (timedelta(hours=-1), "warn", "it ended 1 hour ago: the API server no longer accepts it"),
    ],
)
def test_a_token_that_ends_soon_is_a_warning_with_the_command_that_makes_another(left, level, note):
    lab = Lab()
    lab.own.ends = lab.wall() + left
    rows, _ = findings(lab)
    assert (rows["token"]["level"], rows["token"]["note"]) == (level, note)
    assert rows["token"]["try"] == ([RENEWAL] if level == "warn" else [])


def test_a_client_certificate_is_a_row_of_its_own():
    lab = Lab()
    lab.own.ends = lab.wall() + timedelta(days=60)
    lab.own.others = [Credential("certificate", lab.wall() + timedelta(days=3), RENEWAL)]
    rows, _ = findings(lab)
    assert (rows["token"]["level"], rows["certificate"]["level"]) == ("ok", "warn")
    assert rows["certificate"]["note"].startswith("it ends in 3 days: then this fencer can neither fence")
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
