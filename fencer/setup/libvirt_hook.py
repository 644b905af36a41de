"""libvirt's hook for QEMU: a nudge for the agents of this host. Without it fencer has libvirt's own events.

No guest needs it: libvirt runs what it finds in the folder. Source: https://libvirt.org/hooks.html.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from fencer.errors import ConfigError
from fencer.setup.files import packaged
from fencer.setup.machine import OLD, put, refuse_unless_root, take_away

HOOK = "libvirt/qemu-hook"
HERE = Path("/")
_LIBVIRT = Path("etc/libvirt")
_PLACE = _LIBVIRT / "hooks/qemu.d/fencer"


def is_there(root: Path = HERE) -> bool:
    """Whether this fencer's hook is in place."""
    try:
        return (root / _PLACE).read_bytes() == packaged(HOOK) and os.access(root / _PLACE, os.X_OK)
    except OSError:
        return False


def install(root: Path = HERE) -> Iterator[str]:
    """Put the hook in place, if it is not.

    Yields:
        What was done; and once what is left to do.

    Raises:
        ConfigError: there is no libvirt here, or it cannot be written.
    """
    refuse_unless_root(root)
    if not (root / _LIBVIRT).is_dir():
        raise ConfigError(f"{root / _LIBVIRT}: is not there: this runs on the host of libvirt's guests")
    is_new = not (root / _PLACE).exists()
    yield put(root / _PLACE, packaged(HOOK), 0o755, keep=False)  # libvirt runs whatever is in that folder
    if is_new:
        yield "libvirt looks for hooks when it starts: `systemctl restart libvirtd` once; guests go on"


def remove(root: Path = HERE) -> Iterator[str]:
    """Take the hook away. Guests start and end without it as before.

    Yields:
        What was done.

    Raises:
        ConfigError: it cannot be removed.
    """
    refuse_unless_root(root)
    yield take_away(root / _PLACE)
    old = (root / _PLACE).with_name(f"{_PLACE.name}{OLD}")
    if old.exists():  # of an earlier version, which libvirt would go on to run
        yield take_away(old)
