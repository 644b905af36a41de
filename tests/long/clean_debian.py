"""The README's two commands on a clean Debian, as a new user would type them.

debootstrap makes a root once, with less in it than any server has: apt, certificates and Python. Each run has
a copy of it, in namespaces of its own, and a clone of this checkout's HEAD. Nothing boots there: what is
installed does not start, and the tests start what they need, as everywhere.

The machine's way to the package registries is taken along: variables of its environment, the files that they
name, and the settings of apt, pip and uv. So is its test control plane, if it is of the same sources and Go.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.debian.image import MIRROR
from tests.long.site import CHECKOUT, Site
from tests.long.step import LeftOut, StepFailed
from tests.support.caches import cache_folder

_HERE = Path(__file__).parent
_PACKAGES = "ca-certificates,python3"
_PROGRAMS = {"debootstrap": "debootstrap", "unshare": "util-linux", "git": "git"}
_SBIN = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
_OWN_NAMESPACES = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc")
_WAYS = re.compile(
    r"PIP_\w+|UV_(DEFAULT_INDEX|INDEX\w*|HTTP_\w+|SYSTEM_CERTS|NATIVE_TLS)|GO(PROXY|SUMDB|NOSUMDB|PRIVATE)"
    r"|SSL_CERT_\w+|\w+_CA_BUNDLE|(https?|all|no)_proxy",
    re.IGNORECASE,
)
_SETTINGS = (
    *("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/uv"),
    *("~/.config/pip", "~/.config/uv", "~/.pip"),
)


@dataclass(frozen=True, slots=True)
class Debian:
    """A release: its number, and its name in the archive."""

    number: int
    suite: str


BOOKWORM, TRIXIE = Debian(12, "bookworm"), Debian(13, "trixie")


def both_commands(release: Debian, site: Site) -> str:
    """Run `./dev demo` and `./dev test` on a clean Debian, with every real part."""
    look_for_obstacles(site)
    with copied(find_or_build(release, site), site) as copy:
        furnish(copy, site)
        must(site, "git", "clone", "--quiet", "--no-hardlinks", str(CHECKOUT), str(copy / "root" / "fencer"))
        code = run_in(
            *(copy, site, "sh", "/root/fencer/tests/long/fresh_machine.sh"),
            FENCER_REQUIRE_REAL="1",
            FENCER_WHOLE_CONTRACT="1",
        )
    if code:
        raise StepFailed(f"Debian {release.number}: exit code {code}: {site.last_line()}")
    return site.last_line()


def run_in(root: Path, site: Site, *command: str, **variables: str) -> int:
    """Run a command in a root, in namespaces of its own; return its exit code."""
    return site.run(
        *(*_OWN_NAMESPACES, "sh", str(_HERE / "enter.sh"), str(root), str(cache_folder()), *command),
        environment={**ways(), "PATH": _SBIN, "HOME": "/root", "TERM": "dumb"},
        variables=variables,
    )


def look_for_obstacles(site: Site) -> None:
    """Make sure that this machine can do it.

    Raises:
        LeftOut: it cannot.
    """
    if os.geteuid() != 0:
        raise LeftOut("debootstrap and namespaces need root: run it with sudo")
    for program, package in _PROGRAMS.items():
        if shutil.which(program, path=_PATH) is None:
            raise LeftOut(f"no {program} on this machine: apt-get install {package}")
    if site.run(*_OWN_NAMESPACES, "mount", "-t", "tmpfs", "tmpfs", "/mnt"):
        raise LeftOut(
            f"root gets no namespaces of its own here ({site.last_line()}): run it on a machine,"
            " or in a container with CAP_SYS_ADMIN"
        )


def find_or_build(release: Debian, site: Site) -> Path:
    """Return the clean root; the first call on a machine builds for a minute or two."""
    folder = cache_folder() / "clean"
    (cache_folder() / "controlplane").mkdir(parents=True, exist_ok=True)
    root, unfinished = folder / release.suite, folder / f"{release.suite}.unfinished"
    if not root.exists():
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        must(
            site,
            *("debootstrap", "--variant=minbase", f"--include={_PACKAGES}"),
            *(release.suite, str(unfinished), MIRROR),
        )
        unfinished.rename(root)
    return root


@contextmanager
def copied(root: Path, site: Site) -> Iterator[Path]:
    """Have a copy for as long as it is needed. What is mounted in it is seen in its own namespace only."""
    with tempfile.TemporaryDirectory(prefix=f"{root.name}-", dir=root.parent) as folder:
        copy = Path(folder) / "root"
        must(site, "cp", "-a", "--reflink=auto", str(root), str(copy))
        yield copy


def furnish(root: Path, site: Site) -> None:
    """Put in this machine's way to the package registries, and that no service starts."""
    apt = [file for file in Path("/etc/apt/apt.conf.d").glob("*") if "Acquire::" in file.read_text()]
    for place in dict.fromkeys([*_SETTINGS, *ways().values(), *map(str, apt)]):
        path = Path(place).expanduser()
        if path.is_absolute() and path.exists():
            target = root / path.relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            # Never through a link that is there: it would lead out of the root.
            must(site, "cp", "-rLT", "--remove-destination", str(path), str(target))
    no_init = root / "usr/sbin/policy-rc.d"
    no_init.write_text("#!/bin/sh\nexit 101\n")
    no_init.chmod(0o755)


def ways() -> Mapping[str, str]:
    """Return the variables that say how package registries are reached."""
    return {name: value for name, value in os.environ.items() if _WAYS.fullmatch(name)}


def must(site: Site, *command: str) -> None:
    """Run a command of this machine that has to succeed.

    Raises:
        StepFailed: it does not.
    """
    code = site.run(*command, environment={**os.environ, "PATH": _PATH, "LC_ALL": "C.UTF-8"})
    if code:
        raise StepFailed(f"{command[0]} ended with exit code {code}: {site.last_line()}")
