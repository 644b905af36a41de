"""What is shown of a configuration to a helper: only what is known to be harmless, also of a wrong one."""

import json
from pathlib import Path

import pytest
import yaml

from fencer.config.document import parse
from fencer.config.keys import sections_in
from fencer.config.redact import FILE, LEFT_OUT, OTHERS, Each, redact
from fencer.config.schema import File
from fencer.config.show import show_redacted

CANARY = "CANARY+x9Kq/2Lm4=="
"""Like a token: no name may look like that."""
WHOLE = {
    "mode": "armed",
    "kubernetes": {
        "kubeconfig": "/etc/fencer/kubeconfig",
        "context": "fencer@lab",
        "servers": ["https://10.0.0.11:6443"],
        "unauthenticated": False,
    },
    "hypervisors": [
        {
            "name": "lab",
            "type": "libvirt",
            "uri": "qemu+ssh://fencer@lab1/system",
            "unauthenticated": False,
            "power": {"mapped": True, "uuids": ["6f1c2ad0-7b1e-4d39-9a5f-3f0d6f1c2ae2"]},
            "host_power": [
                {
                    "host": "lab1",
                    "agent": "fence_ipmilan",
                    "path": "/usr/sbin/fence_ipmilan",
                    "options": {"ip": "10.0.0.5", "lanplus": "1"},
                    "password_file": "/etc/fencer/board",
                    "never_sleeps": True,
                }
            ],
        },
        {
            "name": "home",
            "type": "proxmox",
            "servers": ["https://10.0.0.1:8006"],
            "cluster": "home",
            "token_id": "fencer@pve!agent",
            "token_file": "/etc/fencer/token",
            "ca_file": "/etc/fencer/ca.pem",
            "power": {"tag": "fencer", "pool": "k8s/lab"},
        },
        {"name": "box", "type": "virtualbox", "command": ["ssh", "-p", "2222", "me@box", "VBoxManage"]},
        {"name": "farm", "type": "cells", "settings": {"farm": "/srv"}, "secret_files": {"key": "/etc/key"}},
    ],
    "nodes": {"k8s-1": "lab/k8s-1"},
    "policy": {"confirm_s": 8, "paused_guest": "stop", "require_not_ready": True},
    "maintenance": [
        {
            "days": ["sat", "2026-12-24"],
            "from": "22:00",
            "to": "02:00",
            "zone": "Europe/Berlin",
            "nodes": ["k8s-*"],
        }
    ],
    "hook": {"pre_stop": "drain", "budget_s": 60},
    "journal": {"enabled": True, "file": "/var/lib/fencer/journal.db", "keep_days": 90, "max_mb": 10},
    "state_file": "/var/lib/fencer/state.jsonl",
    "notify": {
        "receivers": [
            {
                "name": "phone",
                "type": "ntfy",
                "on": ["fenced", "back"],
                "server": "https://ntfy.example",
                "topic": "topic-of-mine",
                "token_file": "/etc/fencer/ntfy",
                "ca_file": "/etc/fencer/ca.pem",
                "unauthenticated": False,
            },
            {"name": "alerts", "type": "alertmanager", "servers": ["http://127.0.0.1:9093"]},
            {"name": "hook", "type": "webhook", "url_file": "/etc/fencer/hook-url"},
            {
                "name": "mail",
                "type": "mail",
                "to": ["me@x.org"],
                "sender": "f@x.org",
                "server": "localhost:25",
            },
            {"name": "chat", "type": "apprise", "urls_file": "/etc/fencer/apprise"},
        ],
        "source": "home",
        "remind_s": 3600,
        "page_url": "https://fencer.home.example/",
        "told_file": "/var/lib/fencer/notified.json",
    },
}


def shown(root):
    return json.dumps(redact(root).root)


def places(value, place=()):
    """Yield the place of each value that is no mapping and no list."""
    if isinstance(value, dict | list):
        for name, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(one, (*place, name))
    else:
        yield place


def planted(place, what, root=WHOLE):
    """Return a copy with something else at a place."""
    if not place:
        return what
    copy = dict(root) if isinstance(root, dict) else list(root)
    copy[place[0]] = planted(place[1:], what, root[place[0]])
    return copy


WHATS = [CANARY, f"/{CANARY}", {CANARY: CANARY}, [CANARY], {"password": CANARY}, [[CANARY]]]
PLACES = [*places(WHOLE)]
SECTIONS = [*dict.fromkeys(place[:-1] for place in PLACES if isinstance(place[-1], str))]


@pytest.mark.parametrize("what", WHATS, ids=["text", "path", "mapping", "list", "key", "lists"])
def test_a_secret_at_any_place_is_left_out(what):
    for place in PLACES:
        redacted = redact(planted(place, what))
        assert "CANARY" not in json.dumps(redacted.root), place
        assert any(CANARY in text for text in redacted.lost), place


@pytest.mark.parametrize("place", SECTIONS, ids=str)
def test_a_secret_under_an_unknown_key_is_left_out_and_so_is_the_key(place):
    section = WHOLE
    for part in place:
        section = section[part]
    redacted = redact(planted(place, {**section, CANARY: CANARY, "passwd": "hunter22"}))
    assert "CANARY" not in json.dumps(redacted.root)
    assert "hunter22" not in json.dumps(redacted.root)
    assert {CANARY, "hunter22"} <= redacted.lost
    if place[-1:] not in {("settings",), ("secret_files",)}:  # of these nothing is shown at all
        assert f'"passwd": "{LEFT_OUT}"' in json.dumps(redacted.root)
        assert f'"{OTHERS}": "{LEFT_OUT}"' in json.dumps(redacted.root)


@pytest.mark.parametrize("root", [CANARY, [CANARY], {CANARY: 1}, 7, None])
def test_what_is_no_configuration_is_left_out(root):
    assert "CANARY" not in shown(root)


def test_what_is_harmless_is_shown_as_it_is_written():
    root = redact(WHOLE).root
    assert root["kubernetes"] == {**WHOLE["kubernetes"], "context": LEFT_OUT}
    assert root["hypervisors"][:2] == WHOLE["hypervisors"][:2]
    assert root["hypervisors"][2]["command"] == ["ssh", "-p", LEFT_OUT, LEFT_OUT, "VBoxManage"]
    assert root["hypervisors"][3]["settings"] == LEFT_OUT
    for name in ("mode", "nodes", "policy", "hook", "journal"):
        assert root[name] == WHOLE[name]
    phone, alerts, hook, mail, chat = WHOLE["notify"]["receivers"]
    told = [
        {**phone, "topic": LEFT_OUT},
        alerts,
        hook,
        {**mail, "to": LEFT_OUT, "sender": LEFT_OUT},
        chat,
    ]
    assert root["notify"] == {**WHOLE["notify"], "receivers": told}


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("qemu:///system", "qemu:///system"),
        ("qemu+ssh://fencer@lab1:22/system", "qemu+ssh://fencer@lab1:22/system"),
        ("qemu+ssh://fencer:CANARY@lab1/system", f"qemu+ssh://{LEFT_OUT}@lab1/system"),
        ("qemu+ssh://CANARY9kq2Lm4tokenToken@lab1/system", f"qemu+ssh://{LEFT_OUT}@lab1/system"),
        ("qemu+tls://lab1/system?pkipath=/CANARY", f"qemu+tls://lab1/system?{LEFT_OUT}"),
        ("qemu+ssh://me:CANARY/system", LEFT_OUT),
        ("qemu+ssh://me:CAN/ARY@lab1/system", LEFT_OUT),
        ("https://me:CANARY@lab1/", LEFT_OUT),
    ],
)
def test_a_uri_is_shown_without_password_and_parameters(uri, told):
    root = planted(("hypervisors", 0, "uri"), uri)
    assert redact(root).root["hypervisors"][0]["uri"] == told


def test_options_of_fence_agents_are_shown_by_name():
    options = {"ip": "10.0.0.5", "username": "CANARY", "hexadecimal_kg": "CANARY", "cipher": "3"}
    root = planted(("hypervisors", 0, "host_power", 0, "options"), options)
    told = redact(root).root["hypervisors"][0]["host_power"][0]["options"]
    assert told == {"ip": "10.0.0.5", "cipher": "3", "username": LEFT_OUT, "hexadecimal_kg": LEFT_OUT}


def test_files_with_secrets_are_named_so_that_what_is_in_them_can_be_kept_out():
    assert redact(WHOLE).files == {
        "/etc/fencer/kubeconfig",
        "/etc/fencer/board",
        "/etc/fencer/token",
        "/etc/key",
        "/etc/fencer/ntfy",
        "/etc/fencer/hook-url",
        "/etc/fencer/apprise",
    }


def names(section):
    """Return all keys of the schema, each with those in it."""
    told = {}
    for name, known in section.model_fields.items():
        inner = [names(one) for one in sections_in(known.annotation)]
        told[name] = {key: value for one in inner for key, value in one.items()}
    return told


def undecided(schema, shape, place=""):
    for name, inner in schema.items():
        if name not in shape:
            yield f"{place}{name}"
            continue
        what = shape[name][0] if isinstance(shape[name], list) else shape[name]
        if inner and isinstance(what, dict):
            yield from undecided(inner, what, f"{place}{name}.")
        elif inner:
            assert callable(what) or isinstance(what, Each)


def test_somebody_has_decided_about_every_key_of_the_schema():
    assert [*undecided(names(File), FILE)] == []
    assert [*undecided({"kubernetes": {"new": {}}}, FILE)] == ["kubernetes.new"]


def test_the_values_in_force_are_redacted_too_and_say_their_lines(tmp_path):
    file = tmp_path / "fencer.yaml"
    file.write_text(
        "# CANARY in a comment\n"
        "mode: observe\n"
        "kubernetes: {kubeconfig: /etc/fencer/kubeconfig, context: CANARY}\n"
        "hypervisors:\n"
        "- name: lab\n"
        "  type: libvirt\n"
        "  uri: qemu+ssh://fencer@lab1/system?keyfile=/CANARY\n"
        "  host_power:\n"
        "  - {host: lab1, agent: fence_ipmilan, never_sleeps: true, options: {username: CANARY}}\n"
    )
    told = show_redacted(file)
    assert "CANARY" not in told
    assert "mode: observe  # line 2" in told
    assert f'uri: "qemu+ssh://fencer@lab1/system?{LEFT_OUT}"  # line 7' in told
    assert f'username: "{LEFT_OUT}"  # line 9' in told
    assert "confirm_s: 5  # default" in told


def test_the_example_with_every_key_is_shown_but_for_what_could_be_secret():
    file = Path(__file__).parent.parent.parent / "config" / "fencer.yaml"
    redacted = redact(parse(file.read_bytes(), str(file)).root)
    assert LEFT_OUT not in yaml.safe_dump(redacted.root)
