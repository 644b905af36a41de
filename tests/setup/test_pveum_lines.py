"""``fencer setup proxmox``: the printed lines, run against a `pveum` that keeps books."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from fencer.cli.main import cli
from fencer.hypervisors.proxmox.rights import compare

SECRET = "12345678-90ab-cdef-1234-567890abcdef"  # noqa: S105 - of no token

PVEUM = f"""#!{sys.executable} -IS
import json, os, sys
with open(os.environ["BOOKS"], "a") as books:
    books.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1:4] == ["user", "token", "add"]:
    assert sys.argv[-2:] == ["--output-format", "json"], sys.argv
    name = "!".join(sys.argv[4:6])
    print(json.dumps({{"full-tokenid": name, "info": {{"privsep": "1"}}, "value": "{SECRET}"}}))
sys.exit(os.environ.get("FAIL") in sys.argv)
"""


def printed(*words):
    result = CliRunner().invoke(cli, ["setup", "proxmox", *words])
    assert result.exit_code == 0, result.output
    return result.output


class Host:
    """A host with a `pveum`, on which root pastes lines."""

    def __init__(self, folder: Path):
        self._books = folder / "books"
        self._books.touch()
        (folder / "pveum").write_text(PVEUM)
        (folder / "pveum").chmod(0o755)
        self._env = {"PATH": f"{folder}:{os.environ['PATH']}", "BOOKS": str(self._books)}

    def run(self, script, **env):
        return subprocess.run(
            ["sh", "-e"],
            input=script,
            env=self._env | env,
            text=True,
            capture_output=True,
            check=False,
        )

    @property
    def calls(self):
        return [json.loads(line) for line in self._books.read_text().splitlines()]

    def rights(self, whom, path):
        """Return the privileges there, with the deepest grant replacing those above it, as pveum has it."""
        roles = {call[2]: call[4].split() for call in self.calls if call[:2] == ["role", "add"]}
        grants = {
            call[2]: call[6].split(",")
            for call in self.calls
            if call[:2] == ["acl", "modify"] and whom in call[4]
        }
        while path not in grants:
            path = path.rpartition("/")[0] or "/"
        return {privilege for role in grants[path] for privilege in roles[role]}


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def run_on(host, tmp_path, *words):
    file = tmp_path / "etc" / "token"
    done = host.run(printed("--token-file", str(file), *words))
    assert done.returncode == 0, done.stderr
    return file


def test_the_secret_lands_in_a_file_of_root_alone_and_nowhere_else(host, tmp_path):
    file = run_on(host, tmp_path)
    assert file.read_text() == f"{SECRET}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("pve", ["8", "9"])
@pytest.mark.parametrize("power", [False, True])
def test_the_rights_are_what_check_wants_and_nothing_else(host, tmp_path, pve, power):
    run_on(host, tmp_path, "--pve", pve, *(["--power"] if power else []))
    for whom in ("fencer@pve", "fencer@pve!agent"):
        rights = {
            path: dict.fromkeys(host.rights(whom, path), True) for path in ("/", "/nodes", "/vms", "/vms/101")
        }
        verdict = compare(rights, power=power)
        assert (verdict.missing, verdict.excess, verdict.can_power) == ((), (), power)


def test_a_pool_confines_power_and_not_sight(host, tmp_path):
    run_on(host, tmp_path, "--power", "--pool", "k8s")
    assert "VM.PowerMgmt" not in host.rights("fencer@pve!agent", "/vms/101")
    assert {"VM.PowerMgmt", "VM.Audit"} <= host.rights("fencer@pve!agent", "/pool/k8s")
    assert "VM.Audit" in host.rights("fencer@pve!agent", "/vms/101")


@pytest.mark.parametrize("word", ["VM.Monitor", "VM.GuestAgent"])
def test_no_role_has_a_privilege_that_one_of_the_versions_refuses(host, tmp_path, word):
    run_on(host, tmp_path, "--power")
    assert not [call for call in host.calls if any(word in part for part in call)]


def test_the_lines_stop_where_one_fails(host, tmp_path):
    done = host.run(printed("--token-file", str(tmp_path / "token")), FAIL="role")
    assert done.returncode != 0
    assert [call[0] for call in host.calls] == ["role"]


def test_a_secret_from_before_survives_lines_that_fail(host, tmp_path):
    file = run_on(host, tmp_path)
    file.write_text("the old one\n")
    script = printed("--token-file", str(file)).replace("--output-format json", "--output-format text")
    assert host.run(script).returncode != 0
    assert file.read_text() == "the old one\n"


@pytest.mark.parametrize(
    "words",
    [["--token-id", "fencer"], ["--token-id", "a b@pve!x"], ["--pool", "k8s"], ["--power", "--pool", "a b"]],
    ids=str,
)
def test_what_no_pveum_would_take_is_refused(words):
    assert CliRunner().invoke(cli, ["setup", "proxmox", *words]).exit_code == 2


def test_an_odd_file_name_is_quoted_for_the_shell(host, tmp_path):
    file = tmp_path / "a folder'; touch owned;" / "token"
    done = host.run(printed("--token-file", str(file)))
    assert done.returncode == 0, done.stderr
    assert file.read_text() == f"{SECRET}\n"
