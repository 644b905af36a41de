"""Files of this machine: those with credentials."""

from pathlib import Path

import pytest

from fencer.config.secret_files import Trouble
from tests.cli.lab import Lab
from tests.preflight.lab import findings

KUBECONFIG = Path("/etc/fencer/kubeconfig")


@pytest.mark.parametrize(("serious", "level"), [(True, "fail"), (False, "warn")])
def test_a_secret_that_others_can_read_is_named_with_what_to_type(serious, level):
    lab = Lab()
    lab.passes(30, watched=True)
    lab.exposed[KUBECONFIG] = (Trouble("can be read by everybody", "chmod 0600", serious),)
    rows, told = findings(lab)
    assert (rows["secrets"]["level"], rows["secrets"]["note"]) == (level, "can be read by everybody")
    assert rows["secrets"]["try"] == ["chmod 0600"]
    assert told["ready"] is not serious


SSH_KEY = Path("/etc/fencer/ssh_key")


def test_a_key_that_a_uri_names_is_looked_at_as_well():
    lab = Lab()
    lab.uri = f"qemu+ssh://fencer@lab1/system?keyfile={SSH_KEY}"
    rows, told = findings(lab)
    assert (rows["secrets"]["about"], rows["secrets"]["level"]) == ("2 files", "ok")
    lab.exposed[SSH_KEY] = (Trouble("can be written by everybody", "chmod 0600"),)
    rows, told = findings(lab)
    assert (rows["secrets"]["about"], rows["secrets"]["level"]) == (SSH_KEY.name, "fail")
    assert told["ready"] is False


def test_a_key_that_is_not_there_is_nothing_to_object_to():
    """Ssh goes on without, and TLS where the host asks for none; the endpoint's own row tells."""
    lab = Lab()
    lab.uri = f"qemu+ssh://fencer@lab1/system?keyfile={SSH_KEY}"
    lab.exposed[SSH_KEY] = (Trouble("no such file", f"ls -l {SSH_KEY}", missing=True),)
    rows, _ = findings(lab)
    assert (rows["secrets"]["about"], rows["secrets"]["level"]) == ("1 file", "ok")


def test_a_missing_kubeconfig_is_told_with_the_command_that_makes_it():
    lab = Lab()
    lab.exposed[KUBECONFIG] = (Trouble("no such file", "ls -l kubeconfig", missing=True),)
    rows, _ = findings(lab)
    assert rows["secrets"]["try"] == [
        "fencer setup kubernetes --kubeconfig ADMINS --output /etc/fencer/kubeconfig"
    ]
