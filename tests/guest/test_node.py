"""This node's pods, listed in pages: whoever may create pods can make them as large as the cluster takes."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

import pytest

from fencer.guest.api import Api
from fencer.guest.errors import Denied, Unreachable
from fencer.guest.kubeconfig import Access
from fencer.guest.node import NodeClient
from fencer.guest.pods import pod_of
from tests.controlplane.certificates import Authority
from tests.guest.serving import send, serving

FAT = {"containers": [{"env": [{"name": "a"}] * 200_000}]}
"""2.6 MB of JSON, and a twentieth of what a cluster's store takes for one object in other shapes."""
EXPIRED = {"message": "The provided continue parameter is too old", "reason": "Expired"}
Pages = Callable[[int, int], tuple[int, dict[str, object]]]
"""Answers a list, from a place on and up to a limit, with a status and a body."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"))


def _pod(number: int, spec: object = None) -> dict[str, object]:
    name = f"pod-{number}"
    return {"metadata": {"uid": f"u-{number}", "namespace": "default", "name": name}, "spec": spec or {}}


def _list(pods: list[dict[str, object]]) -> Pages:
    """Answer as an API server does: a page, and a token where more is left."""

    def page(start: int, limit: int) -> tuple[int, dict[str, object]]:
        end = start + (limit or len(pods))
        token = str(end) if end < len(pods) else ""
        return 200, {"metadata": {"continue": token}, "items": pods[start:end]}

    return page


@contextmanager
def _client(
    authority: Authority, pages: Pages, date: str = ""
) -> Iterator[tuple[NodeClient, list[tuple[int, int]]]]:
    """Serve lists; give the client, and what it has asked for: where to begin, and how many.

    Args:
        authority: Who signs the server's certificate.
        pages: Answers a list.
        date: Of an answer; `{}` stands for how many have been asked for.
    """
    asked: list[tuple[int, int]] = []

    def respond(handler: BaseHTTPRequestHandler) -> None:
        query = parse_qs(urlsplit(handler.path).query)
        assert query["fieldSelector"] == ["spec.nodeName=k8s-1"]
        asked.append((int(query.get("continue", ["0"])[0]), int(query.get("limit", ["0"])[0])))
        status, body = pages(*asked[-1])
        send(handler, status, json.dumps(body, separators=(",", ":")).encode(), Date=date.format(len(asked)))

    with serving(authority, respond) as port:
        access = Access("test", "127.0.0.1", port, authority=authority.ca_file.read_text())
        yield NodeClient(Api(access), "k8s-1"), asked


@pytest.mark.parametrize(
    ("spec", "options"),
    [({"terminationGracePeriodSeconds": 0}, {"gracePeriodSeconds": 1}), ({}, {})],
    ids=["none of its own", "its own"],
)
def test_a_pod_without_grace_is_not_forgotten_before_it_has_ended(
    authority: Authority, spec: object, options: dict[str, object]
) -> None:
    """With no second at all its replacement starts while its containers run: two writers."""
    sent: list[dict[str, object]] = []

    def respond(handler: BaseHTTPRequestHandler) -> None:
        sent.append(json.loads(handler.rfile.read(int(handler.headers["Content-Length"]))))
        send(handler, 201, b"{}")

    pod = pod_of(_pod(1, spec))
    assert pod is not None
    with serving(authority, respond) as port:
        access = Access("test", "127.0.0.1", port, authority=authority.ca_file.read_text())
        NodeClient(Api(access), "k8s-1").evict(pod)
    assert [body["deleteOptions"] for body in sent] == [{"preconditions": {"uid": "u-1"}, **options}]


def _names(client: NodeClient) -> list[str]:
    return [pod.name for pod in client.pods().pods]


def test_pods_come_in_pages(authority: Authority) -> None:
    pods = [_pod(number) for number in range(45)]
    with _client(authority, _list(pods)) as (client, asked):
        assert _names(client) == [f"pod-{number}" for number in range(45)]
    assert asked == [(0, 20), (20, 20), (40, 20)]


def test_fat_pods_keep_nobody_from_being_listed(authority: Authority) -> None:
    """More than any one answer may have; those behind them are listed as well."""
    pods = [*(_pod(number, FAT) for number in range(13)), *(_pod(number) for number in range(13, 45))]
    with _client(authority, _list(pods)) as (client, asked):
        assert _names(client) == [f"pod-{number}" for number in range(45)]
    assert len(asked) < len(pods), "those behind them come in pages still"


def test_a_pod_that_is_too_large_alone_is_told(authority: Authority) -> None:
    pods = [_pod(0, {"hostname": "a" * (33 << 20)})]
    with (
        _client(authority, _list(pods)) as (client, asked),
        pytest.raises(Unreachable, match=r"/api/v1/pods.*limit=1: an answer of more than 32 MiB"),
    ):
        client.pods()
    assert [limit for _, limit in asked] == [20, 5, 1]


def test_a_list_that_expires_begins_anew(authority: Authority) -> None:
    """Who is gone since is not listed, and nobody twice."""
    pods, expired = [_pod(number) for number in range(45)], []

    def page(start: int, limit: int) -> tuple[int, dict[str, object]]:
        if start == 20 and not expired:
            expired.append(pods.pop(0))
            return 410, dict(EXPIRED)
        return _list(pods)(start, limit)

    with _client(authority, page) as (client, _):
        assert _names(client) == [f"pod-{number}" for number in range(1, 45)]


def test_a_list_is_as_old_as_its_first_page(authority: Authority) -> None:
    """What comes to the node while it is read is not in it; of one that began again the later one counts."""
    pods, expired = [_pod(number) for number in range(45)], [True]

    def page(start: int, limit: int) -> tuple[int, dict[str, object]]:
        return (
            (410, dict(EXPIRED)) if start == 20 and expired and expired.pop() else _list(pods)(start, limit)
        )

    with _client(authority, page, "Thu, 01 Jan 1970 00:00:{:02} GMT") as (client, asked):
        found = client.pods()
    assert (len(found.pods), len(asked), found.utc) == (45, 5, "1970-01-01T00:00:03Z")


def test_a_list_that_always_expires_is_given_up(authority: Authority) -> None:
    pods = [_pod(number) for number in range(45)]
    with (
        _client(authority, lambda start, limit: (410, dict(EXPIRED)) if start else _list(pods)(0, limit)) as (
            client,
            asked,
        ),
        pytest.raises(Unreachable, match="too old"),
    ):
        client.pods()
    assert asked == [(0, 20), (20, 20)] * 3


def test_a_list_without_end_is_given_up_in_time(authority: Authority) -> None:
    with (
        _client(
            authority,
            lambda start, _: (200, {"metadata": {"continue": str(start + 1)}, "items": [_pod(start)]}),
        ) as (client, asked),
        pytest.raises(Unreachable, match="did not end within 1 s"),
    ):
        client.pods(within_s=1)
    assert len(asked) > 1


def test_a_refusal_amid_a_list_is_one(authority: Authority) -> None:
    """A list that is not whole would tell that pods are gone."""
    pods = [_pod(number) for number in range(45)]
    with (
        _client(
            authority, lambda start, limit: (403, {"message": "no"}) if start else _list(pods)(0, limit)
        ) as (client, _),
        pytest.raises(Denied, match="no"),
    ):
        client.pods()
