"""Ways to servers on which anybody may answer."""

from pathlib import Path

from fencer.cluster.settings import ClusterSettings
from fencer.config.settings import AdapterEndpoint, Config, VirtualBoxEndpoint
from fencer.core.policy import Policy
from fencer.preflight.finding import Level
from fencer.preflight.transport import judge
from tests.cli.lab import Lab
from tests.preflight.lab import findings


def test_a_way_on_which_anybody_may_answer_is_a_failure_although_it_was_taken():
    lab = Lab()
    lab.uri, lab.trusting = "qemu+tcp://lab1/system", True
    _, told = findings(lab)
    rows = [row for row in told["findings"] if row["what"] == "transport"]
    assert [(row["about"], row["level"]) for row in rows] == [("kubernetes", "fail"), ("lab", "fail")]
    assert rows[0]["try"] == [
        "remove `unauthenticated: true` from kubernetes, then do what `fencer check` says"
    ]
    assert rows[1]["note"].startswith(
        "qemu+tcp:// is neither encrypted nor authenticated: anybody in between"
    )
    assert rows[1]["try"] == [
        "remove `unauthenticated: true` from lab, then do what `fencer config check` says"
    ]
    assert (told["ready"], "transport" in told["verdict"]) == (False, True)


def test_what_is_not_looked_into_is_said_with_what_shows_it():
    attic = VirtualBoxEndpoint("attic", ("ssh", "-F", "/etc/fencer/ssh_config", "box", "VBoxManage"))
    config = Config(Policy(), ClusterSettings(Path("kubeconfig")), (attic, AdapterEndpoint("farm", "cells")))
    ssh, adapter = judge(config)
    assert (ssh.level, ssh.about) == (Level.NOTE, "attic")
    assert ssh.note == "how -F /etc/fencer/ssh_config checks the host's key is not examined"
    assert ssh.tries[0].startswith("ssh -G -F /etc/fencer/ssh_config box VBoxManage | grep")
    assert (adapter.level, adapter.about, "(cells)" in adapter.note) == (Level.NOTE, "farm", True)
