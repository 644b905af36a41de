"""Where the control plane's binaries come from, shown with a Go that only pretends to build."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane.binaries import COMPONENTS, MissingBinariesError, find_or_build
from tests.support import missing_real_part

# The output's name is what follows -o.
PRETENDED_GO = """#!/bin/sh
here=$(dirname "$0")
if [ "$1" = env ]; then cat "$here/version"; exit; fi
echo built >> "$here/count"
if [ -e "$here/error" ]; then cat "$here/error" >&2; exit 1; fi
sleep 0.2 # a build takes its time
while [ "$1" != -o ]; do shift; done
echo binary > "$2"
"""


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a pretended Go 1.26, first on PATH, with an empty cache and no KUBE_BIN."""
    folder = tmp_path / "go"
    folder.mkdir()
    (folder / "go").write_text(PRETENDED_GO)
    (folder / "go").chmod(0o755)
    (folder / "version").write_text("go1.26.99\n")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("FENCER_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBE_BIN", raising=False)
    return folder


def builds(go: Path) -> int:
    return len((go / "count").read_text().split())


def test_a_second_asking_finds_the_first_build(go: Path, tmp_path: Path) -> None:
    """Ten minutes are spent once per machine, outside the checkout."""
    first, second = find_or_build(), find_or_build()
    assert first == second
    assert first.path.is_relative_to(tmp_path / "cache" / "controlplane")
    assert builds(go) == 1


def test_another_go_builds_again(go: Path) -> None:
    """A cached binary is only as good as all that went into it."""
    first = find_or_build()
    (go / "version").write_text("go1.26.100\n")
    assert find_or_build() != first
    assert builds(go) == 2


def test_parallel_processes_build_once(go: Path) -> None:
    """Two test runs on one machine must not spend the ten minutes twice, nor see half a binary."""
    command = [sys.executable, "-m", "tests.controlplane.binaries"]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    paths = {run.communicate()[0].strip() for run in runs}
    assert len(paths) == 1
    assert Path(paths.pop()).read_text() == "binary\n"
    assert builds(go) == 1


def test_a_failed_build_says_why_and_leaves_no_binary(go: Path, tmp_path: Path) -> None:
    """The last line of Go is the reason; half a result is never taken for a whole one."""
    (go / "error").write_text("downloading\nno route to the module proxy\n")
    with pytest.raises(MissingBinariesError, match="no route to the module proxy"):
        find_or_build()
    assert not list((tmp_path / "cache").rglob("fencer-controlplane"))


def test_another_line_of_go_is_refused(go: Path) -> None:
    """Go 1.27 builds an API server with a broken OpenAPI document: worse than none."""
    (go / "version").write_text("go1.27.3\n")
    with pytest.raises(
        MissingBinariesError, match=r"not go1\.26 but: go1\.27\.3; to have it, install Go 1\.26"
    ):
        find_or_build()


def test_kube_bin_wins(go: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The official release is taken as it is, one program per component, and nothing is built."""
    for name in COMPONENTS:
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("KUBE_BIN", str(tmp_path))
    assert find_or_build().command("etcd") == [str(tmp_path / "etcd")]
    assert not (go / "count").exists()


def test_an_incomplete_kube_bin_is_named(go: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The release's server archive has no etcd: the message says which program is missing."""
    for name in COMPONENTS[1:]:
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("KUBE_BIN", str(tmp_path))
    with pytest.raises(MissingBinariesError, match=f"KUBE_BIN={tmp_path} has no executable etcd;"):
        find_or_build()


def test_what_is_missing_is_left_out_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without the real part may go on, but says what it did not test."""
    monkeypatch.delenv("FENCER_REQUIRE_REAL", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no Go"):
        missing_real_part("no Go")


def test_what_is_missing_fails_where_all_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where everything must be there, leaving out is a failure."""
    monkeypatch.setenv("FENCER_REQUIRE_REAL", "1")
    with pytest.raises(pytest.fail.Exception, match="no Go"):
        missing_real_part("no Go")
