"""Files of this machine: those with credentials."""

from dataclasses import replace
from pathlib import Path

import pytest

from fencer.cluster.settings import ClusterSettings
from fencer.config.secret_files import Trouble
from fencer.config.settings import Config, JournalSettings, ProxmoxEndpoint
from fencer.core.policy import Policy
from fencer.preflight.facts import JournalFacts, StateFacts
from fencer.preflight.files import judge_journal, judge_secrets, judge_state, refuse_config
from fencer.preflight.finding import Level
from fencer.preflight.report import Report
from fencer.simulation.clock import EPOCH
from tests.cli.lab import Lab
from tests.preflight.lab import findings

KUBECONFIG = Path("/etc/fencer/kubeconfig")
JOURNAL = JournalSettings(Path("/var/lib/fencer/journal.db"))


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


def test_a_missing_token_is_told_with_the_command_that_prints_what_makes_it():
    token = Path("/etc/fencer/token")
    endpoint = ProxmoxEndpoint("home", ("https://pve1:8006",), "home", "fencer@pve!agent", token)
    config = Config(Policy(), ClusterSettings(KUBECONFIG), (endpoint,))
    missing = Trouble("no such file", "ls -l", missing=True)
    own, other = judge_secrets(config, {token: (missing,), Path("/etc/fencer/password"): (missing,)})
    assert own.tries[0].startswith("fencer setup proxmox --token-id 'fencer@pve!agent' --token-file /etc/")
    assert other.tries == ("ls -l",), "that is not fencer's to make"


@pytest.mark.parametrize(
    ("settings", "facts", "level", "note"),
    [
        (None, JournalFacts(), Level.NOTE, "none is kept, by `journal.enabled: false`"),
        (JOURNAL, JournalFacts(), Level.OK, "none yet: the first that acts begins it"),
        (JOURNAL, JournalFacts(4096), Level.OK, "empty, 0.0 MB of 100"),
        (JOURNAL, JournalFacts(4_200_000, EPOCH), Level.OK, "since 2026-01-01 00:00 UTC, 4.2 MB of 100"),
    ],
    ids=["none", "none yet", "empty", "kept"],
)
def test_where_the_journal_is_how_large_and_since_when_it_is_kept(settings, facts, level, note):
    told = judge_journal(settings, facts)
    assert (told.about, told.level, told.note) == (str(settings.file) if settings else "", level, note)


def test_a_journal_that_cannot_be_written_is_a_warning_for_fencing_goes_on():
    told = judge_journal(JOURNAL, JournalFacts(4096, None, "cannot be written: the disk is full"))
    assert told.level is Level.WARN
    assert told.note.startswith("cannot be written: the disk is full; fencing goes on without it")
    assert told.tries == (
        "install -d -m 0750 /var/lib/fencer   (owned by fencer's user)",
        "df -h /var/lib/fencer",
    )


def test_a_journal_that_is_none_needs_no_room_on_the_disk():
    told = judge_journal(JOURNAL, JournalFacts(4096, None, "cannot be read: another program's database"))
    assert told.level is Level.WARN
    assert len(told.tries) == 1
    assert told.tries[0].startswith("another file in journal.file")


STATE = Path("/var/lib/fencer/state.jsonl")


@pytest.mark.parametrize(
    ("facts", "level", "note"),
    [
        (StateFacts(), Level.OK, "none yet: `fencer watch` writes it"),
        (StateFacts(7_200_000), Level.OK, "7.2 MB, signed"),
        (
            StateFacts(700, damage="is damaged: it is cut off", remedy=f"mv {STATE} {STATE}.damaged"),
            Level.FAIL,
            "is damaged: it is cut off; an agent that starts fences nothing until it is moved away",
        ),
        (
            StateFacts(700, trouble="cannot be written: the disk is full"),
            Level.FAIL,
            "cannot be written: the disk is full; what an agent has seen while the API server is down, a "
            "restart would forget",
        ),
    ],
    ids=["none yet", "kept", "damaged", "full"],
)
def test_whether_an_agent_can_keep_what_it_sees(facts, level, note):
    [told] = judge_state(STATE, facts)
    assert (told.what, told.about, told.level, told.note) == ("state", str(STATE), level, note)
    assert bool(told.tries) is (level is not Level.OK)
    if facts.remedy:
        condition = "if you know that no VM that is off now was saved or moved away"
        assert told.tries == (f"{facts.remedy}   ({condition})",)


def test_where_no_place_is_named_there_is_nothing_to_say():
    assert [*judge_state(None, None)] == []
    assert "state" not in findings(Lab())[0]


def test_a_state_that_cannot_be_kept_fails_the_check(tmp_path):
    (tmp_path / "it").touch()

    class Keeping(Lab):
        def load(self, path):
            return replace(super().load(path), state_file=tmp_path / "it" / "state.jsonl")

    lab = Keeping()
    lab.passes(30, watched=True)
    rows, told = findings(lab)
    assert rows["state"]["level"] == "fail"
    assert rows["state"]["note"].startswith(f"cannot be written: {tmp_path}/it is no folder; ")
    assert not told["ready"]


@pytest.mark.parametrize(
    ("missing", "fix"),
    [
        (False, "correct it, then run: fencer config check -c 'my fencer.yaml'"),
        (
            True,
            "fencer init -c 'my fencer.yaml'   (makes all that is needed); by hand: fencer setup config",
        ),
    ],
)
def test_a_configuration_that_is_wrong_or_missing_is_the_only_thing_to_say(missing, fix):
    path = Path("my fencer.yaml")
    report = Report(path, None, (refuse_config(path, "mode: missing", missing=missing),))
    assert report.failed == ("config",)
    assert report.findings[0].tries == (fix,)
