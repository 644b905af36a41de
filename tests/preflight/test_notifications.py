"""Whether anybody is told, and on whose way others read along."""

from pathlib import Path

import pytest

from fencer.cluster.settings import ClusterSettings
from fencer.config.settings import Config
from fencer.core.policy import Mode, Policy
from fencer.notify.settings import ALL, MailSettings, NotifySettings, NtfySettings
from fencer.preflight.facts import ReceiverFacts
from fencer.preflight.finding import Level
from fencer.preflight.notifications import judge

PHONE = NtfySettings("phone", ALL, "http://ntfy.lan", "topic")
MAIL = MailSettings("mail", ALL, ("root",))


def told(*receivers, mode=Mode.ARMED, **facts):
    config = Config(
        policy=Policy(mode=mode),
        kubernetes=ClusterSettings(Path("/etc/fencer/kubeconfig")),
        endpoints=(),
        notify=NotifySettings(receivers),
    )
    return [(one.level, one.about, one.note) for one in judge(config, facts)]


@pytest.mark.parametrize(("mode", "number"), [(Mode.ARMED, 1), (Mode.OBSERVE, 0)])
def test_that_nobody_is_told_is_a_note_once_fencer_may_fence(mode, number):
    found = told(mode=mode)
    assert [level for level, *_ in found] == [Level.NOTE] * number


def test_receivers_with_which_nothing_is_wrong_are_one_row():
    assert told(PHONE, MAIL) == [(Level.OK, "2 receivers", "`fencer notify --test` sends one to each")]


def test_one_that_cannot_be_told_is_a_warning_and_no_failure():
    trouble = ReceiverFacts("apprise is not installed", "pip install 'fencer-agent[apprise]'")
    [(level, about, note)] = told(PHONE, MAIL, mail=trouble)
    assert (level, about) == (Level.WARN, "mail")
    assert note == "apprise is not installed: nobody is told this way; fencing goes on"


def test_one_that_others_can_read_along_is_a_warning_with_what_that_means():
    [(level, about, note)] = told(PHONE, phone=ReceiverFacts(in_clear="http:// is not encrypted"))
    assert (level, about) == (Level.WARN, "phone")
    assert note.startswith("http:// is not encrypted: anybody in between reads the messages and the token")
