"""What a simulated kubelet needs of the world around it: an API for its node, and a machine to run on.

The simulation has both in memory; the end-to-end tests have both real.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class KubeletPod:
    """What a kubelet reads of a pod that is bound to its node.

    Attributes:
        volume: The volume that it needs mounted; None: none.
        deleted: Marked for deletion.
        over: Its phase is final (Succeeded or Failed).
        ready: The API says Ready.
        grace_s: How long it may take to end.
    """

    uid: str
    namespace: str
    name: str
    volume: str | None
    deleted: bool
    over: bool
    ready: bool
    grace_s: float = 30.0


@dataclass(frozen=True, slots=True)
class NodeReport:
    """What a kubelet reports of its node; Ready is always true, because who reports is there.

    Attributes:
        expired: The kubelet writes this report even where it changes nothing.
    """

    boot_id: str
    volumes_in_use: frozenset[str]
    expired: bool = False


class KubeletApi(Protocol):
    """What a kubelet asks of the API, for its own node only. Any call may raise ClusterUnreachable."""

    def pods(self) -> Sequence[KubeletPod]:
        """List the pods bound to this node."""
        ...

    def attached(self) -> frozenset[str]:
        """Return the volumes in node.status.volumesAttached."""
        ...

    def renew_lease(self) -> None:
        """Renew the node's lease."""
        ...

    def report_node(self, report: NodeReport) -> bool:
        """Write node.status where it differs or the report has expired; create the Node where there is none.

        Returns:
            Whether the status was written: lastHeartbeatTime of the condition Ready then has a new time.
        """
        ...

    def report_running(self, pod: KubeletPod) -> None:
        """Set the pod's phase Running and its condition Ready.

        Raises:
            ClusterNotFound, ClusterConflict: it is gone, or over.
        """
        ...

    def confirm_deletion(self, pod: KubeletPod) -> None:
        """Delete the pod with grace 0: its containers have ended here.

        Raises:
            ClusterNotFound, ClusterConflict: it is gone, or another took its name.
        """
        ...


class Machine(Protocol):
    """The machine that a kubelet runs on."""

    def running(self) -> bool:
        """Whether its processors run: not while it is paused, saved or off."""
        ...

    def boot(self) -> str:
        """Return the id of the present boot."""
        ...

    def mount(self, volume: str) -> None:
        """From now on a container here may write the volume."""
        ...

    def unmount(self, volume: str) -> None:
        """No container here writes it any more."""
        ...
