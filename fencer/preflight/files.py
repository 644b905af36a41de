"""Judges the files of this machine: the configuration, those with credentials, the journal."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fencer.config.secret_files import Trouble
from fencer.config.settings import Config, ProxmoxEndpoint
from fencer.core.text import count
from fencer.preflight.finding import Finding, Level


def refuse_config(path: Path, why: str, *, missing: bool) -> Finding:
    """Say that the configuration is wrong, or missing: there is nothing else to look at."""
    file = shlex.quote(str(path))
    if missing:
        fix = f"cp config/fencer.yaml {file}   (in fencer's sources; it explains every key)"
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


def judge_journal(file: Path | None, *, writable: bool) -> Iterator[Finding]:
    """Say whether the journal can be written, if one is wanted."""
    if file is not None and writable:
        yield Finding("journal", str(file))
    elif file is not None:
        tries = (f"install -d -m 0750 {shlex.quote(str(file.parent))}   (owned by fencer's user)",)
        yield Finding("journal", str(file), Level.FAIL, "cannot be written", tries)


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
