"""Judges the cluster: its version, what our account may do there, and its clock against ours."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from fencer.core.policy import SLOW_CALL_S
from fencer.core.times import parse_utc
from fencer.errors import ClusterDenied, ConfigError, FencerError
from fencer.ports import ClusterInfo
from fencer.preflight.facts import ClusterFacts
from fencer.preflight.finding import Finding, Level
from fencer.preflight.rights import account_in, granting, version_of

CLOCK_S = 3.0
"""The API server gives whole seconds, and a look takes time: a closer comparison is impossible."""

TAINT_CLEARS = (1, 26)
"""On by default since then. Source: KEP-2268, NodeOutOfServiceVolumeDetach beta in 1.26, stable in 1.28."""
TAINT_CLEARS_GATED = (1, 24)

WATCH = "watch nodes"
WITHOUT = {
    WATCH: "nodes are listed every few seconds, which costs the API server more than watching them",
    "get persistentvolumeclaims": "a pod that tolerates the fence and has a volume may keep its node fenced",
}
"""What each right is for that fences go on without."""


def judge_silence(error: FencerError, kubeconfig: Path) -> Finding:
    """Say why the cluster cannot be reached."""
    command = f"kubectl --kubeconfig {shlex.quote(str(kubeconfig))} get nodes"
    if isinstance(error, ClusterDenied):
        account = account_in(str(error))
        tries = (granting(account),) if account else ()  # kubectl would be refused as well
    else:  # kubectl accepts what we refuse
        tries = () if isinstance(error, ConfigError) else (command,)
    return Finding("kubernetes", str(kubeconfig), Level.FAIL, str(error), tries)


def judge(cluster: ClusterFacts, *, hook_drains: bool) -> Iterator[Finding]:
    """Judge version and rights: those that fencing needs, and those that it can do without.

    Args:
        cluster: What the API server told.
        hook_drains: The agent itself drains if a hook asks for it.
    """
    info = cluster.info
    yield judge_version(info, cluster.missing)
    grants = granting(info.user, version=info.version)
    for right in cluster.missing_lesser:
        yield Finding("rights", right, Level.WARN, f"may not {right}: {WITHOUT[right]}", (grants,))
    yield from _evictions(info, cluster.missing_for_drains, hook_drains=hook_drains)
    yield from _attachments(info, cluster.missing_for_attachments)


def judge_version(info: ClusterInfo, missing: Sequence[str]) -> Finding:
    """Judge the version, and the rights without which nothing can be fenced."""
    about, note = f"{info.server}, {info.version}", f"as {info.user}"
    version = version_of(info.version)
    if version is not None and version < TAINT_CLEARS_GATED:
        text = "the out-of-service taint does nothing before Kubernetes 1.24"
        return Finding("kubernetes", about, Level.FAIL, text, ("upgrade to 1.26 or newer",))
    if missing:
        text = f"{note}; may not {', '.join(missing)}"
        return Finding("kubernetes", about, Level.FAIL, text, (granting(info.user, version=info.version),))
    if version is None:
        return Finding("kubernetes", about, Level.WARN, f"{note}; a version that cannot be read")
    if version < TAINT_CLEARS:
        gate = "--feature-gates=NodeOutOfServiceVolumeDetach=true on kube-controller-manager"
        text = f"{note}; before 1.26 volumes are only released behind a feature gate"
        return Finding("kubernetes", about, Level.WARN, text, (gate,))
    return Finding("kubernetes", about, Level.OK, f"{note}; has the rights to fence")


def judge_watch(unwatched: FencerError | None) -> Iterator[Finding]:
    """Say why nodes cannot be watched, although we have the right, and what follows."""
    if unwatched is not None:
        text = f"they cannot be watched: {WITHOUT[WATCH]}, and news of them comes later"
        tries = (
            "a `server:` in the kubeconfig that leads to an API server, past any proxy that ends or holds "
            "back long answers",
        )
        yield Finding("watch", "nodes", Level.WARN, text, tries, (str(unwatched),))


def judge_speed(took_s: float) -> Iterator[Finding]:
    """Warn of an API server that is slow.

    Args:
        took_s: How long a call took.
    """
    if took_s >= SLOW_CALL_S:
        text = (
            f"slow: a call took {took_s:.0f} s. Fences take longer, with calls of 5 s or more fencer cuts no "
            "power, and from 10 s on it fences nothing"
        )
        yield Finding("kubernetes", "speed", Level.WARN, text, ("kubectl get --raw '/readyz?verbose'",))


def judge_clock(utc: str, wall: datetime, took_s: float = 0.0) -> Finding:
    """Compare two clocks.

    Args:
        utc: The API server's time.
        wall: The time of day here at that moment.
        took_s: How long a call to it took: its time is of any moment in that.
    """
    off_s, within_s = abs((wall - parse_utc(utc)).total_seconds()), CLOCK_S + took_s
    if off_s <= within_s:
        return Finding("clock", f"within {within_s:.0f} s")
    text = (
        "compared with the API server: times in log and journal will mislead, and pauses and limits last "
        "longer, by ten minutes at most"
    )
    return Finding("clock", f"{off_s:.0f} s off", Level.WARN, text, ("chronyc tracking",))


def _evictions(
    info: ClusterInfo, missing: Sequence[str] | FencerError, *, hook_drains: bool
) -> Iterator[Finding]:
    """Judge whether drains may evict; an agent needs that only for one kind of hook."""
    if isinstance(missing, FencerError):
        yield Finding("evictions", "", Level.WARN, f"whether drains may evict is not known: {missing}")
    elif missing:
        by_hook = "`fencer drain`, `fencer shutdown` and `hook: {pre_stop: drain}`"
        who = by_hook if hook_drains else "drain and shutdown"
        text = f"{who} cannot evict: it may not {', '.join(missing)}"
        command = granting(info.user, "--drain", version=info.version)
        yield Finding("evictions", "", Level.WARN if hook_drains else Level.NOTE, text, (command,))


def _attachments(info: ClusterInfo, missing: Sequence[str] | FencerError) -> Iterator[Finding]:
    """Judge what happens to the volumes of a node that is deleted while it is fenced."""
    if isinstance(missing, FencerError):
        text = f"whether attachments may be deleted is not known: {missing}"
        yield Finding("attachments", "", Level.NOTE, text)
    elif missing:
        text = (
            f"may not {', '.join(missing)}: the volumes of a node that is deleted while it is fenced are "
            "released by Kubernetes, after six minutes"
        )
        command = granting(info.user, "--attachments", version=info.version)
        yield Finding("attachments", "", Level.NOTE, text, (command,))
