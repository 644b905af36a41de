"""Whether a file with credentials is there, readable, and nobody else's to read."""

import os
import tempfile
from pathlib import Path

import pytest

from fencer.config.secret_files import Trouble, by_kubelet, by_systemd, inspect_secret

NOBODY = 65534
DAEMON = 1


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "kube config"
    file.write_text("token: hunter2\n")
    file.chmod(0o600)
    return file


@pytest.fixture
def unprivileged():
    """Root may read everything; be somebody else for a while."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    yield os.geteuid()
    os.seteuid(before)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_a_file_for_its_owner_alone_is_fine(secret, mode):
    secret.chmod(mode)
    assert inspect_secret(secret) == ()


def test_a_link_is_judged_by_what_it_leads_to(secret, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(secret)
    assert inspect_secret(link) == ()


@pytest.mark.parametrize(
    ("mode", "text", "serious"),
    [
        (0o644, "can be read by everybody (mode 0644)", True),
        (0o604, "can be read by everybody (mode 0604)", True),
        (0o602, "can be written by everybody (mode 0602)", True),
        (0o620, "can be written by its group (mode 0620)", True),
        (0o660, "can be written by its group (mode 0660)", True),
        (0o640, "can be read by its group (mode 0640)", False),
    ],
)
def test_a_file_for_others_too_is_said_with_what_to_type(secret, mode, text, serious):
    secret.chmod(mode)
    fix = f"sudo chmod 0600 '{secret}'"
    assert inspect_secret(secret) == (Trouble(f"{secret}: {text}", fix, serious=serious),)


@pytest.fixture
def reachable():
    """A secret in a folder that everybody may enter, unlike pytest's own. Only root can give files away."""
    if os.geteuid():
        pytest.skip("run as root: only root can give a file to somebody else")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        file = Path(folder) / "secret"
        file.write_text("token: hunter2\n")
        file.chmod(0o600)
        yield file


def test_one_of_another_user_can_be_read_and_changed_by_that_one(reachable, unprivileged):
    """By whatever way it can be read by us: here, by its group."""
    os.seteuid(0)
    os.chown(reachable, DAEMON, os.getegid())
    reachable.chmod(0o640)
    os.seteuid(unprivileged)
    (finding, group) = inspect_secret(reachable)
    assert finding.text == f"{reachable}: belongs to daemon, who can read and change it"
    assert finding.fix == f"sudo chown {NOBODY} {reachable} && sudo chmod 0600 {reachable}"
    assert finding.serious
    assert "can be read by its group" in group.text


@pytest.mark.parametrize("owner", [0, NOBODY])
def test_one_of_root_or_of_our_own_is_fine(reachable, unprivileged, owner):
    os.seteuid(0)
    os.chown(reachable, owner, os.getegid())
    reachable.chmod(0o440)
    os.seteuid(unprivileged)
    assert [finding.text for finding in inspect_secret(reachable)] == [
        f"{reachable}: can be read by its group (mode 0440)"
    ]


@pytest.mark.parametrize(("uid", "name"), [(DAEMON, "daemon"), (54321, "user 54321")])
def test_to_root_one_of_another_user_is_a_warning_with_both_ways_out(reachable, uid, name):
    """Root may look on behalf of the user that fencer runs as, whoever that is."""
    os.chown(reachable, uid, -1)
    (finding,) = inspect_secret(reachable)
    assert finding.text == f"{reachable}: belongs to {name}, who can read and change it"
    assert f"sudo chown root {reachable}" in finding.fix
    assert "check as that user" in finding.fix
    assert not finding.serious


def test_a_missing_file_is_said(tmp_path):
    (finding,) = inspect_secret(tmp_path / "none")
    assert finding == Trouble(f"{tmp_path}/none: no such file", f"ls -l {tmp_path}/none", missing=True)


def test_a_file_that_we_may_not_read_is_said(secret, unprivileged):
    secret_of_root = Path("/proc/1/environ") if unprivileged != NOBODY else secret
    (finding,) = inspect_secret(secret_of_root)
    assert f"may not be read by user {unprivileged}" in finding.text
    assert f"sudo chown {unprivileged}" in finding.fix


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["directory", "pipe"])
def test_what_is_no_file_is_said(tmp_path, make):
    make(tmp_path / "odd")
    (finding,) = inspect_secret(tmp_path / "odd")
    assert finding.text == f"{tmp_path}/odd: is not a file"
    assert finding.serious


def test_an_empty_file_is_said(tmp_path):
    (tmp_path / "empty").touch()
    assert inspect_secret(tmp_path / "empty")[0].text == f"{tmp_path}/empty: is empty"


@pytest.mark.parametrize(("name", "why"), [("a\0b", "embedded null"), ("x" * 300, "File name too long")])
def test_a_path_that_no_file_can_have_is_said(tmp_path, name, why):
    assert why in inspect_secret(tmp_path / name)[0].text


def test_the_secret_itself_is_never_told(secret):
    secret.chmod(0o666)
    assert "hunter2" not in repr(inspect_secret(secret))


class TestFromSystemd:
    """LoadCredential= beside User= lets that user in by an ACL, whose mask shows as the group's bits."""

    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        given = tmp_path / "given"
        given.mkdir()
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(given))
        return given

    @pytest.mark.parametrize(
        ("mode", "words"), [(0o440, ""), (0o444, "everybody"), (0o460, "written by its group")]
    )
    def test_what_the_group_may_read_there_is_the_mask_of_an_acl(self, secret, folder, mode, words):
        there = secret.rename(folder / "kubeconfig")
        there.chmod(mode)
        found = inspect_secret(there)
        assert bool(found) == bool(words)
        assert all(words in one.text for one in found)

    def test_elsewhere_it_is_the_group(self, secret, folder):
        secret.chmod(0o440)
        (folder / "link").symlink_to(secret)
        for path in (secret, folder / "link", folder / ".." / secret.name):
            assert "can be read by its group (mode 0440)" in inspect_secret(path)[0].text

    def test_by_hand_there_is_no_variable_and_the_place_is_systemds(self, monkeypatch):
        monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
        assert by_systemd(Path("/run/credentials/fencer.service/kubeconfig"))
        assert not by_systemd(Path("/run/credentials/../secrets/kubeconfig"))
        assert not by_systemd(Path("/etc/fencer/kubeconfig"))

    @pytest.mark.parametrize("said", ["", "given", "/"])
    def test_a_variable_that_names_no_folder_of_systemds_excuses_nothing(self, secret, monkeypatch, said):
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", said)
        monkeypatch.chdir(secret.parent)
        secret.chmod(0o640)
        assert inspect_secret(secret)


class TestFromKubelet:
    """A Secret in a pod: links over ``..data``, and readable by the pod's own group, whatever its mode."""

    @pytest.fixture
    def mounted(self, secret: Path, tmp_path: Path) -> Path:
        volume = tmp_path / "volume"
        written = volume / "..2026_11_27_01_00_00.123456789"
        written.mkdir(parents=True)
        secret.rename(written / "kubeconfig")
        (volume / "..data").symlink_to(written.name)
        (volume / "kubeconfig").symlink_to("..data/kubeconfig")
        return volume / "kubeconfig"

    @pytest.mark.parametrize(
        ("mode", "words"),
        [(0o400, ""), (0o440, ""), (0o444, "everybody"), (0o460, "written by its group"), (0o660, "written")],
    )
    def test_its_group_may_read_and_nobody_else(self, mounted, mode, words):
        mounted.chmod(mode)
        found = inspect_secret(mounted)
        assert bool(found) == bool(words)
        assert all(words in one.text for one in found)

    def test_a_file_beside_the_links_is_judged_as_any(self, mounted):
        beside = mounted.with_name("beside")
        beside.write_text("token: hunter2")
        beside.chmod(0o440)
        (mounted.with_name("linked")).symlink_to(beside)
        for path in (beside, mounted.with_name("linked")):
            assert "can be read by its group" in inspect_secret(path)[0].text

    def test_a_folder_without_data_is_none_of_its(self, mounted):
        mounted.chmod(0o440)
        mounted.with_name("..data").rename(mounted.with_name("data"))
        mounted.unlink()
        mounted.symlink_to("data/kubeconfig")
        assert not by_kubelet(mounted)
        assert inspect_secret(mounted)
