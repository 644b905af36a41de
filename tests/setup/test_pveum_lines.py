"""``fencer setup proxmox``: the printed lines, run against a `pveum` that keeps books."""

import json
import os
import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from fencer.cli.main import cli
from fencer.hypervisors.proxmox.rights import compare
from fencer.setup.proxmox import Account, removal_lines

SECRET = "12345678-90ab-cdef-1234-567890abcdef"  # noqa: S105 - of no token

PVEUM = f"""#!{sys.executable} -IS
import json, os, sys

words, file = sys.argv[1:], os.environ["BOOKS"]
books = json.load(open(file))
books["calls"].append(words)

def finish(error=""):
    with open(file, "w") as kept:
        json.dump(books, kept)
    sys.exit(error or 0)

def option(name):
    return words[words.index(name) + 1]

if os.environ.get("FAIL") in words:
    finish("cluster not ready - no quorum?")
kind, verb, subject = (*words, "")[:3]
if words[:2] == ["user", "token"]:
    kind, verb, subject = "token", words[2], "!".join(words[3:5])
known = books.get(kind, dict())
if (kind, verb) == ("token", "list"):
    if words[3] not in books["user"]:
        finish(f"no such user ('{{words[3]}}')")
    names = [name.split("!") for name in known]
    rows = [dict(privsep="1", tokenid=token) for user, token in names if user == words[3]]
    print(json.dumps(rows, separators=(",", ":")))
elif (kind, verb) == ("token", "add"):
    if subject in known:
        finish("400 Parameter verification failed." + chr(10) + "tokenid: Token already exists.")
    assert option("--output-format") == "json", words
    secret = known[subject] = "{SECRET}"[:-2] + "%02d" % len(books["calls"])
    print(json.dumps({{"full-tokenid": subject, "info": {{"privsep": "1"}}, "value": secret}}))
elif (kind, verb) == ("token", "delete"):
    del known[subject]
    books["acl"].pop(subject, None)  # read on, it is ignored
elif verb == "delete" and kind in ("role", "user"):
    if subject not in known:
        finish(f"{{kind}} '{{subject}}' does not exist")
    del known[subject]
    if kind == "user":
        for whom in [*books["acl"], *books["token"]]:
            if whom.split("!")[0] == subject:
                books["acl"].pop(whom, None)
                books["token"].pop(whom, None)
elif verb == "list":
    id_of = dict(role="roleid", user="userid", acl="roleid")[kind]
    rows = [{{id_of: one}} for one in known]
    if kind == "acl":
        rows = [
            dict(path=path, propagate=1, roleid=role, type="token" if "!" in whom else "user", ugid=whom)
            for whom, paths in known.items() for path, roles in paths.items() for role in roles
        ]
    print(json.dumps(rows, separators=(",", ":")))
elif kind in ("role", "user") and verb in ("add", "modify"):
    if (verb == "add") == (subject in known):
        finish(f"{{kind}} '{{subject}}' " + ("already exists" if verb == "add" else "does not exist"))
    known[subject] = words[4].split()
elif kind == "acl":
    roles = option("--roles").split(",")
    for role in roles:
        if role not in books["role"]:
            finish(f"ACL update failed: role '{{role}}' does not exist")
    for flag in {{"--users", "--tokens"}} & set(words):
        granted = books["acl"].setdefault(option(flag), dict()).setdefault(subject, [])
        granted[:] = [role for role in granted if role not in roles]
        granted += roles if verb == "modify" else []
finish()
"""


def printed(*words):
    result = CliRunner().invoke(cli, ["setup", "proxmox", *words])
    assert result.exit_code == 0, result.output
    return result.output


class Host:
    """A host with a `pveum`, on which root pastes lines."""

    def __init__(self, folder: Path):
        self._books = folder / "books"
        self._books.write_text(json.dumps({"calls": [], "role": {}, "user": {}, "token": {}, "acl": {}}))
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

    @staticmethod
    def read(folder):
        return json.loads((folder / "books").read_text())

    @property
    def books(self):
        return json.loads(self._books.read_text())

    @property
    def calls(self):
        return self.books["calls"]

    def rights(self, whom, path):
        """Return the privileges there, with the deepest grant replacing those above it, as pveum has it."""
        grants = {where: roles for where, roles in self.books["acl"][whom].items() if roles}
        while path not in grants:
            path = path.rpartition("/")[0] or "/"
        return {privilege for role in grants[path] for privilege in self.books["role"][role]}


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
    assert file.read_text().startswith(SECRET[:-2])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("pve", ["8", "9"])
@pytest.mark.parametrize("power", [False, True])
def test_the_rights_are_what_check_wants_and_nothing_else(host, tmp_path, pve, power):
    run_on(host, tmp_path, "--pve", pve, *(["--power"] if power else []))
    for whom in ("fencer@pve", "fencer@pve!agent"):
        rights = {
            path: dict.fromkeys(host.rights(whom, path), True) for path in ("/", "/nodes", "/vms", "/vms/101")
        }
        verdict = compare(rights)
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
    assert {call[0] for call in host.calls} == {"role"}


def test_a_secret_from_before_survives_lines_that_fail(host, tmp_path):
    file = tmp_path / "token"
    file.write_text("the old one\n")
    script = printed("--token-file", str(file)).replace("--output-format json", "--output-format text")
    assert host.run(script).returncode != 0
    assert file.read_text() == "the old one\n"


def test_a_second_run_keeps_the_secret_and_the_rights(host, tmp_path):
    """`pveum` adds nothing twice: roles, user and token are there already."""
    file = run_on(host, tmp_path, "--power")
    secret, before = file.read_text(), host.books
    run_on(host, tmp_path, "--power")
    assert (file.read_text(), host.books["acl"]) == (secret, before["acl"])
    assert host.books["role"] == before["role"]


def test_a_second_run_takes_back_what_is_not_wanted_any_more(host, tmp_path):
    run_on(host, tmp_path, "--power")
    run_on(host, tmp_path)
    for whom in ("fencer@pve", "fencer@pve!agent"):
        assert host.rights(whom, "/vms/101") == {"Sys.Audit", "VM.Audit", "Pool.Audit"}
    run_on(host, tmp_path, "--power")
    run_on(host, tmp_path, "--power", "--pool", "k8s")
    assert "VM.PowerMgmt" not in host.rights("fencer@pve!agent", "/vms/101")
    assert "VM.PowerMgmt" in host.rights("fencer@pve!agent", "/pool/k8s")


CHOICES = ([], ["--power"], ["--power", "--pool", "k8s"], ["--power", "--pool", "lab/k8s"])


@pytest.mark.parametrize("later", CHOICES, ids=" ".join)
@pytest.mark.parametrize("first", CHOICES, ids=" ".join)
def test_whatever_was_asked_for_before_the_rights_are_those_of_the_last_run(tmp_path, first, later):
    for name, runs in {"once": [later], "twice": [first, later, later]}.items():
        (tmp_path / name).mkdir()
        machine = Host(tmp_path / name)
        for words in runs:
            run_on(machine, tmp_path / name, *words)
    books = [Host.read(tmp_path / name)["acl"] for name in ("once", "twice")]
    assert len({json.dumps(_granted(one), sort_keys=True) for one in books}) == 1


def _granted(acl):
    return {
        whom: {path: sorted(roles) for path, roles in paths.items() if roles} for whom, paths in acl.items()
    }


def test_power_of_somebody_else_is_left_alone(host, tmp_path):
    run_on(host, tmp_path, "--power", "--token-id", "lab@pve!agent")
    run_on(host, tmp_path)
    assert "VM.PowerMgmt" in host.rights("lab@pve!agent", "/vms/101")


def test_a_role_that_somebody_changed_is_set_right(host, tmp_path):
    host.run("pveum role add FencerAudit --privs VM.Clone")
    run_on(host, tmp_path)
    assert host.rights("fencer@pve!agent", "/") == {"Sys.Audit", "VM.Audit", "Pool.Audit"}


@pytest.mark.parametrize("words", [[], ["--power"], ["--power", "--pool", "k8s", "--pve", "8"]], ids=" ".join)
def test_a_token_whose_secret_is_lost_stops_the_lines_and_says_what_makes_a_new_one(host, tmp_path, words):
    file = run_on(host, tmp_path, *words)
    old, before = file.read_text(), host.books
    file.unlink()
    done = host.run(printed("--token-file", str(file), *words))
    assert done.returncode != 0
    assert "Token already exists" in done.stderr
    assert not file.exists()
    [advice] = re.findall(r"`fencer setup proxmox ([^`]*) \| sh -e`", done.stderr)
    assert host.run(printed(*shlex.split(advice))).returncode == 0
    assert file.read_text() not in {"", old}
    # With the same rights as before, on the same paths.
    assert host.books["acl"] == before["acl"]
    assert host.books["token"].keys() == before["token"].keys()


def test_a_new_secret_is_said_to_blind_who_has_the_old_one(host, tmp_path):
    file = run_on(host, tmp_path)
    old = file.read_text()
    script = printed("--token-file", str(file), "--new-token")
    assert "blind" in script.partition("token delete")[0]
    done = host.run(script)
    assert (done.returncode, file.read_text() == old) == (0, False)
    assert f"{file}: a new secret. Agents read it by themselves" in done.stdout
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert host.run(script).returncode == 0


def test_a_new_token_where_there_was_none_is_one(host, tmp_path):
    assert run_on(host, tmp_path, "--new-token").read_text().startswith(SECRET[:-2])


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to others: run it as root")
def test_who_could_read_the_secret_before_can_read_the_new_one(host, tmp_path):
    """The agent on the same host has a user of its own."""
    file = run_on(host, tmp_path)
    os.chown(file, 65534, 65533)
    run_on(host, tmp_path, "--new-token")
    assert (file.stat().st_uid, file.stat().st_gid, stat.S_IMODE(file.stat().st_mode)) == (
        65534,
        65533,
        0o600,
    )


def test_where_the_new_token_cannot_be_made_the_same_again_makes_it(host, tmp_path):
    file = run_on(host, tmp_path)
    script = printed("--token-file", str(file), "--new-token")
    failed = host.run(script, FAIL="--privsep")
    assert failed.returncode != 0
    assert "Run the same again" in failed.stderr
    assert host.run(script).returncode == 0


def test_to_remove_and_to_make_anew_are_two_things():
    assert CliRunner().invoke(cli, ["setup", "proxmox", "--remove", "--new-token"]).exit_code == 2


def test_a_secret_of_a_token_that_is_gone_is_replaced(host, tmp_path):
    file = run_on(host, tmp_path)
    old = file.read_text()
    host.run("pveum user token delete fencer@pve agent")
    run_on(host, tmp_path)
    assert file.read_text() != old


def taken_back(host, file):
    script = "\n".join(removal_lines(Account("fencer@pve!agent", file), "looked"))
    done = host.run(script)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("words", [[], ["--power"], ["--power", "--pool", "k8s"]], ids=" ".join)
def test_what_was_made_is_taken_back_and_once_more_is_no_error(host, tmp_path, words):
    file = run_on(host, tmp_path, *words)
    for _ in range(2):
        taken_back(host, file)
        assert not file.exists()
        assert {kind: host.books[kind] for kind in ("role", "user", "token", "acl")} == {
            "role": {},
            "user": {},
            "token": {},
            "acl": {},
        }


def test_a_second_token_keeps_its_user_and_its_roles(host, tmp_path):
    file = run_on(host, tmp_path)
    run_on(host, tmp_path / "2", "--token-id", "fencer@pve!other")
    said = taken_back(host, file)
    assert set(host.books["token"]) == {"fencer@pve!other"}
    assert host.rights("fencer@pve", "/") == host.rights("fencer@pve!other", "/")
    assert said.splitlines() == [
        "fencer@pve is kept: it has other tokens",
        "FencerAudit is kept: it is granted to somebody else",
    ]


def test_a_role_that_another_user_was_given_is_kept(host, tmp_path):
    file = run_on(host, tmp_path, "--power")
    run_on(host, tmp_path / "2", "--token-id", "lab@pve!agent")
    taken_back(host, file)
    assert set(host.books["user"]) == {"lab@pve"}
    assert set(host.books["role"]) == {"FencerAudit"}


@pytest.mark.parametrize("what", ["delete", "list", "acl"])
def test_where_something_cannot_be_read_or_deleted_the_rest_stays(host, tmp_path, what):
    file = run_on(host, tmp_path)
    script = "\n".join(removal_lines(Account("fencer@pve!agent", file), "looked"))
    assert host.run(script, FAIL=what).returncode != 0
    assert file.exists()
    assert host.books["role"]


def test_the_lines_say_what_takes_them_back(tmp_path):
    words = ["--token-id", "lab@pve!watch", "--token-file", str(tmp_path / "a token")]
    *_, last = printed(*words).splitlines()
    command = shlex.split(last.partition(": ")[2].partition(" | ")[0])
    assert command == ["fencer", "setup", "proxmox", "--remove", *words]


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
    assert file.read_text().startswith(SECRET[:-2])
