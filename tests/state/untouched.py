"""What shows that a file was left alone, whatever has read it meanwhile."""

from pathlib import Path


def identity_of(path: Path) -> tuple[int, ...]:
    """Return all that a write, a change of owner or mode, or another file in its place would change.

    The time of access is left out: reading changes it.
    """
    found = path.lstat()
    return (
        found.st_dev,
        found.st_ino,
        found.st_mode,
        found.st_uid,
        found.st_gid,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )
