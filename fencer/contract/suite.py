"""What ``pytest --adapter=NAME`` runs: the contract, and what is asked of adapters of others besides."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fencer.contract.hypervisor import HypervisorContract, LosableContract, SavingContract
from fencer.contract.lab import Lab, NoLab, build
from fencer.contract.others import Bench, OthersContract
from fencer.contract.plugin import LEFT_OUT, NAME
from fencer.errors import ConfigError
from fencer.hypervisors.adapters import OWN_TYPES, load
from fencer.ports import Hypervisor


@pytest.fixture(scope="session")
def lab(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The lab that the adapter's package brings."""
    name = pytestconfig.getoption(NAME)
    if name in OWN_TYPES:
        pytest.exit(
            f"{name} is a type of fencer's own, so that no configuration would ever find an adapter of that "
            "name: call its entry points otherwise",
            pytest.ExitCode.USAGE_ERROR,
        )
    try:
        lab = build(name, tmp_path_factory.mktemp("lab"))
        load(lab.endpoint, name)
    except (NoLab, ConfigError) as error:
        pytest.exit(str(error), pytest.ExitCode.USAGE_ERROR)
    yield lab
    lab.close()


@pytest.fixture(autouse=True)
def within_its_means(request: pytest.FixtureRequest, lab: Lab) -> None:
    """Leave out what the lab cannot do."""
    for mark in request.node.iter_markers("fencer_needs"):
        if why := lab.cannot.get(mark.args[0]):
            request.node.user_properties.append((LEFT_OUT, (mark.args[0], why)))
            pytest.skip(f"{mark.args[0]}: {why}")


class TestAdapter(HypervisorContract, SavingContract, LosableContract, OthersContract):
    """The adapter by itself: without the guard, which would hide some of its mistakes."""

    @pytest.fixture
    def bench(self, pytestconfig: pytest.Config, lab: Lab) -> Iterator[Bench]:
        """Connects the adapter to the lab, as fencer would."""
        bench = Bench(pytestconfig.getoption(NAME), lab)
        yield bench
        bench.close()

    @pytest.fixture
    def hypervisor(self, bench: Bench) -> Hypervisor:
        """The adapter, connected."""
        return bench.connect()

    @pytest.fixture
    def backstage(self, lab: Lab) -> Lab:
        """The lab, where everything is as it was."""
        return lab
