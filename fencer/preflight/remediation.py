"""Judges whether other controllers of the cluster, which know the kinds to call fencer by, get an answer."""

from __future__ import annotations

from collections.abc import Iterator

from fencer.core.text import count, printable
from fencer.errors import FencerError
from fencer.ports import ClusterInfo
from fencer.preflight.facts import RemediationFacts
from fencer.preflight.finding import Finding, Level
from fencer.preflight.rights import granting

UNANSWERED = "whoever asks fencer for a node gets no answer, or fencer acts where others work"
OPTION = "--remediation"


def judge(
    info: ClusterInfo, facts: RemediationFacts | FencerError | None, *, armed: bool
) -> Iterator[Finding]:
    """Judge our rights to what is asked, and whether it can be read.

    Args:
        info: Who we are, and in which Kubernetes.
        facts: What there is; None: nobody can ask.
        armed: An agent with this configuration answers: one that only observes writes nothing.
    """
    if facts is None:
        return
    if isinstance(facts, FencerError):
        yield Finding("remediation", "", Level.WARN, f"what other controllers ask is not known: {facts}")
    elif facts.missing or facts.asked is None:
        text = f"may not {', '.join(facts.missing)}: {UNANSWERED}"
        grants = granting(info.user, OPTION, version=info.version)
        yield Finding("remediation", "", Level.FAIL, text, (grants,))
    else:
        about = count(len(facts.asked.requests), "request")
        unread = tuple(map(printable, facts.asked.malformed))
        if unread:
            yield Finding("remediation", about, Level.WARN, "some cannot be read", points=unread)
        else:
            yield _well(about, armed=armed)


def _well(about: str, *, armed: bool) -> Finding:
    if armed:
        return Finding("remediation", about, Level.OK, "other controllers may call fencer")
    text = "other controllers may call fencer, but in mode: observe it answers nobody"
    return Finding("remediation", about, Level.NOTE, text)
