"""Builds the Debian that the end-to-end tests of the guest part boot: a disk, a kernel, and an initrd.

debootstrap as root, then `mke2fs -d`: no mount, no loop device. Run as a program (`python -m
tests.debian.image`) it builds ahead of the tests and says where.
"""

import gzip
import hashlib
import lzma
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tests.debian.cpio import archive
from tests.support.caches import cache_folder, locked

_SUITE = "trixie"
MIRROR = "http://deb.debian.org/debian"
_PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "libpam-systemd", "udev", "kmod", "procps", "iproute2"),
    *("qemu-guest-agent", "python3", "ca-certificates", "busybox-static", "wireguard-tools"),
)
_KERNEL = "linux-image-cloud-amd64"
_PROGRAMS = ("debootstrap", "mke2fs", "qemu-img", "qemu-system-x86_64")
_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
_HOW_TO_GET = "apt-get install debootstrap e2fsprogs qemu-system-x86 qemu-utils, and run the tests as root"
_HERE = Path(__file__).parent
_SCRIPTS = ("init.sh", "prepare.sh")
_BUILDERS = ("image.py", "cpio.py")
_SIZE = "900M"
# evdev and button let logind hear the ACPI power button. The file system and virtio's bus are built in.
_MODULES = ("virtio_net", "virtio_blk", "evdev", "button")
# Loaded by the guest itself, when somebody makes such an interface.
_MODULES_ON_DISK = ("wireguard", "tun")


class MissingImageError(Exception):
    """There is no image, and none can be built here; the message is one line and says how to get one."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"real Debian guests left out: {reason}; {_HOW_TO_GET}")


@dataclass(frozen=True, slots=True)
class Image:
    """What a guest boots.

    Attributes:
        disk: Raw ext4 without partitions; only to be read.
        kernel: Debian's, for clouds.
        initrd: Mounts the disk, unpacks a tar on a second one over it, and becomes systemd.
    """

    disk: Path
    kernel: Path
    initrd: Path


def find_or_build() -> Image:
    """Return the image; the first call on a machine builds for about two minutes.

    Raises:
        MissingImageError: it is not there and cannot be built.
    """
    folder = cache_folder("guest") / _digest()
    image = Image(folder / "disk.raw", folder / "vmlinuz", folder / "initrd.gz")
    if reason := _missing(built=image.disk.exists()):
        raise MissingImageError(reason)
    if not image.disk.exists():
        with locked(folder, MissingImageError):
            if not image.disk.exists():  # another test process may have built it while we waited
                _build(image)
    return image


def _missing(*, built: bool) -> str:
    programs = _PROGRAMS[2:] if built else _PROGRAMS
    absent = [name for name in programs if shutil.which(name, path=_PATH) is None]
    if absent:
        return f"no {', '.join(absent)} here"
    return "" if built or os.geteuid() == 0 else "debootstrap needs root"


def _digest() -> str:
    """Name an image by all that goes into it."""
    digest = hashlib.sha256(repr((_SUITE, _PACKAGES, _KERNEL, _MODULES, _MODULES_ON_DISK, _SIZE)).encode())
    for name in (*_SCRIPTS, *_BUILDERS):
        digest.update((_HERE / name).read_bytes())
    return digest.hexdigest()[:16]


def _build(image: Image) -> None:
    """Build; the disk comes last and is renamed into place, so that an image is whole or not there."""
    folder = image.disk.parent
    sys.stderr.write(f"\nbuilding the Debian guest of the tests, once (about 2 minutes): {folder}\n")
    sys.stderr.flush()
    # A build that was killed leaves its folder, and perhaps somebody who still writes there.
    for left in folder.glob("root-*"):
        shutil.rmtree(left, ignore_errors=True)
    root = folder / f"root-{os.getpid()}"
    with (folder / "build.log").open("wb") as log:
        try:
            _run(
                log,
                "debootstrap",
                "--variant=minbase",
                f"--include={','.join(_PACKAGES)}",
                _SUITE,
                str(root),
                MIRROR,
            )
            shutil.copy(_HERE / "prepare.sh", root / "prepare.sh")
            modules = (" ".join(_MODULES), " ".join(_MODULES_ON_DISK))
            _run(log, "chroot", str(root), "sh", "/prepare.sh", _KERNEL, *modules)
            kernel = root / "kernel"
            shutil.copy(next((kernel / "boot").glob("vmlinuz-*")), image.kernel)
            image.initrd.write_bytes(_initrd(root, (kernel / "order").read_text().split()))
            shutil.rmtree(kernel)
            unfinished = image.disk.with_suffix(".unfinished")
            unfinished.unlink(missing_ok=True)
            _run(log, "truncate", "-s", _SIZE, str(unfinished))
            _run(log, "mke2fs", "-q", "-t", "ext4", "-E", "root_owner=0:0", "-d", str(root), str(unfinished))
            unfinished.rename(image.disk)
        except (OSError, subprocess.CalledProcessError, StopIteration) as error:
            raise MissingImageError(f"it could not be built ({error}; see {folder / 'build.log'})") from error
        finally:
            shutil.rmtree(root, ignore_errors=True)


def _run(log: BinaryIO, *command: str) -> None:
    environment = {**os.environ, "PATH": _PATH, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)


def _initrd(root: Path, modules: Sequence[str]) -> bytes:
    """Return an initrd that loads modules in this order; they are compressed, which insmod does not read."""
    files: dict[str, tuple[int, bytes]] = {
        "init": (0o755, (_HERE / "init.sh").read_bytes()),
        "bin/busybox": (0o755, (root / "bin/busybox").read_bytes()),
    }
    contents = {Path(module).stem: lzma.decompress((root / module[1:]).read_bytes()) for module in modules}
    files["modules/order"] = (0o644, "".join(f"{name}\n" for name in contents).encode())
    files.update({f"modules/{name}": (0o644, content) for name, content in contents.items()})
    folders = ["bin", "modules", "proc", "sys", "dev", "mnt"]
    return gzip.compress(archive(folders, files), mtime=0)


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{find_or_build().disk.parent}\n")
    except MissingImageError as missing:
        sys.exit(str(missing))
