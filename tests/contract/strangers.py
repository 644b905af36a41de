"""``pytest --adapter=NAME`` as whoever wrote an adapter types it: in a folder and a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

TYPED_S = 300


def pytest_on(
    adapter: str | None, folder: Path, path: Sequence[Path], *words: str, alone: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run fencer's contract on an adapter.

    Args:
        adapter: The entry point's name; None: that is no word of this command.
        folder: Where it is typed.
        path: What is installed.
        words: Further options.
        alone: Without the other plugins that happen to be installed here, which is quicker.
    """
    folder.mkdir(exist_ok=True)
    named = () if adapter is None else (f"--adapter={adapter}",)
    plugins = ("-p", "fencer.contract.plugin") if alone else ()
    without = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} if alone else {}
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV", "FENCER"))
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "-p", "no:cacheprovider", *named, *words],
        cwd=folder,
        env={**kept, **without, "PYTHONPATH": os.pathsep.join(map(str, path))},
        capture_output=True,
        text=True,
        timeout=TYPED_S,
        check=False,
    )
