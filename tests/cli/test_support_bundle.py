"""``fencer support-bundle``: what is in it, what is missing with the reason, and that no secret ever is."""

import base64
import json
import re
import stat
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from fencer.cli.main import cli
from fencer.cli.support_bundle import MOST_CHARS
from fencer.cli.wire import Wiring
from fencer.config.document import parse
from fencer.config.settings import ProxmoxEndpoint
from fencer.core.kept import Kept
from fencer.errors import ClusterDenied, FencerError, HypervisorDenied
from fencer.journal.rows import Kind, Row
from fencer.journal.store import Store
from fencer.simulation.faults import What
from fencer.state.settings import key_file_of
from fencer.state.store import StateFile
from fencer.support.sieve import LEFT_OUT
from tests.cli.lab import PATH, Lab, Otherwise
from tests.cluster.conftest import write_kubeconfig
from tests.support.adapters import install_example, on_path

JSON = ("check.json", "status.json", "versions.json")
NAMES = {
    "README.txt", "config-written.yaml", "config-in-force.yaml", "versions.txt", "check.txt", "endpoints.txt",
    "status.txt", "explain.txt", "history.txt", "history.jsonl", "unit.txt", "log.txt", *JSON,
}  # fmt: skip


def bundle(lab, tmp_path, *words):
    """Make a bundle; return what the command said, and the files in it."""
    file = tmp_path / "out" / "it.tar.gz"
    file.parent.mkdir(exist_ok=True)
    result = lab.run("support-bundle", "-o", str(file), *words)
    assert result.exit_code == 0, result.output
    return result, unpacked(file)


def unpacked(file):
    with tarfile.open(file) as archive:
        return {
            one.name.removeprefix("fencer-support/"): archive.extractfile(one).read().decode()
            for one in archive
        }


def test_everything_that_answers_is_in_it(tmp_path):
    lab = Lab()
    lab.journal = tmp_path / "journal.db"
    lab.tools = {"systemctl": "ActiveState=active\n", "journalctl": "fenced \x1b[2Jk8s-2\n"}
    lab.passes(30, watched=True)
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(120, watched=True)
    result, texts = bundle(lab, tmp_path)
    assert texts.keys() == NAMES
    checked = lab.run("check").output
    assert [told for told in texts["check.txt"].splitlines() if not told.startswith("journal")] == [
        told
        for told in checked.splitlines()
        if not told.startswith("journal")  # its size depends on SQLite
    ]
    assert "k8s-2" in texts["status.txt"]
    assert all(f"k8s-{number}" in texts["explain.txt"] for number in (1, 2, 3))
    assert json.loads(texts["status.json"])["fenced_count"] == 1
    assert json.loads(texts["check.json"])["findings"]
    assert json.loads(texts["versions.json"])["fencer"]
    assert texts["endpoints.txt"].startswith("kubernetes   v1.36.2")
    assert "k8s-2 " in texts["history.txt"].splitlines()[1]
    assert "TaintNode" in texts["history.jsonl"]
    assert [json.loads(line)["kind"] for line in texts["history.jsonl"].splitlines()][-1]
    assert texts["unit.txt"] == "ActiveState=active\n"
    assert texts["log.txt"] == "fenced \\x1b[2Jk8s-2\n"
    for name in NAMES:
        assert name in result.output
        assert name in texts["README.txt"] or name == "README.txt"
    assert "Look through it before you send it" in result.output


def test_an_unreachable_cluster_gives_a_bundle_with_a_line_for_each_missing_part(tmp_path):
    lab = Lab()
    lab.breaks(What.API_DOWN)
    result, texts = bundle(lab, tmp_path)
    why = "missing: the API server does not answer: connection refused; try: fencer check"
    assert texts.keys() == NAMES
    assert texts["status.txt"] == texts["explain.txt"] == f"{why}\n"
    assert texts["status.json"] == "{}\n"
    assert re.search(f"^  status.txt +{re.escape(why)}$", result.output, re.MULTILINE)
    assert "kubernetes" in texts["check.txt"]
    assert "no answer" in texts["endpoints.txt"]
    assert re.search("^  status.txt +the API server does not answer", texts["README.txt"], re.MULTILINE)
    assert re.search("^  explain.txt +see status.txt$", texts["README.txt"], re.MULTILINE)


def test_no_systemd_no_journal_and_no_configuration_are_a_line_each(tmp_path):
    _, texts = bundle(Lab(), tmp_path, "-c", str(tmp_path / "none.yaml"))
    for name in ("config-written.yaml", "config-in-force.yaml", "check.txt", "status.txt", "history.txt"):
        assert texts[name].startswith(f"missing: {tmp_path}/none.yaml: cannot be read: No such file"), name
    assert texts["log.txt"].startswith("missing: no unit of fencer's reads this configuration")
    assert texts["versions.txt"].startswith("fencer ")
    _, texts = bundle(Lab(), tmp_path, "--force")
    assert texts["unit.txt"] == "missing: systemctl: there is no such program\n"
    assert "no journal is kept" in texts["history.txt"]


def test_a_mistake_in_fencer_costs_one_part_and_is_told(tmp_path):
    def mistake(*_):
        raise RuntimeError("k8s-2 has no such thing")

    _, texts = bundle(Otherwise(nodes=mistake), tmp_path)
    assert texts["status.txt"].startswith("missing: a mistake in fencer: Traceback")
    assert "RuntimeError: k8s-2 has no such thing" in texts["status.txt"]
    assert texts["versions.txt"].startswith("fencer ")


def test_a_part_that_is_too_large_is_cut_and_says_so(tmp_path):
    lab = Lab()
    lab.tools = {"systemctl": "x" * (MOST_CHARS + 1000), "journalctl": "short\n"}

    class Talkative(Lab):
        def tool(self, *words, **_bounds):
            return lab.tools[words[0]]

    result, texts = bundle(Talkative(), tmp_path)
    assert texts["unit.txt"].endswith("x\n(1001 more characters are left out: it is too large)\n")
    assert "the state of fencer's unit under systemd (the beginning)" in result.output


def test_it_overwrites_nothing_and_is_for_its_owner_only(tmp_path):
    lab, file = Lab(), tmp_path / "out" / "it.tar.gz"
    bundle(lab, tmp_path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_bytes()
    again = lab.run("support-bundle", "-o", str(file))
    assert (again.exit_code, again.stdout) == (2, "")
    assert again.stderr == f"fencer: {file}: is there already. --force replaces it, or name another file\n"
    assert file.read_bytes() == before
    lab.passes(60)
    bundle(lab, tmp_path, "--force")
    assert file.read_bytes() != before
    assert [*file.parent.iterdir()] == [file]


def test_a_folder_that_is_not_there_is_told_before_anything_is_asked(tmp_path):
    result = Lab().run("support-bundle", "-o", str(tmp_path / "none" / "it.tar.gz"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "its folder is not there" in result.stderr


def test_without_a_name_it_is_named_by_host_and_time_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Lab().run("support-bundle")
    [made] = tmp_path.iterdir()
    assert re.fullmatch(r"fencer-support-desk-20260101-0000\d\d\.tar\.gz", made.name)


def test_it_is_no_stream(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = Lab().run("support-bundle", "-o", "-")
    assert result.exit_code == 2
    assert "name a file" in result.output
    assert not list(tmp_path.iterdir())


def test_it_is_made_with_real_parts_that_reach_nobody(tmp_path):
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1")
    (tmp_path / "config.yaml").write_text(
        f"mode: armed\nkubernetes: {{kubeconfig: {kubeconfig}, unauthenticated: true}}\n"
        "hypervisors: [{name: box, type: virtualbox, command: [/bin/false]}]\n"
    )
    file = tmp_path / "it.tar.gz"
    words = ["support-bundle", "-c", str(tmp_path / "config.yaml"), "-o", str(file)]
    result = CliRunner().invoke(cli, words, obj=Wiring(), prog_name="fencer")
    assert result.exit_code == 0, result.output
    texts = unpacked(file)
    assert "mode: armed  # line 1" in texts["config-in-force.yaml"]
    assert "no answer" in texts["endpoints.txt"]
    assert "http://127.0.0.1:1" in texts["status.txt"]
    assert "box" in texts["check.txt"]


# -- programs of this machine ---------------------------------------------------------------------------


@pytest.fixture
def systemctl(tmp_path, monkeypatch):
    """Have a program of that name on PATH, with this script."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def install(script):
        (folder / "systemctl").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "systemctl").chmod(0o755)

    return install


def ask(*words, deadline_s=30.0):
    return Wiring().tool(*words, deadline_s=deadline_s, most_bytes=100)


def test_a_program_says_what_it_prints(systemctl):
    systemctl('echo "$@"; echo "not this" >&2')
    assert ask("systemctl", "show", "fencer@lab.service", "--property=A,B") == (
        "show fencer@lab.service --property=A,B\n"
    )


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'System has not been booted with systemd' >&2; exit 1", "has not been booted with systemd"),
        ("exit 4", "systemctl show: exit code 4"),
        ("exec sleep 60", "did not answer within 0.3 s"),
    ],
    ids=["fails", "fails silently", "hangs"],
)
def test_a_program_that_fails_or_hangs_says_why(systemctl, script, why):
    systemctl(script)
    with pytest.raises(FencerError, match=why):
        ask("systemctl", "show", deadline_s=0.3 if "sleep" in script else 30.0)


def test_of_a_program_that_prints_without_end_the_beginning(systemctl):
    systemctl("exec yes")
    assert ask("systemctl") == "y\n" * 50


def test_a_program_that_is_not_there_is_an_error_and_no_traceback():
    with pytest.raises(FencerError, match="no-such-program"):
        ask("no-such-program")


# -- no secret ------------------------------------------------------------------------------------------


def canary(number):
    """Return a secret that nobody else has, and that looks like one: of a hundred kinds of letters."""
    return f"{number:02}CANARY{number:02}x9Kq+2Lm4/{number:02}=="


CONFIG = """\
# {c[0]} in a comment
mode: armed
kubernetes:
  kubeconfig: {folder}/kubeconfig
  context: fencer@{c[1]}
hypervisors:
- name: lab
  type: libvirt
  uri: "qemu+ssh://fencer@lab1/system?keyfile={folder}/key&{c[2]}={c[3]}"   # {c[4]}
  power: {{mapped: true}}
- name: home
  type: proxmox
  servers: [https://10.0.0.1:8006]
  cluster: home
  token_id: fencer@pve!agent
  token_file: {folder}/token
  host_power:
  - host: pve1
    agent: fence_ipmilan
    options: {{ip: 10.0.0.5, username: "{c[5]}", hexadecimal_kg: "{c[6]}"}}
    password_file: {folder}/password
    never_sleeps: true
- name: box
  type: virtualbox
  command: [sshpass, "-p", "{c[7]}", ssh, "vagrant@box", VBoxManage]
- name: farm
  type: cells
  settings: {{farm: "{c[8]}", more: ["{c[9]}"]}}
  secret_files: {{token: {folder}/farm}}
nodes: {{k8s-1: lab/k8s-1}}
notify:
  source: "{c[22]}"
  receivers:
  - name: phone
    type: ntfy
    server: https://ntfy.example/23CANARY23x9Kq
    topic: 24CANARY24x9Kq2Lm4
    token_file: {folder}/ntfy
  - {{name: hook, type: webhook, url_file: {folder}/hook}}
  - {{name: chat, type: apprise, urls_file: {folder}/chat}}
  - {{name: mail, type: mail, to: [25CANARY25x9Kq@example.org]}}
"""
KUBECONFIG = """\
apiVersion: v1
current-context: fencer@{c[1]}
clusters: [{{name: lab, cluster: {{server: "https://me:{c[10]}@10.0.0.10:6443"}}}}]
contexts: [{{name: "fencer@{c[1]}", context: {{cluster: lab, user: fencer}}}}]
users:
- name: fencer
  user: {{token: "{c[11]}", client-key-data: "{c[12]}", password: "{c[13]}"}}
"""
FILES = {"key": 14, "token": 15, "password": 16, "farm": 17, "ntfy": 26}
URLS = {
    "hook": "https://house.example/api/webhook/27CANARY27x9Kq2Lm4",
    "chat": "tgram://28CANARY28:x9Kq2Lm4/12345678",
}
"""Files with URLs that are secrets themselves, or have some in them."""
LEFT = (
    "https://ntfy.example/23CANARY23x9Kq",
    "24CANARY24x9Kq2Lm4",
    "25CANARY25x9Kq@example.org",
    "27CANARY27x9Kq2Lm4",
    *URLS.values(),
)
ENVIRONMENT = 18
CANARIES = [canary(number) for number in range(30)]


class Planted(Lab):
    """A lab with a real configuration, full of secrets, whose servers repeat what they are sent."""

    def __init__(self, file):
        super().__init__()
        self.file = file
        self.tools = {"systemctl": self.echo(), "journalctl": self.echo()}

    def echo(self):
        """Repeat what was left out of the configuration; and real secrets, also in part and encoded."""
        text = self.file.read_text()
        unread = {number for name, number in FILES.items() if str(self.file.parent / name) not in text}
        numbers = (*range(10, ENVIRONMENT + 1), FILES["ntfy"])
        sent = [CANARIES[number] for number in numbers if number not in unread]
        parts = [one[3:-4] for one in sent]
        sent += [CANARIES[22], *LEFT]
        basic = [base64.b64encode(f"fencer:{one}".encode()).decode() for one in sent]
        return f"401 Unauthorized: {' '.join([*CANARIES[5:10], *sent, *parts, *basic])}"

    def load(self, path):
        return Wiring.load(self, path)

    def secrets(self, config):
        return Wiring.secrets(self, config)

    def inspect_secret(self, path):
        return Wiring.inspect_secret(self, path)

    def cluster(self, config):
        port = super().cluster(config)
        denied = self.echo()

        class Echo(type(port)):
            def identity(self):
                raise ClusterDenied(denied)

        port.__class__ = Echo
        return port

    def hypervisor(self, endpoint, _clock):
        if isinstance(endpoint, ProxmoxEndpoint):
            raise HypervisorDenied(f"{endpoint.name}: {self.echo()}")
        return self.simulation.hypervisors["lab"]


def plant(folder, text=CONFIG):
    told = {"c": CANARIES, "folder": folder}
    for name, number in FILES.items():
        (folder / name).write_text(f"{CANARIES[number]}\n")
    for name, url in URLS.items():
        (folder / name).write_text(f"# a note\n{url}\n")
    (folder / "kubeconfig").write_text(KUBECONFIG.format(**told))
    (folder / "config.yaml").write_text(text.format(**told))
    return folder / "config.yaml"


def assert_no_canary(texts):
    for name, text in texts.items():
        for place in (found.start() for found in re.finditer("CANARY|x9Kq", text)):
            pytest.fail(f"{name}: …{text[max(0, place - 60) : place + 60]}…")
        for number, secret in enumerate(CANARIES):
            encoded = base64.b64encode(secret.encode()).decode()[:-4]
            assert encoded not in text, (name, number)


@pytest.fixture
def cells(tmp_path):
    with on_path(*install_example(tmp_path / "site-packages")):
        yield


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("PVE_PASSWORD", CANARIES[ENVIRONMENT])
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:{CANARIES[ENVIRONMENT]}@proxy:3128")


BROKEN = {
    "a password among options": ("options: {{ip:", 'options: {{passwd: "{c[20]}", ip:'),
    "a password in a URI": ("qemu+ssh://fencer@lab1", "qemu+ssh://fencer:{c[20]}@lab1"),
    "a password in a server": ("https://10.0.0.1:8006", '"https://me:{c[20]}@10.0.0.1:8006"'),
    "the token itself": ("token_file: {folder}/token", 'token_file: "{c[20]}"'),
    "the token, like a path": ("token_file: {folder}/token", 'token_file: "/{c[20]}"'),
    "the token behind its id": ("fencer@pve!agent", "fencer@pve!agent={c[20]}"),
    "an unknown key": ("mode: armed", "mode: armed\n{c[20]}: {c[21]}"),
    "a secret as a mode": ("mode: armed", 'mode: "{c[20]}"'),
    "a secret setting": ("settings: {{farm:", 'settings: {{password: "{c[20]}", farm:'),
    "a tag": ("mode: armed", "mode: !{c[20]} armed"),
    "an alias": ("mode: armed", "mode: *CANARY"),
    "no YAML any more": ("mode: armed", 'mode: "{c[20]}" {c[21]}: ['),
    "no YAML from the beginning": ("mode: armed", "%CANARY{c[20]}\n@{c[21]}"),
}


@pytest.mark.usefixtures("cells")
def test_no_secret_of_a_configuration_or_of_what_it_names_is_in_it(tmp_path):
    file = plant(tmp_path)
    assert len(Wiring().load(file).endpoints) == 4, "a configuration that holds"
    result, texts = bundle(Planted(file), tmp_path, "-c", str(file))
    assert_no_canary({**texts, "stdout": result.stdout})
    assert "401 Unauthorized" in texts["endpoints.txt"], "the servers' words are in it, but for the secrets"
    assert LEFT_OUT in texts["endpoints.txt"]
    written = yaml.safe_load(texts["config-written.yaml"])
    assert [one["name"] for one in written["hypervisors"]] == ["lab", "home", "box", "farm"]
    assert "mode: armed  # line 2" in texts["config-in-force.yaml"]


@pytest.mark.usefixtures("cells")
@pytest.mark.parametrize(("right", "wrong"), BROKEN.values(), ids=BROKEN)
def test_no_secret_of_a_wrong_configuration_is_in_it(right, wrong, tmp_path):
    assert right in CONFIG
    file = plant(tmp_path, CONFIG.replace(right, wrong))
    result, texts = bundle(Planted(file), tmp_path, "-c", str(file))
    assert_no_canary({**texts, "stdout": result.stdout})
    assert f"{file}" in texts["config-in-force.yaml"], "what is wrong is told"


def test_no_secret_that_a_log_repeats_is_in_it(tmp_path):
    lab = Lab()
    secret = CANARIES[ENVIRONMENT]
    lab.tools = {
        "systemctl": f"StatusText={secret}\n",
        "journalctl": f"401: Authorization: Bearer old7CANARYtoken and {secret} and {secret[2:-3]}\n",
    }
    lab.breaks(What.API_DOWN)
    _, texts = bundle(lab, tmp_path)
    assert_no_canary(texts)
    assert texts["unit.txt"] == f"StatusText={LEFT_OUT}\n"


def test_the_key_that_signs_the_state_is_not_in_it_whatever_repeats_it(tmp_path):
    state_file = tmp_path / "state.jsonl"
    StateFile(state_file, lambda: b"the key of a cluster, 32 bytes..").save(Kept(utc="what it saw"))
    key = key_file_of(state_file).read_text().splitlines()[1]

    class Keeping(Lab):
        def load(self, path):
            return replace(super().load(path), state_file=state_file)

    lab = Keeping()
    lab.tools = {"systemctl": "", "journalctl": f"signed with {key}\n"}
    _, texts = bundle(lab, tmp_path)
    assert texts["log.txt"] == f"signed with {LEFT_OUT}\n"
    assert not [name for name, text in texts.items() if key in text or "what it saw" in text]
    assert "signed" in texts["check.txt"]


def test_no_secret_that_the_journal_repeats_is_in_it(tmp_path):
    lab = Lab()
    lab.journal = tmp_path / "journal.db"
    told = {"text": f"401: the token {CANARIES[ENVIRONMENT]} was refused", "warning": True}
    store = Store(lab.journal, "5e55105a", "fencer@pve1")
    store.append([Row("2026-01-01T00:00:00.000Z", 0.0, Kind.NOTICE, lambda: told, incident="1234abcd")])
    store.close()
    _, texts = bundle(lab, tmp_path)
    assert_no_canary(texts)
    assert f"401: the token {LEFT_OUT} was refused" in texts["history.jsonl"]


def test_the_canaries_are_found_where_nobody_takes_them_out(tmp_path):
    """Otherwise the tests above would show nothing."""
    file = plant(tmp_path)
    for text in (file.read_text(), Planted(file).echo(), str(parse(file.read_bytes(), "it").root)):
        with pytest.raises(pytest.fail.Exception):
            assert_no_canary({"it": text})


def test_the_lab_has_no_configuration_of_this_machine():
    assert not Path(PATH).exists()
