"""Which secrets of this machine the sieve is told."""

import os

import pytest

from fencer.support.secrets import in_environment, in_files, in_urls

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: fencer@lab
clusters:
- name: lab
  cluster: {server: "https://me:CANARY-url@10.0.0.10:6443", certificate-authority-data: LS0tLS1C}
contexts:
- name: fencer@lab
  context: {cluster: lab, user: fencer}
users:
- name: fencer
  user:
    token: CANARY-token
    client-key-data: CANARY-key
    client-key: /etc/fencer/key
    exec: {command: aws, env: [{name: X, value: CANARY-env}]}
- name: other
  user: {username: me, password: CANARY-password, auth-provider: {config: {id-token: 12345678}}}
"""


def found(tmp_path, content):
    file = tmp_path / "secret"
    file.write_bytes(content)
    return {*in_files([file])}


def test_of_a_kubeconfig_all_that_its_users_must_keep_and_no_address_or_name(tmp_path):
    assert found(tmp_path, KUBECONFIG.encode()) == {
        "CANARY-token",
        "CANARY-key",
        "CANARY-env",
        "CANARY-password",
        "12345678",
        "CANARY-url",
        "X",
    } - {"X"}


@pytest.mark.parametrize("content", [b"CANARY-token", b"CANARY-token\n", b" CANARY-token \r\n"])
def test_of_a_token(tmp_path, content):
    assert found(tmp_path, content) == {"CANARY-token"}


def test_of_a_key_its_lines_without_their_frame(tmp_path):
    key = b"-----BEGIN PRIVATE KEY-----\nCANARYone\nCANARYtwo\n-----END PRIVATE KEY-----\n"
    assert found(tmp_path, key) == {"CANARYone", "CANARYtwo"}


def test_of_a_kubeconfig_that_cannot_be_read_every_line(tmp_path):
    assert "token: CANARY-token" in found(tmp_path, b"users: [\n  token: CANARY-token\n")


def test_files_that_are_not_there_or_never_end_hold_nobody_up(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert [*in_files([tmp_path / "none", tmp_path, pipe])] == []


def test_of_the_environment_what_is_named_like_a_secret_and_passwords_of_proxies():
    environment = {
        "PVE_TOKEN": "CANARY-1",
        "https_proxy": "http://me:CANARY-2@proxy:3128",
        "PATH": "/usr/bin",
        "SSH_AUTH_SOCK": "/run/agent",
    }
    assert {*in_environment(environment)} == {"CANARY-1", "CANARY-2"}


def test_of_a_url_its_password_or_the_token_in_place_of_a_user():
    assert [*in_urls("https://CANARY@host/ and https://me:CANARY/2@host/ and https://host/")] == [
        "CANARY",
        "CANARY/2",
    ]
