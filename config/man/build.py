"""Writes the manual pages: ``python config/man/build.py FOLDER``.

click-man lays out names, synopsis and options. It knows neither the examples and exit codes that stand in the
commands' epilogs, nor commands that are imported when asked for, and leaves characters as they are that mean
something to roff: all of that is here.

With SOURCE_DATE_EPOCH in the environment, the same sources give the same bytes.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click
from click_man.man import ManPage

CHECKOUT = Path(__file__).parents[2]
sys.path.insert(0, str(CHECKOUT))

from fencer.cli.main import cli  # noqa: E402 - from this checkout, whatever else is installed
from fencer.guest.build import version  # noqa: E402 - as above

TOGETHER = "\b"
"""click's mark for a paragraph whose lines stay as they are."""
PLUGINS = ("kubectl-fencer", "kubectl_complete-fencer")
"""Programs that are fencer by another name, and so is their page."""
SECTIONS = {
    "Example": "EXAMPLES",
    "Examples": "EXAMPLES",
    "Start here": "EXAMPLES",
    "Exit codes": "EXIT STATUS",
}
"""Titles in epilogs, and the section of a manual page that they are."""
_OPTION = re.compile(r"(?<![\w-])--?(?=\w)[\w-]+|(?<=\w)-(?=\w)")
"""Where a hyphen is one that people type."""


def pages(command: click.Command = cli, parent: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """Yield a file's name and its text for a command, and for all below it."""
    context = click.Context(command, parent, command.name if parent else "fencer", **command.context_settings)
    if command.hidden:
        return
    yield f"{context.command_path.replace(' ', '-')}.1", page(context)
    if isinstance(command, click.Group):
        for below in _below(context):
            yield from pages(below, context)


def page(context: click.Context) -> str:
    """Return one page."""
    command = context.command
    path = context.command_path.replace(" ", "-")
    made = ManPage(path)
    made.version = f"fencer {version()}"
    made.date = time.strftime("%Y-%m-%d", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))
    made.short_help = plain(command.get_short_help_str(limit=200).rstrip("."))
    made.synopsis = " ".join(command.collect_usage_pieces(context))
    # The program's words have spaces where the page's name has hyphens.
    text = str(made).replace(f".B {path}\n", f".B {context.command_path}\n")
    # No word is broken, and no space made wider: names and options are read letter by letter.
    text = text.replace("\n.SH", "\n.nh\n.ad l\n.SH", 1)
    return text + "\n".join(
        (*_description(command), *_options(context), *_commands(context), *_rest(context), "")
    )


def plain(text: str) -> str:
    """Return a text in which nothing means anything to roff, and whose hyphens can be typed."""
    text = text.replace("\\", "\\e")
    text = _OPTION.sub(lambda found: found[0].replace("-", "\\-"), text)
    # Any roff, in any locale.
    text = "".join(letter if letter.isascii() else f"\\[u{ord(letter):04X}]" for letter in text)
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in text.split("\n"))


def paragraphs(text: str) -> Iterator[str]:
    """Yield the lines for paragraphs as click takes them."""
    for number, part in enumerate(re.split(r"\n{2,}", text.strip("\n"))):
        if number:
            yield ".PP"
        if part.startswith(TOGETHER):
            yield from (".nf", plain(part.removeprefix(TOGETHER).strip("\n")), ".fi")
        else:
            yield plain(part)


def _description(command: click.Command) -> Iterator[str]:
    yield ".SH DESCRIPTION"
    yield from paragraphs(cleandoc(command.help or "").partition("\f")[0])


def _options(context: click.Context) -> Iterator[str]:
    records = [
        record
        for param in context.command.get_params(context)
        if (record := param.get_help_record(context)) is not None and isinstance(param, click.Option)
    ]
    if records:
        yield ".SH OPTIONS"
    for names, text in records:
        yield ".TP"
        yield f"\\fB{plain(names)}\\fP"
        yield plain(text)


def _commands(context: click.Context) -> Iterator[str]:
    for number, command in enumerate(_below(context)):
        if not number:
            yield ".SH COMMANDS"
        yield ".TP"
        # In bold and with its section, as a reader of manual pages expects a reference.
        name = f"{context.command_path} {command.name}".replace(" ", "-").replace("-", "\\-")
        yield f"\\fB{name}\\fP(1)"
        yield plain(command.get_short_help_str(limit=200))


def _rest(context: click.Context) -> Iterator[str]:
    """Yield what stands in the epilog, and other pages."""
    title = ""
    for part in re.split(r"\n{2,}", cleandoc(context.command.epilog or "")):
        first, _, lines = part.removeprefix(TOGETHER).strip("\n").partition("\n")
        section = SECTIONS.get(first.rstrip(":"))
        if section is None:
            yield ".PP"
            yield from paragraphs(part)
            continue
        if section != title:
            yield f".SH {section}"
        title = section
        yield from (".nf", plain(lines), ".fi")
    if "--config" in {name for param in context.command.params for name in param.opts}:
        yield from (
            ".SH FILES",
            ".TP",
            "/etc/fencer/config.yaml",
            "The configuration; fencer\\-config(1) checks it.",
        )
    if context.parent is not None:
        yield ".SH SEE ALSO"
        above = context.parent.command_path.replace(" ", "\\-")
        yield ", ".join(f"\\fB{name}\\fP(1)" for name in dict.fromkeys(("fencer", above)))


def _below(context: click.Context) -> Iterator[click.Command]:
    group = context.command
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if command is not None and not command.hidden:
                command.name = name
                yield command


def main(folder: Path) -> None:
    """Write all pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages():
        (folder / name).write_text(text, encoding="utf-8")
    for name in PLUGINS:
        (folder / f"{name}.1").write_text(".so man1/fencer.1\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004 - its name and the folder
        sys.exit(f"Usage: {sys.argv[0]} FOLDER")
    main(Path(sys.argv[1]))
