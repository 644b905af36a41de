"""``fencer setup libvirt``: the hook is put in place once, and no guest misses it."""

import stat
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from fencer.cli.main import cli
from fencer.setup.libvirt_hook import is_there

HOOK = Path("config/libvirt/qemu-hook")


@pytest.fixture
def root(tmp_path):
    (tmp_path / "etc/libvirt").mkdir(parents=True)
    return tmp_path


def run(root, *words):
    return CliRunner().invoke(cli, ["setup", "libvirt", "--root", str(root), *words], prog_name="fencer")


def test_it_prints_the_hook(root):
    assert run(root).stdout.rstrip() == HOOK.read_text().rstrip()


def test_it_is_put_where_libvirt_looks_and_the_second_time_nothing_is_done(root):
    place = root / "etc/libvirt/hooks/qemu.d/fencer"
    first = run(root, "--install")
    assert first.stdout.splitlines()[0] == f"{place}: written"
    assert "systemctl restart libvirtd" in first.stdout
    assert (place.read_bytes(), stat.S_IMODE(place.stat().st_mode)) == (HOOK.read_bytes(), 0o755)
    assert run(root, "--install").stdout == f"{place}: is there already\n"
    assert list(place.parent.iterdir()) == [place]


def test_it_is_there_once_it_is_this_one_and_can_be_run(root):
    place = root / "etc/libvirt/hooks/qemu.d/fencer"
    assert not is_there(root)
    run(root, "--install")
    assert is_there(root)
    place.chmod(0o644)
    assert not is_there(root)
    place.chmod(0o755)
    place.write_text("#!/bin/sh\n")
    assert not is_there(root)


def test_one_that_cannot_be_run_is_mended(root):
    """Libvirt would refuse to start the guest."""
    run(root, "--install")
    place = root / "etc/libvirt/hooks/qemu.d/fencer"
    place.chmod(0o644)
    assert run(root, "--install").stdout == f"{place}: its mode is right again\n"
    assert stat.S_IMODE(place.stat().st_mode) == 0o755


def test_it_runs_from_there(root):
    run(root, "--install")
    place = root / "etc/libvirt/hooks/qemu.d/fencer"
    done = subprocess.run([place, "k8s-1", "stopped", "end", "-"], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_it_is_taken_away_and_the_second_time_nothing_is_done(root):
    run(root, "--install")
    place = root / "etc/libvirt/hooks/qemu.d/fencer"
    assert run(root, "--remove").stdout == f"{place}: removed\n"
    again = run(root, "--remove")
    assert (again.exit_code, again.stdout) == (0, f"{place}: is not there\n")


def test_where_there_is_no_libvirt_it_says_where_it_belongs(tmp_path):
    result = run(tmp_path, "--install")
    assert result.exit_code == 2
    assert "this runs on the host of libvirt's guests" in result.stderr


def test_install_or_remove(root):
    assert run(root, "--install", "--remove").exit_code == 2
