"""Judges the files of this machine: the configuration, those with credentials, the journal, the state."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fencer.config.secret_files import Trouble
from fencer.config.settings import MB, Config, JournalSettings, ProxmoxEndpoint
from fencer.core.text import count
from fencer.preflight.agent import unit_of
from fencer.preflight.facts import JournalFacts, StateFacts
from fencer.preflight.finding import Finding, Level


def refuse_config(path: Path, why: str, *, missing: bool) -> Finding:
    """Say that the configuration is wrong, or missing: there is nothing else to look at."""
    file = shlex.quote(str(path))
    if missing:
        named = "" if unit_of(path) == "fencer" else f" -c {file}"
        fix = f"fencer init{named}   (makes all that is needed); by hand: fencer setup config"
    else:
        fix = f"correct it, then run: fencer config check -c {file}"
    return Finding("config", str(path), Level.FAIL, why, (fix,))


def judge_secrets(config: Config, secrets: Mapping[Path, Sequence[Trouble]]) -> Iterator[Finding]:
    """Name files with credentials that we cannot read, or that others can, with the fix."""
    wrong = [(path, one) for path, found in secrets.items() for one in found]
    for path, one in wrong:
        level = Level.FAIL if one.serious else Level.WARN
        fix = _makes(config, path) or one.fix if one.missing else one.fix
        yield Finding("secrets", path.name, level, one.text, (fix,))
    if not wrong:
        yield Finding("secrets", count(len(secrets), "file"), Level.OK, "for fencer's eyes only")


def judge_journal(settings: JournalSettings | None, facts: JournalFacts) -> Finding:
    """Say where the journal is, and whether it is kept. Nothing depends on it but looking back.

    Args:
        settings: Where it should be; None: none is wanted.
        facts: What there is of it.
    """
    if settings is None:
        return Finding("journal", "", Level.NOTE, "none is kept, by `journal.enabled: false`")
    if facts.trouble is not None:
        text = f"{facts.trouble}; fencing goes on without it, and `fencer history` lacks what happens"
        folder = shlex.quote(str(settings.file.parent))
        tries = [f"install -d -m 0750 {folder}   (owned by fencer's user)", f"df -h {folder}"]
        if facts.trouble.startswith("cannot be read"):  # room and rights are there
            tries = [
                "another file in journal.file; of a damaged one `fencer watch` begins a new one by itself"
            ]
        return Finding("journal", str(settings.file), Level.WARN, text, tuple(tries))
    if facts.size_bytes is None:
        return Finding("journal", str(settings.file), Level.OK, "none yet: the first that acts begins it")
    since = "empty" if facts.since is None else f"since {facts.since:%Y-%m-%d %H:%M %Z}"
    size = f"{facts.size_bytes / MB:.1f} MB of {settings.bounds.bytes / MB:g}"
    return Finding("journal", str(settings.file), Level.OK, f"{since}, {size}")


def judge_state(file: Path | None, facts: StateFacts | None) -> Iterator[Finding]:
    """Say where an agent keeps what it has seen and not yet written on Nodes, and whether it can.

    Args:
        file: Where; None: the configuration names no place for it.
        facts: What there is of it.
    """
    if file is None or facts is None:
        return
    where, quoted = str(file), shlex.quote(str(file))
    if facts.trouble:
        text = f"{facts.trouble}; what an agent has seen while the API server is down, a restart would forget"
        folder = shlex.quote(str(file.parent))
        tries = (
            f"ls -l {quoted}*",
            f"install -d -m 0750 {folder}   (owned by fencer's user)",
            "another file in state_file",
        )
        yield Finding("state", where, Level.FAIL, text, tries)
    elif facts.damage:
        text = f"{facts.damage}; an agent that starts fences nothing until it is moved away"
        fix = f"{facts.remedy}   (if you know that no VM that is off now was saved or moved away)"
        yield Finding("state", where, Level.FAIL, text, (fix,))
    elif facts.size_bytes is None:
        yield Finding("state", where, Level.OK, "none yet: `fencer watch` writes it")
    else:
        yield Finding("state", where, Level.OK, f"{facts.size_bytes / MB:.1f} MB, signed")


def _makes(config: Config, path: Path) -> str | None:
    """Name the command that makes a file with credentials; None: it is not fencer's to make."""
    file = shlex.quote(str(path))
    if path == config.kubernetes.kubeconfig:
        return f"fencer setup kubernetes --kubeconfig ADMINS --output {file}"
    for one in config.endpoints:
        if isinstance(one, ProxmoxEndpoint) and path == one.token_file:
            command = f"fencer setup proxmox --token-id {shlex.quote(one.token_id)} --token-file {file}"
            return f"{command}   (prints the lines that make it, for root on a host of {one.name})"
    return None
