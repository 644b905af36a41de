"""What people are told of fencer's own account: which roles it lacks, and when what lets it in ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from fencer.cli.findings import Finding, Level, granting
from fencer.cli.wire import Wiring
from fencer.config.settings import Config, PreStop
from fencer.core.text import count
from fencer.errors import ConfigError, FencerError
from fencer.ports import Asker, ClusterInfo, Credential
from fencer.runtime.world import API

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0
SOON_S = 14 * DAY_S
"""Time for people: a token is good for 90 days, and somebody may be on holiday for two weeks."""


def account_findings(wiring: Wiring, config: Config, asker: Asker, info: ClusterInfo) -> Iterator[Finding]:
    """Tell what an agent can do without, and what follows where it has to.

    Args:
        wiring: Builds what is asked.
        config: What is wanted.
        asker: Holds calls to their deadline.
        info: Who we are, and in which Kubernetes.
    """
    yield from _evictions(wiring, config, asker, info)
    yield from _attachments(wiring, config, asker, info)
    try:
        held = wiring.account(config).credentials()
    except FencerError as error:
        yield Finding("credentials", "", Level.WARN, f"when they end is not known: {error}")
        return
    yield from (_ending(one, one.ends, wiring.wall()) for one in held if one.ends is not None)


def _ending(held: Credential, ends: datetime, wall: datetime) -> Finding:
    text = end_warning(ends, wall)
    about = f"until {ends:%Y-%m-%d %H:%M} UTC"
    tries = (held.renewal,) if text and held.renewal else ()
    return Finding(held.what, about, Level.WARN if text else Level.OK, text, tries)


def end_warning(ends: datetime, wall: datetime) -> str:
    """Say that a token or a certificate ends soon; empty: it does not.

    Args:
        ends: When it ends.
        wall: The time of day here.
    """
    left_s = (ends - wall).total_seconds()
    if left_s > SOON_S:
        return ""
    if left_s <= 0:
        return f"it ended {_long(-left_s)} ago: the API server lets nobody in with it"
    return f"it ends in {_long(left_s)}: then this fencer can neither fence nor lift a fence"


class CredentialReminder:
    """Says once a day that the token or the certificate ends soon, or cannot be had any more.

    Args:
        wiring: Builds what is asked.
        config: Which kubeconfig.
        now_s: A monotonic clock, in seconds.
        say: Tells people.
        ask: Holds a call to its deadline: a plugin for credentials that hangs keeps nobody from fencing.
    """

    def __init__(
        self,
        wiring: Wiring,
        config: Config,
        now_s: Callable[[], float],
        say: Callable[[str], None],
        ask: Callable[[Callable[[], Sequence[Credential]]], Sequence[Credential]],
    ) -> None:
        self._wiring, self._config, self._now_s, self._say = wiring, config, now_s, say
        self._ask = ask
        self._next_s = now_s()

    def look(self) -> None:
        """Look, if a day has passed; that nobody answers is told by whoever asks the cluster."""
        if self._now_s() < self._next_s:
            return
        self._next_s = self._now_s() + DAY_S
        try:
            held = self._ask(lambda: self._wiring.account(self._config).credentials())
        except ConfigError as error:  # the old ones still lead in; a restart would end with this
            self._say(f"the credentials for Kubernetes cannot be read anew: {error}")
            return
        except FencerError:
            return
        for one in held:
            text = "" if one.ends is None else end_warning(one.ends, self._wiring.wall())
            if text:
                another = f". Another token: `{one.renewal}`" if one.renewal else ""
                self._say(f"the {one.what} for Kubernetes: {text}{another}")


def _evictions(wiring: Wiring, config: Config, asker: Asker, info: ClusterInfo) -> Iterator[Finding]:
    """Judge whether drains may evict; of an agent only one kind of hook needs that."""
    try:
        evictor = wiring.evictor(config)
        missing = asker.ask(API, evictor.missing_drain_rights, config.policy.call_deadline_s)
    except FencerError as error:
        yield Finding("evictions", "", Level.WARN, f"whether drains may evict is not known: {error}")
        return
    if missing:
        hook = config.hook.pre_stop is PreStop.DRAIN
        who = (
            "`fencer drain`, `fencer shutdown` and `hook: {pre_stop: drain}`"
            if hook
            else "drain and shutdown"
        )
        text = f"{who} cannot evict: may not {', '.join(missing)}"
        command = granting(info.user, "--drain", version=info.version)
        yield Finding("evictions", "", Level.WARN if hook else Level.NOTE, text, (command,))


def _attachments(wiring: Wiring, config: Config, asker: Asker, info: ClusterInfo) -> Iterator[Finding]:
    """Judge what becomes of the volumes of a node that is deleted amid its fence."""
    try:
        account = wiring.account(config)
        missing = asker.ask(API, account.missing_attachment_rights, config.policy.call_deadline_s)
    except FencerError as error:
        text = f"whether attachments may be deleted is not known: {error}"
        yield Finding("attachments", "", Level.NOTE, text)
        return
    if missing:
        text = (
            f"may not {', '.join(missing)}: the volumes of a node that is deleted while it is fenced are "
            "released by Kubernetes, after six minutes"
        )
        command = granting(info.user, "--attachments", version=info.version)
        yield Finding("attachments", "", Level.NOTE, text, (command,))


def _long(seconds: float) -> str:
    for unit_s, unit, least in ((DAY_S, "day", 2), (HOUR_S, "hour", 1), (MINUTE_S, "minute", 1)):
        if seconds >= least * unit_s:
            return count(round(seconds / unit_s), unit)
    return "less than a minute"
