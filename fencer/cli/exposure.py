"""What `fencer check` says of what is open to others: files with credentials, and ways to servers."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from fencer.cli.findings import ANYBODY, Finding, Level, without_key
from fencer.cli.wire import Wiring
from fencer.config import secret_files
from fencer.config.settings import AdapterEndpoint, Config, ProxmoxEndpoint, VirtualBoxEndpoint
from fencer.config.ssh_words import is_ssh
from fencer.core.text import count


def look_at_secrets(wiring: Wiring, config: Config) -> dict[Path, Sequence[secret_files.Finding]]:
    """Look at every file with credentials, and leave out those that are not there and need not be.

    Args:
        wiring: Finds and inspects them.
        config: Which they are.

    Returns:
        What is wrong with each; empty: nothing.
    """
    needed = {path: wiring.inspect_secret(path) for path in wiring.secrets(config)}
    others = {path: wiring.inspect_secret(path) for path in config.keys if path not in needed}
    there = {path: found for path, found in others.items() if not any(one.missing for one in found)}
    return {**needed, **there}


def secret_findings(wiring: Wiring, config: Config) -> Iterator[Finding]:
    """Name files with credentials that we cannot read, or that others can. Arguments as above."""
    looked = look_at_secrets(wiring, config)
    wrong = [(path, one) for path, found in looked.items() for one in found]
    for path, one in wrong:
        level = Level.FAIL if one.serious else Level.WARN
        fix = _makes(config, path) or one.fix if one.missing else one.fix
        yield Finding("secrets", path.name, level, one.text, (fix,))
    if not wrong:
        yield Finding("secrets", count(len(looked), "file"), Level.OK, "for fencer's eyes only")


def transport_findings(config: Config) -> Iterator[Finding]:
    """Name what is taken although nobody can know who answers, and what is not looked into."""
    for name, why in config.unauthenticated.items():
        yield Finding("transport", name, Level.FAIL, f"{why}: {ANYBODY}", (without_key(name),))
    for one in config.endpoints:
        if isinstance(one, VirtualBoxEndpoint) and one.unseen is not None:
            note = f"what {one.unseen} makes of the host's key is not looked into"
            yield Finding("transport", one.name, Level.NOTE, note, (_asking_ssh(one.command),))
        if isinstance(one, AdapterEndpoint):
            note = f"who may answer there is its adapter's matter, which another package brings ({one.type})"
            yield Finding("transport", one.name, Level.NOTE, note)


def _asking_ssh(command: Sequence[str]) -> str:
    """Return what shows how ssh would verify the host; it connects to nothing."""
    first = next(index for index, word in enumerate(command) if is_ssh(word))
    asking = shlex.join([*command[: first + 1], "-G", *command[first + 1 :]])
    return f"{asking} | grep -iE 'stricthost|knownhosts'   (as fencer's user; it must print ask or true)"


def _makes(config: Config, path: Path) -> str | None:
    """Name the command that makes a file with credentials; None: it is not fencer's to make."""
    file = shlex.quote(str(path))
    if path == config.kubernetes.kubeconfig:
        return f"fencer setup kubernetes --kubeconfig ADMINS --output {file}"
    for one in config.endpoints:
        if isinstance(one, ProxmoxEndpoint) and path == one.token_file:
            command = f"fencer setup proxmox --token-id {shlex.quote(one.token_id)} --token-file {file}"
            return f"{command}   (prints what makes it, for root on a host of {one.name})"
    return None
