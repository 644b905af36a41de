"""From a file to settings, and what is said of files that are wrong."""

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fencer.cluster.settings import ClusterSettings
from fencer.config.complaints import place_in
from fencer.config.document import parse
from fencer.config.load import load
from fencer.config.settings import (
    Bounds,
    Config,
    HookSettings,
    JournalSettings,
    LibvirtEndpoint,
    PreStop,
    ProxmoxEndpoint,
    VirtualBoxEndpoint,
)
from fencer.core.identity import Admission, Rules
from fencer.core.maintenance import Window
from fencer.core.policy import Mode, PausedGuest, Policy
from fencer.core.wire import keys_of
from fencer.errors import ConfigError
from fencer.hosts.settings import FenceAgentSettings
from fencer.notify.settings import (
    ALL,
    AlertmanagerSettings,
    AppriseSettings,
    GotifySettings,
    MailSettings,
    NotifySettings,
    NtfySettings,
    WebhookSettings,
)
from fencer.web.settings import WebSettings
from fencer.wording.occasions import Occasion
from tests.config.samples import FULL, VALID


def test_the_least_configuration_has_all_defaults(load_text, tmp_path):
    assert load_text(VALID) == Config(
        policy=Policy(mode=Mode.ARMED),
        kubernetes=ClusterSettings(Path("/etc/fencer/kubeconfig")),
        endpoints=(LibvirtEndpoint("lab", "qemu:///system", power=Admission()),),
        nodes={},
        journal=JournalSettings(tmp_path / "config.journal.db"),
        state_file=tmp_path / "config.state.jsonl",
        notify=NotifySettings(told_file=tmp_path / "config.notified.json"),
        web=WebSettings("127.0.0.1", 9721),
    )


def test_everything_written_arrives(load_text):
    ones = Admission(
        mapped=True,
        uuids=frozenset({"6f1c2ad0-7b1e-4d39-9a5f-3f0d6f1c2ae2", "6f1c2ad0-7b1e-4d39-9a5f-3f0d6f1c2ae3"}),
    )
    grouped = Admission(groups=frozenset({"tag:fencer", "pool:k8s/lab"}))
    nodes = {
        "k8s-1": ("lab", "k8s 1"),
        "k8s-2.example.com": ("lab-2", "6f1c2ad0-7b1e-4d39-9a5f-3f0d6f1c2ae9"),
    }
    config = load_text(FULL)
    assert config == Config(
        policy=Policy(
            mode=Mode.OBSERVE,
            poll_s=1.5,
            paused_guest=PausedGuest.TRUST,
            max_fenced=2,
            maintenance=(
                Window("22:00", "02:00", "Europe/Berlin", ("sat", "2026-12-24"), ("k8s-*",), "backups"),
            ),
        ),
        kubernetes=ClusterSettings(
            Path("/etc/fencer/kubeconfig"),
            "fencer@lab",
            ("https://10.0.0.11:6443", "https://[fd00::1]:6443/"),
        ),
        endpoints=(
            LibvirtEndpoint("lab", "qemu:///system", power=ones),
            LibvirtEndpoint("lab-2", "qemu+ssh://fencer@lab2:2222/system?keyfile=/etc/fencer/key"),
            ProxmoxEndpoint(
                "home",
                ("https://pve1:8006", "https://pve2:8006"),
                "home",
                "fencer@pve!agent",
                Path("/etc/fencer/proxmox-token"),
                Path("/etc/fencer/pve-root-ca.pem"),
                power=grouped,
                host_power=(
                    FenceAgentSettings(
                        "pve1",
                        "/usr/sbin/fence_ipmilan",
                        {"ip": "10.0.0.5", "username": "reader", "lanplus": "1"},
                        password_file=Path("/etc/fencer/board-pve1"),
                    ),
                    FenceAgentSettings("pve2", "fence_raritan", outlets=("3", "11")),
                ),
            ),
            ProxmoxEndpoint(
                "pinned",
                ("https://pve9:8006",),
                None,
                "fencer@pve!agent",
                Path("/etc/fencer/proxmox-token"),
                fingerprints=("87:9D",),
            ),
            VirtualBoxEndpoint("box", ("ssh", "vagrant@box", "VBoxManage"), power=Admission(mapped=True)),
        ),
        nodes=nodes,
        hook=HookSettings(PreStop.DRAIN, 120.0),
        journal=JournalSettings(Path("/srv/fencer/journal.db"), Bounds(90.0, 500_000_000)),
        state_file=Path("/srv/fencer/state.jsonl"),
        notify=NotifySettings(
            (
                NtfySettings(
                    "phone",
                    frozenset({Occasion.ALARM, Occasion.REFUSED, Occasion.BACK}),
                    "http://ntfy.lan/push",
                    "fencer-Rk2v9XwQz7",
                    Path("/etc/fencer/ntfy-token"),
                ),
                GotifySettings(
                    "gotify",
                    ALL,
                    "https://gotify.home.example",
                    Path("/etc/fencer/gotify-token"),
                    Path("/etc/fencer/home-ca.pem"),
                ),
                AlertmanagerSettings(
                    "alerts",
                    ALL,
                    ("http://127.0.0.1:9093", "https://[fd00::1]:9093"),
                    Path("/etc/fencer/alertmanager-token"),
                ),
                WebhookSettings(
                    "hook", ALL, Path("/etc/fencer/webhook-url"), Path("/etc/fencer/webhook-token")
                ),
                MailSettings("mail", ALL, ("root", "admin@example.org"), "fencer@example.org", "[::1]:25"),
                AppriseSettings("chat", ALL, Path("/etc/fencer/apprise-urls")),
            ),
            "home",
            Path("/srv/fencer/notified.json"),
            3600.0,
            "https://fencer.home.example/",
        ),
        web=WebSettings("::1", 9722, ("fencer.example",)),
    )
    assert config.in_clear == {"phone": "http:// is neither encrypted nor authenticated"}
    assert [
        path.name for path in config.secrets if path.name.startswith(("ntfy", "web", "got", "app", "al"))
    ] == [
        "ntfy-token",
        "gotify-token",
        "alertmanager-token",
        "webhook-token",
        "webhook-url",
        "apprise-urls",
    ]
    assert config.rules == Rules(
        nodes,
        {
            "lab": ones,
            "lab-2": Admission(),
            "home": grouped,
            "pinned": Admission(),
            "box": Admission(mapped=True),
        },
        by_name=frozenset({"lab", "lab-2", "box"}),
    )


def test_the_nodes_of_a_configuration_cannot_be_changed(load_text):
    with pytest.raises(TypeError):
        load_text(VALID).nodes["k8s-1"] = ("lab", "k8s-1")


def test_sections_with_every_key_commented_out_are_as_good_as_absent(load_text):
    text = VALID.replace("qemu:///system", "qemu:///system\n    power:")
    assert load_text(f"{text}nodes:\npolicy:\njournal:\nnotify:\nweb:\n") == load_text(VALID)


def cases() -> list[Any]:
    """The cases of complaints.txt: the file that is loaded, and all that is said of it."""
    _, *blocks = Path(__file__).with_name("complaints.txt").read_text().rstrip().split("\n\n")
    found = []
    for block in blocks:
        changes = [line.split("|", 1) for line in block.split("\n") if re.match(r"[+\d]\|", line)]
        said = block.split("\n")[len(changes) :]
        lines = VALID.splitlines()
        for number, line in enumerate(lines, 1):
            new = [text.removeprefix(" ") for at, text in changes if at == str(number)]
            lines[number - 1] = "\n".join(new) if new else line
        lines += [text.removeprefix(" ") for at, text in changes if at == "+"]
        found.append(pytest.param("\n".join(lines) + "\n", said, id=said[0].partition(":")[2]))
    return found


@pytest.mark.parametrize(("text", "said"), cases())
def test_what_is_wrong_is_said_with_its_place(problems_of, text, said):
    assert problems_of(text) == said


@pytest.mark.parametrize(("text", "seen"), [("- mode\n", "a list"), ("just words\n", "text")])
def test_a_file_of_another_kind_is_refused(problems_of, text, seen):
    assert problems_of(text) == [f"config.yaml: the file: must be a mapping (`key: value` lines), not {seen}"]


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_file_is_said_to_be_and_where_an_example_is(problems_of, text):
    (problem,) = problems_of(text)
    assert problem.startswith("config.yaml: the file is empty")
    assert "`fencer setup config`" in problem


def test_a_file_without_any_key_misses_what_must_be_written(problems_of):
    assert [problem.partition(";")[0] for problem in problems_of("{}\n")] == [
        "config.yaml: mode: missing",
        "config.yaml: kubernetes: missing",
        "config.yaml: hypervisors: missing",
    ]


def test_a_rule_that_names_only_defaults_is_told_where_the_key_is_that_broke_it(problems_of):
    problems = problems_of(f"{VALID}policy:\n  after_stop: start\n  poll_s: 30\n")
    assert [problem.split(":")[1] for problem in problems] == ["10", "10"]


def test_everything_wrong_is_said_at_once_in_the_order_of_the_file(problems_of):
    text = f"""\
kubernetes: {{kubeconfig: k, tokn: x}}
hypervisors:
  - name: lab
    type: libvirt
    uri: qemu:///system
  - name: lab
    type: xen
nodes:
  k8s-1: lap/x
policy:
  poll_s: 30
  poll_s: 2
{"journal: 5"}
"""
    assert [problem.split(": ")[1] for problem in problems_of(text)] == [
        "mode",
        "kubernetes.kubeconfig",
        "kubernetes.tokn",
        "hypervisors[1].name",
        "hypervisors[1].type",
        "nodes.k8s-1",
        "policy",
        "policy",
        "policy.poll_s",
        "journal",
    ]


@pytest.mark.parametrize(
    ("written", "way"),
    [
        ("/var/lib/fencer/journal.jsonl", "`journal: {file: /srv/fencer/journal.db}`"),
        ("false", "`journal: {enabled: false}`"),
    ],
)
def test_a_journal_as_it_was_written_before_is_told_how_it_is_written_now(problems_of, written, way):
    [problem] = problems_of(f"{VALID}journal: {written}\n")
    assert way in problem


def test_a_password_in_a_uri_is_refused_and_not_repeated(problems_of):
    text = VALID.replace("qemu:///system", "qemu+tcp://me:hunter2@lab1/system")
    text += "    unauthenticated: true\n"
    text = text.replace("kubeconfig\n", "kubeconfig\n  servers: ['https://me:hunter2@a']\n")
    problems = problems_of(text)
    assert len(problems) == 2
    assert "hunter2" not in "".join(problems)


def test_the_value_of_an_unknown_key_is_not_repeated(problems_of):
    assert "hunter2" not in "".join(problems_of(f"{VALID}password: hunter2\n"))


def test_a_thousand_problems_are_counted_not_listed(problems_of):
    problems = problems_of(VALID + "".join(f"x{index}: 1\n" for index in range(1000)))
    assert len(problems) == 101
    assert problems[-1] == "config.yaml: and 900 more"


@pytest.mark.parametrize(
    ("field", "name"), [(field, key) for field, key in keys_of(Policy).items() if key != "maintenance"]
)
def test_every_field_of_the_policy_arrives(load_text, field, name):
    other = {
        "mode": Mode.OBSERVE,
        "require_not_ready": False,
        "paused_guest": PausedGuest.REFUSE,
        "saved_guest": "discard",
        "unresponsive_guest": "stop",
        "resumed_guest": "stop",
        "after_stop": "start",
        "remediation": "prove",
        "poll_s": 1,
        "lease_period_s": 5,
        "clear_parallel": 4,
        "max_fenced": 7,
    }.get(name, 77)
    expected = replace(Policy(mode=Mode.ARMED), **{field: other})
    assert expected != Policy(mode=Mode.ARMED)
    line = f"  {name}: {str(other).lower()}\n"
    text = VALID.replace("armed", "observe") if name == "mode" else f"{VALID}policy:\n{line}"
    assert load_text(text).policy == expected


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda _: None, "No such file or directory"),
        (lambda path: path.mkdir(), "Is a directory"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
    ],
)
def test_a_file_that_cannot_be_read_is_said_with_why(tmp_path, make, why):
    file = tmp_path / "con\nfig.yaml"
    make(file)
    with pytest.raises(ConfigError, match=rf"/con\\nfig.yaml: cannot be read: {why}$"):
        load(file)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else for a while")
@pytest.mark.parametrize(
    ("folder", "said"),
    [
        (0o755, "cannot be read by user 65534: Permission denied. `sudo chown 65534 {file}` mends that"),
        (0o700, "Permission denied. Its folder is closed to that user: see `ls -ld {file.parent}`"),
    ],
)
def test_a_file_that_we_may_not_read_is_said_with_whom_it_has_to_belong_to(folder, said):
    with tempfile.TemporaryDirectory() as made:  # pytest's own are closed to others
        file = Path(made) / "config.yaml"
        file.write_text(VALID)
        file.chmod(0o600)
        file.parent.chmod(folder)
        os.seteuid(65534)
        try:
            with pytest.raises(ConfigError) as caught:
                load(file)
        finally:
            os.seteuid(0)
    assert str(caught.value).endswith(said.format(file=file))


def test_a_path_that_no_file_can_have_is_said():
    with pytest.raises(ConfigError, match=r"a\\x00b: cannot be read: embedded null"):
        load(Path("a\0b"))


def test_an_endless_file_is_refused():
    with pytest.raises(ConfigError, match="/dev/zero: larger than"):
        load(Path("/dev/zero"))


def test_a_pipe_will_do(load_text):
    reader, writer = os.pipe()
    os.write(writer, VALID.encode())
    os.close(writer)
    found = load(Path(f"/dev/fd/{reader}"))
    # Their files are named after the configuration.
    beside = {"journal": None, "state_file": None, "notify": NotifySettings()}
    assert replace(found, **beside) == replace(load_text(VALID), **beside)
    os.close(reader)


def test_the_members_of_a_union_do_not_show_in_places():
    """As soon as there are two types of hypervisors, pydantic puts the type into its locations."""
    document = parse(f"{VALID}nodes: {{K8s: lab/x}}\n".encode(), "f.yaml")
    assert place_in(document, ("hypervisors", 0, "libvirt", "uri")) == ("hypervisors", 0, "uri")
    assert place_in(document, ("hypervisors", 0, "libvirt", "missing")) == ("hypervisors", 0, "missing")
    assert place_in(document, ("nodes", "K8s", "[key]")) == ("nodes", "K8s")


def test_settings_cost_neither_yaml_nor_a_schema():
    code = "import sys, fencer.config.settings; print({'yaml', 'pydantic'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ("127.0.0.1:9721", ("127.0.0.1", 9721)),
        ("localhost:80", ("127.0.0.1", 80)),
        ("0.0.0.0:9721", ("0.0.0.0", 9721)),  # noqa: S104 - all addresses is what is tried
        ("'[::1]:9721'", ("::1", 9721)),
        ("'[FD00::0:1]:65535'", ("fd00::1", 65535)),
    ],
)
def test_a_place_to_listen_is_an_address_and_a_port(load_text, written, place):
    web = load_text(f"{VALID}web: {{listen: {written}}}\n").web
    assert (web.host, web.port) == place


@pytest.mark.parametrize(
    "written",
    [
        "9721",
        "':9721'",
        "127.0.0.1",
        "pve1:9721",
        "127.0.0.1:0",
        "127.0.0.1:65536",
        "'::1:9721'",
        "'[127.0.0.1]:80'",
        "'[fe80::1%eth0]:80'",
        "http://127.0.0.1:80",
        "'127.0.0.1:80 '",
        "'*:9721'",
        "127.0.0.1:８０",
    ],
)
def test_anything_else_is_refused_with_what_it_must_be_like(problems_of, written):
    [problem] = problems_of(f"{VALID}web: {{listen: {written}}}\n")
    assert "web.listen: must be" in problem
    assert "127.0.0.1:9721" in problem or "must be text" in problem


def test_a_name_has_no_port_and_no_scheme(problems_of):
    for written in ("fencer.example:443", "https://fencer.example", "''", "a b"):
        [problem] = problems_of(f"{VALID}web: {{names: [{written!r}]}}\n")
        assert "must be the name of a host without a port" in problem


def test_what_is_shown_can_be_switched_off(load_text):
    assert load_text(f"{VALID}web: {{enabled: false}}\n").web is None
