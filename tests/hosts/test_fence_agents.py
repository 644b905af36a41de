"""The witness over fence agents: only a plain "off" is off, and nothing is left of an agent that hangs."""

import os

import pytest

from fencer.errors import ConfigError, HypervisorDenied, HypervisorUnreachable
from fencer.hosts.fence_agents import FenceAgentWitness, reading
from fencer.hosts.settings import FenceAgentSettings
from tests.support import wait_until
from tests.support.processes import alive


@pytest.mark.parametrize(
    ("said", "code", "off"),
    [
        ("Status: OFF\n", 2, True),
        ("Status: ON\n", 0, False),
        ("Status: OFF\n", 0, None),
        ("Status: OFF\n", 1, None),
        ("Status: ON\n", 2, None),
        ("Status: off\n", 2, None),
        ("Status: S3\n", 2, None),
        ("Status: S4\n", 2, None),
        ("Status: UNKNOWN\n", 0, None),
        ("Status: OFF\nStatus: ON\n", 2, None),
        ("The chassis is off\n", 2, None),
        ("", 2, None),
        ("", -9, None),
    ],
)
def test_only_word_and_exit_code_together_say_off(said, code, off):
    assert reading(said, code) is off


@pytest.fixture
def witness(tmp_path):
    """Build a witness over a small shell program that finds its options in $asked."""

    def build(program, agent="fence_ipmilan", **traits):
        path = tmp_path / agent
        path.write_text(f"#!/bin/sh\nasked=$(cat)\n{program}\n")
        path.chmod(0o755)
        options = traits.pop("options", {"ip": "10.0.0.5"})
        return FenceAgentWitness(FenceAgentSettings("pve1", str(path), options, **traits))

    return build


PDU = 'case "$asked" in *plug={}*) echo "Status: {}"; exit {};; esac\n'


@pytest.mark.parametrize(
    ("second", "off"), [(("OFF", 2), True), (("ON", 0), None), (("ERROR", 1), None)], ids=str
)
def test_every_outlet_of_the_host_has_to_be_off(witness, second, off):
    program = PDU.format("one", "OFF", 2) + PDU.format("two", *second)
    assert witness(program, "fence_raritan", outlets=("one", "two")).is_off() is off


def test_it_asks_for_the_status_and_keeps_the_password_off_the_command_line(witness, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("s3cr3t\n")
    program = f'echo "$asked" > {tmp_path}/asked; echo "$# $*" > {tmp_path}/argv; echo "Status: ON"'
    assert witness(program, password_file=secret).is_off() is False
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == ["ip=10.0.0.5", "action=status", "password=s3cr3t"]
    assert (tmp_path / "argv").read_text() == "0 \n"


def test_an_agent_that_hangs_is_unreachable_and_ends_with_its_children(witness, tmp_path):
    pids = tmp_path / "pids"
    os.mkfifo(tmp_path / "never")
    program = f"cat {tmp_path}/never & echo $! > {pids}; wait"
    with pytest.raises(HypervisorUnreachable, match="did not answer within"):
        witness(program, deadline_s=2.0).is_off()
    pid = int(pids.read_text())
    wait_until(lambda: not alive(pid), "its end")


def test_an_agent_that_is_not_there_is_unreachable():
    settings = FenceAgentSettings("pve1", "/nowhere/fence_ipmilan", {})
    with pytest.raises(HypervisorUnreachable, match="pve1: cannot run"):
        FenceAgentWitness(settings).is_off()


def test_a_password_that_cannot_be_read_is_no_reading(witness, tmp_path):
    with pytest.raises(HypervisorDenied):
        witness('echo "Status: OFF"; exit 2', password_file=tmp_path / "none").is_off()


@pytest.mark.parametrize(
    ("agent", "options", "outlets"),
    [
        ("fence_apc_snmp", {}, ("1",)),
        ("fence_virsh", {}, ()),
        ("fence_raritan", {}, ()),
        ("fence_raritan", {}, ("1,2",)),
        ("fence_ipmilan", {}, ("1",)),
        ("fence_redfish", {}, ()),
        ("fence_ipmilan", {"action": "off"}, ()),
        ("fence_ipmilan", {"ip": "a\naction=off"}, ()),
        ("fence_ipmilan", {"password": "x"}, ()),
        ("fence_ipmilan", {"missing_as_off": "1"}, ()),
    ],
    ids=str,
)
def test_what_could_read_wrongly_or_act_is_refused(agent, options, outlets):
    with pytest.raises(ConfigError):
        FenceAgentWitness(FenceAgentSettings("pve1", agent, options, outlets))
