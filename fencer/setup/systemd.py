"""The agent as a service: its units with the path of the program, its user, and its folders.

Nothing is started or enabled: that is for whoever has written a configuration. A unit that a package of the
distribution brought stays in charge: one below /etc would hide it, and outlive its updates.
"""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator
from pathlib import Path

from fencer.core.text import printable
from fencer.errors import ConfigError
from fencer.setup.files import packaged
from fencer.setup.machine import OLD, put, refuse_unless_root, run, take_away

UNIT, INSTANCES = "fencer.service", "fencer@.service"
USER = "fencer"
HERE = Path("/")
_OURS = Path("etc/systemd/system")
_PACKAGES = (Path("usr/lib/systemd/system"), Path("lib/systemd/system"))
_CONFIGURATION, _STATE = Path("etc/fencer"), Path("var/lib/fencer")
_NAMED = "/usr/bin/fencer"
"""The program's path in the units as they are packaged."""
_EXEC = re.compile(rf"^(Exec\w+=[-@:+!]*){re.escape(_NAMED)}(?= )", re.MULTILINE)
_PLAIN = re.compile(r"/[\w./+@-]+")


def unit(program: Path, *, instances: bool = False) -> str:
    """Return a unit's text that starts this program. Pure, but for reading the unit.

    Args:
        program: Its absolute path.
        instances: The unit for several clusters on one machine, `fencer@NAME`.

    Raises:
        ConfigError: the path means more than a path to systemd.
    """
    if not _PLAIN.fullmatch(str(program)):
        raise ConfigError(
            f"--program: {printable(str(program))!r} must be an absolute path of plain characters"
        )
    text = packaged(f"systemd/{INSTANCES if instances else UNIT}").decode()
    return _EXEC.sub(lambda found: f"{found[1]}{program}", text)


def install(program: Path, root: Path = HERE) -> Iterator[str]:
    """Make the user, the folders and the units; leave alone what is right.

    Args:
        program: What the units start. Whether they can is for the caller to ask: `refuse_unreachable`.
        root: Where the machine's files are.

    Yields:
        What was done, when it was done.

    Raises:
        ConfigError: something could not be done; what was said before is done.
    """
    refuse_unless_root(root)
    texts = {UNIT: unit(program), INSTANCES: unit(program, instances=True)}
    yield _make_user(root)
    yield _make_folder(root / _CONFIGURATION)
    yield _make_folder(root / _STATE, owner=_owner(root))
    changed = False
    for name, text in texts.items():
        if packaged_at := _of_a_package(name, root):
            yield f"{packaged_at}: comes with a package, and is left alone"
            if (root / _OURS / name).exists():
                ends = "`fencer setup systemd --remove` takes it away"
                yield f"/{_OURS / name}: hides it, and is what runs: {ends}"
            continue
        said = put(root / _OURS / name, text.encode())
        changed |= not said.endswith("is there already")
        yield said
    if changed and _runs(root):
        run("systemctl", "daemon-reload")
        yield "systemd: has read its units again"


def is_there(root: Path = HERE) -> bool:
    """Whether the unit is, by us or by a package."""
    return any((root / folder / UNIT).exists() for folder in (_OURS, *_PACKAGES))


def remove(root: Path = HERE) -> Iterator[str]:
    """Stop the agents of these units, and take the units away. What people or agents wrote stays.

    Yields:
        What was done, when it was done.

    Raises:
        ConfigError: something could not be done; what was said before is done.
    """
    refuse_unless_root(root)
    changed = False
    for name in (UNIT, INSTANCES):
        path = root / _OURS / name
        if path.exists() and _runs(root):
            for one in _instances() if name == INSTANCES else (name,):
                run("systemctl", "disable", "--now", one)
                yield f"{printable(one)}: stopped, and will not start by itself"
        said = take_away(path)
        changed |= said.endswith("removed")
        yield said
        if packaged_at := _of_a_package(name, root):
            yield f"{packaged_at}: comes with a package: remove that"
    if changed and _runs(root):
        run("systemctl", "daemon-reload")
        yield "systemd: has read its units again"


def left(root: Path = HERE) -> tuple[str, ...]:
    """Return what `remove` leaves, as the lines that take it away, too."""
    old = [_OURS / f"{name}{OLD}" for name in (UNIT, INSTANCES)]
    lines = [f"rm /{file}" for file in old if (root / file).exists()]
    lines += [f"rm -r /{folder}" for folder in (_CONFIGURATION, _STATE) if (root / folder).exists()]
    return (*lines, *([f"userdel {USER}"] if _owner(root) else []))


def _runs(root: Path) -> bool:
    """Whether systemd runs this machine."""
    return root == HERE and Path("/run/systemd/system").is_dir()


def _instances() -> tuple[str, ...]:
    """Return the agents that run, or would at the next boot, out of `fencer@.service`."""
    names = set()
    for verb in ("list-units", "list-unit-files"):
        listed = run("systemctl", verb, "--all", "--plain", "--no-legend", "fencer@*.service")
        names |= {line.split()[0] for line in listed.splitlines() if line.split()}
    return tuple(sorted(names - {INSTANCES}))


def _of_a_package(name: str, root: Path) -> Path | None:
    for folder in _PACKAGES:
        if (root / folder / name).exists():
            return root / folder / name
    return None


def _make_user(root: Path) -> str:
    if _owner(root):
        return f"user {USER}: is there already"
    below = () if root == HERE else ("--prefix", str(root))
    words = ("--system", "--user-group", "--home-dir", f"/{_STATE}", "--shell", "/usr/sbin/nologin", USER)
    run("useradd", *below, *words)
    return f"user {USER}: made"


def _make_folder(path: Path, owner: tuple[int, int] | None = None) -> str:
    shown = printable(str(path))
    try:
        made = not path.is_dir()
        if made:
            path.mkdir(mode=0o755, parents=True)
            path.chmod(0o755)  # whatever the umask is
        status = path.stat()
        given = owner is not None and (status.st_uid, status.st_gid) != owner
        if owner is not None and given:
            os.chown(path, *owner)
    except OSError as error:
        raise ConfigError(f"{shown}: cannot be made: {error.strerror}") from error
    if made or given:
        return f"{shown}: {'made' if made else 'given to user ' + USER}"
    return f"{shown}: is there already"


def _owner(root: Path) -> tuple[int, int] | None:
    """Return the user's number and group; None: there is no such user."""
    if root == HERE:
        try:
            known = pwd.getpwnam(USER)  # also of a directory service
        except KeyError:
            return None
        return known.pw_uid, known.pw_gid
    try:
        lines = (root / "etc/passwd").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, uid, gid, *_ = (*line.split(":"), "", "", "")
        if name == USER:
            return int(uid), int(gid)
    return None
