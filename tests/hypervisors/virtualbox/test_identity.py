"""Whose VirtualBox this is: by the host's own id and the user's number, whoever asks."""

import pytest

from fencer.hypervisors.virtualbox.client import VirtualBoxHypervisor
from fencer.hypervisors.virtualbox.settings import VirtualBoxSettings
from tests.hypervisors.virtualbox.looks import LONG_S


def test_it_is_the_same_for_everybody_who_asks(opened):
    told = {opened().describe().identity for _ in range(2)}
    assert told == {f"virtualbox:{'4c' * 16}/1000"}


def test_one_that_does_not_answer_now_is_not_named_by_anything_else(vbox, opened):
    vbox.trouble("cat", hang=True)
    info = opened(look_s=2.0).describe()
    assert info.identity is None
    assert info.problems[-1].startswith("It cannot be told whose VirtualBox this is: `cat` there failed: ")


@pytest.mark.parametrize("code", [1, 127])
def test_a_host_without_such_an_id_goes_by_the_configurations_name(vbox, opened, code):
    vbox.add("k8s-1")
    vbox.trouble("cat", code=code)
    info = opened().describe()
    assert (info.identity, info.problems) == ("", ())


def test_so_does_one_that_a_script_stands_before(vbox, clock):
    settings = VirtualBoxSettings("lab", vbox.script, look_s=LONG_S, read_s=LONG_S)
    assert VirtualBoxHypervisor(settings, clock.now_s).describe().identity == ""
