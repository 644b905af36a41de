"""When this machine counts as going down."""

from collections.abc import Sequence

import pytest

from fencer.guest.system import Ran, going_down, run

POWEROFF = """\
122 poweroff.target               start waiting
123 shutdown.target               start waiting
170 k3s.service                   stop  waiting
171 fencer-guest-drain.service    stop  running
"""
RESTART = "201 k3s.service restart running\n"
STOP = "202 fencer-guest-drain.service stop running\n"
CANCELLED = "203 poweroff.target stop waiting\n"


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
        (Ran(0, "running\n"), Ran(0, CANCELLED), False),
        (Ran(None, error="systemctl: no end within 10 s"), Ran(None), None),
        (Ran(1, "offline\n"), Ran(1, error="System has not been booted with systemd"), None),
        (Ran(None), Ran(0, POWEROFF), True),
    ],
)
def test_going_down(state: Ran, jobs: Ran, down: bool | None) -> None:
    """A restart of k3s, or of our own unit, is no shutdown; no answer is no yes."""

    def answer(command: Sequence[str]) -> Ran:
        return state if "is-system-running" in command else jobs

    assert going_down(answer) is down


def test_a_command_that_is_not_there_is_an_answer() -> None:
    ran = run(["/nowhere/systemctl"])
    assert (ran.code, ran.error) == (None, "/nowhere/systemctl: No such file or directory")


def test_a_command_without_end_is_given_up() -> None:
    """A hung systemctl must not hang the shutdown."""
    ran = run(["sleep", "1000"], within_s=0.2)
    assert (ran.code, ran.error) == (None, "sleep: no end within 0.2 s")
