"""What keeps fencer from acting: silence, notes on Nodes, a pause."""

import json
import re
from dataclasses import replace

import pytest

from fencer.cli.wire import Quiet
from fencer.core import annotations as keys
from fencer.core.maintenance import Window
from fencer.core.model import OUT_OF_SERVICE, Doubt, Doubted, FenceMark, Taint
from fencer.core.policy import Mode, Policy
from fencer.errors import ClusterDenied, ClusterProtocol, ClusterUnreachable
from fencer.preflight.collect import collect
from fencer.preflight.finding import Level
from fencer.preflight.nodes import judge
from fencer.simulation.cluster import KEY
from fencer.simulation.faults import What
from tests.cli.lab import PATH, Lab, Otherwise
from tests.preflight.lab import findings


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (ClusterUnreachable("no answer"), ["run this again: it answered a moment ago"]),
        (ClusterDenied("403: this grants it"), []),
        (ClusterProtocol("the key has 3 bytes: this makes another"), []),
    ],
)
def test_only_who_did_not_answer_is_to_be_asked_again(error, tries):
    def nodes():
        raise error

    rows, told = findings(Otherwise(nodes=nodes))
    assert (rows["nodes"]["note"], rows["nodes"]["try"], told["ready"]) == (str(error), tries, False)


def test_a_pause_of_fencing_is_a_warning():
    lab = Lab()
    lab.simulation.api.paused_why = "moving house"
    rows, told = findings(lab)
    assert rows["pause"]["note"] == "fencing is paused: moving house"
    assert "1 warning" in told["verdict"]


def test_a_pause_of_one_node_is_a_warning_with_what_ends_it():
    noted = Noted()
    noted.write(keys.PAUSE, "disk is swapped")
    rows, told = findings(noted.lab)
    assert (rows["pause"]["about"], rows["pause"]["note"]) == ("k8s-2", "fencing is paused: disk is swapped")
    assert rows["pause"]["try"] == ["fencer resume k8s-2"]
    assert "1 warning" in told["verdict"]


def test_a_maintenance_window_that_is_open_is_told():
    window = Window("00:00", "24:00", "UTC", why="storage")
    lab = Lab(Policy(mode=Mode.ARMED, maintenance=(window,)))
    rows, _ = findings(lab)
    assert "storage" in rows["maintenance"]["note"]
    assert (rows["maintenance"]["about"], rows["maintenance"]["level"]) == ("all nodes", "note")


WHOLE_DAY = Window("00:00", "24:00", "UTC")


@pytest.mark.parametrize(
    ("window", "told"),
    [
        (WHOLE_DAY, "armed, but a maintenance window is open until 2026-01-02T00:00:00Z."),
        (
            replace(WHOLE_DAY, nodes=("k8s-*",)),
            "but a maintenance window is open until 2026-01-02T00:00:00Z.",
        ),
        (
            replace(WHOLE_DAY, nodes=("k8s-2",)),
            "but a maintenance window is open for some nodes until 2026-01-02T00:00:00Z.",
        ),
        (Window("22:00", "23:00", "UTC"), "Ready, and armed: `fencer watch` acts."),
    ],
)
def test_who_is_armed_is_told_in_the_end_that_a_window_is_open_and_until_when(window, told):
    verdict = findings(Lab(Policy(mode=Mode.ARMED, maintenance=(window,))))[1]["verdict"]
    assert verdict.endswith(told)


def test_a_window_that_means_no_node_is_a_warning_also_while_it_is_closed():
    window = Window("22:00", "23:00", "UTC", nodes=("k3s-*", "db-1"))
    rows, told = findings(Lab(Policy(mode=Mode.ARMED, maintenance=(window,))))
    row = rows["maintenance"]
    assert (row["level"], row["about"]) == ("warn", "k3s-*, db-1")
    assert row["note"].endswith("no node has such a name, so it keeps fencer from nothing")
    assert row["try"] == ["names such as k8s-1, k8s-2, k8s-3"]
    assert told["verdict"].endswith("acts.")


def test_two_nodes_that_are_paused_are_one_thing_to_say_in_the_end():
    lab = Lab()
    for name in ("k8s-2", "k8s-3"):
        node = lab.simulation.api.nodes[name]
        node.annotations[keys.PAUSE] = "disk is swapped"
        lab.simulation.api.changed(node)
    assert findings(lab)[1]["verdict"].endswith("armed, but fencing of some nodes is paused.")


def notes(lab):
    """What is told of notes on Nodes: level, about, and the points."""
    rows, told = findings(lab)
    assert told["ready"] is True
    found = rows.get("notes")
    return found and (found["level"], found["about"], found["points"])


class Noted:
    """A lab that has watched, and on whose k8s-2 somebody writes."""

    def __init__(self):
        self.lab = Lab()
        self.lab.passes(30, watched=True)
        self.node = self.lab.simulation.api.nodes["k8s-2"]
        self.guest = self.lab.simulation.world.guests["k8s-2"].ref
        self.seal = keys.Seal(KEY, self.node.uid)

    def write(self, annotation, text):
        self.node.annotations[annotation] = text
        self.lab.simulation.api.changed(self.node)

    def doubt(self, **about):
        [witness] = {one.witness for one in self.lab.simulation.hypervisors["lab"].sweep()}
        guest = replace(self.guest, **about)
        return Doubt(Doubted.CONTRADICTED, guest, witness, "fencer@pve1", "2026-11-20T10:41:12Z")


def test_a_forged_mark_is_told_with_what_throws_it_away():
    lab = Lab()
    lab.breaks(What.FORGE_MARK, "k8s-2")
    level, about, [point] = notes(lab)
    assert (level, about) == ("warn", "1 node")
    assert point.startswith("k8s-2: its mark cannot be read (no agent with the current key")
    assert "`kubectl annotate node k8s-2 fencer.dev/mark-`" in point


def test_a_fence_of_an_older_fencer_is_told_with_what_adopts_it():
    noted = Noted()
    mark = FenceMark("i-1", "2026-11-20T10:41:12Z", noted.node.boot_id, noted.guest, "fencer@pve2")
    unsigned = {**json.loads(keys.write_mark(mark, noted.seal)), "schema": keys.UNSIGNED}
    noted.write(keys.MARK, json.dumps(unsigned))
    noted.lab.simulation.cluster.taint_by_hand("k8s-2")
    assert notes(noted.lab) is None, "beside no taint of that moment, it is nothing"
    noted.lab.simulation.api.set_taints(
        noted.lab.simulation.api.nodes["k8s-2"],
        (Taint(OUT_OF_SERVICE, "nodeshutdown", "NoExecute", mark.fenced_at_utc),),
    )
    _, _, [point] = notes(noted.lab)
    assert point.startswith("k8s-2: ")
    assert "`fencer unfence k8s-2 --adopt WHY`" in point


def test_a_witness_that_is_not_believed_is_told():
    """Its node cannot be fenced by what that one says: worth knowing before it dies."""
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.SAVE_TO_FILE, "k8s-2")
    lab.passes(60, watched=True)
    rows, _ = findings(lab)
    [point] = rows["notes"]["points"]
    assert point.startswith('k8s-2: "off" of lab/k8s-2 on lab1 is distrusted')
    assert "`kubectl annotate node k8s-2 fencer.dev/doubts-`, if you know better" in point
    assert re.search(r"found by \S+ (\d+ s|\d+m\d+s) ago\)", point), "an age, no clock time"


def test_an_endpoint_that_is_distrusted_is_a_row_with_the_command_and_no_annotation_is_deleted_for_it():
    lab = Lab()
    lab.passes(30, watched=True)
    for name in ("k8s-2", "k8s-3"):
        lab.breaks(What.LIE_STOPPED, name)
    lab.passes(60, watched=True)
    rows, _ = findings(lab)
    assert (rows["distrusted"]["level"], rows["distrusted"]["about"]) == ("warn", "lab")
    assert "`fencer trust lab --why WHY`" in " ".join(rows["distrusted"]["try"])
    for point in rows["notes"]["points"]:
        assert "it ends when its VM is reported running there again" in point
        assert "fencer.dev/doubts" not in point


def test_a_doubt_about_a_host_that_the_guest_has_left_is_in_nobodys_way():
    noted = Noted()
    noted.write(keys.DOUBTS, keys.write_doubts((noted.doubt(host="elsewhere"),), noted.seal))
    assert notes(noted.lab) is None


def test_a_doubt_that_the_next_pass_lifts_is_in_nobodys_way():
    noted = Noted()
    noted.write(keys.DOUBTS, keys.write_doubts((noted.doubt(),), noted.seal))
    assert notes(noted.lab) is None


def test_doubts_that_cannot_be_read_are_told_beside_other_notes_of_the_node():
    noted = Noted()
    forged = keys.Seal(b"a key of my own", noted.node.uid)
    noted.write(keys.DOUBTS, keys.write_doubts((noted.doubt(),), forged))
    noted.write(keys.MARK, "nonsense")
    _, about, [mark, doubts] = notes(noted.lab)
    assert about == "1 node"
    assert "`kubectl annotate node k8s-2 fencer.dev/mark-`" in mark
    assert "`kubectl annotate node k8s-2 fencer.dev/doubts-`" in doubts


def test_nodes_that_are_left_alone_by_annotation_and_such_that_cannot_be_read_are_named():
    lab = Lab()
    facts = collect(PATH, lab.load(PATH), lab, Quiet())
    left = [
        replace(one, node=replace(one.node, excluded_by="the annotation fencer.dev/exclude"))
        for one in facts.nodes.observations[:2]
    ]
    scene = replace(facts.nodes.scene, malformed=("k8s-9: no UID",))
    found = judge(lab.policy, replace(facts.nodes, observations=left, scene=scene))
    assert [(one.what, one.level, one.about, one.note) for one in found] == [
        ("unreadable", Level.WARN, "1 node", "k8s-9: no UID"),
        ("excluded", Level.NOTE, "2 nodes", "by annotation or label: k8s-1, k8s-2"),
        ("brake", Level.OK, "at 1 fence of 2 nodes", ""),
    ]
