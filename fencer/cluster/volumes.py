"""What is attached where, and which volumes a pod's claims are bound to."""

from __future__ import annotations

from fencer.cluster import parse
from fencer.cluster.client import Connection
from fencer.cluster.lists import Lists
from fencer.cluster.names import refuse_odd_names
from fencer.cluster.requests import ATTACHMENT, ATTACHMENTS, delete, get
from fencer.core.model import AttachmentView, PodView
from fencer.errors import ClusterDenied, ClusterNotFound
from fencer.ports import Attachments


def attachments(lists: Lists) -> Attachments:
    """See `Cluster.attachments`."""
    found = lists.read(
        "list volumeattachments",
        "VolumeAttachmentList",
        get(ATTACHMENTS),
        lambda item, _utc: (parse.attached_to(item), parse.set_aside(parse.attachment, item)),
    )
    return Attachments(
        views=tuple(item for _, item in found if not isinstance(item, str)),
        unread=tuple((node, item) for node, item in found if isinstance(item, str)),
    )


def delete_attachment(api: Connection, attachment: AttachmentView) -> None:
    """See `Cluster.delete_attachment`."""
    refuse_odd_names(attachment.name)
    try:
        api.write(
            f"delete volumeattachment {attachment.name}",
            delete(ATTACHMENT, attachment.name, body={"preconditions": {"uid": attachment.uid}}),
        )
    except ClusterNotFound:
        return
    except ClusterDenied as error:
        if "ValidatingAdmissionPolicy" in str(error):  # we have the right, and may not here
            raise
        raise ClusterDenied(
            f"{error}. Kubernetes releases its volume by itself, after six minutes; "
            "`fencer check` shows the command with --attachments that grants this"
        ) from error


def volumes(api: Connection, pod: PodView) -> frozenset[str]:
    """See `Cluster.volumes`."""
    return frozenset(_volume(api, pod.namespace, claim) for claim in pod.claims) - {""}


def _volume(api: Connection, namespace: str, claim: str) -> str:
    """Return the volume that a claim is bound to; empty: the claim is gone, or not bound yet."""
    refuse_odd_names(namespace, claim)
    try:
        answer = api.read(
            f"get persistentvolumeclaim {namespace}/{claim}",
            get("/api/v1/namespaces/{}/persistentvolumeclaims/{}", namespace, claim),
        )
    except ClusterNotFound:
        return ""
    return parse.name_in_error(parse.bound_volume, answer.body)
