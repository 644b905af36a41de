"""What the agent says of credentials that end."""

from datetime import timedelta

from fencer.errors import ClusterUnreachable, ConfigError
from fencer.ports import Credential
from fencer.runtime.reminder import CredentialReminder
from tests.cli.lab import RENEWAL, Lab


def test_it_is_looked_at_once_a_day():
    """An agent may run for longer than a token is good."""
    lab, now_s, told = Lab(), [0.0], []
    reminder = CredentialReminder(lab.own.credentials, lambda: now_s[0], lab.wall, told.append)
    for day in (0.0, 0.5, 1.0, 1.5, 2.0):
        now_s[0] = day * 86400
        lab.own.ends = lab.wall() + (timedelta(days=60) if day < 1 else timedelta(days=1))
        reminder.look()
    assert len(told) == 2


def test_a_kubeconfig_that_cannot_be_used_any_more_is_told_while_its_token_still_leads_in():
    """A restart would end with it."""

    def broken():
        raise ConfigError("/etc/fencer/kubeconfig: cannot be read by user 998: Permission denied")

    lab, told = Lab(), []
    CredentialReminder(broken, lambda: 0.0, lab.wall, told.append).look()
    assert told == [
        "the credentials for Kubernetes cannot be read again: /etc/fencer/kubeconfig: cannot be read by user "
        "998: Permission denied"
    ]


def test_credentials_that_do_not_come_keep_nobody_from_fencing():
    """A plugin hangs: it is asked under a deadline, and again a day later."""
    lab, told, asked = Lab(), [], []

    def late():
        asked.append(True)
        raise ClusterUnreachable("no answer within 10 s")

    reminder = CredentialReminder(late, lambda: 0.0, lab.wall, told.append)
    reminder.look()
    reminder.look()
    assert (len(asked), told) == (1, [])


def test_a_token_for_a_day_is_told_of_in_its_last_hours_not_from_its_first_minute_on():
    lab, told, now_s = Lab(), [], [0.0]
    reminder = CredentialReminder(lab.own.credentials, lambda: now_s[0], lab.wall, told.append)
    for left_h in (20, 7):
        ends = lab.wall() + timedelta(hours=left_h)
        lab.own.others = [Credential("token", ends, RENEWAL, ends - timedelta(hours=24))]
        reminder.look()
        now_s[0] += 86400
    [text] = told
    assert text.startswith("the token for Kubernetes ends in 7 hours: then this fencer can neither fence")
