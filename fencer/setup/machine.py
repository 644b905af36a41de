"""What setups do to this machine: they put files in place, and run its tools. Each says what it did."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from pathlib import Path

from fencer.core.text import printable
from fencer.errors import ConfigError

OLD = ".old"
"""After the name of a file that was replaced."""
PATIENCE_S = 60.0
"""For `useradd`, `systemctl`; stopping an agent takes up to 30 s."""


def refuse_unless_root(root: Path) -> None:
    """Make sure that we may change this machine.

    Args:
        root: Where its files are; only below another one than `/` a person may be anybody.

    Raises:
        ConfigError: we may not.
    """
    if root == Path("/") and os.geteuid() != 0:
        raise ConfigError("this changes the machine: run it as root")


def put(path: Path, content: bytes, mode: int = 0o644, *, keep: bool = True) -> str:
    """Put a file in place, whole or not at all.

    Args:
        path: Where.
        content: What.
        mode: Its mode.
        keep: One that is other than this is kept beside it, as NAME.old.

    Returns:
        What was done, in a sentence.

    Raises:
        ConfigError: it cannot be written.
    """
    shown = printable(str(path))
    try:
        try:
            before: bytes | None = path.read_bytes()
            if before == content and stat.S_IMODE(path.stat().st_mode) == mode:
                return f"{shown}: is there already"
        except FileNotFoundError:
            before = None
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        changed = before is not None and before != content
        draft = path.with_name(f".{path.name}.new")
        try:
            draft.write_bytes(content)
            draft.chmod(mode)
            if changed and keep:
                old = path.with_name(path.name + OLD)
                old.unlink(missing_ok=True)
                old.hardlink_to(path)
            draft.replace(path)
        except OSError:
            draft.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(f"{shown}: cannot be written: {error.strerror}") from error
    if changed and not keep:
        return f"{shown}: replaced"
    if changed:
        return f"{shown}: replaced; the one before is {printable(path.name)}{OLD}"
    return f"{shown}: {'written' if before is None else 'its mode is right again'}"


def refuse_other(path: Path, content: bytes) -> None:
    """Make sure that no file of somebody else's is in the way: it is not there, or is the same.

    Raises:
        ConfigError: it is another one.
    """
    try:
        other = path.read_bytes() != content
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(f"{printable(str(path))}: cannot be read: {error.strerror}") from error
    if other:
        raise ConfigError(f"{printable(str(path))}: is another one, and is left alone: --replace replaces it")


def take_away(path: Path) -> str:
    """Remove a file.

    Returns:
        What was done, in a sentence.

    Raises:
        ConfigError: it cannot be removed.
    """
    shown = printable(str(path))
    try:
        path.unlink()
    except FileNotFoundError:
        return f"{shown}: is not there"
    except OSError as error:
        raise ConfigError(f"{shown}: cannot be removed: {error.strerror}") from error
    return f"{shown}: removed"


def run(*words: str) -> str:
    """Run one of the machine's tools to its end; return what it printed.

    Raises:
        ConfigError: it is not here, failed, or does not end.
    """
    try:
        done = subprocess.run(  # noqa: S603 - a list without a shell
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=os.environ | {"LC_ALL": "C.UTF-8"},
            timeout=PATIENCE_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise ConfigError(f"{words[0]}: is not on this machine") from error
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"{shlex.join(words)}: did not end within {PATIENCE_S:g} s") from error
    except OSError as error:
        raise ConfigError(f"{words[0]}: cannot be run: {error.strerror}") from error
    if done.returncode:
        said = printable(" ".join((done.stderr or done.stdout).split())) or f"exit code {done.returncode}"
        raise ConfigError(f"{shlex.join(words)}: {said}")
    return done.stdout
