"""Steps that are made of commands: each is run, also after one that failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.long.site import Site, required
from tests.long.step import StepFailed


@dataclass(frozen=True, slots=True)
class Part:
    """A command of a step.

    Attributes:
        name: What the table calls it; empty where a step has only one.
        command: A program and its words.
        variables: In its environment, besides ours, where a missing real part is a failure.
    """

    name: str
    command: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)


def do(site: Site, parts: Iterable[Part]) -> str:
    """Run all parts and return the last line of each.

    Raises:
        StepFailed: One of them, or more, ended with another exit code than 0.
    """
    failed: list[str] = []
    passed: list[str] = []
    for part in parts:
        code = site.run(*part.command, variables={**required(), **part.variables})
        label = f"{part.name}: " if part.name else ""
        told = f"exit code {code}: " if code else ""
        (failed if code else passed).append(f"{label}{told}{site.last_line()}")
    if failed:
        raise StepFailed("; ".join(failed))
    return "; ".join(passed)
