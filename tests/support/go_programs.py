"""Programs of others that the tests build from pinned Go modules, once; and the files of such modules."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.caches import cache_folder, locked

# Kubernetes 1.36.2 built by Go 1.27 (encoding/json v2) serves a broken /openapi/v2.
_GO_VERSION = "go1.26"
_AS_IT_IS = {"CGO_ENABLED": "0", "GOFLAGS": ""}  # whatever this machine would have it build with


class GoError(Exception):
    """There is no Go, or not the right one, or it fails; the message is one line."""


@dataclass(frozen=True, slots=True)
class Program:
    """What is built, and all that the result depends on.

    Attributes:
        module: The folder with the pins.
        sources: Files of it: the pins, and the code that is ours.
        package: What to build: `.`, or a program of a module that is pinned there.
        flags: For `go build`.
        kind: The folder of the cache.
        name: The binary's file name.
        called: As the terminal calls it, with how long it takes.
    """

    module: Path
    sources: Sequence[str]
    package: str
    flags: Sequence[str]
    kind: str
    name: str
    called: str

    def find_or_build(self) -> Path:
        """Return the binary; the first call on a machine builds it.

        Raises:
            GoError: It cannot be built here.
        """
        go, version = _find_go(self.module)
        target = cache_folder(self.kind) / self._digest(version) / self.name
        if not target.exists():
            with locked(target.parent, GoError):
                if not target.exists():  # another test process may have built it while we waited
                    self._build(go, target)
        return target

    def _digest(self, go_version: str) -> str:
        """Name a build by all that goes into it."""
        digest = hashlib.sha256()
        for name in self.sources:
            digest.update((self.module / name).read_bytes())
        digest.update("\n".join([go_version, *self.flags]).encode())
        return digest.hexdigest()[:16]

    def _build(self, go: str, target: Path) -> None:
        """Build beside the target and rename, so that a half-written binary is never found."""
        sys.stderr.write(f"\nbuilding {self.called}: {target}\n")
        sys.stderr.flush()
        # A build that was killed leaves its file, and perhaps somebody who still writes there.
        for left in target.parent.glob("*.unfinished"):
            left.unlink()
        unfinished = target.with_suffix(f".{os.getpid()}.unfinished")
        command = [go, "build", *self.flags, "-o", str(unfinished), self.package]
        built = _run(command, self.module)
        if built.returncode:
            log = target.parent / "build.log"
            log.write_text(built.stderr)
            raise GoError(f"go build failed ({_last_line(built.stderr)}; all of it: {log})")
        unfinished.replace(target)


def module_folder(pins: Path, module: str) -> Path:
    """Return where the files of a pinned module lie, in Go's own cache, checked against the pins.

    Args:
        pins: The folder with the go.mod and go.sum that name it.
        module: Its path, as in go.mod.

    Raises:
        GoError: It cannot be had here.
    """
    go, _ = _find_go(pins)
    told = _run([go, "mod", "download", "-json", module], pins)
    if told.returncode:
        said = json.loads(told.stdout).get("Error") if told.stdout else None
        raise GoError(f"go mod download failed ({_last_line(said or told.stderr)})")
    return Path(json.loads(told.stdout)["Dir"])


def _find_go(module: Path) -> tuple[str, str]:
    """Return Go's path and the version that a module gets (Go may switch to a newer one by itself)."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin:/usr/lib/go/bin")
    if go is None:
        raise GoError("there is no Go")
    told = subprocess.run([go, "env", "GOVERSION"], cwd=module, capture_output=True, text=True, check=False)
    version = told.stdout.strip()
    if told.returncode or not version.startswith(_GO_VERSION):
        raise GoError(f"{go} is not {_GO_VERSION} but: {version or _last_line(told.stderr)}")
    return go, version


def _run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **_AS_IT_IS},
        capture_output=True,
        text=True,
        check=False,
    )


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no word"
