"""Standard streams that are closed, full, or read by nobody: a line and an exit code, never a traceback."""

import errno
import io
import subprocess
import sys

import pytest

from fencer.cli.progress import Progress
from fencer.cli.render import say
from fencer.guest.streams import OutputLost
from tests.cli.lab import Lab

IN_A_LAB = "from fencer.cli.main import main; from tests.cli.lab import Lab; main(Lab())"
IN_A_NODE = "from fencer.guest.cli import main; import sys; sys.exit(main())"
COMMANDS = {
    "demo": (IN_A_LAB, "demo nic-off"),
    "demo as json": (IN_A_LAB, "demo nic-off -o json"),
    "status": (IN_A_LAB, "status"),
    "status as yaml": (IN_A_LAB, "status -o yaml"),
    "check": (IN_A_LAB, "check"),
    "explain": (IN_A_LAB, "explain k8s-1"),
    "plan": (IN_A_LAB, "plan k8s-1"),
    "help": (IN_A_LAB, "--help"),
    "help of a command": (IN_A_LAB, "status --help"),
    "version": (IN_A_LAB, "--version"),
    "guest check": (IN_A_NODE, "check"),
    "guest help": (IN_A_NODE, "--help"),
    "guest version": (IN_A_NODE, "version"),
}


def typed(code, words, where=""):
    """Type a command in a shell, with its output led elsewhere."""
    command = ["sh", "-c", f'"$0" -c "$1" {words} {where}', sys.executable, code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("code", "words"), COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize(
    ("where", "why"),
    [(">/dev/full", "No space left on device"), (">&-", "it is closed")],
    ids=["full", "closed"],
)
def test_an_answer_that_cannot_be_written_is_one_line_and_no_success(code, words, where, why):
    done = typed(code, words, where)
    program = "fencer" if code is IN_A_LAB else "fencer-guest"
    assert done.stderr == f"{program}: the output cannot be written: {why}\n"
    assert done.returncode == 1


@pytest.mark.parametrize("words", ["demo", "demo -o json", "--help", "config schema"])
def test_a_reader_that_has_seen_enough_ends_it_silently(words):
    done = typed(IN_A_LAB, words, "| head -1")
    assert (len(done.stdout.splitlines()), done.stderr) == (1, "")


@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full"])
@pytest.mark.parametrize(("words", "code"), [("--version", 0), ("explain k8s-9", 2), ("staus", 2)])
def test_without_stderr_the_exit_code_still_tells(words, code, where):
    assert typed(IN_A_LAB, words, where).returncode == code


def test_without_stdin_nobody_can_be_asked():
    done = typed("from fencer.cli.wire import Wiring; from fencer.cli.main import main; "
                 "from tests.cli.lab import Lab; Lab.interactive = Wiring.interactive; main(Lab())",
                 "fence k8s-2", "<&-")  # fmt: skip
    assert "nobody can confirm here" in done.stderr
    assert done.returncode == 2


class Full(io.StringIO):
    """A stdout on a disk without space."""

    def write(self, _text):
        raise OutputLost(errno.ENOSPC, "No space left on device")


def test_what_was_begun_is_finished_although_its_progress_cannot_be_written(monkeypatch):
    """Otherwise a fence would end between the taint and the pods."""
    progress = Progress(Lab().wall)
    monkeypatch.setattr(sys, "stdout", Full())
    progress.said("still stopped", warning=False)
    with pytest.raises(OutputLost):
        say("still stopped")
