"""What is known of a node when it is judged, from afar and closely: each fact where it matters."""

from dataclasses import replace

import pytest

from fencer.core.model import GuestHistory, Intent, PowerState, Word
from fencer.core.policy import AfterStop
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from fencer.simulation.objects import ApiNode, ApiPod
from fencer.simulation.passages import COPY_S
from tests.runtime.stagehand import ARMED, Stagehand

NAME = "k8s-2"


def sound(policy=ARMED, **shape):
    """A sound cluster, every binding proven."""
    stage = Stagehand(policy, shape=Shape(**shape))
    stage.run(25)
    return stage


def see(stage, name=NAME):
    """Look at a node, first from afar and then closely."""
    observer = stage.agent.observer
    scene = observer.look()
    far = observer.observation(scene, scene.nodes[name])
    return far, observer.closer(scene, far)


def same_uuid(stage, name="k8s-3"):
    """Let another node report the UUID of k8s-2, too."""
    node = stage.simulation.api.nodes[name]
    node.system_uuid = stage.simulation.api.nodes[NAME].system_uuid
    stage.simulation.api.changed(node)
    return stage


def moved(*since):
    """Its guest has moved to another endpoint, which nobody has looked at since."""
    stage = sound(further=("lab-b",))
    stage.happen(What.MOVE_OUT, NAME)
    stage.simulation.clock.wait(2 * COPY_S)
    for what in since:
        stage.happen(what, "lab")
    return stage


def renamed():
    """Its kubelet reports a UUID that no guest has."""
    stage = sound()
    node = stage.simulation.api.nodes[NAME]
    node.system_uuid = "0b5e55ed-0000-4000-8000-000000000000"
    stage.simulation.api.changed(node)
    return stage


def with_faults(*faults, seconds=0.0, **shape):
    stage = sound(**shape)
    for what, target in faults:
        stage.happen(what, target)
    if seconds:
        stage.run(seconds)
    return stage


def not_bound_yet():
    return same_uuid(Stagehand())


def powered_off(policy=ARMED, fault=None):
    stage = sound(policy)
    if fault:
        stage.happen(fault, "")
    stage.happen(What.PAUSE)
    stage.run(100)
    return stage


def asked(intent):
    stage = sound()
    if intent is Intent.START:
        stage.happen(What.POWER_OFF)
        stage.simulation.clock.wait(60.0)
    stage.agent.step(NAME, intent, Word())
    stage.simulation.clock.wait(3.0)
    return stage


def with_pods_that_stay(missing=""):
    stage = Stagehand()
    api = stage.simulation.api
    stage.simulation.cluster.missing.update({missing} - {""})
    pod = ApiPod("demo", "stays", api.new_uid(), "Job/mine", api.clock.now_s())
    pod.volume, pod.tolerates_out_of_service, pod.toleration_s = "theirs", True, None
    api.create_pod(pod)
    api.bind_pod(pod, NAME)
    stage.run(60)
    stage.happen(What.CRASH)
    stage.run(150)
    return stage


def replaced():
    """The node was fenced, and another machine has taken its name since."""
    stage = sound()
    stage.happen(What.CRASH)
    stage.run(90)
    node, new = stage.simulation.api.nodes[NAME], stage.simulation.replace(NAME)
    node.system_uuid, node.boot_id = new.uuid, new.boot_id
    stage.simulation.api.changed(node)
    return stage


FACTS = {
    "rivals": (not_bound_yet, lambda seen: seen.rivals == ("k8s-3",)),
    "claimed_by": (lambda: same_uuid(sound()), lambda seen: seen.claimed_by == ("k8s-3",)),
    "claimed by nobody who may be alive": (
        lambda: same_uuid(with_faults((What.NIC_OFF, "k8s-3"), seconds=330.0)),
        lambda seen: seen.claimed_by == (),
    ),
    "bound_reading": (
        moved,
        lambda seen: seen.bound_reading.guest.endpoint == "lab",
    ),
    "bound_reading, though no guest is the node that it says it is": (
        renamed,
        lambda seen: seen.candidates == () and seen.bound_reading.guest.name == NAME,
    ),
    "bound_reading, that of the first one": (sound, lambda seen: seen.bound_reading is None),
    "candidates, after a move": (
        moved,
        lambda seen: [one.guest.endpoint for one in seen.candidates] == ["lab-b", "lab"],
    ),
    "candidates, while nobody says whether it has moved": (
        lambda: moved(What.UNREACHABLE),
        lambda seen: [one.guest.endpoint for one in seen.candidates] == ["lab", "lab-b"],
    ),
    "unanswered": (
        lambda: with_faults((What.UNREACHABLE, "")),
        lambda seen: seen.unanswered == ("lab",) and seen.evidence_error and seen.evidence is None,
    ),
    "last_state": (
        lambda: with_faults((What.PAUSE, NAME)),
        lambda seen: seen.last_state is PowerState.PAUSED,
    ),
    "others": (
        lambda: with_faults((What.CLONE, NAME), (What.START, "k8s-2-copy")),
        lambda seen: seen.others == (PowerState.RUNNING,),
    ),
    "killed": (powered_off, lambda seen: seen.killed is False),
    "not killed, since it runs again": (
        lambda: with_faults((What.PAUSE, NAME), (What.RESUME, NAME), seconds=10.0),
        lambda seen: seen.killed is None,
    ),
    "stop_failed": (
        lambda: powered_off(fault=What.POWER_DENIED),
        lambda seen: seen.stop_failed.times >= 1 and seen.stop_failed.why and 0 < seen.stop_failed.ago_s < 99,
    ),
    "fenced_guest": (replaced, lambda seen: seen.fenced_guest.guest.name == NAME),
    "no fenced_guest but this one": (
        lambda: with_faults((What.CRASH, NAME), seconds=90.0),
        lambda seen: seen.node.fenced and seen.fenced_guest is None,
    ),
    "stopped_as": (powered_off, lambda seen: seen.stopped_as == seen.evidence.incarnation),
    "not stopped_as, since it was started again": (
        lambda: powered_off(replace(ARMED, after_stop=AfterStop.START)),
        lambda seen: seen.stopped_as is None,
    ),
    "asked_s, to shut down": (
        lambda: asked(Intent.SHUTDOWN),
        lambda seen: seen.asked_s == pytest.approx(3.0, abs=0.5),
    ),
    "asked_s, to start": (
        lambda: asked(Intent.START),
        lambda seen: seen.asked_s == pytest.approx(3.0, abs=0.5),
    ),
    "kept_volumes": (with_pods_that_stay, lambda seen: seen.kept_volumes and not seen.kept_unread),
    "kept_unread": (
        lambda: with_pods_that_stay("get persistentvolumeclaims"),
        lambda seen: seen.kept_unread and not seen.kept_volumes,
    ),
}


@pytest.mark.parametrize("fact", FACTS)
def test_it_is_known_from_afar_and_closely(fact):
    world, holds = FACTS[fact]
    far, close = see(world())
    assert (bool(holds(far)), bool(holds(close))) == (True, True)


def test_a_node_that_another_one_has_left_no_guest_is_told_whose_it_is():
    stage = sound()
    api = stage.simulation.api
    uuid = api.nodes[NAME].system_uuid
    api.add_node(ApiNode("k8s-new", api.new_uid(), uuid, "a boot"))
    far, close = see(stage, "k8s-new")
    assert far.taken_by == close.taken_by == NAME
    assert far.candidates == close.candidates == ()
    assert see(stage)[0].taken_by == ""


REREAD = (
    *("evidence", "evidence_error", "last_state", "others", "claimed_by", "bound_reading", "history"),
    *("fleet", "now_s", "utc", "apart_s", "pods", "attachments", "kept_volumes", "kept_unread", "killed"),
    *("stop_failed", "fenced_guest", "stopped_as", "asked_s", "looked_s", "close"),
)


def test_of_what_was_known_from_afar_a_close_look_keeps_nothing_that_may_have_changed():
    stage = sound()
    observer = stage.agent.observer
    scene = observer.look()
    far = observer.observation(scene, scene.nodes[NAME])
    close = observer.closer(scene, replace(far, **dict.fromkeys(REREAD, "old")))
    assert [name for name in REREAD if getattr(close, name) == "old"] == []
    assert (close.looked_s, close.close) == (0.0, True)


def test_a_node_that_was_never_looked_at_was_looked_at_long_ago():
    stage = Stagehand()
    far, close = see(stage)
    assert (far.looked_s, close.looked_s) == (float("inf"), 0.0)
    assert far.history != GuestHistory()
