"""Makes one folder of libraries out of those for each Python: `merge.py TARGET 3.11=FOLDER 3.12=FOLDER…`.

A venv belongs to one Python, and is dead after the upgrade of a distribution. Extension modules carry their
Python in their names, so those for several lie beside each other; all else must be the same, byte for byte.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

UNUSED = frozenset({"aiohttp", "aiohttp-retry", "aiohappyeyeballs", "aiosignal", "attrs", "frozenlist"}) | {
    *("multidict", "propcache", "yarl"),
}
"""Distributions that only `kubernetes.aio` wants, which fencer does not use: 40 MB by itself."""
FROM_DEBIAN = frozenset({"tzdata"})
"""What a package of Debian's has; it is depended on."""
_KEPT_METADATA = frozenset({"METADATA", "entry_points.txt"})
"""Versions and adapters are found by these. The rest tells of the machine, or is for pip."""
_FOLDERS = frozenset({"kubernetes/aio", "prometheus_client/aiohttp", "bin"})
_NO_NEED = re.compile(r"\.(pyi|pyx|pxd|c|h|pyc|lock)$|/(tests|__pycache__)/|^\.lock$")
_EXTENSION = re.compile(r"(?P<stem>.+)\.cpython-(?P<minor>\d+)-[\w-]+\.so")
_LEFT_OUT_IMPORTS = re.compile(
    r"^\s*(?:import|from) (aiohttp\w*|aiohappyeyeballs|aiosignal|attrs?|frozenlist|multidict|propcache|yarl"
    r"|kubernetes\.aio)\b",
    re.MULTILINE,
)


class MergeError(Exception):
    """These are not one set of libraries; the message says where they differ."""


def merge(folders: Mapping[str, Path], target: Path) -> None:
    """Copy what is needed of all folders into one.

    Args:
        folders: By Python: `3.11`.
        target: Must not exist.

    Raises:
        MergeError: a file differs, an extension module is not there for each Python or not bound to one,
            or something imports what is left out.
    """
    extensions: dict[str, set[str]] = {}
    for python, folder in folders.items():
        extensions[python] = set()
        for name in _needed(folder):
            if name.endswith(".so"):
                extensions[python].add(_bound_to(python, name))
            _copy(folder / name, target / name, python)
    everywhere = set.union(*extensions.values())
    for python, known in extensions.items():
        if everywhere - known:
            raise MergeError(f"Python {python} has no {', '.join(sorted(everywhere - known))}")
    _look_for_imports(target)


def _needed(folder: Path) -> Iterator[str]:
    """Yield the names of all files that fencer has a use for, in order."""
    without = {folder / name for name in _left_out(folder)}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        in_metadata = any(part.endswith(".dist-info") for part in path.relative_to(folder).parts[:-1])
        if (
            path.is_file()
            and not without.intersection(path.parents)
            and not _NO_NEED.search(name)
            and (not in_metadata or path.name in _KEPT_METADATA)
        ):
            yield name


def _left_out(folder: Path) -> Iterator[str]:
    """Yield the names of folders in which all is left out."""
    yield from _FOLDERS
    for info in folder.glob("*.dist-info"):
        if distribution(info) not in UNUSED | FROM_DEBIAN:
            continue
        yield info.name
        for line in (info / "RECORD").read_text().splitlines():
            if not line.startswith(("..", info.name)) and "/" in line:
                yield line.split("/")[0]


def distribution(info: Path) -> str:
    """Return the name that the lock has for the distribution of a `.dist-info`."""
    return re.sub(r"[-_.]+", "-", info.name.removesuffix(".dist-info").rsplit("-", 1)[0]).lower()


def _bound_to(python: str, name: str) -> str:
    found = _EXTENSION.fullmatch(name)
    if found is None or found["minor"] != python.replace(".", ""):
        raise MergeError(f"{name}: is not bound to Python {python} by its name")
    return found["stem"]


def _copy(source: Path, target: Path, python: str) -> None:
    if target.exists():
        if source.read_bytes() != target.read_bytes():
            raise MergeError(f"{target.name}: is another one for Python {python}: {source}")
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)  # not its mode, and never a link into uv's cache
    target.chmod(0o644)


def _look_for_imports(target: Path) -> None:
    for path in sorted(target.rglob("*.py")):
        if found := _LEFT_OUT_IMPORTS.search(path.read_text(encoding="utf-8", errors="replace")):
            raise MergeError(f"{path.relative_to(target)}: imports {found[1]}, which is left out")


def main(words: Sequence[str]) -> None:
    """Merge what the words name."""
    target, *sources = words
    folders = dict(source.split("=", 1) for source in sources)
    merge({python: Path(folder) for python, folder in folders.items()}, Path(target))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except MergeError as error:
        sys.exit(f"merge: {error}")
