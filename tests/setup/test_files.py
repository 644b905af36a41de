"""A file with a secret that is replaced stays readable for whoever reads it, and for nobody else."""

import os
import stat
import tempfile
from pathlib import Path

import pytest

from fencer.errors import ConfigError
from fencer.setup.files import write_private

NOBODY = 65534


def owned(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)


@pytest.fixture
def folder():
    """One that others than root can reach, too."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def as_root():
    if os.geteuid() != 0:
        pytest.skip("gives files to others: needs root")


@pytest.mark.parametrize(
    ("before", "after"), [(0o600, 0o600), (0o640, 0o640), (0o660, 0o640), (0o644, 0o600)]
)
def test_whoever_read_the_file_reads_the_new_one(as_root, folder, before, after):
    """An agent does not run as root, and who renews its token does."""
    file = folder / "kubeconfig"
    file.write_text("old")
    os.chown(file, NOBODY, NOBODY - 1)
    file.chmod(before)
    write_private(file, "new")
    assert (owned(file), file.read_text()) == ((NOBODY, NOBODY - 1, after), "new")


def test_behind_a_link_it_is_the_file_that_was_read_that_counts(as_root, folder):
    file, link = folder / "file", folder / "kubeconfig"
    file.write_text("old")
    os.chown(file, NOBODY, NOBODY)
    link.symlink_to(file)
    write_private(link, "new")
    assert (owned(link), link.read_text()) == ((NOBODY, NOBODY, 0o600), "new")


def test_a_new_file_is_its_makers(folder):
    (folder / "kubeconfig").symlink_to("nowhere")
    for name in ("new", "kubeconfig"):
        write_private(folder / name, "new")
        assert owned(folder / name)[::2] == (os.geteuid(), 0o600)


def test_who_may_not_keep_the_owner_replaces_nothing(as_root, folder):
    file = folder / "kubeconfig"
    file.write_text("old")
    os.chown(folder, NOBODY, NOBODY)
    os.seteuid(NOBODY)
    try:
        with pytest.raises(ConfigError, match=r"belongs to user 0 and group 0, .* Run the same as root"):
            write_private(file, "new")
    finally:
        os.seteuid(0)
    assert file.read_text() == "old"
    assert list(folder.iterdir()) == [file]
