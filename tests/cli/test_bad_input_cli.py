"""``fencer`` as a process, given what is wrong: a line with the place, the exit code, never a traceback."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from fencer.cli import main
from fencer.journal.reading import entries
from tests.cli.forked import WITHIN_S, Forge
from tests.cluster.conftest import write_kubeconfig
from tests.cluster.standin import (
    StandIn,
    answer,
    hang_up,
    listing,
    namespace,
    node,
    routes,
    silent,
    status,
)

FENCER = Path(sys.executable).with_name("fencer")
COMMANDS = (["status"], ["explain", "k8s-1"], ["fence", "k8s-1", "--yes"], ["watch", "--once"])
"""Those that need a configuration and a cluster, by a way of their own. `check` goes on, see there."""
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "LANG": "C.UTF-8"}
"""As a person's, far from any configuration of its own."""
WHEN = re.compile(r"\btime=\S+")
"""Of a line of the log: no two processes write it at the same time."""


@pytest.fixture(scope="module")
def fencer():
    """Run fencer in a process forked for it: see `tests.cli.forked` for what that saves, and hides."""
    with Forge(ENVIRONMENT) as forge:

        def run(*words, config=None):
            return Done(*forge.run(command_line(words, config)))

        yield run


def started(*words, config=None):
    """Run fencer as a person would."""
    command = [str(FENCER), *command_line(words, config)]
    done = subprocess.run(command, capture_output=True, env=ENVIRONMENT, timeout=WITHIN_S, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def command_line(words, config):
    given = [word if isinstance(word, bytes) else str(word) for word in words]
    return [*given, *(() if config is None else ("-c", str(config)))]


class Done:
    """What a process said in the end; it must have said it in a way that people can bear."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out.decode(), err.decode()
        for text in (self.out, self.err):
            assert "Traceback" not in text, text
            assert "site-packages" not in text, text
            lines = text.split("\n")
            assert all(line.isprintable() for line in lines), text

    def refuses(self, code, *said):
        """Hold it against the exit code, and against words of which one line of stderr must have all."""
        assert self.code == code, (self.code, self.out, self.err)
        assert any(all(word in line for word in said) for line in self.err.splitlines()), self.err
        assert all(line.startswith(("fencer: ", "time=")) for line in self.err.splitlines()), self.err


@pytest.fixture
def kubeconfig(tmp_path):
    """A kubeconfig for fencer's eyes alone, that leads nowhere."""
    path = write_kubeconfig(tmp_path / "kubeconfig", "http://127.0.0.1:1")
    path.chmod(0o600)
    return path


@pytest.fixture
def content(kubeconfig):
    """A configuration that is right, with a hypervisor that answers nothing of use."""
    return {
        "mode": "armed",
        "kubernetes": {"kubeconfig": str(kubeconfig), "unauthenticated": True},
        "hypervisors": [{"name": "box", "type": "virtualbox", "command": ["/bin/false"]}],
    }


@pytest.fixture
def config(tmp_path, content):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


# -- the configuration ------------------------------------------------------------------------------------

GOOD = """\
mode: armed
kubernetes: {kubeconfig: /k}
hypervisors: [{name: lab, type: libvirt, uri: 'qemu:///system'}]
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", ["config.yaml: the file is empty", "fencer setup config"]),
        (b"{}", ["config.yaml: mode: missing"]),
        (b"mode: [armed\n", [":2:", "not YAML", "begun on line 1"]),
        (b"\tmode: armed\n", [":1:", "indented with a tab"]),
        (b"mode: armed\nmode: observe\n", [":2:", "mode"]),
        (f"{GOOD}polcy: {{}}\n".encode(), [":4:", "polcy", "policy"]),
        (f"{GOOD}policy: {{poll_s: 5 minutes}}\n".encode(), [":4:", "policy.poll_s"]),
        (f"{GOOD}policy: {{poll_s: 2000ms}}\n".encode(), [":4:", "policy.poll_s"]),
        (f"{GOOD}policy: {{poll_s: -1}}\n".encode(), [":4:", "poll_s must be more than 0"]),
        (f"{GOOD}policy: {{poll_s: .nan}}\n".encode(), [":4:", "policy.poll_s"]),
        (f"{GOOD}policy: {{confirm_s: 3}}\n".encode(), [":4:", "confirm_s (3)", "two polls"]),
        (GOOD.replace("mode: armed", "mode: yes").encode(), [":1:", "mode"]),
        (GOOD.replace("libvirt,", "xen,").encode(), [":3:", "type"]),
        (b"mode: armed\nkubernetes: /etc/fencer/kubeconfig\n", [":2:", "kubernetes"]),
        (b"- mode: armed\n", ["config.yaml"]),
        (b"<html><body>404</body></html>", ["config.yaml"]),
        (b"\xff\xfe\x00m\x00o", ["config.yaml"]),
        (b"\x7fELF\x02\x01\x01\x00\x00", ["config.yaml"]),
        (b"mode: armed\n\x1b[2J: owned\n", ["config.yaml"]),
        (b"a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n", ["config.yaml"]),
        (b"mode: armed\n" + b"x: " + b"[" * 5000, ["config.yaml"]),
    ],
    ids=repr,
)
def test_a_configuration_that_is_wrong_is_told_with_its_place(fencer, tmp_path, text, said):
    path = tmp_path / "config.yaml"
    path.write_bytes(text)
    fencer("config", "check", config=path).refuses(2, *said)


@pytest.mark.parametrize("words", [["config", "show"], *COMMANDS], ids=" ".join)
def test_every_command_refuses_it_with_the_same_words(fencer, tmp_path, words):
    path = tmp_path / "config.yaml"
    path.write_text(f"{GOOD}polcy: {{}}\n")
    fencer(*words, config=path).refuses(2, f"{path}:4: polcy: unknown key; did you mean policy?")


def test_check_refuses_it_too_and_names_what_is_wrong(fencer, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(f"{GOOD}polcy: {{}}\n")
    done = fencer("check", config=path)
    done.refuses(2, f"{path}:4: polcy: unknown key")
    assert "Not ready to be armed: config." in done.out


def test_check_tells_a_program_what_is_wrong_where_it_reads(fencer, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(f"{GOOD}polcy: {{}}\nmood: good\n")
    done = fencer("check", "-o", "json", config=path)
    [row] = json.loads(done.out)["findings"]
    assert f"{path}:4: polcy: unknown key; did you mean policy?" in row["note"]
    assert f"{path}:5: mood: unknown key" in row["note"]
    done.refuses(2, f"{path}:4: polcy: unknown key")


@pytest.mark.parametrize("make", [Path.mkdir, lambda _path: None], ids=["a folder", "nothing"])
def test_a_path_that_leads_to_no_file_is_told(fencer, tmp_path, make):
    make(tmp_path / "config.yaml")
    fencer("status", config=tmp_path / "config.yaml").refuses(2, "config.yaml: ")


# -- secrets ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "level", "what"),
    [
        (0o644, "FAIL", "can be read by everybody (mode 0644)"),
        (0o602, "FAIL", "can be written by everybody (mode 0602)"),
        (0o640, "warn", "can be read by its group (mode 0640)"),
    ],
)
def test_check_names_a_kubeconfig_that_is_not_ours_alone(fencer, config, kubeconfig, mode, level, what):
    kubeconfig.chmod(mode)
    row = secrets_row(fencer("check", config=config))
    assert level in row.split()
    assert f"{kubeconfig}: {what}" in row


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda _path: None, "no such file"),
        (Path.mkdir, "is not a file"),
        (Path.touch, "is empty"),
        (lambda path: path.write_text("secret"), "can be read by everybody"),
    ],
)
def test_check_names_a_token_that_is_missing_or_exposed(fencer, tmp_path, config, content, make, what):
    token = tmp_path / "token"
    make(token)
    if token.is_file():
        token.chmod(0o644 if token.read_text() else 0o600)
    config.write_text(yaml.safe_dump({**content, "hypervisors": [proxmox_with(token)]}))
    done = fencer("check", config=config)
    assert f"{token}: {what}" in secrets_row(done)
    assert done.code == 1


def test_check_names_what_makes_a_missing_token_and_each_trouble_once(fencer, tmp_path, config, content):
    token = tmp_path / "token"
    gone = {**content["kubernetes"], "kubeconfig": str(tmp_path / "gone")}
    config.write_text(yaml.safe_dump({**content, "hypervisors": [proxmox_with(token)], "kubernetes": gone}))
    done = fencer("check", config=config)
    assert f"fencer setup proxmox --token-id 'fencer@pve!agent' --token-file {token} " in done.out
    assert "Not ready to be armed: secrets, transport, kubernetes, home." in done.out


@pytest.mark.parametrize("key", ["client-key", "tokenFile"])
def test_check_and_watch_name_a_secret_beside_the_kubeconfig_that_is_not_ours_alone(
    fencer, tmp_path, config, kubeconfig, key
):
    beside = tmp_path / "beside"
    beside.write_text("secret")
    beside.chmod(0o644)
    write_kubeconfig(kubeconfig, "http://127.0.0.1:1", {key: "beside"})
    done = fencer("check", config=config)
    assert f"{beside}: can be read by everybody (mode 0644)" in secrets_row(done)
    assert "secret" not in secrets_row(done).removeprefix("secrets")
    assert f"{beside}: can be read by everybody" in fencer("watch", "--once", config=config).err


def test_check_counts_what_the_kubeconfig_names(fencer, tmp_path, config, kubeconfig):
    beside = tmp_path / "beside"
    beside.write_text("secret")
    beside.chmod(0o600)
    write_kubeconfig(kubeconfig, "http://127.0.0.1:1", {"tokenFile": str(beside)})
    assert secrets_row(fencer("check", config=config)).split()[1:3] == ["2", "files"]


@pytest.mark.parametrize("said", [["-F", "{file}"], ["-o", "KnownHostsCommand={file} %H"]])
def test_check_says_what_it_does_not_look_into_and_how_to_see_it(fencer, tmp_path, config, content, said):
    """The file may say `StrictHostKeyChecking no`: only ssh knows what comes of it all."""
    said = [word.format(file=tmp_path / "ssh_config") for word in said]
    box = {"name": "box", "type": "virtualbox", "command": ["ssh", *said, "me@127.0.0.1", "false"]}
    config.write_text(yaml.safe_dump({**content, "hypervisors": [box]}))
    done = fencer("check", "-o", "json", config=config)
    rows = [row for row in json.loads(done.out)["findings"] if row["what"] == "transport"]
    (row,) = (row for row in rows if row["about"] == "box")
    assert (row["level"], str(tmp_path / "ssh_config") in row["note"]) == ("note", True)
    assert row["try"][0].startswith(f"ssh -G {said[0]} ")


def proxmox_with(token):
    return {
        "name": "home",
        "type": "proxmox",
        "cluster": "home",
        "servers": ["https://127.0.0.1:1"],
        "token_id": "fencer@pve!agent",
        "token_file": str(token),
    }


def secrets_row(done):
    (row,) = [line for line in done.out.splitlines() if line.startswith("secrets")]
    return row


# -- the kubeconfig ---------------------------------------------------------------------------------------


def test_a_context_that_is_not_in_the_kubeconfig_is_told(fencer, config, content):
    content["kubernetes"]["context"] = "nowhere"
    config.write_text(yaml.safe_dump(content))
    fencer("status", config=config).refuses(2, content["kubernetes"]["kubeconfig"], "nowhere")


TLS = {"server": "https://127.0.0.1:1"}


def changed(**entries):
    def change(text):
        return json.dumps({**json.loads(text), **entries})

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda _text: "",
        lambda _text: "<html>sign in</html>",
        lambda text: text[:40],
        lambda _text: "\x00\x01",
        lambda _text: "[]",
        changed(contexts=[]),
        changed(users=[]),
        changed(clusters=[{"name": "test", "cluster": {}}]),
        changed(clusters=[{"name": "test", "cluster": {"server": "ftp://10.0.0.10"}}]),
        changed(clusters=[{"name": "test", "cluster": {**TLS, "certificate-authority": "/none"}}]),
        changed(
            clusters=[{"name": "test", "cluster": TLS}],
            users=[{"name": "test", "user": {"client-certificate": "/none", "client-key": "/none"}}],
        ),
    ],
    ids=[
        *("empty", "html", "cut off", "binary", "a list", "no context", "no user", "no server", "ftp"),
        *("no CA", "no certificate"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_named(fencer, config, kubeconfig, change):
    kubeconfig.write_text(change(kubeconfig.read_text()))
    fencer("status", config=config).refuses(2, f"fencer: {kubeconfig}:")


def test_a_plugin_for_credentials_that_is_not_there_is_told(fencer, config, kubeconfig):
    plugin = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/nowhere/plugin"}}
    kubeconfig.write_text(changed(users=[{"name": "test", "user": plugin}])(kubeconfig.read_text()))
    fencer("status", config=config).refuses(3, "/nowhere/plugin")


# -- API servers ------------------------------------------------------------------------------------------

PORTAL = "<html><body>Please sign in to the \x1b[31mwifi</body></html>"


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        (answer(PORTAL, kind="text/html"), "not a JSON object"),
        (answer(PORTAL, kind="text/html", status=502), "502"),
        (answer('{"kind": "Namespace", "meta'), "not a JSON object"),
        (answer(""), "is empty"),
        (answer("[]"), "not a JSON object"),
        (answer({"kind": "Namespace", "metadata": []}), "expected a NodeList, not 'Namespace'"),
        (answer({"kind": "NodeList", "items": 7}), "items"),
        (status(401, message="a\nforged line\x1b[0m"), "a forged line"),
        (status(403, message="may not"), "may not"),
        (hang_up, "does not answer: Remote end closed connection without response"),
    ],
    ids=["html", "502", "cut off", "empty", "a list", "shape", "items", "401", "403", "hang up"],
)
def test_an_api_that_answers_nonsense_is_one_line_and_code_3(fencer, config, kubeconfig, behaviour, said):
    with led_to(behaviour, kubeconfig) as url:
        done = fencer("status", config=config)
    done.refuses(3, url, said)
    assert len(done.err.splitlines()) == 1


def odd_header(_request, connection, _end):
    """Answer with a header that is none; urllib3 logs such a one, as it came, with a traceback."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nDate: x\r\n\x1b[2J\x1b]0;owned\x07 no header\r\n\r\n{}")


def test_what_a_library_logs_of_a_server_does_not_drive_the_terminal(fencer, config, kubeconfig):
    """`Said` holds every line against what a person can see."""
    with led_to(odd_header, kubeconfig):
        done = fencer("status", config=config)
    assert done.code == 3
    assert r"\x1b]0;owned" in done.err


@contextmanager
def led_to(behaviour, kubeconfig):
    """Let the kubeconfig lead to a server that behaves so, and give its URL."""
    with StandIn(behaviour) as server:
        write_kubeconfig(kubeconfig, server.url)
        yield server.url


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_says_so_when_nobody_listens(fencer, config, words):
    fencer(*words, config=config).refuses(3, "http://127.0.0.1:1 does not answer: Connection refused")


EVERY = (
    *COMMANDS,
    ["check"],
    ["config", "show"],
    ["demo", "nic-off", "--instant"],
    ["drain", "k8s-1", "--yes"],
    ["drill", "k8s-1", "--yes"],
    ["history"],
    ["init", "--yes"],
    ["journal", "verify"],
    ["notify"],
    ["pause", "--why", "storage"],
    ["plan", "k8s-1"],
    ["replay", "last"],
    ["report", "--last", "--md"],
    ["resume"],
    ["setup", "kubernetes"],
    ["shutdown", "k8s-1", "--yes"],
    ["start", "k8s-1", "--yes"],
    ["support-bundle", "-o", "/nowhere/it.tar.gz"],
    ["topology"],
    ["trust", "box", "--why", "checked it", "--yes"],
    ["approve"],
    ["unfence", "k8s-1", "--yes"],
    ["version"],
)


@pytest.mark.slow
@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_every_command_says_the_same_started_as_forked(fencer, config, words):
    """It imports what it needs by itself, and its entry point is there."""
    configured = None if words[0] in {"demo", "setup"} else config
    real, forked = started(*words, config=configured), fencer(*words, config=configured)
    assert (real.code, real.out) == (forked.code, forked.out)
    assert WHEN.sub("", real.err) == WHEN.sub("", forked.err)


def test_no_command_is_left_out_there():
    assert {words[0] for words in EVERY} == set(main.COMMANDS)


@pytest.mark.slow  # it is given so long
def test_an_api_that_says_nothing_is_given_up(fencer, config, kubeconfig):
    with led_to(silent, kubeconfig) as url:
        fencer("status", config=config).refuses(3, url)


def test_check_goes_on_where_the_api_answers_nonsense(fencer, config, kubeconfig):
    with led_to(answer(PORTAL, kind="text/html"), kubeconfig):
        done = fencer("check", config=config)
    assert done.code == 1
    assert [line.split()[0] for line in done.out.splitlines() if " FAIL " in line] == [
        "transport",
        "kubernetes",
        "box",
    ]


# -- names ------------------------------------------------------------------------------------------------

ODD = "k8s-1\n\x1b[2Jtime=0 level=info text=fenced \u202e--yes"
DASHED = "--help"
BROKEN = {"kind": "Node", "metadata": {"name": "half\x1b]0;owned\x07", "uid": ["no text"]}}


def odd_cluster():
    """A cluster whose nodes go by impossible names; one of them cannot be read at all."""
    allowed = answer({"kind": "SelfSubjectAccessReview", "status": {"allowed": True}})
    myself = {"kind": "SelfSubjectReview", "status": {"userInfo": {"username": "me\n\x1b[31m"}}}
    return routes(
        {
            "/kube-system": namespace(),
            "/version": answer({"gitVersion": "v1.36.2\x1b[31m"}),
            "/selfsubjectreviews": answer(myself),
            "/selfsubjectaccessreviews": allowed,
            "/leases": listing("LeaseList"),
            "/leases/k8s-7": status(404, reason="NotFound", name="k8s-7"),
            "/nodes": listing("NodeList", node(ODD), BROKEN, node(DASHED), node("k8s-7")),
        }
    )


SHOWN = "k8s-1\\n\\x1b[2Jtime=0 level=info text=fenced \\u202e--yes"


@pytest.mark.parametrize("words", [["status"], ["explain", "--", ODD], ["check"]], ids=lambda words: words[0])
def test_names_of_nodes_drive_no_terminal_and_forge_no_line(fencer, config, kubeconfig, words):
    """That each line is printable is seen to for all; here the odd name must also stay on its line."""
    with led_to(odd_cluster(), kubeconfig):
        done = fencer(*words[:1], "-c", config, *words[1:])
    assert not any(line.startswith("time=0") for line in (done.out + done.err).splitlines())
    assert SHOWN in done.out or words == ["check"]


def test_a_node_that_cannot_be_read_hides_no_other(fencer, config, kubeconfig):
    with led_to(odd_cluster(), kubeconfig):
        done = fencer("status", config=config)
    assert "k8s-7" in done.out
    assert "cannot be read: node half\\x1b]0;owned\\x07: metadata.uid" in done.out


def test_data_for_scripts_has_the_names_as_they_are(fencer, config, kubeconfig):
    with led_to(odd_cluster(), kubeconfig):
        done = fencer("status", "-o", "json", config=config)
    assert {one["node"] for one in json.loads(done.out)["nodes"]} == {ODD, DASHED, "k8s-7"}


def test_log_and_journal_keep_each_name_on_its_line(fencer, tmp_path, config, content, kubeconfig):
    journal = tmp_path / "journal.db"
    config.write_text(yaml.safe_dump({**content, "mode": "observe", "journal": {"file": str(journal)}}))
    with led_to(odd_cluster(), kubeconfig):
        done = fencer("watch", "--once", config=config)
    assert done.code == 3, done.err  # box does not answer
    assert all(line.startswith("time=20") for line in done.err.splitlines())
    assert 'node="k8s-1\\n\\x1b[2Jtime=0' in done.err
    assert {ODD, DASHED, "k8s-7"} <= {one.node for one in entries(journal)}
    shown = fencer("history", "--all", config=config)
    assert shown.code == 0, shown.err
    assert "\\x1b[2Jtime=0" in shown.out
    assert "\x1b[2J" not in shown.out


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        *(("explain", name) for name in (ODD, DASHED, "../../secrets", "k8s-1,k8s-2", b"\xed\xb3\xbf")),
        ("fence", ODD),
        ("unfence", ODD),
        ("drain", ODD),
        ("start", ODD),
    ],
    ids=repr,
)
def test_a_name_that_no_node_has_is_refused_and_shown_escaped(fencer, config, kubeconfig, verb, name):
    nodes = listing("NodeList", node())
    cluster = routes({"/kube-system": namespace(), "/leases": listing("LeaseList"), "/nodes": nodes})
    run = started if isinstance(name, bytes) else fencer
    with led_to(cluster, kubeconfig):
        done = run(verb, "-c", config, *(["--yes"] if verb != "explain" else []), "--", name)
    done.refuses(2, "no such node", "Nodes: k8s-1")
    assert len(done.err.splitlines()) == 1, "also where the name has lines"


# -- arguments --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nonsense"], "nonsense: no such command"),
        (["status", "--nonsense"], "No such option '--nonsense'"),
        (["status", "-o", "xml"], "'xml' is not one of"),
        (["explain"], "Missing argument"),
        (["fence", "", "--yes"], "Name the node"),
        (["fence", "k8s-1", "--timeout", "soon"], "'soon' is no time"),
        (["unfence", "k8s-1", "--same-boot", ""], "--same-boot"),
        (["demo", "no-such-story"], "no-such-story"),
        (["\x1b[2J"], "no such command"),
    ],
    ids=repr,
)
def test_a_command_line_that_is_wrong_is_code_2(fencer, words, said):
    done = fencer(*words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


# -- hypervisors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["/nowhere/VBoxManage"], "/nowhere/VBoxManage"),
        (["/bin/echo", "nonsense"], "box"),
        (["/bin/sh", "-c", "printf '\\033[2J\\nfencer: forged'; exit 1"], "fencer: forged"),
    ],
    ids=["missing", "nonsense", "forged"],
)
def test_a_hypervisor_that_answers_nonsense_is_told_in_its_row(fencer, config, content, command, said):
    content["hypervisors"][0]["command"] = command
    config.write_text(yaml.safe_dump(content))
    done = fencer("check", config=config)
    assert done.code == 1
    assert any(said in line and " FAIL " in line for line in done.out.splitlines()), done.out


def test_a_configuration_with_escape_codes_is_refused(fencer, config, content):
    content["hypervisors"][0]["command"] = ["/bin/echo", "\x1b[2J"]
    config.write_text(yaml.safe_dump(content))
    fencer("check", config=config).refuses(2, "hypervisors[0].command")
