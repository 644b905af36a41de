"""What every implementation of the port `Requests` must do, before an API server or a world in memory.

A test module runs the contract by subclassing `RequestsContract` and giving it two fixtures::

    class TestSimulatedRequests(RequestsContract):
        @pytest.fixture
        def requests(self): ...     # the implementation, of the type fencer.ports.Requests
        @pytest.fixture
        def backstage(self): ...    # a RequestsBackstage of the same cluster

Both may live longer than one test: names are never used twice.
"""

from __future__ import annotations

import itertools
from typing import Protocol

import pytest

from fencer.core.requests import Progress, Request, Strategy
from fencer.errors import ClusterConflict, ClusterNotFound
from fencer.ports import Requests

UTC = "2026-11-20T10:41:12Z"
AT_WORK = Progress(None, "HostSilent", "its host is silent")
_numbers = itertools.count(1)


class RequestsBackstage(Protocol):
    """Sets the scene behind the port, as another controller would."""

    def ask(self, node: str, strategy: Strategy) -> None:
        """Make a request about a node, with the node's name."""

    def give_up(self, node: str) -> None:
        """Want nothing of it any more."""

    def take_back(self, node: str) -> None:
        """Delete it."""

    def reserve(self, node: str, by: str) -> None:
        """Hold medik8s' Lease of a node."""


class RequestsContract:
    """Subclass it, and give it the fixtures ``requests`` and ``backstage``."""

    @pytest.fixture
    def node(self, backstage: RequestsBackstage) -> str:
        """A node about which somebody has just asked."""
        node = f"asked-for-{next(_numbers)}"
        backstage.ask(node, Strategy.STOP)
        return node

    def test_what_is_new_is_neither_adopted_nor_answered(self, requests: Requests, node: str) -> None:
        request = of(requests, node)
        assert (request.name, request.strategy, request.live) == (node, Strategy.STOP, True)
        assert (request.adopted, request.told, request.deleting) == (False, None, False)

    def test_what_is_not_adopted_is_gone_once_it_is_deleted(
        self, requests: Requests, backstage: RequestsBackstage, node: str
    ) -> None:
        request = of(requests, node)
        backstage.take_back(node)
        assert not about(requests, node)
        for write in (lambda: requests.adopt(request), lambda: requests.answer(request, AT_WORK, UTC)):
            with pytest.raises(ClusterNotFound):
                write()

    def test_what_is_adopted_stays_until_it_is_released(
        self, requests: Requests, backstage: RequestsBackstage, node: str
    ) -> None:
        requests.adopt(of(requests, node))
        backstage.take_back(node)
        request = of(requests, node)
        assert (request.adopted, request.deleting, request.live) == (True, True, False)
        requests.release(request)
        assert not about(requests, node)

    def test_what_lives_may_be_released_and_stays(self, requests: Requests, node: str) -> None:
        requests.adopt(of(requests, node))
        requests.release(of(requests, node))
        assert not of(requests, node).adopted

    @pytest.mark.parametrize("succeeded", [None, True, False])
    def test_an_answer_is_told(self, requests: Requests, node: str, succeeded: bool | None) -> None:
        told = Progress(succeeded, "GuestRunning", "its guest runs")
        requests.answer(of(requests, node), told, UTC)
        request = of(requests, node)
        assert request.told == told
        assert request.told.message == "its guest runs"
        assert request.refused is (succeeded is False)

    def test_a_later_answer_takes_the_place_of_the_first(self, requests: Requests, node: str) -> None:
        requests.answer(of(requests, node), AT_WORK, UTC)
        done = Progress(succeeded=True, reason="PodsCleared", message="all is cleared")
        requests.answer(of(requests, node), done, UTC)
        assert of(requests, node).told == done

    def test_what_changed_since_it_was_read_is_not_written(
        self, requests: Requests, backstage: RequestsBackstage, node: str
    ) -> None:
        request = of(requests, node)
        backstage.give_up(node)
        for write in (
            lambda: requests.adopt(request),
            lambda: requests.answer(request, AT_WORK, UTC),
            lambda: requests.release(request),
        ):
            with pytest.raises(ClusterConflict):
                write()
        request = of(requests, node)
        assert (request.given_up, request.live, request.adopted, request.told) == (True, False, False, None)

    def test_who_works_on_a_node_is_known(
        self, requests: Requests, backstage: RequestsBackstage, node: str
    ) -> None:
        backstage.reserve(node, "NodeHealthCheck-workers")
        asked = requests.asked()
        assert asked is not None
        assert asked.reservations[node] == "NodeHealthCheck-workers"

    def test_no_right_is_missing(self, requests: Requests) -> None:
        assert list(requests.missing_rights()) == []


def about(requests: Requests, node: str) -> list[Request]:
    """Return what is asked about a node."""
    asked = requests.asked()
    assert asked is not None
    return [request for request in asked.requests if request.node == node]


def of(requests: Requests, node: str) -> Request:
    """Return the one thing that is asked about a node."""
    [request] = about(requests, node)
    return request
