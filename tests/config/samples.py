"""Configurations to start from, and the keys that there are."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fencer.config.document import Place
from fencer.config.keys import Section, sections_in
from fencer.config.schema import File

VALID = """\
mode: armed
kubernetes:
  kubeconfig: /etc/fencer/kubeconfig
hypervisors:
  - name: lab
    type: libvirt
    uri: qemu:///system
"""
"""The least that a configuration may say; seven lines."""

FULL = """\
mode: observe
kubernetes:
  kubeconfig: /etc/fencer/kubeconfig
  context: fencer@lab
  servers: ["https://10.0.0.11:6443", "https://[fd00::1]:6443/"]
hypervisors:
  - name: lab
    type: libvirt
    uri: qemu:///system
    power:
      mapped: true
      uuids: [6F1C2AD0-7B1E-4D39-9A5F-3F0D6F1C2AE2, "6f1c2ad07b1e4d399a5f3f0d6f1c2ae3"]
  - name: lab-2
    type: libvirt
    uri: qemu+ssh://fencer@lab2:2222/system?keyfile=/etc/fencer/key
  - name: home
    type: proxmox
    servers: [https://pve1:8006, https://pve2:8006]
    cluster: home
    token_id: fencer@pve!agent
    token_file: /etc/fencer/proxmox-token
    ca_file: /etc/fencer/pve-root-ca.pem
    power:
      tag: fencer
      pool: k8s/lab
    host_power:
      - host: pve1
        agent: fence_ipmilan
        path: /usr/sbin/fence_ipmilan
        options: {ip: 10.0.0.5, username: reader, lanplus: "1"}
        password_file: /etc/fencer/board-pve1
        never_sleeps: true
      - host: pve2
        agent: fence_raritan
        outlets: ["3", "11"]
        never_sleeps: true
  - name: pinned
    type: proxmox
    servers: [https://pve9:8006]
    cluster: standalone
    token_id: fencer@pve!agent
    token_file: /etc/fencer/proxmox-token
    fingerprints: ["87:9D"]
  - name: box
    type: virtualbox
    command: [ssh, vagrant@box, VBoxManage]
    power:
      mapped: true
nodes:
  k8s-1: lab/k8s 1
  k8s-2.example.com: lab-2/6F1C2AD0-7B1E-4D39-9A5F-3F0D6F1C2AE9
policy:
  poll_s: 1.5
  paused_guest: trust
  max_fenced: 2
maintenance:
  - days: [sat, 2026-12-24]
    from: "22:00"
    to: "02:00"
    zone: Europe/Berlin
    nodes: ["k8s-*"]
    why: backups
hook:
  pre_stop: drain
  budget_s: 120
journal:
  enabled: true
  file: /srv/fencer/journal.db
  keep_days: 90
  max_mb: 500
state_file: /srv/fencer/state.jsonl
notify:
  source: home
  remind_s: 3600
  page_url: https://fencer.home.example/
  told_file: /srv/fencer/notified.json
  receivers:
    - name: phone
      type: ntfy
      on: [alarm, refused, back]
      server: http://ntfy.lan/push
      topic: fencer-Rk2v9XwQz7
      token_file: /etc/fencer/ntfy-token
      unauthenticated: true
    - name: gotify
      type: gotify
      server: https://gotify.home.example
      token_file: /etc/fencer/gotify-token
      ca_file: /etc/fencer/home-ca.pem
    - name: alerts
      type: alertmanager
      servers: ["http://127.0.0.1:9093", "https://[fd00::1]:9093"]
      token_file: /etc/fencer/alertmanager-token
    - name: hook
      type: webhook
      url_file: /etc/fencer/webhook-url
      token_file: /etc/fencer/webhook-token
    - name: mail
      type: mail
      to: [root, admin@example.org]
      sender: fencer@example.org
      server: "[::1]:25"
    - name: chat
      type: apprise
      urls_file: /etc/fencer/apprise-urls
web:
  enabled: true
  listen: "[::1]:9722"
  names: [fencer.example]
"""
"""Every kind of key, with values that are not defaults."""

FARM = """\
  - name: farm
    type: cells
    settings: {farm: /srv/farm, servers: [a, b], tries: 3}
    secret_files:
      token: /etc/fencer/farm-token
    one_host: true
    power:
      mapped: true
    host_power:
      - {host: farm1, agent: fence_ipmilan, never_sleeps: true}
"""
WITH_OTHERS = FULL.replace("nodes:\n", f"{FARM}nodes:\n", 1)
"""And a hypervisor whose adapter another package brings: that of docs/adapter-example."""

CONFIG = Path(__file__).parents[2] / "config"
EXAMPLES = sorted((CONFIG / "examples").glob("*.yaml"))
REFERENCE = CONFIG / "fencer.yaml"


def uncommented() -> str:
    """The reference with every key switched on: "#key" is a key, "# text" is text."""
    text = re.sub(r"^( *)#(?=\S)", r"\1", REFERENCE.read_text(), flags=re.MULTILINE)
    assert text != REFERENCE.read_text()
    return text


def keys(section: type[Section] = File, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every key of the schema with its place, lists left out of it."""
    for name, field in section.model_fields.items():
        yield (*place, name), field
        for inner in sections_in(field.annotation):
            yield from keys(inner, (*place, name))
