"""When this machine counts as going down."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from fencer.guest.system import Ran, going_down, read_text, run, started

POWEROFF = """\
122 poweroff.target               start waiting
123 shutdown.target               start waiting
170 k3s.service                   stop  waiting
171 fencer-guest-drain.service    stop  running
"""
RESTART = "201 k3s.service restart running\n"
STOP = "202 fencer-guest-drain.service stop running\n"
CANCELLED = "203 poweroff.target stop waiting\n"
RESCUE = "204 rescue.target start waiting\n205 fencer-guest-drain.service stop running\n"


@pytest.mark.parametrize(
    ("state", "jobs", "down"),
    [
        (Ran(1, "stopping\n"), Ran(0, ""), True),
        (Ran(0, "running\n"), Ran(0, RESTART), False),
        (Ran(0, "running\n"), Ran(0, STOP), False),
        (Ran(0, "running\n"), Ran(0, "No jobs running.\n"), False),
        (Ran(1, "degraded\n"), Ran(0, STOP), False),
        (Ran(1, "maintenance\n"), Ran(0, ""), False),
        (Ran(1, "starting\n"), Ran(0, POWEROFF), True),
        (Ran(1, "starting\n"), Ran(0, STOP), False),
        (Ran(1, "starting\n"), Ran(0, POWEROFF.replace("poweroff", "reboot")), True),
        (Ran(1, "starting\n"), Ran(0, "1 kexec.target start waiting\n"), True),
        (Ran(1, "starting\n"), Ran(0, "1 soft-reboot.target start waiting\n"), True),
        (Ran(1, "maintenance\n"), Ran(0, RESCUE), False),
        (Ran(0, "running\n"), Ran(0, RESCUE.replace("rescue", "emergency")), False),
        (Ran(0, "running\n"), Ran(0, CANCELLED), False),
        (Ran(None, error="systemctl: did not end within 10 s"), Ran(None), None),
        (Ran(1, "offline\n"), Ran(1, error="System has not been booted with systemd"), None),
        (Ran(None), Ran(0, POWEROFF), True),
    ],
)
def test_going_down(state: Ran, jobs: Ran, down: bool | None) -> None:
    """A restart of k3s, or of our own unit, is no shutdown, nor is rescue mode; no answer is no yes."""

    def answer(command: Sequence[str]) -> Ran:
        return state if "is-system-running" in command else jobs

    assert going_down(answer) is down


@pytest.mark.parametrize(
    ("ran", "when"),
    [
        (Ran(0, "ActiveEnterTimestampMonotonic=5812345\n"), "5812345"),
        (Ran(0, "ActiveEnterTimestampMonotonic=0\n"), ""),
        (Ran(0, "ActiveEnterTimestampMonotonic=\n"), ""),
        (Ran(0, ""), ""),
        (Ran(1, "ActiveEnterTimestampMonotonic=5812345\n"), ""),
        (Ran(None, error="systemctl: did not end within 10 s"), ""),
    ],
)
def test_when_the_system_was_started(ran: Ran, when: str) -> None:
    """Of a unit that a soft-reboot ends. What is not told, or is no time, is not known."""
    asked: list[Sequence[str]] = []

    def answer(command: Sequence[str]) -> Ran:
        asked.append(command)
        return ran

    assert started(answer) == when
    assert [command[:3] for command in asked] == [["systemctl", "show", "sysinit.target"]]


def test_a_command_that_is_not_there_is_an_answer() -> None:
    ran = run(["/nowhere/systemctl"])
    assert (ran.code, ran.error) == (None, "/nowhere/systemctl: No such file or directory")


def test_a_command_without_end_is_given_up() -> None:
    """A hung systemctl must not hang the shutdown."""
    ran = run(["sleep", "1000"], within_s=0.2)
    assert (ran.code, ran.error) == (None, "sleep: did not end within 0.2 s")


@pytest.mark.parametrize("where", ["", " >&2"], ids=["output", "complaints"])
def test_a_command_that_says_too_much_is_given_up(where: str) -> None:
    """Any user may hold an inhibitor lock, and give a reason as long as a message; a list repeats it."""
    ran = run(["sh", "-c", f"head -c 8000000 /dev/zero{where}; sleep 1000"])
    assert (ran.code, ran.text, ran.error) == (None, "", "sh: more than 1 MiB of output")


def test_all_that_a_command_says_is_heard() -> None:
    ran = run(["sh", "-c", "head -c 500000 /dev/zero; echo no >&2; head -c 500000 /dev/zero; exit 3"])
    assert (ran.code, len(ran.text), ran.error) == (3, 1_000_000, "no")


def test_who_is_left_behind_by_a_command_is_not_waited_for() -> None:
    """It holds the other end of the pipes, and may do so for ever."""
    ran = run(["sh", "-c", "sleep 1000 & echo $!"], within_s=0.5)
    assert (ran.code, ran.error) == (None, "sh: did not end within 0.5 s")


def test_what_may_have_no_end_is_read_in_part(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_text("a")
    os.truncate(path, 1 << 40)
    assert read_text(path, most=3) == "a\0\0"
    assert len(read_text(path)) == 1 << 20
    assert read_text(tmp_path / "none") == ""
