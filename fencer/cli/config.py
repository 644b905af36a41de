"""``fencer config``: is the file right, what is in force, and its schema for editors."""

from __future__ import annotations

from pathlib import Path

import click

from fencer.cli.options import config_option
from fencer.cli.render import clean, say, say_file
from fencer.cli.wire import Wiring, require_file
from fencer.core.text import count


@click.group(
    short_help="Check and show the configuration.",
    epilog="\b\nExample:\n  fencer config check -c ./fencer.yaml",
)
def config() -> None:
    """Check and show the configuration, without asking any hypervisor or cluster."""


@config.command(
    "check",
    short_help="Check the file; report every error with its line.",
    epilog="\b\nExample:\n  fencer config check -c ./fencer.yaml",
)
@config_option
@click.pass_obj
def check_file(wiring: Wiring, path: Path) -> None:
    """Check the file; report every error at once, each with its line."""
    loaded = wiring.load(path)
    endpoints = count(len(loaded.endpoints), "hypervisor")
    mapped = f", {count(len(loaded.nodes), 'node')} mapped by hand" if loaded.nodes else ""
    say(f"{clean(path)}: ok (mode {loaded.policy.mode.value}, {endpoints}{mapped})")


@config.command(
    "show",
    short_help="Show every key in force, and where it came from.",
    epilog="\b\nExample:\n  fencer config show | grep -v default",
)
@config_option
def show_file(path: Path) -> None:
    """Print the configuration in force: every key with its value or default, and where that came from."""
    from fencer.config.show import show  # noqa: PLC0415 - pydantic and YAML

    require_file(path)
    say_file(show(path))


@config.command("schema", epilog="\b\nExample:\n  fencer config schema > fencer.schema.json")
def schema() -> None:
    """Print the JSON Schema of the file, for editors."""
    from fencer.config.schema import json_schema  # noqa: PLC0415 - pydantic

    say_file(json_schema())
