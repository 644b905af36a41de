"""Programs out of Debian's packages, unpacked into the tests' cache: nothing is installed, nothing starts.

Run as a program (`python -m tests.support.debs`) it fetches all that the tests use ahead of them, and says
where.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support import missing_real_part
from tests.support.caches import cache_folder, locked

PACKAGES = {
    "prometheus": ("usr/bin/prometheus", "usr/bin/promtool"),
    "prometheus-alertmanager": ("usr/bin/prometheus-alertmanager",),
    "gojq": ("usr/bin/gojq",),
}
"""What tests run, by package. They are built of Go, and need no other package than libc6."""

_HOW_TO_GET = "on a Debian or Ubuntu, with its mirror in reach, `./dev test` fetches it"


class MissingProgramError(Exception):
    """The program is not here and cannot be fetched; the message is one line and says how to get it."""

    def __init__(self, package: str, reason: str) -> None:
        super().__init__(f"real {package} left out: {reason}; {_HOW_TO_GET}")


def program(package: str, path: str) -> Path:
    """Return a program for a test; the test is left out if there is none, or fails where all is required.

    Args:
        package: One of `PACKAGES`.
        path: Where the program is in there, like ``usr/bin/promtool``.
    """
    try:
        return binary(package, path)
    except MissingProgramError as missing:
        missing_real_part(str(missing))


def binary(package: str, path: str) -> Path:
    """Return a program of a package; the first call on a machine fetches the package, 10 to 20 MB.

    Args:
        package: One of `PACKAGES`.
        path: Where the program is in there.

    Raises:
        MissingProgramError: it is not here, and cannot be fetched.
    """

    class RefusalError(MissingProgramError):
        def __init__(self, reason: str) -> None:
            super().__init__(package, reason)

    folder = cache_folder("debs") / package
    found = folder / "root" / path
    if not os.access(found, os.X_OK):
        absent = [name for name in ("apt-get", "dpkg-deb") if shutil.which(name) is None]
        if absent:
            raise RefusalError(f"no {', '.join(absent)} here")
        with locked(folder, RefusalError):
            if not os.access(found, os.X_OK):  # another test process may have fetched it while we waited
                _fetch(package, folder)
    if not os.access(found, os.X_OK):
        raise RefusalError(f"the package has no {path}")
    return found


def _fetch(package: str, folder: Path) -> None:
    """Fetch and unpack beside the place, and rename: what is there is whole.

    apt's own lists may be missing or too old. Then it makes some for us alone, which takes no root.
    """
    fresh = folder / "unfinished"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    try:
        try:
            _run(package, fresh, "apt-get", "-q", "download", package)
        except MissingProgramError:
            state = fresh / "apt"
            for name in ("lists/partial", "cache/archives/partial"):
                (state / name).mkdir(parents=True)
            own = ("-o", f"Dir::State::Lists={state}/lists", "-o", f"Dir::Cache={state}/cache")
            _run(package, fresh, "apt-get", "-q", *own, "update")
            _run(package, fresh, "apt-get", "-q", *own, "download", package)
        [archive] = fresh.glob("*.deb")
        _run(package, fresh, "dpkg-deb", "-x", str(archive), "root")
        shutil.rmtree(folder / "root", ignore_errors=True)
        (fresh / "root").rename(folder / "root")
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _run(package: str, folder: Path, *words: str) -> None:
    done = subprocess.run(
        words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        said = [line for line in lines if line.startswith("E:")] or lines
        raise MissingProgramError(package, f"{words[0]}: {said[0] if said else done.returncode}")


if __name__ == "__main__":
    missing = []
    for name, programs in PACKAGES.items():
        for inside in programs:
            try:
                sys.stdout.write(f"{binary(name, inside)}\n")
            except MissingProgramError as error:
                missing.append(str(error))
    if missing:
        sys.exit("\n".join(dict.fromkeys(missing)))
