"""Judges where metrics, health and the status page are shown, and to whom."""

from __future__ import annotations

from fencer.core.text import printable
from fencer.preflight.finding import Finding, Level
from fencer.web.settings import LOOPBACK, PORT, WebSettings

IN_USE = "Address already in use"
"""Source: strerror(3) of EADDRINUSE in glibc."""


def judge(settings: WebSettings | None, trouble: str, *, answers: bool | None) -> Finding:
    """Say where it is, who may read it, and whether it can be there.

    Args:
        settings: Where. None: nowhere.
        trouble: Why nobody can listen there now; empty: somebody can.
        answers: An agent of this configuration answers on this machine, and listens there already.
    """
    if settings is None:
        return Finding("web", "", Level.NOTE, "no page and no metrics, by `web.enabled: false`")
    about = f"http://{settings.listen}/"
    if trouble == IN_USE and not answers:
        text = (
            "a program listens there already: this configuration's agent, or another that needs its own port"
        )
        return Finding("web", about, Level.NOTE, text, (f"web.listen: {settings.at(settings.port + 1)}",))
    if trouble and trouble != IN_USE:
        text = f"cannot be there: {printable(trouble)}; fencer then works without page and metrics"
        return Finding("web", about, Level.WARN, text, (f"web.listen: {LOOPBACK}:{PORT}",))
    if not settings.on_loopback:
        text = (
            "whoever reaches it can read the names of nodes and guests, and why they are fenced or not: "
            "there is no password"
        )
        tries = (f"web.listen: {LOOPBACK}:{settings.port}", "or let a firewall say who reaches it")
        return Finding("web", about, Level.WARN, text, tries)
    return Finding("web", about, Level.OK, "page, metrics and health, for this machine only")
