"""``fencer setup``: writes what an installation needs."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

import click

from fencer.cli.render import complain, say, say_file
from fencer.cli.setup_config import config
from fencer.cli.setup_guest import guest
from fencer.cli.setup_hook import hook
from fencer.cli.setup_kubernetes import kubernetes
from fencer.cli.setup_libvirt import libvirt
from fencer.cli.setup_proxmox import proxmox
from fencer.cli.setup_shell import shell
from fencer.cli.setup_systemd import systemd
from fencer.core.text import count


@click.group(
    epilog="\b\nExamples:\n  fencer init   does most of it, step by step\n"
    "  fencer setup kubernetes | kubectl apply -f -\n  fencer setup config --write /etc/fencer/config.yaml"
)
def setup() -> None:
    """Print or write what an installation needs."""


setup.add_command(config, "config")
setup.add_command(guest, "guest")
setup.add_command(hook, "hook")
setup.add_command(kubernetes, "kubernetes")
setup.add_command(libvirt, "libvirt")
setup.add_command(proxmox, "proxmox")
setup.add_command(shell, "shell")
setup.add_command(systemd, "systemd")


@setup.command(
    "vagrant",
    short_help="Print `nodes:` for a Vagrant project.",
    epilog="\b\nExamples:\n  fencer setup vagrant ~/kubespray\n"
    "  vagrant global-status --machine-readable | fencer setup vagrant --global-status -",
)
@click.argument("project", type=click.Path(path_type=Path), required=False)
@click.option(
    "--hypervisor",
    default="box",
    show_default=True,
    metavar="NAME",
    help="What the configuration calls the hypervisor.",
)
@click.option(
    "--global-status",
    "status",
    type=click.File(errors="replace"),
    metavar="FILE",
    help="Take the machines of all projects in this output of `vagrant global-status --machine-readable`. "
    "-: stdin.",
)
@click.option(
    "--write",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write it to a new file instead of stdout.",
)
def vagrant(project: Path | None, hypervisor: str, status: TextIO | None, write: Path | None) -> None:
    """Print the `nodes:` of the configuration for a Vagrant project in VirtualBox.

    PROJECT is the folder with the Vagrantfile; without it, the current folder. Each node must have its
    machine's name, as in Kubespray's labs. This reads the project's own records, and runs neither Vagrant nor
    VirtualBox.
    """
    from fencer.setup.configs import write_new  # noqa: PLC0415 - as others are
    from fencer.setup.vagrant import machines_of, machines_of_all, nodes_section, projects_in  # noqa: PLC0415 - as others are

    if status is not None and project is not None:
        raise click.UsageError("Name a project, or give the global status: not both.")
    if status is None:
        machines = machines_of(project or Path())
    else:
        machines = machines_of_all(projects_in(status.read()), complain)
    section = nodes_section(machines, hypervisor)
    if write is None:
        say_file(section)
    else:
        write_new(write, section)
        say(f"{write}: {count(len(machines), 'node')}")
