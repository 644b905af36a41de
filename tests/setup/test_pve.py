"""A Proxmox cluster as root sees it, and fencer's account there, with the tools of a host as stand-ins."""

import json
import os
import stat

import pytest

from fencer.errors import ConfigError, HypervisorError
from fencer.setup.proxmox import Account
from fencer.setup.pve import Way, make_account, read
from tests.setup.test_pveum_lines import SECRET, Host

CLUSTER = [
    {"type": "cluster", "name": "home", "nodes": 2, "quorate": 1},
    {"type": "node", "name": "pve2", "ip": "10.0.0.12", "online": 0, "local": 0},
    {"type": "node", "name": "pve3", "ip": "fd00::13", "online": 1, "local": 0},
    {"type": "node", "name": "pve1", "ip": "10.0.0.11", "online": 1, "local": 1},
]
ALONE = [{"type": "node", "name": "pve", "ip": "10.0.0.11", "online": 1, "local": 1}]


class Tools(Host):
    """A host with `pveum`, `pveversion`, `pvesh`, and an `ssh` that leads back to it."""

    def __init__(self, folder, monkeypatch, rows):
        super().__init__(folder)
        self.folder = folder
        for name, value in self._env.items():
            monkeypatch.setenv(name, value)
        self.put("pveversion", "echo 'pve-manager/9.0.3/abc (running kernel: 6.14)'")
        self.says(rows)
        # The files of a host that are read whole are the test's own.
        self.put("cat", f'[ "$1" = /etc/pve/pve-root-ca.pem ] && exec printf PEM; exec {"/bin/cat"} "$@"')
        self.put("ssh", 'for last; do :; done; echo "$@" >> "$BOOKS.ssh"; exec sh -c "$last"')

    def put(self, name, body):
        (self.folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (self.folder / name).chmod(0o755)

    def says(self, rows):
        self.put("pvesh", f"cat <<'E'\n{json.dumps(rows)}\nE")

    def delete_token(self):
        books = self.books
        books["token"] = {}
        self._books.write_text(json.dumps(books))


@pytest.fixture
def tools(tmp_path, monkeypatch):
    (tmp_path / "host").mkdir()
    return Tools(tmp_path / "host", monkeypatch, CLUSTER)


def test_a_cluster_is_read_with_the_hosts_that_answer_first(tools):
    found = read(Way())
    assert (found.version, found.cluster, found.ca_pem) == (9, "home", "PEM")
    assert list(found.hosts) == ["pve1", "pve3", "pve2"]
    assert found.servers == ("https://10.0.0.11:8006", "https://[fd00::13]:8006", "https://10.0.0.12:8006")


def test_a_standalone_host_is_asked_on_itself_and_from_afar_by_its_address(tools):
    tools.says(ALONE)
    assert (read(Way()).cluster, read(Way()).servers) == (None, ("https://127.0.0.1:8006",))
    assert read(Way("root@pve")).servers == ("https://10.0.0.11:8006",)
    assert "BatchMode=yes" in (tools.folder / "books.ssh").read_text()


@pytest.mark.parametrize("said", ["no JSON", "{}", "[1]"])
def test_an_answer_that_makes_no_sense_is_named(tools, said):
    tools.put("pvesh", f"echo '{said}'")
    with pytest.raises(HypervisorError, match=r"this host: pvesh: no "):
        read(Way())


def test_a_machine_that_is_no_proxmox_host_is_told_what_to_say(tools):
    (tools.folder / "pveversion").unlink()
    with pytest.raises(ConfigError, match=r"is no host of Proxmox VE: .* --pve root@HOST names one"):
        read(Way())


@pytest.mark.parametrize("way", [Way(), Way("root@pve")])
def test_the_secret_comes_into_a_file_of_this_machine_and_stays_on_no_host(tools, tmp_path, way):
    file = tmp_path / "proxmox-token"
    account = Account("fencer@pve!agent", file, power=True)
    assert make_account(way, account)
    assert file.read_text().startswith(SECRET[:-2])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "VM.PowerMgmt" in tools.rights("fencer@pve!agent", "/vms")
    assert not list(tmp_path.rglob(".fencer-*"))
    assert not os.path.exists("/root/.fencer-proxmox-token")  # noqa: PTH110 - where root there had it


def test_a_second_time_the_secret_stays_and_the_rights_become_what_is_wanted(tools, tmp_path):
    file = tmp_path / "proxmox-token"
    make_account(Way(), Account("fencer@pve!agent", file))
    secret = file.read_text()
    assert not make_account(Way(), Account("fencer@pve!agent", file, power=True))
    assert file.read_text() == secret
    assert "VM.PowerMgmt" in tools.rights("fencer@pve!agent", "/vms")


def test_a_token_that_somebody_deleted_is_made_anew(tools, tmp_path):
    file = tmp_path / "proxmox-token"
    make_account(Way(), Account("fencer@pve!agent", file))
    secret = file.read_text()
    tools.delete_token()
    assert make_account(Way(), Account("fencer@pve!agent", file))
    assert file.read_text() != secret


def test_a_secret_that_is_lost_is_told_with_what_to_do(tools, tmp_path):
    file = tmp_path / "proxmox-token"
    make_account(Way(), Account("fencer@pve!agent", file))
    file.unlink()
    with pytest.raises(HypervisorError, match="its secret was shown once"):
        make_account(Way(), Account("fencer@pve!agent", file))
    assert not file.exists()


ASKING = 'case "$*" in *BatchMode=yes*) exit 255 ;; esac; echo "$USER_OF_SSH k3s.yaml"'
"""An ssh that does not get there without asking somebody."""


def test_where_somebody_types_ssh_may_ask_what_it_would_else_fail_at(tools):
    tools.put("ssh", ASKING)
    with pytest.raises(HypervisorError, match=r"root@cp: exit code 255"):
        Way("root@cp").run("cat it")
    assert Way("root@cp", asks=True).run("cat it") == " k3s.yaml\n"


def test_who_typed_sudo_has_the_keys_that_root_lacks(tools):
    tools.put("ssh", ASKING)
    tools.put(
        "runuser", 'test "$1" = -u && test "$3" = -- || exit 9; export USER_OF_SSH=$2; shift 3; exec "$@"'
    )
    assert Way("root@cp", asks=True, user="me").run("cat it") == "me k3s.yaml\n"


def test_what_fails_there_is_not_tried_again(tools):
    tools.put("ssh", 'echo x >> "$BOOKS.ssh"; exit 3')
    with pytest.raises(HypervisorError, match=r"exit code 3"):
        Way("root@cp", asks=True).run("cat it")
    assert (tools.folder / "books.ssh").read_text() == "x\n"
