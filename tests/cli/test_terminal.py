"""What a person at a terminal sees: lines that fit, and a picture that is drawn again."""

import os
import subprocess
import sys

import pytest

from tests.cli.lab import Impatient, Lab

FENCER = "import sys; from fencer.cli.main import main; main()"


PLAIN = {"NO_COLOR": "1"}


def at_a_terminal(*words, columns, **variables):
    """Run a command with its output on a terminal of that width, and return the lines."""
    ours, theirs = os.openpty()
    usual = {"COLUMNS": str(columns), "PYTHONIOENCODING": "utf-8", "TERM": "xterm"}
    environment = {**os.environ, "NO_COLOR": "", **usual, **(variables or PLAIN)}
    with subprocess.Popen(
        [sys.executable, "-c", FENCER, *words], stdin=subprocess.DEVNULL, stdout=theirs, env=environment
    ) as process:
        os.close(theirs)
        said = b""
        try:
            while chunk := os.read(ours, 1 << 16):
                said += chunk
        except OSError:
            """How Linux tells that the other side of a terminal is closed."""
        finally:
            os.close(ours)
    assert process.returncode == 0, said
    return said.decode().splitlines()


@pytest.mark.parametrize("columns", [60, 100])
def test_lines_fit_the_terminal(columns):
    lines = at_a_terminal("demo", "nic-off", "--instant", columns=columns)
    assert max(map(len, lines)) <= columns
    assert "".join("".join(lines).split()).count("onlyitssilentkubeletcouldconfirmthat") == 1


def test_a_terminal_that_can_show_no_colour_is_sent_none():
    assert any("\x1b[" in line for line in at_a_terminal("demo", "--list", columns=80, TERM="xterm"))
    assert not any("\x1b[" in line for line in at_a_terminal("demo", "--list", columns=80, TERM="dumb"))


def test_where_no_room_is_left_the_last_column_goes_below():
    lines = at_a_terminal("demo", "nic-off", "--instant", columns=40)
    begun = next(number for number, line in enumerate(lines) if "kubernetes  k8s-2" in line)
    assert lines[begun].endswith("k8s-2")
    assert lines[begun + 1].startswith("      no word from its kubelet")


def test_status_is_drawn_again_until_somebody_has_seen_enough():
    lab = Lab()
    lab.clock = lambda: Impatient(lab.simulation.clock, patience_count=3)
    result = lab.run("status", "-w")
    assert result.exit_code == 130
    assert result.output.count("NODE") == 3


def test_a_cluster_that_is_lost_meanwhile_does_not_end_the_watching():
    lab = Lab()
    lab.clock = lambda: Impatient(lab.simulation.clock, patience_count=4)
    clock = lab.simulation.clock
    clock.after(1, lambda: setattr(lab.simulation.api, "down_why", "gone"))
    clock.after(3, lambda: setattr(lab.simulation.api, "down_why", None))
    result = lab.run("status", "-w")
    assert result.stdout.count("NODE") == 3
    assert result.stderr == "fencer: gone\n"
