"""Volumes without storage: a CSI driver that only says that it attaches, as slowly as told.

Volumes are made beforehand, each for one claim, and named after it: `NAMESPACE-CLAIM`.
"""

import threading
import time
from typing import Any

from fencer.errors import ClusterConflict, ClusterNotFound, ClusterUnreachable
from tests.e2e.rest import RestClient
from tests.e2e.watches import CurrentList
from tests.support.controlplane import ControlPlane

CSI_DRIVER = "csi.lab.example.org"
STORAGE_CLASS = "lab"
ATTACHMENTS = "/apis/storage.k8s.io/v1/volumeattachments"
_FINALIZER = f"external-attacher/{CSI_DRIVER.replace('.', '-')}"
_LOOK_S = 0.1


def volume_name(namespace: str, claim: str) -> str:
    """Return the name of the volume that was made for a claim."""
    return f"{namespace}-{claim}"


def volume_of(pod: dict[str, Any]) -> str | None:
    """Return the volume that a pod needs; None: none."""
    for volume in pod["spec"].get("volumes") or []:
        if "persistentVolumeClaim" in volume:
            return volume_name(pod["metadata"]["namespace"], volume["persistentVolumeClaim"]["claimName"])
    return None


def volume_of_unique_name(name: str) -> str:
    """Return the volume that `node.status` calls by this name."""
    return name.rpartition("^")[2]


def create_volumes(client: RestClient, namespace: str, claims: list[str]) -> None:
    """Create driver and storage class, unless they are there, and one ReadWriteOnce volume for each claim."""
    storage = "/apis/storage.k8s.io/v1"
    for kind, body in (
        ("csidrivers", {"metadata": {"name": CSI_DRIVER}, "spec": {"attachRequired": True}}),
        (
            "storageclasses",
            {"metadata": {"name": STORAGE_CLASS}, "provisioner": "kubernetes.io/no-provisioner"},
        ),
    ):
        try:
            client.post(f"{storage}/{kind}", body)
        except ClusterConflict:
            continue
    for claim in claims:
        name = volume_name(namespace, claim)
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": STORAGE_CLASS,
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": namespace, "name": claim},
            "csi": {"driver": CSI_DRIVER, "volumeHandle": name},
        }
        client.post("/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": spec})


class Attacher:
    """The external-attacher with its driver: attaches, detaches, and keeps its finalizer until it has.

    Args:
        cluster: Whose VolumeAttachments.
        attach_s: How long the storage takes to attach.
        detach_s: How long it takes to detach.
    """

    def __init__(self, cluster: ControlPlane, *, attach_s: float, detach_s: float) -> None:
        identity = "admin", ["system:masters"]
        self._client = RestClient(cluster, *identity)
        self._attachments = CurrentList(cluster, *identity, ATTACHMENTS)
        self._attach_s = attach_s
        self._detach_s = detach_s
        self._begun_at_s: dict[tuple[str, bool], float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="csi-attacher", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End the thread."""
        self._over.set()
        self._thread.join()
        self._attachments.end()
        self._client.close()

    def _work(self) -> None:
        while not self._over.wait(_LOOK_S):
            try:
                attachments = self._attachments.items()
            except ClusterUnreachable:
                continue
            for attachment in attachments:
                try:
                    self._serve(attachment)
                except (ClusterNotFound, ClusterConflict, ClusterUnreachable):
                    continue  # the next look tells what became of it

    def _serve(self, attachment: dict[str, Any]) -> None:
        meta = attachment["metadata"]
        path, leaving = f"{ATTACHMENTS}/{meta['name']}", "deletionTimestamp" in meta
        attached = attachment.get("status", {}).get("attached", False)
        if attached and not leaving:
            return
        begun_at_s = self._begun_at_s.setdefault((meta["uid"], leaving), time.monotonic())
        lasted_s = time.monotonic() - begun_at_s
        if leaving and lasted_s >= self._detach_s:
            self._client.patch(path, {"metadata": {"finalizers": None}})
        elif not leaving and _FINALIZER not in meta.get("finalizers", ()):
            self._client.patch(path, {"metadata": {"finalizers": [_FINALIZER]}})
        elif not leaving and lasted_s >= self._attach_s:
            self._client.patch(f"{path}/status", {"status": {"attached": True}})
