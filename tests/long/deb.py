"""The package for Debian: the same bytes twice, nothing for lintian to object to, and what people do with it.

That is on clean roots of Debian 12 and 13, where nothing runs (`deb_in_root.sh`), and with a Python between
theirs. What needs systemd is in `deb_systemd`.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from tests.long.clean_debian import (
    BOOKWORM,
    TRIXIE,
    Debian,
    copied,
    find_or_build,
    furnish,
    look_for_obstacles,
    must,
    run_in,
)
from tests.long.image import uv
from tests.long.site import CHECKOUT, Site
from tests.long.step import LeftOut, StepFailed

_HERE = Path(__file__).parent
_PROGRAMS = {"dpkg-buildpackage": "dpkg-dev", "dh": "debhelper", "lintian": "lintian"}
_PYTHONS = {BOOKWORM: "3.11", TRIXIE: "3.13"}
_BETWEEN = "3.12"
"""No Debian has it, but the package is for it as well."""
_COMMAND = "import sys; sys.path.insert(0, sys.argv.pop(1)); from fencer.cli.main import main; main()"


def deb(site: Site) -> str:
    """Build it twice, and use it."""
    look_for_obstacles(site)
    package = built_twice(site)
    must(site, "lintian", "--allow-root", "--fail-on", "error", str(package))
    told = [_used(release, package, site) for release in _PYTHONS]
    told.append(_with_python(package, site))
    return f"{package.stat().st_size / 1e6:.1f} MB, same bytes twice; {'; '.join(told)}"


def built_twice(site: Site) -> Path:
    """Build the last commit in two folders; return the package.

    Raises:
        LeftOut: something that builds it is not here.
        StepFailed: it cannot be built, or is not the same.
    """
    for program, name in _PROGRAMS.items():
        if shutil.which(program) is None:
            raise LeftOut(f"no {program} on this machine: apt-get install {name}")
    first, second = (
        built(site, folder) for folder in (site.folder / "one", site.folder / "another" / "place")
    )
    for file in first:
        if file.read_bytes() != (second[0].parent / file.name).read_bytes():
            raise StepFailed(f"{file.name} is another one when it is built elsewhere")
    return next(file for file in first if file.suffix == ".deb")


def built(site: Site, folder: Path, of: Path = CHECKOUT) -> list[Path]:
    """Build the last commit of a checkout in a clone; return what there is to give away."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    must(site, "git", "clone", "--quiet", "--no-hardlinks", str(of), str(folder))
    code = site.run(
        str(folder / "config" / "deb" / "build"),
        variables={"UV": uv(), "PYTHON": sys.executable},
        cwd=folder,
    )
    if code:
        raise StepFailed(f"not built: {site.last_line()}")
    return sorted((folder / "dist").iterdir())


def _used(release: Debian, package: Path, site: Site) -> str:
    with copied(find_or_build(release, site), site) as root:
        furnish(root, site)
        for file in (package, _HERE / "deb_in_root.sh"):
            shutil.copy(file, root / "root")
        words = ("/root/deb_in_root.sh", f"/root/{package.name}", _PYTHONS[release])
        if run_in(root, site, "sh", *words):
            raise StepFailed(f"Debian {release.number}: {site.last_line()}")
    return site.last_line().removesuffix(": all of it")


def _with_python(package: Path, site: Site) -> str:
    """Run what the package has by a Python that no Debian has."""
    places = (
        shutil.which(f"python{_BETWEEN}"),
        *Path.home().glob(f".pyenv/versions/{_BETWEEN}.*/bin/python"),
    )
    # One that is found may be a shim that leads nowhere.
    python = next((str(place) for place in places if place and not site.run(str(place), "-c", "")), None)
    if python is None:
        return f"Python {_BETWEEN} is not here"
    unpacked = site.folder / "unpacked"
    must(site, "dpkg-deb", "--extract", str(package), str(unpacked))
    for command in (("version",), ("demo",)):
        words = (python, "-IB", "-c", _COMMAND, str(unpacked / "usr/lib/fencer"), *command)
        if site.run(*words, environment={"PATH": os.defpath, "LC_ALL": "C.UTF-8"}):
            raise StepFailed(f"Python {_BETWEEN}: fencer {' '.join(command)}: {site.last_line()}")
    return f"Python {_BETWEEN}"
