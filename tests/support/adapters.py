"""Somebody else's package beside fencer, as far as `importlib.metadata` can tell: no index, no build."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import invalidate_caches
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "docs" / "adapter-example"


def install(into: Path, name: str, points: Mapping[str, Mapping[str, str]], version: str = "1.0") -> Path:
    """Write what an installer would of a package.

    Args:
        into: A folder for the path.
        name: The package's.
        points: Its entry points, by group and name.
        version: The package's.
    """
    info = into / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [
        line
        for group, named in points.items()
        for line in (f"[{group}]", *(f"{point} = {where}" for point, where in named.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return into


def install_example(into: Path) -> tuple[Path, Path]:
    """Write what an installer would of the example, and return what has to be on the path."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    return install(into, project["name"], project["entry-points"], project["version"]), EXAMPLE


@contextmanager
def on_path(*folders: Path) -> Iterator[None]:
    """Have folders on the path for a while, and forget after it what was imported from them."""
    before = set(sys.modules)
    sys.path[:0] = [str(folder) for folder in folders]
    invalidate_caches()
    try:
        yield
    finally:
        for folder in folders:
            sys.path.remove(str(folder))
        invalidate_caches()
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and any(Path(file).is_relative_to(folder) for folder in folders):
                del sys.modules[name]
