"""Real control planes for all end-to-end tests, built before the first test's clock runs, and the lab."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.controlplane.binaries import MissingBinariesError, find_or_build
from tests.debian import image as debian
from tests.e2e.cluster import DrainCluster
from tests.e2e.debian_node import DebianNode, running_debian_node, wait_for
from tests.e2e.lab import Lab, running_lab
from tests.e2e.operator import Operator
from tests.support import LateError, late_tests_are_tried_again, real_parts_required
from tests.support.controlplane import ControlPlane, Timing, running_control_plane

_HERE = Path(__file__).parent
# The plugin looks at an exception, and at what it came from or after: all of them have to be late.
_LATE = f"^{LateError.__name__}: "
_NOT_LATE = f"^(?!{LateError.__name__}: )"
_CONTROL_PLANES = {"control_plane", "lab", "guest_cluster", "debian_node"}
_QUICK = Timing(
    node_monitor_grace_s=12, node_monitor_period_s=1, unreachable_toleration_s=5, not_ready_toleration_s=5
)


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder; unlike `pytestmark` this lets pytest fold their skips into one line.

    Emulated guests and a whole control plane on two cores are late now and then, by nobody's fault. So the
    gate tries a test once more that waited for something in vain, and counts it in its closing line. Nothing
    else is tried again: a fence that should not be, two writers, or a wrong answer fail at once. And nothing
    at all is where failures are counted.
    """
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            if late_tests_are_tried_again():
                item.add_marker(pytest.mark.flaky(reruns=1, only_rerun=[_LATE], rerun_except=[_NOT_LATE]))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build here, where no test's timeout runs and the terminal shows why it takes so long."""
    if not session.config.option.collectonly:
        # Other folders have a fixture `lab`, too, which needs no control plane.
        here = [item for item in session.items if _HERE in item.path.parents]
        _build_for(here, _CONTROL_PLANES, find_or_build)
        _build_for(here, {"debian_node"}, debian.find_or_build)


def _build_for(items: list[pytest.Item], fixtures: set[str], build: Callable[[], object]) -> None:
    """Build what some tests need; leave them out where it cannot be had."""
    wanted = [item for item in items if fixtures.intersection(getattr(item, "fixturenames", ()))]
    if not wanted:
        return
    try:
        build()
    except (MissingBinariesError, debian.MissingImageError) as missing:
        if real_parts_required():
            return  # the fixture fails with the same reason
        for item in wanted:
            item.add_marker(pytest.mark.skip(reason=str(missing)))


@pytest.fixture(scope="package")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster that loses patience with a silent node four times as fast as any, and then evicts at once."""
    with running_control_plane(tmp_path_factory.mktemp("controlplane"), timing=_QUICK) as running:
        yield running


@pytest.fixture(scope="package")
def guest_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster as patient as any, for nodes that drain themselves and are away for a while."""
    with running_control_plane(tmp_path_factory.mktemp("guest-cluster")) as running:
        yield running


@pytest.fixture(scope="package")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Report B's cluster on real guests, with a control plane of its own that is as impatient."""
    flags = {"kube-controller-manager": ["--node-eviction-rate=10"]}  # one death follows the other
    folder = tmp_path_factory.mktemp("lab")
    with (
        running_control_plane(folder, timing=_QUICK, flags=flags) as cluster,
        running_lab(cluster) as running,
    ):
        yield running


@pytest.fixture(scope="package")
def operator(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    """fencer, installed beside the lab; nothing of it runs yet."""
    return Operator(lab, tmp_path_factory.mktemp("fencer"))


@pytest.fixture
def sound(lab: Lab) -> Iterator[None]:
    """A test begins with a whole cluster and leaves one behind; no volume ever has two writers."""
    lab.heal()
    lab.wait_whole()
    yield
    lab.wait_whole()
    assert not lab.fault()


@pytest.fixture
def afterwards(sound: None) -> Iterator[ExitStack]:
    """What mends the lab again before it is asked to be whole, also when the test fails."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="module")
def debian_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DebianNode]:
    """A real Debian guest that is a node, with a control plane of its own, for all tests of a file."""
    with running_debian_node(tmp_path_factory.mktemp("debian")) as running:
        yield running


@pytest.fixture
def node(debian_node: DebianNode) -> DebianNode:
    """The Debian node, up, without pods, and taking them."""
    if not debian_node.guest.on:
        debian_node.start()
    debian_node.free()
    wait_for(lambda: not debian_node.pods, "end of the pods of the test before")
    return debian_node


@pytest.fixture
def installed(node: DebianNode) -> DebianNode:
    """The same with its units."""
    node.install()
    return node


@pytest.fixture
def pods(debian_node: DebianNode, request: pytest.FixtureRequest) -> Iterator[DrainCluster]:
    """A namespace for the pods of one test on the Debian node."""
    cluster = DrainCluster(debian_node.cluster, request.node.name.replace("_", "-")[5:55].strip("-"))
    yield cluster
    cluster.remove()
