"""What several rooms' tests need: patience, and an API server that is built before any test's clock runs."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.controlplane.binaries import CONTROLLER_MANAGER, SCHEDULER, MissingBinariesError, find_or_build
from tests.support import real_parts_required
from tests.support.amounts import examples, same_examples
from tests.support.backstage import ApiBackstage
from tests.support.controlplane import ControlPlane, running_control_plane

pytest_plugins = tuple(f"tests.support.{name}" for name in ("costs", "lanes", "remarks", "rooms"))

# No property is about wall time, and a busy machine refutes none.
settings.register_profile(
    "patient",
    settings(),
    max_examples=examples(),
    derandomize=same_examples(),  # not what Hypothesis guesses from the environment
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("patient")


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs the real API server."""
    for item in items:
        if "bare_api" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.e2e)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build here, where no test's timeout runs and the terminal shows why it takes so long."""
    wanted = [item for item in session.items if "bare_api" in getattr(item, "fixturenames", ())]
    if not wanted or session.config.option.collectonly:
        return
    try:
        find_or_build()
    except MissingBinariesError as missing:
        if real_parts_required():
            return  # the fixture fails with the same reason
        for item in wanted:
            item.add_marker(pytest.mark.skip(reason=str(missing)))


@pytest.fixture(scope="session")
def bare_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A real API server and etcd, and no controller that would change anything behind a test's back."""
    with running_control_plane(tmp_path_factory.mktemp("bare-api")) as running:
        running.stop_component(CONTROLLER_MANAGER)
        running.stop_component(SCHEDULER)
        as_set_up = {"metadata": {"name": "fencer"}}
        ApiBackstage(running).send("POST", "/api/v1/namespaces", as_set_up)
        yield running
