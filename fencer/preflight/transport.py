"""Judges the ways to the servers: is it known who answers there?"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from fencer.config.settings import AdapterEndpoint, Config, VirtualBoxEndpoint
from fencer.config.ssh_words import is_ssh
from fencer.config.transport import KEY
from fencer.preflight.finding import Finding, Level

ANYBODY = "anybody in between may answer in its place, and a fence on that answer makes two writers"


def without_key(name: str) -> str:
    """Return what to do about a way on which anybody may answer.

    Args:
        name: ``kubernetes``, or the endpoint's.
    """
    command = "fencer check" if name == "kubernetes" else "fencer config check"  # reads no kubeconfig
    return f"remove `{KEY}: true` from {name}, then do what `{command}` says"


def judge(config: Config) -> Iterator[Finding]:
    """Name ways accepted although nobody can know who answers, and what is not examined."""
    for name, why in config.unauthenticated.items():
        yield Finding("transport", name, Level.FAIL, f"{why}: {ANYBODY}", (without_key(name),))
    for one in config.endpoints:
        if isinstance(one, VirtualBoxEndpoint) and one.unseen is not None:
            note = f"how {one.unseen} checks the host's key is not examined"
            yield Finding("transport", one.name, Level.NOTE, note, (_asking_ssh(one.command),))
        if isinstance(one, AdapterEndpoint):
            note = f"who may answer there is up to its adapter, which another package brings ({one.type})"
            yield Finding("transport", one.name, Level.NOTE, note)


def _asking_ssh(command: Sequence[str]) -> str:
    """Return a command that shows how ssh would verify the host; it connects to nothing."""
    first = next(index for index, word in enumerate(command) if is_ssh(word))
    asking = shlex.join([*command[: first + 1], "-G", *command[first + 1 :]])
    return f"{asking} | grep -iE 'stricthost|knownhosts'   (as fencer's user; it must print ask or true)"
