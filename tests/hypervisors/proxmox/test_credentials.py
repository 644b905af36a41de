"""Whom to believe: certificates, pins and tokens."""

from __future__ import annotations

import pytest

from fencer.core.model import PowerState
from fencer.errors import (
    ConfigError,
    HypervisorDenied,
    HypervisorUnreachable,
)
from fencer.hypervisors.proxmox.settings import Token
from tests.controlplane.certificates import Authority


def test_certificates_may_be_pinned(home):
    pins = tuple(home.api.fingerprint(host) for host in home.pve.hosts)
    assert home.agent(ca_file=None, fingerprints=pins).describe().problems == ()


def test_another_certificate_than_the_pinned_one_is_not_believed(home):
    """Not even one by the same CA, under the right name."""
    wrong = (home.api.fingerprint("pve2"),)
    agent = home.agent(servers=(home.api.url("pve1"),), ca_file=None, fingerprints=wrong)
    with pytest.raises(HypervisorUnreachable, match=r"(?i)fingerprint"):
        agent.sweep()
    assert home.asked() == []  # nothing was sent, the token least of all


def test_another_ca_is_not_believed(home, tmp_path):
    (tmp_path / "other").mkdir()
    agent = home.agent(ca_file=Authority(tmp_path / "other").ca_file)
    with pytest.raises(HypervisorUnreachable, match="certificate"):
        agent.sweep()
    assert home.asked() == []


def test_without_ca_and_pin_only_public_cas_are_believed(home, monkeypatch):
    """Whatever the environment says."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(home.api.ca_file))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    with pytest.raises(HypervisorUnreachable, match="certificate"):
        home.agent(ca_file=None).sweep()


def test_a_token_that_was_rotated_is_read_again(home):
    conf = home.guest()
    assert home.read(conf).power_state is PowerState.RUNNING
    home.token_file.write_text(home.pve.access.rotate(home.pve.token) + "\n")
    assert home.read(conf).power_state is PowerState.RUNNING
    home.asked()
    home.read(conf)
    assert not [it for it in home.api.requests if it.status == 401]


def test_a_token_that_is_refused_is_said_to_be(home):
    conf = home.guest()
    home.pve.access.expire(home.pve.token)
    with pytest.raises(HypervisorDenied, match=r"fencer@pve!agent was refused.*USER@REALM!ID"):
        home.read(conf)


def test_a_token_whose_file_vanished_is_said_to_be(home):
    conf = home.guest()
    home.pve.access.rotate(home.pve.token)
    home.token_file.unlink()
    with pytest.raises(HypervisorDenied, match="No such file"):
        home.read(conf)


def test_a_secret_is_shown_nowhere(home):
    token = Token(home.settings())
    shown = repr(token) + repr(home.settings()) + repr(home.hypervisor)
    assert home.pve.secret not in shown
    home.pve.access.expire(home.pve.token)
    with pytest.raises(HypervisorDenied) as caught:
        home.hypervisor.sweep()
    assert home.pve.secret not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [("", "must hold"), ("two words", "must hold"), ("a\nb", "must hold"), ("größe", "ASCII")],
)
def test_a_file_without_a_secret_is_refused(home, text, why):
    home.token_file.write_text(text)
    with pytest.raises(ConfigError, match=why):
        home.agent()


def test_a_secret_may_be_written_as_proxmox_prints_it(home):
    home.token_file.write_text(f"{home.pve.token}={home.pve.secret}\n")
    assert home.agent().describe().problems == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"token_id": "fencer@pve!agent=t0psecret"},
        {"token_id": "t0psecret"},
        {"servers": ("https://root:t0psecret@pve1:8006",)},
        {"servers": ("http://root:t0psecret@pve1:8006",)},
    ],
)
def test_a_secret_in_the_wrong_place_is_not_repeated(home, changes):
    with pytest.raises(ConfigError) as caught:
        home.agent(**changes)
    assert "t0psecret" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"servers": ()}, "name at least one"),
        ({"servers": ("http://pve1:8006",)}, "not like https"),
        ({"servers": ("https://root:x@pve1:8006",)}, "must not carry a user or password"),
        ({"servers": ("https://pve1:8006/api2",)}, "not like https"),
        ({"token_id": "fencer@pve"}, "must be USER@REALM!ID like fencer@pve!agent"),
        ({"fingerprints": ("aa:bb",)}, "one of the two"),
        ({"ca_file": None, "fingerprints": ("aa:bb",)}, "1 for 3 servers"),
        ({"ca_file": None, "fingerprints": ("aa:bb",) * 3}, "no SHA-256"),
    ],
)
def test_settings_that_cannot_work_are_refused(home, changes, why):
    with pytest.raises(ConfigError, match=why):
        home.agent(**changes)
