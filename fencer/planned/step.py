"""What a drain of one node does next. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import StrEnum

from fencer.core.model import AttachmentView, PodView
from fencer.evicting.evictions import Evictions


class Next(StrEnum):
    """What a drain does next."""

    EVICT = "evict"
    WAIT_FOR_PODS = "wait for pods"
    WAIT_FOR_VOLUMES = "wait for volumes"
    DONE = "done"
    HOPELESS = "hopeless"
    """Only pods are left that are refused for good."""


def next_step(
    state: Evictions[PodView],
    staying: Iterable[PodView],
    attachments: Collection[AttachmentView],
    now_s: float,
) -> Next:
    """Return what a drain does next on one node.

    Args:
        state: What was asked and answered.
        staying: Pods on the node that the drain leaves there; their volumes stay attached.
        attachments: Of the node now.
        now_s: The monotonic clock.
    """
    if state.due(now_s):
        return Next.EVICT
    if state.hopeless:
        return Next.HOPELESS
    if not state.done:
        return Next.WAIT_FOR_PODS
    kept = sum(len(pod.claims) for pod in staying if not pod.finished)
    return Next.WAIT_FOR_VOLUMES if len(attachments) > kept else Next.DONE
