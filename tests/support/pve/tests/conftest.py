"""A cluster, and a plain client for its API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.pve import PveCluster, PveServers
from tests.support.pve.tests.client import Client

Serve = Callable[..., PveServers]


@pytest.fixture
def pve() -> PveCluster:
    """Three hosts and a frozen clock."""
    return PveCluster()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Serves a cluster until the test is over."""
    with ExitStack() as ending:

        def start(pve: PveCluster, keep_alive_s: float = 5.0) -> PveServers:
            return ending.enter_context(PveServers(pve, tmp_path, keep_alive_s=keep_alive_s))

        yield start


@pytest.fixture
def vmid(pve: PveCluster) -> int:
    """A running guest on pve1."""
    return pve.add_guest("k8s-1").vmid


@pytest.fixture
def api(pve: PveCluster, serve: Serve) -> PveServers:
    """The API of `pve`."""
    return serve(pve)


@pytest.fixture
def ask(api: PveServers) -> Iterator[Client]:
    """A client of the first host, with the cluster's token."""
    with Client(api) as client:
        yield client
