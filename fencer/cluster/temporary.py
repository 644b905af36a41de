"""Files that the client makes of what a kubeconfig holds, private keys among them: kept apart, and removed.

The client makes them below the usual folder for such files, and removes them when its process ends by itself;
not when a signal ends it, or it becomes another program.

Source: kubernetes-client/python, kubernetes/config/kube_config.py, _create_temp_file_with_content.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

_IN_MEMORY = (Path("/run"), Path("/dev/shm"))  # noqa: S108 - a folder of our own is made in it


@contextmanager
def in_a_folder() -> Iterator[Path]:
    """Have all such files made in a folder in memory that is ours alone, and is gone in the end."""
    before, known = tempfile.tempdir, set(_files())
    home = next((one for one in _IN_MEMORY if os.access(one, os.W_OK)), None)
    with TemporaryDirectory(prefix="fencer-", dir=home) as folder:
        tempfile.tempdir = folder
        try:
            yield Path(folder)
        finally:
            tempfile.tempdir = before
            files = _files()
            for content in set(files) - known:
                del files[content]


def remove_all() -> None:
    """Remove what was made: this process is about to become another program."""
    files = _files()
    for content in tuple(files):
        Path(files.pop(content)).unlink(missing_ok=True)


def _files() -> dict[object, str]:
    """Return the client's own books: file by content; empty: it was never loaded."""
    module = sys.modules.get("kubernetes.config.kube_config")
    files: dict[object, str] = getattr(module, "_temp_files", {})
    return files
