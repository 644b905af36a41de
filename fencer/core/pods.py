"""Which pods a fence clears, and which pods and volumes still hold a node that came back."""

from __future__ import annotations

from collections.abc import Iterable

from fencer.core.model import AttachmentView, Observation, PodView
from fencer.core.times import parse_utc


def clearable(pods: Iterable[PodView]) -> tuple[PodView, ...]:
    """Return the pods that the out-of-service taint would clear.

    Mirror pods belong to the kubelet, a pod that tolerates the taint was meant to stay, and finished pods
    write nothing.

    Source: kubernetes pkg/controller/tainteviction and pkg/controller/podgc; the kubelet gives its static
    pods a toleration for everything.
    """
    return tuple(pod for pod in pods if not (pod.mirror or _rests(pod) or pod.tolerates_out_of_service))


def keeping_volumes(pods: Iterable[PodView]) -> tuple[PodView, ...]:
    """Return the pods that a fence leaves on the node, and that use volumes there: those stay attached.

    Source: kubernetes pkg/controller/volume/attachdetach: a volume is wanted while a pod that uses it is
    bound to the node and not over, whatever taints that has.
    """
    stay = (pod for pod in pods if (pod.tolerates_out_of_service or pod.mirror) and not pod.finished)
    return tuple(pod for pod in stay if pod.claims)


def to_release(seen: Observation) -> tuple[AttachmentView, ...]:
    """Return the attachments that a fence has to see released: all but those of pods that stay."""
    return tuple(item for item in seen.attachments or () if item.volume not in seen.kept_volumes)


def _rests(pod: PodView) -> bool:
    """Whether a finished pod needs nothing from us.

    One that is marked for deletion too was failed by a clearing that was interrupted, and no kubelet is left
    to confirm its end; unless a finalizer holds it, then it waits for its controller.
    """
    return pod.finished and (not pod.terminating or bool(pod.finalizers))


def bound_to_node(pod: PodView) -> bool:
    """Whether a pod's controller would recreate it on this very node and nowhere else."""
    return pod.controller.startswith("DaemonSet/")


def older_than_fence(pods: Iterable[PodView], fenced_at_utc: str) -> tuple[PodView, ...]:
    """Return the pods that must be gone before a fence is lifted: clearable, and created before it."""
    fenced = parse_utc(fenced_at_utc)
    return tuple(pod for pod in clearable(pods) if parse_utc(pod.created_utc) <= fenced)
