"""The tools of a Proxmox host that setup runs: `pvesh`, `ssh`, `sh`."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencer.core.text import printable
from fencer.errors import ConfigError, HypervisorDenied, HypervisorProtocol, HypervisorUnreachable

PATIENCE_S = 60.0
"""For one tool. Source: measured, pvesh takes 1 to 3 s, and longer if it asks a busy host; for
another host it starts an ssh that would wait for minutes."""

NOTHING = Path(os.devnull)
"""Its stdin: a tool that may ask must not wait for an answer, or read the caller's input."""

_NOISE = ("@", "pvesh ")
"""Beginnings of useless lines: ssh's frame around a changed key, and pvesh's usage after a refusal."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A tool that ended.

    Attributes:
        code: Its exit code; negative: killed by that signal.
        output: What it wrote to stdout, as it is.
        complaint: What it wrote to stderr, on one line.
    """

    code: int
    output: str
    complaint: str


def read_object(path: str, *options: str) -> dict[str, Any]:
    """Read an object from the host's API, as root; arguments and errors as `read_rows`."""
    return _object(_read(path, *options), path)


def read_rows(path: str, *options: str) -> list[dict[str, Any]]:
    """Read a list of objects from the host's API, as root.

    Args:
        path: Like ``/cluster/status``.
        options: Like ``--type``, ``vm``.

    Raises:
        ConfigError: this is no Proxmox host.
        HypervisorError: it cannot be read.
    """
    rows = _read(path, *options)
    if not isinstance(rows, list):
        raise HypervisorProtocol(f"{path}: no list, but {printable(repr(rows)[:80])}")
    return [_object(row, path) for row in rows]


def run(*words: str) -> str:
    """Run a tool to its end; return what it printed.

    Raises:
        HypervisorProtocol: it failed; other errors as `attempt`.
    """
    ended = attempt(*words)
    if ended.code:
        why = ended.complaint or _one_line(ended.output) or f"exit code {ended.code}"
        raise HypervisorProtocol(f"{shlex.join(words)}: {why}")
    return ended.output


def attempt(*words: str, stdin: Path = NOTHING, patience_s: float = PATIENCE_S) -> Ended:
    """Run a tool to its end, failed or not.

    Args:
        words: The tool and its arguments.
        stdin: What it reads.
        patience_s: After this many seconds it is killed.

    Raises:
        ConfigError: there is no such tool here.
        HypervisorUnreachable: it does not end; its work may be done or not.
        HypervisorDenied: it may not be run.
    """
    try:
        with stdin.open("rb") as source:
            done = subprocess.run(  # noqa: S603 - a list without a shell
                words,
                stdin=source,
                capture_output=True,
                text=True,
                errors="replace",
                # English, and no warning of Perl on a host that lacks this one's locale: ssh takes it along.
                env=os.environ | {"LC_ALL": "C.UTF-8"},
                timeout=patience_s,
                check=False,
            )
    except FileNotFoundError as error:
        raise ConfigError(
            f"{words[0]}: not found. Run this as root on a host of the Proxmox cluster"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise HypervisorUnreachable(f"{shlex.join(words)}: did not end within {patience_s:g} s") from error
    except OSError as error:
        raise HypervisorDenied(f"{words[0]}: cannot be run: {error.strerror}. Are you root?") from error
    return Ended(done.returncode, done.stdout, _one_line(done.stderr))


def _read(path: str, *options: str) -> Any:
    said = run("pvesh", "get", path, *options, "--output-format", "json")
    try:
        return json.loads(said)
    except ValueError as error:
        raise HypervisorProtocol(f"pvesh get {path}: no JSON: {printable(said[:80])!r}") from error


def _object(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise HypervisorProtocol(f"{place}: no object, but {printable(repr(value)[:80])}")
    return value


def _one_line(text: str) -> str:
    lines = (" ".join(line.split()) for line in text.splitlines())
    return printable(" ".join(line for line in lines if line and not line.startswith(_NOISE)))
