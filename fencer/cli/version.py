"""``fencer version``: what is installed here, for whoever asks for help."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path

import click

from fencer import DISTRIBUTION
from fencer.cli.options import config_option, output_option
from fencer.cli.output import emit
from fencer.cli.render import clean, say, table
from fencer.cli.wire import is_missing
from fencer.hypervisors.libvirt.library import library_version


@click.command(
    short_help="Show what is installed here.",
    epilog="\b\nExamples:\n  fencer version\n  fencer version -o json",
)
@config_option
@output_option("table", "json", "yaml")
def version(path: Path, form: str) -> None:
    """Show the versions of fencer, of Python, and of the libraries it uses, and where its configuration is.

    It asks no cluster and no hypervisor. `fencer --version` shows fencer's alone.
    """
    show(path, form)


def show(path: Path, form: str) -> None:
    """Write the versions.

    Args:
        path: Where the configuration should be.
        form: ``table``, ``json`` or ``yaml``.
    """
    parts = (
        ("fencer", "fencer", _installed(DISTRIBUTION)),
        ("python", "Python", platform.python_version()),
        ("kubernetes_client", "Kubernetes client", _installed("kubernetes")),
        ("proxmoxer", "proxmoxer", _installed("proxmoxer")),
        ("libvirt_binding", "libvirt binding", _installed("libvirt-python")),
        ("libvirt_library", "libvirt library", library_version()),
    )
    missing = is_missing(path)
    if form != "table":
        versions = {key: number for key, _, number in parts}
        emit({**versions, "config": {"path": str(path), "there": not missing}}, form)
        return
    rows = [[label, number or "not installed"] for _, label, number in parts]
    for line in table([*rows, ["configuration", f"{clean(path)}{': no such file' if missing else ''}"]]):
        say(line)


def _installed(package: str) -> str | None:
    try:
        return version_of(package)
    except PackageNotFoundError:
        return None
