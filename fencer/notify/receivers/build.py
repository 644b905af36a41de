"""Which settings make which receiver."""

from __future__ import annotations

from typing import assert_never

from fencer.notify.receiver import DEADLINE_S, Receiver
from fencer.notify.receivers.alertmanager import Alertmanager
from fencer.notify.receivers.apprise import Apprise
from fencer.notify.receivers.gotify import Gotify
from fencer.notify.receivers.mail import Mail
from fencer.notify.receivers.ntfy import Ntfy
from fencer.notify.receivers.webhook import Webhook
from fencer.notify.settings import (
    AlertmanagerSettings,
    AppriseSettings,
    GotifySettings,
    MailSettings,
    NtfySettings,
    ReceiverSettings,
    WebhookSettings,
)


def receiver(
    settings: ReceiverSettings, source: str, page_url: str, deadline_s: float = DEADLINE_S
) -> Receiver:
    """Make a receiver. Nobody is asked, and no file is read, before it sends.

    Args:
        settings: Of the receiver.
        source: Which fencer it is.
        page_url: Where people find the status page; empty: messages have no link.
        deadline_s: Seconds that sending may take.
    """
    match settings:
        case NtfySettings():
            return Ntfy(settings, source, page_url, deadline_s)
        case GotifySettings():
            return Gotify(settings, source, page_url, deadline_s)
        case AlertmanagerSettings():
            return Alertmanager(settings, source, page_url, deadline_s)
        case WebhookSettings():
            return Webhook(settings, source, deadline_s)
        case MailSettings():
            return Mail(settings, source, page_url, deadline_s)
        case AppriseSettings():
            return Apprise(settings, source, page_url, deadline_s)
        case _:
            assert_never(settings)
