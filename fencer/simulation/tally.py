"""What became of each incident, counted from the objects and the truth and never from fencer's own words."""

from __future__ import annotations

from dataclasses import dataclass

from fencer.simulation.assembly import Simulation
from fencer.simulation.objects import ApiNode, ApiObject, ApiPod


@dataclass(slots=True)
class Incident:
    """One death, or what looked like one, or a planned stop. Times in seconds of the story; None: never.

    Attributes:
        node: Whose.
        began_s: When.
        tainted_s: When the node got the out-of-service taint.
        recovered_s: When every workload was whole again, after it was not.
        unfenced_s: When the taint was taken off.
        pods_moved: Replacements that got Ready on other nodes.
        planned: A person began it: pods leave in turns, so that all may be Ready many a time before its end.
        most_down: How many pods were not Ready at a time.
    """

    node: str
    began_s: float
    tainted_s: float | None = None
    recovered_s: float | None = None
    unfenced_s: float | None = None
    pods_moved: int = 0
    planned: bool = False
    most_down: int = 0
    disturbed: bool = False

    def after_s(self, moment_s: float | None) -> float | None:
        """Return the seconds from the beginning to a moment."""
        return None if moment_s is None else round(moment_s - self.began_s, 1)


class Tally:
    """Watches the objects of a warmed-up world.

    Args:
        simulation: The world.
    """

    def __init__(self, simulation: Simulation) -> None:
        self.incidents: list[Incident] = []
        self._simulation = simulation
        self._seen = {pod.uid for pod in simulation.api.pods.values()}
        self._tainted: set[str] = set()
        self._all_ready = self._ready()
        simulation.api.watchers.append(self._changed)

    def begin(self, node: str, *, planned: bool) -> None:
        """Note that an incident begins now."""
        self.incidents.append(Incident(node, self._now_s(), planned=planned))
        self._all_ready = self._ready()

    def _ready(self) -> int:
        pods = self._simulation.api.pods.values()
        return sum(pod.ready and pod.deleted_s is None and not pod.daemon for pod in pods)

    def _now_s(self) -> float:
        return self._simulation.clock.now_s() - self._simulation.timeline.began_s

    def _changed(self, obj: ApiObject) -> None:
        if isinstance(obj, ApiNode):
            self._node_changed(obj)
        elif isinstance(obj, ApiPod):
            self._pod_changed(obj)

    def _node_changed(self, node: ApiNode) -> None:
        tainted = node.out_of_service
        if tainted == (node.name in self._tainted):
            return
        (self._tainted.add if tainted else self._tainted.discard)(node.name)
        of_node = [one for one in self.incidents if one.node == node.name]
        if tainted and of_node:
            of_node[-1].tainted_s = self._now_s()
        elif not tainted:
            for one in of_node:
                if one.tainted_s is not None and one.unfenced_s is None:
                    one.unfenced_s = self._now_s()

    def _pod_changed(self, pod: ApiPod) -> None:
        incident = self.incidents[-1] if self.incidents else None
        if incident is None:
            return
        incident.most_down = max(incident.most_down, self._all_ready - self._ready())
        if pod.ready and pod.uid not in self._seen:
            self._seen.add(pod.uid)
            if not pod.daemon and pod.node != incident.node:
                incident.pods_moved += 1
            with_volume = ", its volume with it" if pod.volume else ""
            text = f"{pod.name} is Ready on {pod.node}{with_volume}"
            self._simulation.timeline.tell("pods", pod.node, "pod-ready", text, pod=str(pod))
        self._see_recovery()

    def _see_recovery(self) -> None:
        open_ones = [one for one in self.incidents if one.recovered_s is None]
        if not open_ones:
            return
        if not self._simulation.control_plane.whole():
            for one in open_ones:
                one.disturbed = True
            return
        recovered = [one for one in open_ones if one.disturbed]
        for one in recovered:
            one.recovered_s = self._now_s()
        if recovered and not recovered[0].planned:
            after_s = self._now_s() - recovered[0].began_s
            text = f"every pod is Ready again, {after_s:.0f} s after it began"
            self._simulation.timeline.tell("pods", None, "recovered", text)
