"""What `fencer check` says of what is open to others: files with credentials, and ways to servers."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from fencer.cli.findings import ANYBODY, Finding, Level, without_key
from fencer.cli.wire import Wiring
from fencer.config.settings import Config, ProxmoxEndpoint
from fencer.core.text import count


def secret_findings(wiring: Wiring, config: Config) -> Iterator[Finding]:
    """Name files with credentials that we cannot read, or that others can.

    Args:
        wiring: Finds and inspects them.
        config: Which they are.
    """
    paths = wiring.secrets(config)
    wrong = [(path, one) for path in paths for one in wiring.inspect_secret(path)]
    for path, one in wrong:
        level = Level.FAIL if one.serious else Level.WARN
        fix = _makes(config, path) or one.fix if one.missing else one.fix
        yield Finding("secrets", path.name, level, one.text, (fix,))
    if not wrong:
        yield Finding("secrets", count(len(paths), "file"), Level.OK, "for fencer's eyes only")


def transport_findings(config: Config) -> Iterator[Finding]:
    """Name what is taken although nobody can know who answers."""
    for name, why in config.unauthenticated.items():
        yield Finding("transport", name, Level.FAIL, f"{why}: {ANYBODY}", (without_key(name),))


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
