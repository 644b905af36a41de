"""A command whose output is a terminal, without one."""

import io
from contextlib import redirect_stdout, suppress

from fencer.cli.main import cli


class Screen(io.StringIO):
    """A terminal that keeps what was written."""

    encoding = "utf-8"

    def isatty(self):
        return True


def at_a_terminal(lab, *words):
    """Run a verb with its output on a terminal, and return all that was written there."""
    with redirect_stdout(Screen()) as screen, suppress(SystemExit):
        cli.main(words, obj=lab, prog_name="fencer")
    return screen.getvalue()
