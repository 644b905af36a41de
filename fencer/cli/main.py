"""The console script ``fencer``: finds the command, and turns errors into a line and an exit code."""

from __future__ import annotations

import importlib
import os
import sys
from functools import partial

import click

from fencer import DISTRIBUTION
from fencer.cli import completing
from fencer.cli.render import complain
from fencer.cli.wire import Wiring
from fencer.core.text import near, printable
from fencer.errors import FencerError
from fencer.guest import streams

COMMANDS = {
    "demo": "fencer.cli.demo:demo",
    "init": "fencer.cli.init:init",
    "check": "fencer.cli.check:check",
    "watch": "fencer.cli.watch:watch",
    "status": "fencer.cli.status:status",
    "explain": "fencer.cli.explain:explain",
    "history": "fencer.cli.history:history",
    "report": "fencer.cli.report:report",
    "fence": "fencer.cli.fence:fence",
    "unfence": "fencer.cli.unfence:unfence",
    "trust": "fencer.cli.trust:trust",
    "approve": "fencer.cli.approve:approve",
    "pause": "fencer.cli.pause:pause",
    "resume": "fencer.cli.pause:resume",
    "topology": "fencer.cli.topology:topology",
    "plan": "fencer.cli.plan:plan",
    "drain": "fencer.cli.drain:drain",
    "shutdown": "fencer.cli.shutdown:shutdown",
    "start": "fencer.cli.start:start",
    "drill": "fencer.cli.drill:drill",
    "notify": "fencer.cli.notify:notify",
    "config": "fencer.cli.config:config",
    "setup": "fencer.cli.setup:setup",
    "replay": "fencer.cli.replay:replay",
    "journal": "fencer.cli.journal:journal",
    "version": "fencer.cli.version:version",
    "support-bundle": "fencer.cli.support_bundle:support_bundle",
}
"""In the order in which a newcomer meets them. Imported when asked for."""

INTERRUPTED = 130
"""As shells have it: 128 and the number of SIGINT."""


class Commands(click.Group):
    """The group of all commands, each imported when it is needed."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the commands' names."""
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; of one that does not exist, say which may be meant: not every click does."""
        wrong = args[0] not in COMMANDS and not args[0].startswith("-")
        if wrong and not ctx.resilient_parsing:  # a shell that completes is given nothing, not told off
            ctx.fail(f"{printable(args[0])}: no such command{near(args[0], COMMANDS) or '.'}")
        return super().resolve_command(ctx, args)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        module, _, name = place.partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)  # noqa: S101 - COMMANDS says so
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; what could not be found out or done is one line, never a traceback."""
        try:
            return super().invoke(ctx)
        except FencerError as error:
            complain(str(error))
            raise click.exceptions.Exit(error.exit_code) from error
        except (KeyboardInterrupt, click.Abort) as error:
            raise click.exceptions.Exit(INTERRUPTED) from error


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nStart here:\n  fencer demo   what it does, in a simulated cluster\n"
    "  fencer init   sets it up on this machine\n"
    "\n\b\nExit codes:\n  0 done and verified\n"
    "  1 refused, or not verifiable\n  2 usage or configuration\n  3 unreachable\n"
    "  130 interrupted\n\n\b\n`fencer check` answers 1 too where something is unreachable.",
)
@click.version_option(package_name=DISTRIBUTION, message="fencer %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Give the pods of a dead node to other nodes, once its hypervisor has proved that it is dead.

    fencer finds the VM of a Kubernetes node that fell silent. Only when the hypervisor says that it is off
    does it set the out-of-service taint and clear the pods, so that they start elsewhere.
    """
    if ctx.obj is None:
        ctx.obj = Wiring()
    dumb = os.environ.get("TERM") == "dumb" and sys.stdout.isatty()
    if os.environ.get("NO_COLOR") or dumb:
        ctx.color = False


def main(wiring: Wiring | None = None) -> None:
    """Run the command line.

    Args:
        wiring: Builds what commands work with; None: the real parts.
    """
    command = partial(cli, prog_name="fencer", complete_var=completing.ASKED_BY, obj=wiring)
    if completing.is_asked():
        command = partial(completing.answer, command)
    sys.exit(streams.run("fencer", command))


if __name__ == "__main__":
    main()
