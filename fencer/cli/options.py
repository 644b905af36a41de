"""Options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isnan, nan
from pathlib import Path
from typing import Any

import click

_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smh])")

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

READ_LATER = click.Path(path_type=Path, readable=False)
"""A file that the command opens by itself: what is wrong with it is said in better words than click's."""

DEFAULT_CONFIG = Path("/etc/fencer/config.yaml")

config_option: Decorator = click.option(
    "-c",
    "--config",
    "path",
    type=READ_LATER,
    default=DEFAULT_CONFIG,
    envvar="FENCER_CONFIG",
    show_default=True,
    show_envvar=True,
    metavar="FILE",
    help="The configuration file.",
)

dry_run_option: Decorator = click.option(
    "--dry-run", is_flag=True, help="Gather the proof, say what would be done, and do nothing."
)

yes_option: Decorator = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")


root_option: Decorator = click.option(
    "--root", type=click.Path(path_type=Path), default=Path("/"), hidden=True, metavar="FOLDER"
)
"""Where the machine's files are, for tests and images."""


class Seconds(click.ParamType[float]):
    """Seconds, as a number or as kubectl writes them: ``60``, ``60s``, ``5m``, ``1h30m``."""

    name = "seconds"

    def convert(
        self, value: str | float, param: click.Parameter | None, context: click.Context | None
    ) -> float:
        """Read what was typed; see `click.ParamType.convert`."""
        if not isinstance(value, str):
            return value
        parts = _DURATION.findall(value)
        if parts and "".join(number + unit for number, unit in parts) == value:
            return sum(float(number) * _UNITS_S[unit] for number, unit in parts)
        try:
            seconds = float(value)
        except ValueError:
            seconds = nan
        if isnan(seconds):
            self.fail(f"{value!r} is no time: seconds, such as 60, or 60s, 5m, 1h30m", param, context)
        return seconds


def timeout_option(default_s: int) -> Decorator:
    """Return the option for how long to wait.

    Args:
        default_s: Seconds.
    """
    return click.option(
        "--timeout",
        "timeout_s",
        type=Seconds(),
        callback=not_negative,
        default=default_s,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait before giving up.",
    )


def output_option(*forms: str) -> Decorator:
    """Return the option for the form of the answer; the first form is the default."""
    return click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice(forms),
        default=forms[0],
        show_default=True,
        help="Output format.",
    )


def why_option(name: str, text: str) -> Decorator:
    """Return an option that takes a reason, which must not be empty: it is recorded.

    Args:
        name: The option, like ``--over-brake``.
        text: Its help.
    """
    return click.option(name, metavar="WHY", callback=_not_empty, help=text)


def not_negative(_ctx: click.Context, _param: click.Parameter, value: float | None) -> float | None:
    """Refuse a time that is over already."""
    if value is not None and value < 0:
        raise click.BadParameter(f"must be seconds from now, not {value:g}")
    return value


def _not_empty(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise click.BadParameter("say why, in a few words: it is recorded")
    return value
