"""Files with credentials that the way to a hypervisor names: for fencer alone, as all others."""

from pathlib import Path

import pytest

from fencer.config.way_keys import of_command, of_uri
from tests.config.samples import VALID

BOX = VALID.replace("libvirt\n    uri: qemu:///system\n", "virtualbox\n    command: {}\n")
HOME = str(Path.home())


@pytest.mark.parametrize(
    ("uri", "named"),
    [
        ("qemu+ssh://fencer@lab1/system?keyfile=/etc/fencer/key&no_tty=1", ["/etc/fencer/key"]),
        ("qemu+libssh2://lab1/system?KEYFILE=%2Fetc%2Ffencer%2Fkey", ["/etc/fencer/key"]),
        ("qemu+ssh://lab1/system?keyfile=~/.ssh/lab", [f"{HOME}/.ssh/lab"]),
        ("qemu+tls://lab1/system?pkipath=/etc/fencer/pki", ["/etc/fencer/pki/clientkey.pem"]),
        ("qemu://lab1/system?pkipath=/etc/fencer/pki", ["/etc/fencer/pki/clientkey.pem"]),
        ("qemu://lab1/system?authfile=/etc/fencer/auth", ["/etc/fencer/auth"]),
        ("qemu:///system?pkipath=/etc/fencer/pki", []),
        ("qemu+ssh://lab1/system?pkipath=/etc/fencer/pki&keyfile=beside", []),
        ("qemu+ssh://lab1/system?keyfile=~%00", []),
        ("qemu+ssh://lab1/system", []),
        ("qemu+ssh://[::1/system?keyfile=/etc/fencer/key", ["/etc/fencer/key"]),
    ],
)
def test_those_of_a_libvirt_uri(load_text, uri, named):
    assert of_uri(uri) == tuple(map(Path, named))
    assert load_text(VALID.replace("qemu:///system", f'"{uri}"')).keys == tuple(map(Path, named))


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("[ssh, -i, /etc/fencer/key, me@box, VBoxManage]", ["/etc/fencer/key"]),
        ("[sudo, -u, me, ssh, -Ti/etc/fencer/key, -i, /etc/fencer/key, b, V]", ["/etc/fencer/key"]),
        ("""[ssh, -o, 'IdentityFile "/etc/fencer/a key"', b, V]""", ["/etc/fencer/a key"]),
        ("[ssh, -i, /etc/fencer/key.pub, me@box, VBoxManage]", []),
        ("[ssh, -i, '%d/key', -o, IdentityFile=none, me@box, VBoxManage]", []),
        ("[ssh, me@hop, ssh, -i, /of/another/machine, me@box, VBoxManage]", []),
        ("[VBoxManage]", []),
    ],
)
def test_those_of_a_command(load_text, command, named):
    config = load_text(BOX.format(command))
    assert of_command(config.endpoints[0].command) == config.keys == tuple(map(Path, named))
