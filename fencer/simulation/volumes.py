"""The attach/detach controller: hands volumes from node to node, and tears them off where the taint allows.

Source: kubernetes pkg/controller/volume/attachdetach/reconciler/reconciler.go: with the out-of-service taint
it asks neither whether the volume is still mounted nor whether the node is Ready; without, it waits for the
kubelet's word, or six minutes.
"""

from __future__ import annotations

from collections import Counter

from fencer.core.text import count
from fencer.simulation.controllers import Timing, looks_out_of_service
from fencer.simulation.objects import Api, ApiAttachment
from fencer.simulation.timeline import Timeline


class AttachDetach:
    """Brings attachments in line with the pods that need them. Every volume is ReadWriteOnce."""

    def __init__(self, api: Api, timing: Timing, timeline: Timeline) -> None:
        self._api = api
        self._timing = timing
        self._timeline = timeline

    def reconcile(self) -> None:
        """Detach what is not needed any more, then attach what is free."""
        wanted = {
            (pod.volume, pod.node): pod
            for pod in self._api.pods.values()
            if pod.volume is not None and pod.node is not None and not pod.over
        }
        torn: Counter[str] = Counter()
        for key, attachment in list(self._api.attachments.items()):
            if attachment.by_hand:
                continue
            if key in wanted:
                attachment.unwanted_s = None
            elif not attachment.terminating and attachment.attached:
                torn[attachment.node] += self._release(attachment)
        for node, volumes in torn.items():
            if volumes:
                text = f"{count(volumes, 'volume')} detached without asking the node: it is out of service"
                self._timeline.tell("kubernetes", node, "detached", text, volumes=volumes)
        held = {volume for volume, _ in self._api.attachments}
        for volume, node in wanted:
            if volume not in held and node in self._api.nodes:
                held.add(volume)
                self._attach(volume, node)

    def _release(self, attachment: ApiAttachment) -> bool:
        """Begin to detach if that is allowed. Returns whether it was torn off."""
        now_s = self._api.clock.now_s()
        if attachment.unwanted_s is None:
            attachment.unwanted_s = now_s
            self._api.clock.after(self._timing.force_detach_s + self._timing.reaction_s, self.reconcile)
        node = self._api.nodes.get(attachment.node)
        mounted = node is not None and attachment.volume in node.volumes_in_use
        torn = node is not None and looks_out_of_service(node, now_s, self._timing.informer_lag_s)
        unhealthy = node is None or node.ready is not True
        timed_out = unhealthy and now_s - attachment.unwanted_s >= self._timing.force_detach_s
        if (mounted or node is None) and not torn and not timed_out:
            return False
        attachment.terminating = True
        self._api.set_attached(attachment.node, attachment.volume, attached=False)
        self._api.changed(attachment)
        self._api.clock.after(self._timing.detach_s, lambda: self._api.remove_attachment(attachment))
        return torn

    def _attach(self, volume: str, node: str) -> None:
        attachment = self._api.add_attachment(volume, node)

        def attached() -> None:
            if self._api.attachments.get((volume, node)) is attachment:
                attachment.attached = True
                self._api.set_attached(node, volume, attached=True)
                self._api.changed(attachment)

        self._api.clock.after(self._timing.attach_s, attached)
