"""What is known of nodes by a list and a watch, over servers that no real one can be made to be."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from fencer.bounded import LARGEST_BYTES
from fencer.cluster.client import Connection
from fencer.cluster.lists import Lists
from fencer.cluster.reflector import (
    DENIED_PAUSE_S,
    FIRST_PAUSE_S,
    LONGEST_DENIED_S,
    LONGEST_PAUSE_S,
    STALE_S,
    TELLING_FAILURES,
    WATCHED_S,
    Reflector,
)
from fencer.cluster.settings import ClusterSettings
from fencer.core import annotations as keys
from fencer.core.annotations import Seal, write_binding
from fencer.core.history import LAGS_S
from fencer.core.model import Unreadable
from fencer.errors import ClusterDenied, ClusterUnreachable
from tests.cluster.conftest import write_kubeconfig
from tests.cluster.standin import (
    KEY,
    Behaviour,
    StandIn,
    again,
    answer,
    bookmark,
    drip,
    event,
    hang_up,
    in_turn,
    listing,
    namespace,
    node,
    routes,
    secret,
    silent,
    status,
    stream,
)
from tests.contract.cluster_contract import BINDING
from tests.support import wait_until
from tests.support.kernel import held_bytes

SHORT_S = 1.0
"""For a watch that tells nothing in time, or all the same."""
KUBE_SYSTEM = "/api/v1/namespaces/kube-system"
TAINT = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
LISTED = listing("NodeList", node("k8s-1", resourceVersion="90"), version=100)


@dataclass
class Watched:
    """A stand-in that lists nodes and is watched, and who watches, by a clock that the test moves."""

    server: StandIn
    reflector: Reflector
    changes: list[None]
    now: list[float]
    pauses: list[float] = field(default_factory=list)

    def turn(self, times: int = 1) -> None:
        """List if need be, and watch until that ends."""
        for _ in range(times):
            self.pauses.append(self.reflector.turn())

    def names(self) -> list[str]:
        return sorted(view.name for view in self.views())

    def views(self):
        return self.reflector.nodes(KEY).views

    def asked(self) -> list[str]:
        """Return what was asked for: ``list``, or ``watch`` with the version from which it goes on."""
        found = []
        for request in self.server.requests:
            path, _, query = request.target.partition("?")
            fields = dict(part.partition("=")[::2] for part in query.split("&"))
            if path.endswith("/nodes"):
                found.append(f"watch {fields['resourceVersion']}" if "watch" in fields else "list")
        return found


@pytest.fixture
def watch(stand_in, tmp_path):
    """Build a scene of the answers to lists and watches."""

    def build(
        lists: Behaviour,
        watches: Behaviour,
        space: Behaviour | None = None,
        *further: str,
        silent_s: float = SHORT_S,
    ) -> Watched:
        def nodes(request, connection, end) -> None:
            (watches if "watch=true" in request.target else lists)(request, connection, end)

        server = stand_in(routes({"/kube-system": space or namespace(), "/nodes": nodes}))
        settings = ClusterSettings(
            write_kubeconfig(tmp_path / "kubeconfig", server.url), servers=further, unauthenticated=True
        )
        api, changes, now = Connection(settings, lambda _s: None), [], [1000.0]
        reflector = Reflector(
            api, Lists(api), lambda: changes.append(None), now_s=lambda: now[0], silent_s=silent_s
        )
        return Watched(server, reflector, changes, now)

    return build


# -- what is told -----------------------------------------------------------------------------------------


def test_nodes_come_change_and_go_as_the_watch_tells(watch):
    lines = [
        event("ADDED", node("k8s-2", resourceVersion="101")),
        event("MODIFIED", {**node("k8s-1", resourceVersion="102"), "spec": {"taints": [TAINT]}}),
        event("DELETED", node("k8s-2", resourceVersion="103")),
        event("ADDED", node("k8s-3", resourceVersion="104")),
    ]
    scene = watch(LISTED, stream(*lines))
    scene.turn()
    assert scene.names() == ["k8s-1", "k8s-3"]
    assert [taint.key for view in scene.views() for taint in view.taints] == ["dedicated"]
    assert len(scene.changes) == 5  # the list, too


def test_a_watch_asks_for_bookmarks_and_for_its_own_end(watch):
    scene = watch(LISTED, stream())
    scene.turn()
    target = scene.server.requests[-1].target
    assert "allowWatchBookmarks=true" in target
    assert f"timeoutSeconds={WATCHED_S}" in target


@pytest.mark.parametrize("cut", [1, 3, 1000])
def test_lines_come_in_any_pieces(watch, cut):
    said = event("ADDED", node("k8s-2", resourceVersion="101")) + b"\n" + bookmark(120)
    pieces = [said[at : at + cut] for at in range(0, len(said), cut)]
    scene = watch(LISTED, stream(*pieces))
    scene.turn(2)
    assert scene.names() == ["k8s-1", "k8s-2"]
    assert scene.asked() == ["list", "watch 100", "watch 120"]


def test_one_that_ended_in_order_goes_on_from_what_it_told_last(watch):
    scene = watch(
        LISTED,
        in_turn(
            stream(event("ADDED", node("k8s-2", resourceVersion="101"))),
            stream(bookmark(150)),
            stream(event("ADDED", node("k8s-3", resourceVersion="151"))),
        ),
    )
    scene.turn(3)
    assert scene.asked() == ["list", "watch 100", "watch 101", "watch 150"]
    assert scene.names() == ["k8s-1", "k8s-2", "k8s-3"]


def test_a_bookmark_moves_the_version_on_and_nothing_else(watch):
    scene = watch(LISTED, stream(bookmark(150)))
    scene.turn()
    before = scene.views()
    scene.turn()
    assert scene.views() == before
    assert len(scene.changes) == 1


READY = {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-20T10:00:00Z"}]}
LATER = {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-20T10:05:00Z"}]}
SILENT = {"conditions": [{"type": "Ready", "status": "Unknown"}]}


@pytest.mark.parametrize(
    ("changed", "called"),
    [
        ({"status": LATER}, False),
        ({"status": {**LATER, "volumesInUse": ["a"], "images": [{"names": ["x"]}]}}, False),
        ({"status": SILENT}, True),
        ({"spec": {"taints": [TAINT]}}, True),
        ({"spec": {"unschedulable": True}}, True),
        ({"notes": {keys.BINDING: "x"}}, True),
        ({"notes": {keys.MARK: "x"}}, True),
        ({"notes": {keys.DOUBTS: "x"}}, True),
        ({"notes": {keys.INCIDENT: "x"}}, True),
        ({"notes": {keys.APPROVED: "x"}}, True),
        ({"notes": {keys.CORDON: "x"}}, True),
        ({"notes": {keys.EXCLUDE: "true"}}, True),
        ({"notes": {"somebody.else/note": "x"}}, False),
        ({"status": {**READY, "nodeInfo": {"bootID": "b"}}}, True),
        ({"spec": {"taints": "odd"}}, True),
    ],
    ids=str,
)
def test_who_waits_is_called_for_what_matters_and_for_no_regular_report(watch, changed, called):
    parts = {"status": READY, "notes": {}, **changed}
    notes = parts.pop("notes")
    before = {**node("k8s-1", resourceVersion="90"), "status": READY}
    after = {**node("k8s-1", resourceVersion="101", annotations=notes), **parts}
    scene = watch(listing("NodeList", before), stream(event("MODIFIED", after)))
    scene.turn()
    assert len(scene.changes) == 1 + called


def test_a_malformed_node_is_named_until_it_is_mended_and_hides_no_other(watch):
    broken = {**node("k8s-2", resourceVersion="101"), "spec": {"taints": [{"key": "a"}]}}
    scene = watch(
        listing("NodeList", node("k8s-1"), node("k8s-2"), "nonsense"),
        in_turn(
            stream(event("MODIFIED", broken)),
            stream(event("MODIFIED", node("k8s-2", resourceVersion="102"))),
        ),
    )
    scene.turn()
    assert scene.names() == ["k8s-1"]
    assert sorted(scene.reflector.nodes(KEY).malformed) == [
        "node (no name): the object: expected an object, not 'nonsense'",
        "node k8s-2: effect is missing",
    ]
    scene.turn()
    assert scene.names() == ["k8s-1", "k8s-2"]
    assert len(scene.reflector.nodes(KEY).malformed) == 1


def test_what_was_signed_is_read_as_soon_as_there_is_a_key(watch):
    """The view was made before: nothing has to be told again."""
    note = {keys.BINDING: write_binding(BINDING, Seal(KEY, "uid-k8s-1"))}
    scene = watch(listing("NodeList", node("k8s-1", annotations=note)), stream())
    scene.turn()
    [before] = scene.reflector.nodes(b"nobody's key").views
    [after] = scene.reflector.nodes(KEY).views
    assert isinstance(before.binding, Unreadable)
    assert after.binding == BINDING


# -- whatever ends it -------------------------------------------------------------------------------------

NEW = event("ADDED", node("k8s-2", resourceVersion="101"))
GONE = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
TORN = {
    "closed": stream(NEW, then=hang_up),
    "closed in a line": stream(NEW, NEW[:20], then=hang_up),
    "a line that is no JSON": stream(NEW, b"<html>Bad gateway</html>\n"),
    "an event of an unknown type": stream(NEW, event("SYNCED", node("k8s-3", resourceVersion="102"))),
    "an event without a version": stream(NEW, event("ADDED", {"metadata": {"name": "k8s-3"}})),
    "a version that is no number": stream(NEW, event("ADDED", node("k8s-3", resourceVersion="latest"))),
    "a very long version": stream(NEW, event("ADDED", node("k8s-3", resourceVersion="9" * 5000))),
    "an event without a node": stream(NEW, event("ADDED", {"metadata": {"resourceVersion": "102"}})),
    "an event of nothing": stream(NEW, event("ADDED", "nonsense")),
    "a bookmark without a version": stream(NEW, event("BOOKMARK", {"metadata": {}})),
    "410": stream(NEW, event("ERROR", GONE)),
    "another error": stream(NEW, event("ERROR", {**GONE, "code": 500})),
    "an error without a code": stream(NEW, event("ERROR", "nonsense")),
    "silence": stream(NEW, then=silent),
    "a line byte by byte": stream(NEW, then=again(b" ")),
    "empty lines": stream(NEW, then=again(b"\n")),
}


@pytest.mark.parametrize("torn", TORN.values(), ids=TORN)
def test_whatever_tears_a_watch_the_nodes_are_listed_again_and_what_it_told_before_counts(watch, torn):
    later = listing("NodeList", node("k8s-1"), node("k8s-2"), node("k8s-4"), version=130)
    scene = watch(in_turn(LISTED, later), in_turn(torn, stream()))
    scene.turn()
    assert scene.names() == ["k8s-1", "k8s-2"]
    scene.turn()
    assert scene.asked() == ["list", "watch 100", "list", "watch 130"]
    assert scene.names() == ["k8s-1", "k8s-2", "k8s-4"]


def heads(request, connection, over) -> None:
    """Begin the answer again and again."""
    while not over.wait(0.02):
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")


REFUSED = {
    "410": status(410, reason="Expired"),
    "401": status(401, reason="Unauthorized"),
    "403": status(403, reason="Forbidden"),
    "500": status(500),
    "a page": answer("<html>", status=404),
    "elsewhere": answer("", status=302, headers={"Location": "http://127.0.0.1:1/"}),
    "hung up": hang_up,
    "silent": silent,
    "drip": drip,
    "a head without an end": heads,
    "compressed": answer(b"\x1f\x8b", headers={"Content-Encoding": "gzip"}),
    "compressed, refused": answer(b"\x1f\x8b", status=403, headers={"Content-Encoding": "gzip"}),
}


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
def test_where_no_watch_begins_the_nodes_are_listed_again(watch, refused):
    scene = watch(LISTED, refused)
    scene.turn()
    scene.now[0] += DENIED_PAUSE_S
    scene.turn()
    assert scene.asked() == ["list", "watch 100"] * 2
    assert scene.names() == ["k8s-1"]


def test_whoever_may_not_watch_lists_as_often_as_a_pass_looks(watch):
    scene = watch(LISTED, status(403, reason="Forbidden"))
    scene.turn(8)
    assert max(scene.pauses) <= DENIED_PAUSE_S
    assert scene.asked() == ["list", "watch 100", *["list"] * 7]


def test_whoever_may_not_watch_tries_that_seldom_until_it_works(watch):
    """As a client does that backs off: 18 refused tries in 30 s were seen."""
    scene = watch(LISTED, in_turn(*[status(403, reason="Forbidden")] * 8, stream(NEW, then=hang_up)))
    tried_s = []
    for _ in range(250):
        scene.turn()
        if scene.asked()[-1] == "watch 100":
            tried_s.append(scene.now[0])
        scene.now[0] += 1.0
        if "k8s-2" in scene.names():
            break
    rests = [later - earlier for earlier, later in pairwise(tried_s)]
    assert rests == [2.0, 4.0, 8.0, 16.0, 32.0, LONGEST_DENIED_S, LONGEST_DENIED_S, LONGEST_DENIED_S]


@pytest.mark.parametrize(
    "refused", [status(410), stream(event("ERROR", GONE)), stream()], ids=["410", "ERROR", "empty"]
)
def test_pauses_grow_while_no_watch_lasts(watch, refused):
    scene = watch(LISTED, refused)
    scene.turn(8)
    longest = [0.5, 1, 2, 4, 8, 15, 15, 15]
    assert longest[0] == FIRST_PAUSE_S
    assert longest[-1] == LONGEST_PAUSE_S
    assert all(limit / 2 <= pause <= limit for pause, limit in zip(scene.pauses, longest, strict=True))


def test_after_a_watch_that_lasted_pauses_begin_short_again(watch):
    scene = watch(LISTED, stream())
    scene.turn(5)

    def lasting(request, connection, over) -> None:
        scene.now[0] += LONGEST_PAUSE_S + 1
        stream(bookmark(200))(request, connection, over)

    scene.server.behave = routes({"/kube-system": namespace(), "/nodes": lasting})
    scene.turn()
    assert scene.pauses[-1] <= FIRST_PAUSE_S


def test_one_that_ends_in_order_after_a_long_silence_is_followed_by_a_list(watch):
    """It may have come to its end anywhere on the way, and what was told last is old."""
    scene = watch(LISTED, stream())

    def late(request, connection, over) -> None:
        if "watch=true" in request.target:
            scene.now[0] += LONGEST_PAUSE_S
            return stream()(request, connection, over)
        return LISTED(request, connection, over)

    scene.server.behave = routes({"/kube-system": namespace(), "/nodes": late})
    scene.turn(2)
    assert scene.asked() == ["list", "watch 100"] * 2


@pytest.mark.slow
def test_a_watch_that_tells_something_now_and_then_is_kept(watch):
    """All together it takes longer than it may be silent."""

    def now_and_then(_request, connection, over) -> None:
        for number in range(8):
            line = bookmark(101 + number)
            connection.sendall(f"{len(line):x}\r\n".encode() + line + b"\r\n")
            over.wait(0.5)
        connection.sendall(b"0\r\n\r\n")

    scene = watch(LISTED, in_turn(stream(then=now_and_then), stream()), silent_s=3.0)
    scene.turn(2)
    assert scene.asked() == ["list", "watch 100", "watch 108"]


def test_a_line_without_an_end_is_not_read_to_it(watch):
    sent = [0]

    def endless(_request, connection, over) -> None:
        piece = b" " * (1 << 16)
        while sent[0] < 4 * LARGEST_BYTES and not over.is_set():
            connection.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            sent[0] += len(piece)

    scene = watch(LISTED, stream(NEW, then=endless))
    scene.turn(2)
    assert sent[0] < 2 * (LARGEST_BYTES + held_bytes())
    assert scene.asked()[2] == "list"
    assert scene.names() == ["k8s-1", "k8s-2"]


# -- it never goes back -----------------------------------------------------------------------------------


def test_a_list_that_is_older_than_what_was_told_is_refused_for_a_while(watch):
    """Whoever lags does so for less than that; an etcd that was restored from a backup starts from there."""
    older = listing("NodeList", node("k8s-9"), version=99)
    scene = watch(in_turn(LISTED, older), in_turn(stream(NEW, then=hang_up), stream()))
    scene.turn()
    scene.now[0] += LAGS_S - 0.1
    scene.turn()
    assert scene.names() == ["k8s-1", "k8s-2"]
    assert scene.asked() == ["list", "watch 100", "list"]
    scene.now[0] += 0.1
    scene.turn()
    assert scene.names() == ["k8s-9"]
    assert scene.asked()[-1] == "watch 99"


def test_what_is_told_late_does_not_undo_what_was_told_before(watch):
    late = [
        event("DELETED", node("k8s-1", resourceVersion="95")),
        event("MODIFIED", {**node("k8s-1", resourceVersion="96"), "spec": {"taints": [TAINT]}}),
        bookmark(97),
    ]
    scene = watch(LISTED, stream(*late))
    scene.turn(2)
    assert scene.names() == ["k8s-1"]
    assert [view.taints for view in scene.views()] == [()]
    assert scene.asked() == ["list", "watch 100", "watch 100"]


def test_old_news_keep_nothing_fresh(watch):
    scene = watch(LISTED, stream(bookmark(97)))
    scene.turn()
    scene.server.behave = routes({"/kube-system": namespace(), "/nodes": stream(bookmark(98))})
    scene.now[0] += STALE_S + 1
    scene.turn()
    with pytest.raises(ClusterUnreachable):
        scene.views()


def test_a_node_that_is_made_again_is_another_one(watch):
    scene = watch(
        in_turn(LISTED, listing("NodeList", node("k8s-1", uid="third"), version=130)),
        stream(
            event("DELETED", node("k8s-1", resourceVersion="101")),
            event("ADDED", node("k8s-1", resourceVersion="102", uid="second")),
            then=hang_up,
        ),
    )
    scene.turn()
    assert [view.uid for view in scene.views()] == ["second"]
    scene.changes.clear()
    scene.turn()
    assert [view.uid for view in scene.views()] == ["third"]
    assert scene.changes


def test_a_node_that_went_while_nobody_watched_is_gone(watch):
    scene = watch(
        in_turn(LISTED, listing("NodeList", version=130)), in_turn(stream(NEW, then=hang_up), stream())
    )
    scene.turn(2)
    assert scene.names() == []


# -- how old it may be ------------------------------------------------------------------------------------


def test_what_was_told_long_ago_is_not_believed_and_why_is_said(watch):
    scene = watch(in_turn(LISTED, status(503, message="etcd is away")), stream(bookmark(120), then=hang_up))
    scene.turn(2)
    scene.now[0] += STALE_S
    assert scene.names() == ["k8s-1"]
    scene.now[0] += 1
    with pytest.raises(
        ClusterUnreachable, match=r"nothing was told of the nodes for 91 s: .*503: etcd is away"
    ):
        scene.views()


def test_a_list_is_as_old_as_its_request(watch):
    scene = watch(LISTED, stream())

    def slow(request, connection, over) -> None:
        scene.now[0] += STALE_S + 1
        LISTED(request, connection, over)

    scene.server.behave = routes({"/kube-system": namespace(), "/nodes": slow})
    scene.reflector.turn()
    with pytest.raises(ClusterUnreachable):
        scene.views()


def test_nothing_is_known_before_the_first_list(watch):
    scene = watch(status(503), stream())
    scene.turn()
    assert scene.reflector.nodes(KEY) is None


@pytest.mark.parametrize("said", [bookmark(150), NEW])
def test_every_word_counts(watch, said):
    scene = watch(LISTED, stream())
    scene.turn()
    scene.now[0] += STALE_S
    scene.server.behave = routes({"/kube-system": namespace(), "/nodes": stream(said)})
    scene.turn()
    scene.now[0] += STALE_S
    assert "k8s-1" in scene.names()


# -- who tells it -----------------------------------------------------------------------------------------


def test_a_list_of_another_cluster_is_not_taken(watch):
    scene = watch(
        in_turn(LISTED, listing("NodeList", node("stranger"), version=500)),
        stream(NEW, then=hang_up),
        in_turn(namespace("cluster-1"), namespace("cluster-1"), namespace("cluster-2")),
    )
    scene.turn(2)
    assert scene.names() == ["k8s-1", "k8s-2"]
    assert scene.asked() == ["list", "watch 100", "list"]


def test_nothing_that_a_watch_of_another_cluster_tells_is_taken(watch):
    scene = watch(LISTED, stream(NEW), in_turn(namespace("cluster-1"), namespace("cluster-2")))
    scene.turn()
    assert scene.names() == ["k8s-1"]
    scene.now[0] += STALE_S + 1
    with pytest.raises(ClusterUnreachable, match="another cluster"):
        scene.views()


def test_one_who_may_not_watch_lists_and_says_so_once(watch, caplog):
    scene = watch(LISTED, status(403, reason="Forbidden", message='cannot watch resource "nodes"'))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            scene.turn()
            scene.now[0] += LONGEST_DENIED_S
    assert scene.asked() == ["list", "watch 100"] * 3
    [said] = caplog.messages
    assert 'cannot watch resource "nodes"' in said
    assert "`fencer check` shows the command that grants the right" in said


def test_a_watch_that_fails_again_and_again_is_told_once_and_that_it_works_again_too(watch, caplog):
    fails = [status(500, message="boom")] * (TELLING_FAILURES + 2)
    scene = watch(LISTED, in_turn(*fails, stream(event("MODIFIED", node("k8s-1", resourceVersion="110")))))
    with caplog.at_level(logging.INFO):
        scene.turn(TELLING_FAILURES - 1)
        assert not caplog.messages
        scene.turn(4)
    warned, back = caplog.messages
    assert warned.startswith("the nodes cannot be watched, and are listed instead: ")
    assert "boom" in warned
    assert back == "the nodes are watched again"


def test_one_that_falls_silent_is_no_failure_and_repeats_no_warning(watch, caplog):
    def fall_silent(request, connection, over) -> None:
        scene.now[0] += SHORT_S
        hang_up(request, connection, over)

    fails = [status(500, message="boom")] * TELLING_FAILURES
    scene = watch(LISTED, in_turn(fall_silent, *fails, fall_silent))
    with caplog.at_level(logging.INFO):
        scene.turn(TELLING_FAILURES)
        assert not caplog.messages
        scene.turn(3)
    assert len(caplog.messages) == 1


def test_after_a_server_that_died_the_next_one_is_watched(watch, stand_in):
    second = stand_in(
        routes({"/kube-system": namespace(), "/nodes": in_turn(LISTED, stream(NEW, then=hang_up))})
    )
    scene = watch(LISTED, stream(bookmark(100), then=hang_up), None, second.url)
    scene.turn()
    scene.server.behave = hang_up
    scene.turn()
    assert scene.names() == ["k8s-1", "k8s-2"]


def test_one_that_tells_nothing_but_answers_lists_is_kept(watch, stand_in):
    """In a small cluster nothing may happen for minutes, and not every server sends bookmarks then."""
    second = stand_in(routes({"/kube-system": namespace(), "/nodes": LISTED}))
    scene = watch(LISTED, silent, None, second.url)
    scene.turn(2)
    assert scene.asked() == ["list", "watch 100"] * 2
    assert second.requests == []


# -- behind the port --------------------------------------------------------------------------------------


def test_until_the_watch_has_listed_them_nodes_are_listed_live(stand_in, lead_to):
    cluster = lead_to(stand_in(status(403, message="who are you")).url)
    cluster.subscribe(lambda: None)
    with pytest.raises(ClusterDenied, match="who are you"):
        cluster.nodes()


def test_whoever_subscribes_is_called_and_there_is_one_watch(stand_in, lead_to):
    first, second = [], []

    def nodes(request, connection, over) -> None:
        (stream(NEW, then=silent) if "watch=true" in request.target else LISTED)(request, connection, over)

    server = stand_in(routes({"/kube-system": namespace(), "/nodes": nodes}))
    cluster = lead_to(server.url)
    cluster.subscribe(lambda: first.append(None))
    cluster.subscribe(lambda: second.append(None))
    wait_until(lambda: len(cluster.nodes().views) == 2, "what the watch tells")
    assert cluster.nodes().utc == ""
    assert first
    assert len([None for request in server.requests if "watch=true" in request.target]) == 1


def test_notes_that_were_signed_with_a_later_key_are_read(lead_to):
    """The first agent makes the key when it writes; all others had listed the nodes by then."""
    note = {keys.BINDING: write_binding(BINDING, Seal(KEY, "uid-k8s-1"))}
    listed = listing("NodeList", node("k8s-1", annotations=note))
    missing = status(404, reason="NotFound", name="fencer-key")

    def nodes(request, connection, over) -> None:
        (stream(then=silent) if "watch=true" in request.target else listed)(request, connection, over)

    table = {"/kube-system": namespace(), "/nodes": nodes}
    with StandIn(routes({**table, "/fencer-key": missing}), key=None) as server:
        cluster = lead_to(server.url)
        cluster.subscribe(lambda: None)
        wait_until(lambda: cluster.nodes().utc == "", "watch")
        assert isinstance(cluster.nodes().views[0].binding, Unreadable)
        server.behave = routes({**table, "/fencer-key": answer(secret(KEY))})
        assert cluster.nodes().views[0].binding == BINDING
