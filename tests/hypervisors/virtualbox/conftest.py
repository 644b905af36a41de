"""A registry, a clock, and the adapter over both."""

import pytest

from fencer.hypervisors.virtualbox.client import VirtualBoxHypervisor
from tests.hypervisors.virtualbox.looks import LONG_S
from tests.support.vbox import FakeVBox, QuickClock


@pytest.fixture
def vbox(tmp_path):
    return FakeVBox(tmp_path)


@pytest.fixture
def clock():
    return QuickClock()


@pytest.fixture
def opened(vbox, clock):
    """Open the endpoint with the patience given: by default more than any test has."""
    made = []

    def open_it(**patience):
        limits = ("look_s", "read_s", "again_s", "off_s", "kill_s", "still_s", "stop_s", "start_s")
        settings = vbox.settings(**{**dict.fromkeys(limits, LONG_S), **patience})
        made.append(VirtualBoxHypervisor(settings, clock.now_s))
        return made[-1]

    yield open_it
    for hypervisor in made:
        hypervisor.close()


@pytest.fixture
def hypervisor(opened):
    return opened()
