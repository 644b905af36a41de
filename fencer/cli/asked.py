"""Questions to whoever types: answered by options where nobody can be asked, or wants to be."""

from __future__ import annotations

from collections.abc import Mapping

import click

from fencer.cli.render import clean, say
from fencer.errors import ConfigError


class Person:
    """Whoever types.

    Args:
        there: Somebody can be asked.
        agrees: The usual answer is right each time.
        approves: Node → its VM, of those over which fencer may have power, as it was typed.
    """

    def __init__(self, *, there: bool, agrees: bool, approves: Mapping[str, str] | None = None) -> None:
        self._there, self._agrees = there, agrees
        self.approves = approves or {}

    @property
    def answers(self) -> bool:
        """Whether somebody can be asked, and wants to be."""
        return self._there and not self._agrees

    def agrees(self, question: str) -> bool:
        """Ask for a yes, which is the usual answer.

        Raises:
            ConfigError: nobody can be asked.
        """
        if self._agrees:
            return True
        self._require(f"{question} Nobody can be asked here: --yes agrees to this, and to all that follows")
        return click.confirm(clean(question), default=True)

    def confirms(self, question: str) -> bool:
        """Ask for a yes that is not the usual answer: where nobody can be asked, or wants to be, it is no."""
        return self.answers and click.confirm(clean(question), default=False)

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
        self._require(f"{question} Nobody can be asked here: say it with {option}")
        answer: str = click.prompt(clean(question), type=click.Choice(choices), default=choices[0])
        return answer

    def says(self, lacking: str, question: str, option: str, usual: str | None = None) -> str:
        """Ask for a text that nobody else may say.

        Args:
            lacking: What is not there, in a sentence.
            question: What is asked.
            option: What answers it on the command line.
            usual: The answer that is likely; still, only a person gives it.

        Raises:
            ConfigError: nobody can be asked, or wants to be.
        """
        if self._agrees:
            raise ConfigError(f"{lacking}. Say it with {option}")
        self._require(f"{lacking}. Nobody can be asked here: say it with {option}")
        say(f"{clean(lacking)}.")
        answer: str = click.prompt(clean(question), default=usual and clean(usual))
        return answer.strip()

    def _require(self, otherwise: str) -> None:
        if not self._there:
            raise ConfigError(otherwise)
