"""Whether anybody acts: an agent on this machine, by its socket."""

import os
from pathlib import Path

import pytest

from fencer.cli.watch import default_hooks
from fencer.core.election import CLUSTER_LEASE
from fencer.core.policy import Mode, Policy
from fencer.preflight.agent import CONFIGS, SOCKETS, judge, outdated, socket_of, unit_of
from fencer.preflight.finding import Level
from tests.cli.lab import PATH, Lab
from tests.preflight.lab import findings

UNITS = Path(__file__).parents[2] / "systemd"
NOBODY = "no agent answers on this machine; unless one runs elsewhere, nothing is fenced"


def test_armed_with_nobody_running_is_a_warning_with_the_command_that_starts_one():
    lab = Lab()
    lab.agent = False
    rows, told = findings(lab)
    assert (rows["agent"]["level"], rows["agent"]["note"]) == ("warn", NOBODY)
    assert rows["agent"]["try"] == ["systemctl enable --now fencer"]
    assert (rows["agents"]["level"], rows["agents"]["note"]) == ("fail", "NO AGENT RUNS: nobody fences")
    assert rows["agents"]["try"] == ["systemctl start fencer"]
    assert told["ready"] is False
    assert told["verdict"].endswith("Not ready to be armed: agents.")


def test_where_it_is_not_known_who_is_there_it_is_a_warning():
    lab = Lab()
    lab.agent = False
    lab.simulation.leases.hold(CLUSTER_LEASE, "x" * 10_000)
    rows, told = findings(lab)
    assert "agents" not in rows
    assert told["verdict"].endswith("Ready, and armed, but no agent answers on this machine.")


def test_an_agent_that_answers_is_told():
    rows, told = findings(Lab())
    assert (rows["agent"]["level"], rows["agent"]["note"]) == ("ok", "answers on this machine")
    assert told["verdict"].endswith("Ready, and armed: `fencer watch` acts.")


def test_an_agent_that_answers_while_fencing_is_paused_does_not_act():
    lab = Lab()
    lab.simulation.api.paused_why = "moving house"
    assert findings(lab)[1]["verdict"].endswith("Ready, and armed, but fencing is paused.")
    lab.agent = False
    lab.simulation.leases.hold(CLUSTER_LEASE, "x" * 10_000)
    both = "but no agent answers on this machine and fencing is paused."
    assert findings(lab)[1]["verdict"].endswith(both)


def test_an_agent_that_began_before_its_configuration_was_written_follows_the_earlier_one(monkeypatch):
    """Whoever writes `mode: armed` and forgets the restart believes to be guarded."""
    monkeypatch.setattr("fencer.preflight.collect.outdated", lambda *_: True)
    lab = Lab()
    rows, told = findings(lab)
    assert (rows["agent"]["level"], rows["agent"]["try"]) == ("warn", ["systemctl restart fencer"])
    older = "but the agent on this machine began before this configuration was written."
    assert told["verdict"].endswith(f"Ready, and armed, {older}")
    lab.agent = False
    lab.passes(31)
    assert findings(lab)[1]["verdict"].endswith("Not ready to be armed: agents.")


def test_the_files_tell_which_of_them_is_older(tmp_path):
    config, socket = tmp_path / "config.yaml", tmp_path / "fencer.sock"
    assert not outdated(config, socket)
    config.touch()
    assert not outdated(config, socket)
    socket.touch()
    os.utime(config, (1000, 1000))
    assert not outdated(config, socket)
    os.utime(socket, (999, 999))
    assert outdated(config, socket)


def test_who_only_observes_is_told_that_nothing_is_fenced():
    rows, _ = findings(Lab(Policy(mode=Mode.OBSERVE)))
    assert (rows["agent"]["level"], rows["agent"]["about"]) == ("note", "mode observe")
    assert rows["agent"]["note"].startswith("nothing is fenced by this configuration")


@pytest.mark.parametrize(
    ("config", "unit", "socket"),
    [
        ("/etc/fencer/config.yaml", "fencer", "fencer.sock"),
        ("/etc/fencer/home.yaml", "fencer@home", "home.sock"),
    ],
)
def test_the_socket_is_that_of_the_unit_which_reads_the_configuration(config, unit, socket):
    assert (unit_of(Path(config)), socket_of(unit)) == (unit, Path("/run/fencer") / socket)
    [command] = judge(Mode.ARMED, Path(config), answers=False).tries
    assert command == f"systemctl enable --now {unit}"


@pytest.mark.parametrize(
    ("config", "why"), [("/root/my.yaml", "fencer's units read"), (PATH, "only root and")]
)
def test_what_cannot_be_known_is_no_warning(config, why):
    found = judge(Mode.ARMED, Path(config), answers=None)
    assert (found.level, found.note.startswith(f"whether one runs is not known: {why}")) == (Level.NOTE, True)


def test_the_units_listen_where_check_asks(monkeypatch):
    one, several = ((UNITS / f"fencer{at}.service").read_text() for at in ("", "@"))
    assert f"--config {CONFIGS}/config.yaml\n" in one
    assert f"RuntimeDirectory={SOCKETS.name}\n" in one
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(SOCKETS))
    assert default_hooks() == socket_of("fencer")
    assert f"--config {CONFIGS}/%i.yaml --hooks %t/{SOCKETS.name}/%i.sock\n" in several
