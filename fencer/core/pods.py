"""Which pods a fence clears, and which pods and volumes still hold a node that came back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from fencer.core.model import AttachmentView, FenceMark, NodeView, Observation, PodView
from fencer.core.text import count
from fencer.core.times import parse_utc

MOST_ON_RECORD = 1000
"""So many pods and attachments are written down with a fence: 39 bytes each, of the 262,144 that all
annotations of a Node may have.

Source: k8s.io/apimachinery pkg/api/validation objectmeta.go, TotalAnnotationSizeLimitB.
"""


def clearable(pods: Iterable[PodView]) -> tuple[PodView, ...]:
    """Return the pods that the out-of-service taint would clear.

    Mirror pods belong to the kubelet, a pod that tolerates the taint was meant to stay, and finished pods
    write nothing.

    Source: kubernetes pkg/controller/tainteviction/taint_eviction.go and
    pkg/controller/podgc/gc_controller.go; the kubelet gives its static pods a toleration for everything.
    """
    return tuple(pod for pod in pods if not (pod.mirror or _rests(pod) or pod.tolerates_out_of_service))


def keeping_volumes(node: NodeView, pods: Iterable[PodView]) -> tuple[PodView, ...]:
    """Return the pods that use volumes on a node and that no fence clears: those volumes stay attached.

    They tolerate the taint, belong to the kubelet, or came after the fence: a pod whose template names the
    node is created there again and again, and its volume stays.

    Source: kubernetes pkg/controller/volume/attachdetach/populator/desired_state_of_world_populator.go: a
    volume is wanted while a pod that uses it is bound to the node and not over, whatever taints that has.
    """
    newer = _came_since(node)
    stay = (pod for pod in pods if pod.tolerates_out_of_service or pod.mirror or newer(pod))
    return tuple(pod for pod in stay if pod.claims and not pod.finished)


def to_clear_on(node: NodeView, pods: Iterable[PodView]) -> tuple[PodView, ...]:
    """Return the pods that a fence clears, or has to clear yet: those on its record, where it has one."""
    newer = _came_since(node)
    return tuple(pod for pod in clearable(pods) if not newer(pod))


def to_clear(seen: Observation) -> tuple[PodView, ...]:
    """Return the same of what was seen."""
    return to_clear_on(seen.node, seen.pods or ())


def to_release(seen: Observation) -> tuple[AttachmentView, ...]:
    """Return the attachments that a fence has to see released: on its record, and not of pods that stay."""
    newer = _came_since(seen.node)
    return tuple(
        item for item in seen.attachments or () if item.volume not in seen.kept_volumes and not newer(item)
    )


def _came_since(node: NodeView) -> Callable[[PodView | AttachmentView], bool]:
    """Return what says of a pod or an attachment that it is not on the record of the fence on a node.

    What came later never ran in the memory from before. A VolumeAttachment's name comes back with its
    volume, its UID does not. Without a record nothing is later; nor once the Node is gone with its taint.
    """
    mark = None if node.gone else node.fence
    if mark is None or mark.pod_uids is None:
        return lambda _one: False
    known = frozenset((*mark.pod_uids, *(mark.attachment_uids or ())))
    return lambda one: one.uid not in known


def on_record(mark: FenceMark, seen: Observation) -> FenceMark:
    """Return a mark with what there is on its node: later ones of the same names are others.

    Of more than `MOST_ON_RECORD` objects there is no record, and the fence counts as an older fencer's.
    """
    pods, attachments = seen.pods or (), seen.attachments or ()
    pod_uids = tuple(pod.uid for pod in pods if not (pod.mirror or _rests(pod)))
    if len(pod_uids) + len(attachments) > MOST_ON_RECORD:
        return mark
    return replace(mark, pod_uids=pod_uids, attachment_uids=tuple(item.uid for item in attachments))


def given_away(seen: Observation, mark: FenceMark) -> str:
    """Return, for people, how many of a fence's pods and volumes are gone; empty: all are still there.

    A pod that is over has left its volumes: another one gets them.

    Args:
        seen: With pods and attachments.
        mark: Of the fence. If it is an older fencer's, only its pods are known, by their number.
    """
    if mark.pod_uids is None:
        many = "it was about so many pods and volumes that they are not recorded"
        return many if mark.lease_version else _fewer_pods(seen, mark)
    pods = {pod.uid for pod in seen.pods or () if not pod.finished}
    attachments = {item.uid for item in seen.attachments or () if not item.terminating}
    gone, detached = set(mark.pod_uids) - pods, set(mark.attachment_uids or ()) - attachments
    if not mark.pod_uids and not mark.attachment_uids:
        return "what the fence was about is not known"
    lost = [count(len(one), name) for one, name in ((gone, "pod"), (detached, "volume")) if one]
    return f"{' and '.join(lost)} of the fence no longer there" if lost else ""


def _fewer_pods(seen: Observation, mark: FenceMark) -> str:
    left = len(pods_from_before(seen, mark))
    if mark.pods and left >= mark.pods:
        return ""
    return (
        f"{left} of {'?' if mark.pods is None else mark.pods} pods are left; of its volumes nothing is known"
    )


def _rests(pod: PodView) -> bool:
    """Whether a finished pod needs nothing from us.

    One that is marked for deletion too was failed by a clearing that was interrupted, and no kubelet is left
    to confirm its end; unless a finalizer holds it, then it waits for its controller.
    """
    return pod.finished and (not pod.terminating or bool(pod.finalizers))


def bound_to_node(pod: PodView) -> bool:
    """Whether a pod's controller would recreate it on this very node and nowhere else."""
    return pod.controller.startswith("DaemonSet/")


def pods_from_before(seen: Observation, mark: FenceMark) -> tuple[PodView, ...]:
    """Return the pods that must be gone before a fence is lifted: clearable, and there when it was set."""
    if mark.pod_uids is not None:
        return tuple(pod for pod in clearable(seen.pods or ()) if pod.uid in mark.pod_uids)
    fenced = parse_utc(mark.fenced_at_utc)
    return tuple(pod for pod in clearable(seen.pods or ()) if parse_utc(pod.created_utc) <= fenced)
