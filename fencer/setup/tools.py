"""The tools of a Proxmox host that setup runs: `pvesh`, `qm`, and `ssh` to its neighbours."""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import Any

from fencer.core.text import printable
from fencer.errors import ConfigError, HypervisorDenied, HypervisorProtocol, HypervisorUnreachable

PATIENCE_S = 60.0
"""For one tool. Source: measured, pvesh takes 1 to 3 s, and longer where it asks a host that is busy."""

SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10")
"""Never a question, and no waiting for a dead host."""


def read(path: str, *options: str) -> Any:
    """Read something from the host's API, as root.

    Args:
        path: Like ``/cluster/status``.
        options: Like ``--type``, ``vm``.

    Raises:
        ConfigError: this is no Proxmox host.
        HypervisorError: it cannot be read.
    """
    said = run("pvesh", "get", path, *options, "--output-format", "json")
    try:
        return json.loads(said)
    except ValueError as error:
        raise HypervisorProtocol(f"pvesh get {path}: no JSON: {printable(said[:80])!r}") from error


def run(*words: str) -> str:
    """Run a tool to its end; return what it printed.

    Raises:
        ConfigError: there is no such tool here.
        HypervisorUnreachable: it does not end.
        HypervisorDenied: it may not be run.
        HypervisorProtocol: it failed.
    """
    done = _end_of(words)
    if done.returncode:
        why = printable(" ".join((done.stderr or done.stdout).split())) or f"exit code {done.returncode}"
        raise HypervisorProtocol(f"{shlex.join(words)}: {why}")
    return done.stdout


def succeeds(*words: str) -> bool:
    """Run a tool that answers with its exit code; `run` says what it raises otherwise."""
    return _end_of(words).returncode == 0


def on(host: str, *words: str) -> tuple[str, ...]:
    """Return the command that runs a tool on another host, the way that Proxmox's own tools get there."""
    return (*SSH, f"root@{host}", shlex.join(words))


def _end_of(words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - a list without a shell
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise ConfigError(
            f"{words[0]}: not found. Run this as root on a host of the Proxmox cluster"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise HypervisorUnreachable(f"{shlex.join(words)}: did not end within {PATIENCE_S:.0f} s") from error
    except OSError as error:
        raise HypervisorDenied(f"{words[0]}: cannot be run: {error.strerror}. Are you root?") from error
