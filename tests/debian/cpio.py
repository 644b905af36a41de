"""Writes an initrd's archive: cpio in the "newc" format that Linux unpacks."""

from collections.abc import Iterable, Mapping

_FOLDER, _FILE = 0o040755, 0o100000


def archive(folders: Iterable[str], files: Mapping[str, tuple[int, bytes]]) -> bytes:
    """Return an archive of folders and files (permissions and content by name), all root's.

    Source: Linux Documentation/driver-api/early-userspace/buffer-format.rst.
    """
    entries = [(name, _FOLDER, b"") for name in folders]
    entries += [(name, _FILE | mode, content) for name, (mode, content) in files.items()]
    entries.append(("TRAILER!!!", 0, b""))
    return b"".join(_entry(number, *entry) for number, entry in enumerate(entries, 1))


def _entry(number: int, name: str, mode: int, content: bytes) -> bytes:
    # inode, mode, uid, gid, links, mtime, size, device (2), device number (2), length of the name, checksum
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return _padded(head) + _padded(content)


def _padded(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % 4)
