"""What is where: endpoint, host, node; and what of many nodes is shown, named, and only counted."""

from dataclasses import replace

from fencer.core.model import PowerState
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from fencer.web.tree import MOST_HOSTS, MOST_NAMES, MOST_OF_ALL, MOST_ROWS, place_of, tree
from tests.web.worlds import HOME, Watched, fenced, many, sick, well


def names(room):
    return [item.observation.node.name for item in room.shown]


def test_nodes_are_under_their_hosts_what_needs_a_person_first():
    [branch] = tree(fenced().board.snapshot().sight)
    assert (branch.endpoint, branch.count, branch.error) == ("home", 12, "")
    assert [(room.host, names(room)) for room in branch.rooms] == [
        ("pve1", ["k8s-1", "k8s-4", "k8s-7", "k8s-10"]),
        ("pve2", ["k8s-5", "k8s-2", "k8s-8", "k8s-11"]),
        ("pve3", ["k8s-3", "k8s-6", "k8s-9", "k8s-12"]),
    ]


def test_an_endpoint_without_nodes_and_one_that_does_not_answer_are_there_too():
    world = Watched(replace(HOME, further=("lab", "empty"), spread=True)).passes(30)
    branches = tree(world.breaks(What.UNREACHABLE, "lab").passes(10).board.snapshot().sight)
    assert [(one.endpoint, one.count, bool(one.error)) for one in branches] == [
        ("home", 4, False),
        ("lab", 4, True),
        ("empty", 4, False),
    ]


def test_a_node_whose_guest_is_not_known_comes_last():
    shape = Shape(nodes=("k8s-1", "k8s-2"), foreign=("else",), abroad=("k8s-1",))
    branches = tree(Watched(shape).passes(30).board.snapshot().sight)
    assert [(one.endpoint, names(one.rooms[0])) for one in branches] == [("lab", ["k8s-2"]), ("", ["k8s-1"])]


def test_only_a_reading_tells_the_host():
    item = well().board.snapshot().sight.judged["k8s-1"]
    assert place_of(item) == ("home", "pve1")
    absent = replace(item.observation.evidence, power_state=PowerState.ABSENT)
    assert place_of(replace(item, observation=replace(item.observation, evidence=absent))) == ("home", "")
    unread = replace(item.observation, evidence=None)
    assert place_of(replace(item, observation=unread)) == ("home", "")


def test_of_many_nodes_only_those_have_a_row_about_which_there_is_something_to_say():
    [branch] = tree(sick(many(500, 5), 100).sight)
    assert [len(room.shown) for room in branch.rooms] == [5, 0, 0, 0, 0]
    assert [room.folded_count for room in branch.rooms] == [95, 100, 100, 100, 100]
    assert all(len(room.folded) == room.folded_count for room in branch.rooms)


def test_rows_names_and_hosts_are_bounded_and_everything_is_counted():
    sight = sick(many(5000, 500), 1).sight
    for every, most in ((False, MOST_ROWS), (True, MOST_OF_ALL)):
        [branch] = tree(sight, every=every)
        assert sum(len(room.shown) for room in branch.rooms) == most
        assert (
            sum(room.count for room in branch.rooms) + branch.further_left_out + branch.further_well == 5000
        )
    [healthy] = tree(many(5000, 500).sight)
    assert len(healthy.rooms) == MOST_HOSTS
    assert healthy.further_hosts == 500 - MOST_HOSTS
    assert sum(len(room.folded) for room in healthy.rooms) <= MOST_NAMES
    assert sum(room.count for room in healthy.rooms) + healthy.further_well == 5000
