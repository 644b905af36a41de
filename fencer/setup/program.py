"""The fencer that runs, and whether a service of another user could run it."""

from __future__ import annotations

import shutil
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

from fencer.core.text import printable
from fencer.errors import ConfigError

NAME = "fencer"
HIDDEN = tuple(map(Path, ("/root", "/home", "/run/user", "/tmp", "/var/tmp")))  # noqa: S108 - refused
"""What the unit does not see: ProtectHome=yes, PrivateTmp=yes."""
_INTO_OPT = (
    "UV_TOOL_DIR=/opt/uv/tools UV_TOOL_BIN_DIR=/usr/local/bin UV_PYTHON_INSTALL_DIR=/opt/uv/python "
    "uv tool install --force SOURCE",
    "pipx install --global SOURCE",
)


def own_program() -> Path:
    """Return the path by which the fencer that runs can be started again, whatever PATH says then.

    Raises:
        ConfigError: it was started as a module, and there is none on PATH.
    """
    named = Path(sys.argv[0])
    found = named if named.name == NAME else Path(NAME)
    path = shutil.which(found)
    if path is None:
        raise ConfigError(f"{NAME}: is not on PATH: name it with --program")
    return Path(path).absolute()


def parts(program: Path) -> tuple[Path, ...]:
    """Return what must be there to run it: itself, and its Python and libraries where it is this fencer."""
    ours = (Path(sys.executable), Path(sys.prefix), Path(__file__))
    is_ours = program.resolve().parent == Path(sys.executable).parent
    return (program, *(ours if is_ours else ()))


def refuse_unreachable(program: Path) -> None:
    """Refuse a program that the unit could not run: it has a user of its own, and sees no home folders.

    Raises:
        ConfigError: it could not; says how to install fencer so that it can.
    """
    if why := unreachable(parts(program)):
        ways = "\n".join(f"    {way}" for way in _INTO_OPT)
        raise ConfigError(
            f"{printable(str(program))}: a service cannot run it: {why}. Install fencer where everybody may "
            "read it, as root, in one of these ways (SOURCE: the checkout or wheel that it came from, with "
            f"[libvirt] behind it for KVM), and run this again:\n{ways}"
        )


def unreachable(paths: Iterable[Path], hidden: Iterable[Path] = HIDDEN) -> str:
    """Return why somebody else could not read these files; empty: everybody can.

    Args:
        paths: The files; where they are links, what they lead to counts as well.
        hidden: Folders that are shut whatever their modes are.
    """
    steps = (step for path in paths for step in (path.absolute(), path.resolve()))
    return next((why for step in steps if (why := _shut(step, hidden))), "")


def _shut(path: Path, hidden: Iterable[Path]) -> str:
    shown = printable(str(path))
    for folder in hidden:
        if path.is_relative_to(folder):
            return f"{shown} is below {folder}, which the unit does not see"
    try:
        closed = [above for above in path.parents if not above.stat().st_mode & stat.S_IXOTH]
        mode = path.stat().st_mode
    except OSError as error:
        return f"{shown}: {error.strerror}"
    if closed:
        return f"only some users may enter {printable(str(closed[-1]))}"
    # Whoever may run a program at all must not be its owner alone.
    shut = mode & stat.S_IXUSR and not mode & stat.S_IXOTH
    return f"only some users may use {shown}" if shut or not mode & stat.S_IROTH else ""
