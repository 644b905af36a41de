"""The archive: for its owner only, complete or not there."""

import io
import os
import resource
import signal
import stat
import tarfile

import pytest

from fencer.errors import ConfigError
from fencer.support.archive import pack, require_new, write


def test_what_is_packed_comes_out_without_names_of_users():
    packed = pack("it", {"a.txt": "ä\n", "b.txt": "\udcff"}, 7.9)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        members = archive.getmembers()
        texts = [archive.extractfile(one).read() for one in members]
    assert [one.name for one in members] == ["it/a.txt", "it/b.txt"]
    assert {(one.uid, one.gid, one.uname, one.gname, one.mode, one.mtime) for one in members} == {
        (0, 0, "", "", 0o600, 7)
    }
    assert texts == ["ä\n".encode(), b"\\udcff"]


@pytest.mark.parametrize("force", [False, True])
def test_it_is_for_its_owner_only_whatever_the_umask(tmp_path, force):
    file = tmp_path / "it"
    if force:
        file.touch(mode=0o666)
    before = os.umask(0)
    try:
        write(file, b"it", force=force)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"it"]


@pytest.mark.parametrize("what", ["file", "link to nothing"])
def test_nothing_is_overwritten(tmp_path, what):
    file = tmp_path / "it"
    file.write_bytes(b"old") if what == "file" else file.symlink_to("nothing")
    with pytest.raises(ConfigError, match="is there already"):
        require_new(file)
    with pytest.raises(ConfigError, match="is there already"):
        write(file, b"new", force=False)
    assert file.is_symlink() or file.read_bytes() == b"old"
    assert [*tmp_path.iterdir()] == [file]


@pytest.mark.parametrize("force", [False, True])
def test_a_full_disk_leaves_nothing_behind_and_says_so_in_a_line(tmp_path, force):
    file = tmp_path / "it"
    before = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[0][1]))
    try:
        with pytest.raises(ConfigError) as caught:
            write(file, b"x" * 2000, force=force)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before[0])
        signal.signal(signal.SIGXFSZ, before[1])
    assert str(caught.value) == f"{file}: cannot be written: File too large"
    assert [*tmp_path.iterdir()] == []
