"""What would keep a receiver from being told, as far as this machine knows: nobody is asked."""

from __future__ import annotations

from importlib.util import find_spec

from fencer.config.settings import Config
from fencer.config.transport import of_url
from fencer.errors import ReceiverError
from fencer.notify.hidden import read_secret
from fencer.notify.settings import AppriseSettings, WebhookSettings
from fencer.preflight.facts import ReceiverFacts

INSTALLS = "pip install 'fencer-agent[apprise]'   (into fencer's own environment)"


def inspect_receivers(config: Config) -> dict[str, ReceiverFacts]:
    """Return what is wrong with receivers, by name; those with which nothing is are not among them.

    Files that are missing, or that others can read, are told with all other secrets.

    Args:
        config: The configuration.
    """
    found = {name: ReceiverFacts(in_clear=why) for name, why in config.in_clear.items()}
    for one in config.notify.receivers:
        if isinstance(one, AppriseSettings) and not _is_installed("apprise"):
            found[one.name] = ReceiverFacts(trouble="apprise is not installed", fix=INSTALLS)
        if isinstance(one, WebhookSettings) and (why := _in_clear(one)):
            found[one.name] = ReceiverFacts(in_clear=why)
    return found


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def _in_clear(webhook: WebhookSettings) -> str | None:
    """Say why anybody on the way to a webhook reads along; None: nobody does, or its file cannot be read."""
    try:
        return of_url(read_secret(webhook.url_file))
    except (ReceiverError, ValueError):
        return None
