"""A kubeconfig from another machine brings no program, no path and no proxy to this one."""

import json

import pytest
import yaml

from fencer.cluster.borrowed import taken_over
from fencer.errors import ConfigError

K3S = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [
        {
            "name": "default",
            "cluster": {"server": "https://127.0.0.1:6443", "certificate-authority-data": "Q0E="},
        }
    ],
    "users": [{"name": "default", "user": {"client-certificate-data": "Q0E=", "client-key-data": "S0VZ"}}],
    "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
    "current-context": "default",
}


def changed(kind, **keys):
    text = json.loads(json.dumps(K3S))
    text[f"{kind}s"][0][kind] |= keys
    return yaml.safe_dump(text)


def taken(text, context=None):
    return json.loads(taken_over(text, "root@cp", "10.0.0.21", context))


def test_k3s_own_leads_to_the_node_and_keeps_its_secrets():
    found = taken(yaml.safe_dump(K3S))
    assert found["clusters"][0]["cluster"] == {
        "server": "https://10.0.0.21:6443",
        "certificate-authority-data": "Q0E=",
    }
    assert found["users"][0]["user"] == K3S["users"][0]["user"]


def test_one_that_leads_elsewhere_stays_as_it_is():
    found = taken(changed("cluster", server="https://balancer:443"))
    assert found["clusters"][0]["cluster"]["server"] == "https://balancer:443"


@pytest.mark.parametrize("server", ["https://localhost:6443", "https://[::1]:6443"])
def test_every_name_of_the_machine_itself_becomes_its_address(server):
    assert (
        taken(changed("cluster", server=server))["clusters"][0]["cluster"]["server"]
        == "https://10.0.0.21:6443"
    )


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("user", {"exec": {"command": "sh", "args": ["-c", "id > /tmp/owned"]}}),
        ("user", {"auth-provider": {"name": "gcp"}}),
        ("user", {"tokenFile": "/etc/fencer/proxmox-token"}),
        ("user", {"client-key": "/etc/ssh/ssh_host_rsa_key"}),
        ("cluster", {"certificate-authority": "/etc/shadow"}),
        ("cluster", {"proxy-url": "http://10.6.6.6"}),
        ("cluster", {"insecure-skip-tls-verify": True}),
    ],
)
def test_what_could_run_or_read_something_here_is_refused_by_name(kind, keys):
    [key] = keys
    with pytest.raises(ConfigError, match=f"^root@cp: its kubeconfig has '{key}'"):
        taken(changed(kind, **keys))


@pytest.mark.parametrize(
    "text", ["", "- 1", "{", "a: !!python/object:os.system {}", "current-context: x", "[" * 5000]
)
def test_what_is_no_kubeconfig_is_one_sentence(text):
    with pytest.raises(ConfigError, match=r"^root@cp: this is no "):
        taken(text)


def test_another_context_is_taken_where_it_is_named():
    text = json.loads(json.dumps(K3S))
    text["contexts"].append({"name": "other", "context": {"cluster": "default", "user": "default"}})
    assert taken(json.dumps(text), "other")["current-context"] == "borrowed"
    with pytest.raises(ConfigError, match="no usable kubeconfig"):
        taken(json.dumps(text), "third")
