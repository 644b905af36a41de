"""``fencer setup libvirt``: the hook by which libvirt tells fencer at once that a guest ended."""

from __future__ import annotations

from pathlib import Path

import click

from fencer.cli.options import root_option
from fencer.cli.render import clean, say, say_file


@click.command(
    short_help="Print or install libvirt's hook.",
    epilog="\b\nExamples:\n  fencer setup libvirt\n  fencer setup libvirt --install\n"
    "  fencer setup libvirt --remove",
)
@click.option(
    "--install",
    is_flag=True,
    help="As root, on the guests' host: put it into /etc/libvirt/hooks/qemu.d.",
)
@click.option("--remove", is_flag=True, help="As root: take it away. No guest needs it.")
@root_option
def libvirt(*, install: bool, remove: bool, root: Path) -> None:
    """Print the hook that wakes the agent of a libvirt host the moment a guest ends, or install it.

    It only wakes the agents on its own host; libvirt's own events reach every agent, a little later.
    """
    from fencer.setup import libvirt_hook  # noqa: PLC0415 - as others are
    from fencer.setup.files import packaged  # noqa: PLC0415 - as above

    if install and remove:
        raise click.UsageError("Use --install or --remove, not both.")
    if not install and not remove:
        say_file(packaged(libvirt_hook.HOOK).decode())
        return
    for done in libvirt_hook.install(root) if install else libvirt_hook.remove(root):
        say(clean(done))
