"""Questions to whoever types: answered by options where nobody can be asked, or wants to be."""

from __future__ import annotations

import click

from fencer.cli.render import clean
from fencer.errors import ConfigError


class Person:
    """Whoever types.

    Args:
        there: Somebody can be asked.
        agrees: The usual answer is right each time.
    """

    def __init__(self, *, there: bool, agrees: bool) -> None:
        self._there, self._agrees = there, agrees

    def agrees(self, question: str) -> bool:
        """Ask for a yes, which is the usual answer.

        Raises:
            ConfigError: nobody can be asked.
        """
        if self._agrees:
            return True
        self._require(question, "--yes")
        return click.confirm(clean(question), default=True)

    def chooses(self, question: str, choices: tuple[str, ...], option: str) -> str:
        """Ask for one of several, of which the first is the usual one; a single one needs no question.

        Args:
            question: What is asked.
            choices: The answers, at least one.
            option: What answers it on the command line.

        Raises:
            ConfigError: nobody can be asked.
        """
        if len(choices) == 1 or self._agrees:
            return choices[0]
        self._require(question, option)
        answer: str = click.prompt(clean(question), type=click.Choice(choices), default=choices[0])
        return answer

    def says(self, question: str, option: str, default: str | None = None) -> str:
        """Ask for a text.

        Args:
            question: What is asked.
            option: What answers it on the command line.
            default: The usual answer; None: there is none.

        Raises:
            ConfigError: nobody can be asked.
        """
        if self._agrees and default is not None:
            return default
        self._require(question, option)
        answer: str = click.prompt(clean(question), default=default)
        return answer.strip()

    def _require(self, question: str, option: str) -> None:
        if not self._there or (self._agrees and option != "--yes"):
            raise ConfigError(f"{question.rstrip('?:. ')}: nobody can be asked here. Say it with {option}")
