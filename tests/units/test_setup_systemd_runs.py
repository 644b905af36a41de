"""``fencer setup systemd`` on a real systemd: what is installed starts, and what is removed has ended."""

import pytest

from tests.support.nested import ENVIRONMENT, PYTHON, nested_system

pytestmark = pytest.mark.libvirt  # needs none, but a systemd of its own, as those beside it

FENCER = f"""#!/bin/sh
exec env {ENVIRONMENT} {PYTHON} -c 'from fencer.cli.main import main; main()' "$@"
"""
PROGRAM = "/opt/fencer-program/fencer"
SETUP = (PROGRAM, "setup", "systemd", "--program", PROGRAM)
# It lives for as long as it is let, and says at once that it is ready.
STAND_IN = """#!/bin/sh
systemd-notify --ready
exec sleep infinity
"""


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    with nested_system(tmp_path_factory.mktemp("nested")) as system:
        system.write(PROGRAM, FENCER, 0o755)
        yield system


def test_it_installs_starts_and_takes_away(system):
    first = system.run(*SETUP, "--install")
    assert "user fencer: made\n" in first
    assert "systemd: has read its units again\n" in first
    assert PROGRAM in system.run("systemctl", "show", "-p", "ExecStart", "fencer")
    assert PROGRAM in system.run("systemctl", "show", "-p", "ExecStart", "fencer@home")
    second = system.run(*SETUP, "--install").splitlines()[:-1]
    assert [line for line in second if not line.endswith("is there already")] == []

    system.write("/run/systemd/system/fencer.service.d/test.conf", "[Service]\nNotifyAccess=all\n")
    system.write("/run/systemd/system/fencer@.service.d/test.conf", "[Service]\nNotifyAccess=all\n")
    system.write("/opt/fencer-program/stand-in", STAND_IN, 0o755)
    system.run("cp", PROGRAM, "/opt/real")
    system.run("cp", "/opt/fencer-program/stand-in", PROGRAM)
    system.run("systemctl", "daemon-reload")
    system.run("systemctl", "enable", "--now", "fencer", "fencer@home")
    assert system.run("systemctl", "is-active", "fencer", "fencer@home").split() == ["active", "active"]

    removed = system.run("/opt/real", "setup", "systemd", "--remove")
    for unit in ("fencer.service", "fencer@home.service"):
        assert f"{unit}: stopped, and will not start by itself\n" in removed
    states = system.run("systemctl", "is-active", "fencer", "fencer@home", check=False)
    assert "active" not in states.replace("inactive", "").split()
    assert system.run("find", "/etc/systemd/system", "-name", "*fencer*") == ""
    again = system.run("/opt/real", "setup", "systemd", "--remove")
    assert again.count(": is not there\n") == 2
