"""The real NodeHealthCheck controller, built before the first test's clock runs."""

from collections.abc import Iterator

import pytest

from tests.remediators.node_health_checks import NodeHealthChecks
from tests.remediators.upstream import MissingUpstreamError, find_or_build
from tests.support import missing_real_part, real_parts_required
from tests.support.controlplane import ControlPlane


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build here, where no test's timeout runs and the terminal shows why it takes so long."""
    wanted = [it for it in session.items if "node_health_checks" in getattr(it, "fixturenames", ())]
    if not wanted or session.config.option.collectonly:
        return
    try:
        find_or_build()
    except MissingUpstreamError as missing:
        if real_parts_required():
            return  # the fixture fails with the same reason
        for item in wanted:
            item.add_marker(pytest.mark.skip(reason=str(missing)))


@pytest.fixture(scope="module")
def node_health_checks(
    bare_api: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NodeHealthChecks]:
    """The controller, at work on an API server without any other."""
    try:
        with NodeHealthChecks(bare_api, tmp_path_factory.mktemp("node-health-checks")) as running:
            yield running
    except MissingUpstreamError as missing:
        missing_real_part(str(missing))
