"""What is known of a node when it is judged, from afar and closely: each fact where it matters."""

from dataclasses import replace

import pytest

from fencer.core.maintenance import Window
from fencer.core.model import FenceMark, GuestHistory, Intent, PowerState, Proof, Word
from fencer.core.pause import PauseNote, write
from fencer.core.policy import AfterStop
from fencer.runtime.reconcile import Agent
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
    "ordered_run": (
        lambda: asked(Intent.SHUTDOWN),
        lambda seen: seen.ordered_run.boot_id == seen.node.boot_id and seen.ordered_run.incarnation == "1",
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
    *("stop_failed", "fenced_guest", "stopped_as", "asked_s", "ordered_run", "looked_s", "close"),
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


class TestTwoClocks:
    """docs/design.md, E26: the API server's time is compared with this machine's as soon as it comes."""

    @staticmethod
    def ahead(seconds, **shape):
        """A sound cluster whose agent's machine is so far ahead of the API server's clock."""
        stage = sound(**shape)
        clock = stage.simulation.clock
        world = replace(stage.world, utc=lambda: clock.utc_in(seconds))
        stage.agent = Agent(world, stage.policy, stage.simulation.rules())
        return stage

    def test_each_look_has_both(self):
        stage = self.ahead(120.0)
        far, close = see(stage)
        scene = stage.agent.observer.look()
        again = stage.agent.observer.recounted(scene, replace(close, apart_s=0.0), 0.0)
        assert {scene.apart_s, far.apart_s, close.apart_s, again.apart_s} == {120.0}
        assert (scene.earliest_utc, scene.latest_utc) == (scene.utc, stage.simulation.clock.utc_in(120.0))

    def test_a_count_that_serves_several_has_the_clocks_of_its_own_answer(self):
        stage = self.ahead(120.0)
        _, close = see(stage)
        scene = stage.agent.observer.look()
        for _ in range(2):
            scene.apart_s = 0.0
            stage.agent.observer.recounted(scene, close, stage.simulation.clock.now_s())
            assert scene.apart_s == 120.0

    def test_without_an_own_clock_the_api_servers_counts(self):
        assert {seen.apart_s for seen in see(sound())} == {0.0}

    @pytest.mark.parametrize(("seconds", "paused"), [(-30.0, True), (30.0, False), (0.0, False)])
    def test_a_pause_of_the_whole_cluster_ends_by_the_slower(self, seconds, paused):
        stage = self.ahead(seconds)
        ended = PauseNote("storage work", stage.simulation.clock.utc_in(-20.0))
        stage.simulation.api.paused_why = write(ended)
        assert (stage.agent.observer.look().paused_why is not None) is paused

    @pytest.mark.parametrize(("seconds", "is_open"), [(0.0, False), (-300.0, False), (300.0, True)])
    def test_a_window_that_either_opens_is_shown(self, seconds, is_open):
        """It opens in two to three minutes."""
        stage = self.ahead(seconds)
        begins = stage.simulation.clock.utc_in(180.0)[11:16]
        policy = replace(stage.policy, maintenance=(Window(begins, "12:00", "UTC"),))
        stage.agent = Agent(replace(stage.world, utc=lambda: stage.simulation.clock.utc_in(seconds)), policy)
        assert bool(stage.agent.observer.look().windows) is is_open

    def test_a_word_in_a_mark_is_known_since_it_was_first_seen(self):
        stage = sound()
        node = stage.agent.observer.look().nodes[NAME]
        mark = FenceMark(
            "first", stage.simulation.clock.utc(), node.boot_id, see(stage)[0].candidates[0].guest, "a"
        )
        known_s = []
        for marked in (mark, mark, replace(mark, incident="second"), replace(mark, proof=Proof.POWER)):
            spoken = (
                marked
                if marked.proof is Proof.POWER and known_s[2:]
                else replace(marked, proof=Proof.OPERATOR)
            )
            scene = stage.agent.observer.look()
            far = stage.agent.observer.observation(scene, replace(node, mark=spoken))
            known_s.append(None if far.word.given_s is None else scene.now_s - far.word.given_s)
            stage.simulation.clock.advance(20.0)
        assert known_s == [0.0, pytest.approx(20.0, abs=1.0), 0.0, None]
