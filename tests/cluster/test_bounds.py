"""Answers that have no end in size or time, whatever their status: given up, and said so."""

from __future__ import annotations

import gzip
import json
import tracemalloc

import pytest

from fencer.bounded import LARGEST_BYTES, parsed_bytes
from fencer.cluster.answers import read_object
from fencer.cluster.lists import MOST_PAGES
from fencer.errors import ClusterError, ClusterProtocol, ClusterUnreachable
from tests.cluster.standin import (
    DATE,
    Endless,
    Request,
    answer,
    dripping,
    listing,
    namespace,
    node,
    routes,
    status,
)
from tests.cluster.test_odd_servers import NO_LEASE, VIEW
from tests.support.kernel import held_bytes

SHORT_S = 1.0
FRAMES = {
    "to the end": ("", b""),
    "announced": (f"Content-Length: {1 << 50}\r\n", b""),
    "in one chunk": ("Transfer-Encoding: chunked\r\n", b"FFFFFFFFFFFF\r\n"),
}
FREE_BYTES = 300 << 20
"""Of the 512 MB of the unit, when all else is there."""
WORDY = {"metadata": {"name": "k8s-1"}, "note": "x" * 300}


@pytest.mark.parametrize("code", [200, 201, 302, 401, 403, 404, 409, 429, 500, 503])
def test_a_body_without_an_end_is_given_up_whatever_the_status(stand_in, lead_to, code):
    body = Endless(code)
    server = stand_in(body)
    with pytest.raises(ClusterProtocol, match=r"get node k8s-1: the answer has more than 32 MiB"):
        lead_to(server.url).fact("k8s-1")
    assert body.sent_bytes < LARGEST_BYTES + held_bytes()
    assert len(server.requests) == 1


@pytest.mark.parametrize("frame", FRAMES)
def test_a_length_that_is_announced_is_not_believed(stand_in, lead_to, frame):
    body = Endless(200, *FRAMES[frame])
    with pytest.raises(ClusterProtocol, match=r"more than 32 MiB"):
        lead_to(stand_in(body).url).fact("k8s-1")
    assert body.sent_bytes < LARGEST_BYTES + held_bytes()


def test_who_is_told_to_wait_for_the_answer_again_and_again_does_not(stand_in, lead_to):
    """Each "100 Continue" begins the answer again. After 5 s the true one would come."""

    def behave(request: Request, connection, end) -> None:
        for _ in range(250):
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            if end.wait(0.02):
                return
        answer(node())(request, connection, end)

    with pytest.raises(ClusterUnreachable, match=r"timed out|did not end in time"):
        lead_to(stand_in(behave).url, patience_s=SHORT_S).fact("k8s-1")


@pytest.mark.parametrize("code", [200, 500])
def test_nothing_compressed_is_asked_for_or_unpacked(stand_in, lead_to, code):
    """The bomb holds a true answer and 1 GB of spaces."""
    bomb = gzip.compress(json.dumps(node()).encode()) + gzip.compress(b" " * (1 << 20)) * 1000
    server = stand_in(answer(bomb, status=code, headers={"Content-Encoding": "gzip"}))
    with pytest.raises(ClusterProtocol, match=r"the answer is compressed .'gzip'."):
        lead_to(server.url).fact("k8s-1")
    assert [request.headers["accept-encoding"] for request in server.requests] == ["identity"]


@pytest.mark.parametrize("part", ["head", "body"])
@pytest.mark.parametrize("code", [200, 404, 500])
def test_an_answer_that_drips_is_late_whatever_its_status(stand_in, lead_to, pauses, code, part):
    """Each of its bytes comes in time. All together they would take 5 s; after one it is not asked again."""
    server = stand_in(dripping(answer(WORDY, status=code), part))
    with pytest.raises(
        ClusterUnreachable, match=r"not answer: .*(did not end in time|timed out).* \(asked: get node k8s-1\)"
    ):
        lead_to(server.url, patience_s=SHORT_S).fact("k8s-1")
    assert (len(server.requests), pauses) == (1, [])


@pytest.mark.parametrize("behave", [Endless(200), Endless(409), dripping(status(500), "body")])
def test_after_a_write_that_was_answered_without_an_end_the_outcome_is_unknown(stand_in, lead_to, behave):
    server = stand_in(behave)
    with pytest.raises(ClusterUnreachable):
        lead_to(server.url, patience_s=SHORT_S if not isinstance(behave, Endless) else 30).uncordon(VIEW)
    assert len(server.requests) == 1


def test_a_connection_is_used_again_after_an_answer_that_came_whole(stand_in, lead_to):
    """Reading to the end is what gives it back; the next request has its own time."""
    said = json.dumps(node()).encode()
    head = f"HTTP/1.1 200 OK\r\nDate: {DATE}\r\nContent-Length: {len(said)}\r\n\r\n".encode()
    ports = []

    def behave(_request: Request, connection, _end) -> None:
        ports.append(connection.getpeername())
        connection.sendall(head + said)
        connection.recv(65536)
        ports.append(connection.getpeername())
        connection.sendall(head + said)

    server = stand_in(routes({"/leases/k8s-1": NO_LEASE}, behave))
    cluster = lead_to(server.url)
    with pytest.raises(ClusterError):  # the second answer, about the lease, is no lease
        cluster.fact("k8s-1")
    assert len(set(ports)) == 1
    assert len(ports) == 2


# -- lists ------------------------------------------------------------------------------------------------


def _pods(count: int, size_bytes: int) -> list[dict[str, object]]:
    return [
        {
            "metadata": {
                "namespace": "default",
                "name": f"db-{number}",
                "uid": f"u{number}",
                "resourceVersion": "1",
            },
            "note": "x" * size_bytes,
        }
        for number in range(count)
    ]


def _paging(pods, asked):
    """Serve pods page by page, and note how many were asked for at a time."""

    def behave(request: Request, connection, end) -> None:
        fields = dict(part.partition("=")[::2] for part in request.target.partition("?")[2].split("&"))
        limit, begin = int(fields["limit"]), int(fields.get("continue", "0"))
        asked.append(limit)
        more = str(begin + limit) if begin + limit < len(pods) else ""
        listing("PodList", *pods[begin : begin + limit], more=more)(request, connection, end)

    return behave


def test_a_page_that_is_too_large_is_asked_for_in_shorter_ones(stand_in, lead_to):
    """Forty pods of 1.5 MiB, as large as etcd takes them, do not fit; all are read in the end."""
    pods = _pods(40, 1_500_000)
    asked = []
    found = lead_to(stand_in(_paging(pods, asked)).url).pods("k8s-1")
    assert [pod.name for pod in found] == [f"db-{number}" for number in range(40)]
    assert asked == [500, 62, 7, 7, 7, 7, 7, 7]


def test_who_needed_shorter_pages_begins_with_them_the_next_time_until_whole_ones_fit_again(
    stand_in, lead_to
):
    pods, asked = _pods(40, 1_500_000), []
    cluster = lead_to(stand_in(_paging(pods, asked)).url)
    cluster.pods("k8s-1")
    asked.clear()
    cluster.pods("k8s-1")
    assert asked == [14, 14, 14]
    del pods[1:]
    asked.clear()
    for _ in range(6):
        cluster.pods("k8s-1")
    assert asked == [28, 56, 112, 224, 448, 500]
    cluster.pods("k8s-2")
    assert asked[-1] == 500


FAT = {
    "preferences": {"affinity": [{"weight": 1, "preference": {}}] * 260_000},
    "an annotation that is four bytes wide": {
        "note": "\U0001f600" * 64_000,
        "env": [{"name": "a"}] * 280_000,
    },
}
"""Specs that anybody may write who may make pods; as protobuf they have 1.5 MiB, as etcd takes them."""


SINGLE = {
    "preferences": lambda: {"a": [{"weight": 1, "preference": {}}] * 520_000},
    "env": lambda: {"a": [{"name": "a"}] * 620_000},
    "brackets in a text": lambda: {"a": "{[," * (1 << 20)},
    "control characters": lambda: {"a": "\0" * (3 << 20)},
    "a wide text": lambda: {"a": "\U0001f600" + "a" * (3 << 20)},
}
"""Objects as large as an API server takes them in one request: 3 MiB, of protobuf in the first two."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", SINGLE)
def test_no_single_object_is_too_large(kind):
    """Else one pod would keep its node from ever being fenced."""
    raw = json.dumps(SINGLE[kind](), separators=(",", ":"), ensure_ascii=False).encode()
    assert len(raw) < LARGEST_BYTES
    assert read_object(raw, "here").keys() == {"a"}


@pytest.mark.parametrize("within", ['"', '\\"', "\\\\", "a", "\\u0000"])
def test_what_stands_in_a_text_takes_no_memory_of_its_own(within):
    """Wherever a piece of it begins."""
    text = json.dumps({"a": within * 3 + "{[," * (4 << 20), "b": 1})
    assert parsed_bytes(text.encode()) < 3 * len(text)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAT)
def test_pods_that_a_tenant_makes_fat_are_read_one_at_a_time(stand_in, lead_to, kind):
    """A page of all of them would take more than the unit may."""
    pods = [{**pod, "spec": FAT[kind]} for pod in _pods(8, 1)]
    texts = [json.dumps(pod, separators=(",", ":"), ensure_ascii=False).encode() for pod in pods]

    def behave(request: Request, connection, end) -> None:
        fields = dict(part.partition("=")[::2] for part in request.target.partition("?")[2].split("&"))
        begin = int(fields.get("continue", "0"))
        after = min(begin + int(fields["limit"]), len(pods))
        more = {"continue": str(after)} if after < len(pods) else {}
        head = json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": more})
        answer(b'%s, "items": [%s]}' % (head[:-1].encode(), b",".join(texts[begin:after])))(
            request, connection, end
        )

    cluster = lead_to(stand_in(behave).url)
    tracemalloc.start()
    try:
        found = cluster.pods("k8s-1")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [pod.name for pod in found] == [f"db-{number}" for number in range(8)]
    assert peak < FREE_BYTES


def test_a_single_object_that_is_too_large_is_named(stand_in, lead_to):
    server = stand_in(Endless(200))
    with pytest.raises(ClusterProtocol, match=r"list pods.*more than 32 MiB"):
        lead_to(server.url, page=1).pods("k8s-1")
    assert len(server.requests) == 1


def test_a_list_whose_pages_never_end_is_given_up(stand_in, lead_to):
    """Each of its pages is another one."""
    pages = [0]

    def behave(request: Request, connection, end) -> None:
        pages[0] += 1
        listing("PodList", more=f"page-{pages[0]}")(request, connection, end)

    with pytest.raises(ClusterProtocol, match=f"no end after {MOST_PAGES} pages"):
        lead_to(stand_in(behave).url).pods("k8s-1")


def test_a_stranger_of_another_cluster_may_not_go_on_for_ever_either(stand_in, lead_to):
    first, stranger = stand_in(routes({"/kube-system": namespace()}, status(503))), stand_in(Endless(200))
    with pytest.raises(ClusterProtocol, match="more than 32 MiB"):
        lead_to(first.url, stranger.url).fact("k8s-1")
