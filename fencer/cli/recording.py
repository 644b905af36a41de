"""The journal of a command: what it is asked for, what it does, and how it ends."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version

import click
from click.core import ParameterSource

from fencer import DISTRIBUTION
from fencer.cli.wire import Parts, Wiring
from fencer.core.policy import Policy
from fencer.errors import FencerError
from fencer.reporting.journal import JournalReporter

INTERRUPTED = 130
"""As shells have it: 128 and the number of SIGINT."""
CLOSING_S = 2.0
"""How long the end of a command may wait for its last rows."""
QUIET = frozenset({"path", "yes"})
"""Options that say nothing about what was asked for."""


class Recording:
    """What a command keeps.

    Args:
        journal: Where it goes; None: nothing is kept.
        parts: The working parts.
    """

    def __init__(self, journal: JournalReporter | None, parts: Parts) -> None:
        self.journal = journal
        self._parts = parts
        self._asked = False
        self._nodes: tuple[str, ...] = ()

    def beside(self, parts: Parts) -> JournalReporter | None:
        """Return what keeps the same journal for work that goes on beside, with parts of its own."""
        journal = self.journal
        return None if journal is None else journal.beside(parts.asker, parts.clock.now_s)

    def begins(self, policy: Policy) -> None:
        """Keep that this command begins, and how careful it is."""
        if self.journal is not None:
            endpoints = tuple(self._parts.hypervisors)
            self.journal.began(command_name(), version(DISTRIBUTION), policy, endpoints)

    def says(self, text: str, *, warning: bool) -> None:
        """Keep what this command says of itself, or of what came of it."""
        if self.journal is not None:
            self.journal.said(text, warning=warning)

    def names(self, nodes: Sequence[str]) -> None:
        """Take note which nodes a command is about that names none, should it be refused."""
        self._nodes = tuple(nodes)

    def asked(self, nodes: Sequence[str]) -> None:
        """Keep what a person has asked for, and agreed to."""
        self.begins(self._parts.policy)
        if self.journal is not None:
            self.journal.asked(typed(), tuple(nodes), reasons())
            self._asked = True

    def refused(self) -> None:
        """Keep what a person has asked for in vain, if that is not kept yet."""
        if not self._asked:
            node = click.get_current_context().params.get("node")
            self.asked((str(node),) if node else self._nodes)

    def ended(self, code: int) -> None:
        """Keep how that has ended."""
        if self.journal is not None and self._asked:
            self.journal.ended(code)


@contextmanager
def recording(wiring: Wiring, parts: Parts, by: str, *, act: bool = True) -> Iterator[Recording]:
    """Give what keeps what a command does, and close it in the end.

    Args:
        wiring: Builds the journal.
        parts: The working parts.
        by: Who acts.
        act: Whether anything is done at all: looks are not kept.
    """
    settings = parts.config.journal
    if settings is None or not act:
        yield Recording(None, parts)
        return
    journal = wiring.journal_writer(settings, by)
    kept = Recording(JournalReporter(journal, parts.asker, parts.clock.now_s, wiring.wall), parts)
    code = 1
    try:
        yield kept
        code = 0
    except click.exceptions.Exit as error:
        code = error.exit_code
        raise
    except FencerError as error:
        code = error.exit_code
        raise
    except (KeyboardInterrupt, click.Abort):
        code = INTERRUPTED
        raise
    finally:
        if code == 1 and reasons() and not click.get_current_context().params.get("dry_run"):
            kept.refused()  # a person gave their word for it
        kept.ended(code)
        journal.close(CLOSING_S)


def command_name() -> str:
    """Return the name of the command that runs: ``fence``."""
    return click.get_current_context().info_name or ""


def typed() -> str:
    """Return the command as it was typed, all but what says nothing about what was asked for."""
    context, words = click.get_current_context(), [command_name()]
    for param in context.command.params:
        value = context.params.get(param.name or "")
        given = context.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
        if not given or param.name in QUIET:
            continue
        if isinstance(param, click.Argument):
            words += list(value) if isinstance(value, tuple) else [str(value)]
        else:
            shown = f"{value:g}" if isinstance(value, float) else str(value)
            words += [param.opts[-1]] if value is True else [param.opts[-1], shown]
    return shlex.join(words)


def reasons() -> dict[str, str]:
    """Return a person's words for what is recorded, by option."""
    context = click.get_current_context()
    return {
        param.opts[-1].removeprefix("--"): context.params[param.name]
        for param in context.command.params
        if param.name and param.metavar == "WHY" and context.params.get(param.name)
    }
