"""``fence --guest``: the node is found by its guest, as a hook knows it."""

from dataclasses import replace

import pytest

from fencer.core.model import GuestRef, PowerState
from fencer.simulation.faults import What
from tests.cli.lab import Lab


class Numbers:
    """An endpoint that calls its guests by numbers from 101 on, as Proxmox does, around a simulated one."""

    def __init__(self, inner, names):
        self._inner = inner
        self._numbers = {name: str(101 + place) for place, name in enumerate(names)}
        self.more = ()

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def sweep(self):
        return (*map(self._numbered, self._inner.sweep()), *self.more)

    def read(self, guest):
        return self._numbered(self._inner.read(replace(guest, id=guest.name)))

    def _numbered(self, reading):
        return replace(reading, guest=replace(reading.guest, id=self._numbers[reading.guest.name]))


class Numbered(Lab):
    """A lab with such an endpoint."""

    def __init__(self):
        super().__init__()
        self.numbers = Numbers(self.simulation.hypervisor, self.simulation.world.guests)

    def hypervisor(self, _endpoint, _clock):
        return self.numbers

    def and_a_guest(self, number, name):
        """Let there be a guest that is no node."""
        first = self.numbers.sweep()[0]
        guest = GuestRef("lab", number, "11111111-2222-3333-4444-555555555555", name, "lab1")
        self.numbers.more = (replace(first, guest=guest, power_state=PowerState.STOPPED),)


def lab():
    lab = Numbered()
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(20)
    return lab


def fenced(lab):
    return [name for name, node in lab.simulation.api.nodes.items() if node.out_of_service]


@pytest.mark.parametrize("form", ["{number}", "{uuid}", "{upper}", "{name}", "lab/{number}", "lab/{uuid}"])
def test_the_node_of_a_guest_is_fenced_by_whatever_names_the_guest(form):
    here = lab()
    uuid = here.simulation.guest("k8s-2").uuid
    wanted = form.format(number="102", uuid=uuid, upper=uuid.upper(), name="k8s-2")
    result = here.run("fence", "--guest", wanted, "--yes")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("k8s-2 (")
    assert fenced(here) == ["k8s-2"]


def test_a_guest_of_which_only_the_binding_knows_still_has_its_node():
    """It was deleted after it died: no endpoint names it any more, and the node's annotation does."""
    here = Lab()
    here.passes(30, watched=True)
    here.breaks(What.DELETE, "k8s-2")
    result = here.run("fence", "--guest", here.simulation.guest("k8s-2").uuid, "--yes", "--timeout", "1")
    assert result.output.startswith("k8s-2 (")
    assert result.exit_code != 2


def test_a_guest_that_nobody_has_is_a_wrong_argument():
    here = lab()
    result = here.run("fence", "--guest", "999", "--yes")
    assert result.exit_code == 2
    assert result.stderr == (
        "fencer: no guest 999, by number, UUID or name. `fencer status` shows each node's guest\n"
    )
    assert not fenced(here)


def test_a_guest_that_is_no_node_is_a_wrong_argument():
    here = lab()
    here.and_a_guest("900", "database")
    result = here.run("fence", "--guest", "900", "--yes")
    assert result.exit_code == 2
    assert "lab/900 on lab1 is no node of this cluster" in result.stderr
    assert not fenced(here)


def test_a_guest_that_calls_itself_by_a_number_is_not_taken_for_the_guest_of_that_number():
    here = lab()
    here.and_a_guest("900", "102")
    assert here.run("fence", "--guest", "102", "--yes").output.startswith("k8s-2 (")
    here = lab()
    here.and_a_guest("k8s-2", "other")  # a number of its own that is a node's guest's name
    assert here.run("fence", "--guest", "k8s-2", "--yes").exit_code == 2
    assert not fenced(here)


def test_a_guest_that_may_be_several_nodes_is_not_guessed():
    here = lab()
    here.simulation.api.nodes["k8s-3"].system_uuid = here.simulation.api.nodes["k8s-2"].system_uuid
    result = here.run("fence", "--guest", "102", "--yes")
    assert result.exit_code == 2
    assert "guest 102 may be any of k8s-2, k8s-3" in result.stderr
    assert not fenced(here)


def test_an_endpoint_that_does_not_answer_is_no_proof_that_there_is_no_such_guest():
    here = lab()
    here.breaks(What.DENIED)
    result = here.run("fence", "--guest", "102", "--yes")
    assert result.exit_code == 3
    assert "no guest 102 was found, but not all answered: lab: " in result.stderr


@pytest.mark.parametrize("words", [[], ["--guest", ""]], ids=str)
def test_node_or_guest_is_named(words):
    result = Lab().run("fence", *words, "--yes")
    assert result.exit_code == 2
    assert "Name the node" in result.output


def test_a_node_whose_guest_was_never_seen_alive_is_fenced_by_both_names():
    here = lab()
    alone = here.run("fence", "k8s-2", "--yes")
    assert alone.exit_code == 1
    assert not fenced(here)
    here.passes(60)
    asked = here.run("fence", "k8s-2", "--yes")
    assert asked.exit_code == 1
    assert "--guest lab/102" in asked.output
    assert here.run("fence", "k8s-2", "--guest", "lab/102", "--yes").exit_code == 0
    assert fenced(here) == ["k8s-2"]


def test_a_guest_that_is_not_the_nodes_is_not_taken_for_it():
    here = lab()
    here.passes(60)
    for other in ("lab/103", "lab/k8s-1", "102"):
        result = here.run("fence", "k8s-2", "--guest", other, "--yes")
        assert result.exit_code == 2
        assert f"--guest {other}: the guest of k8s-2 is lab/102" in result.stderr
        assert "waiting" not in result.output  # it is told at once
    assert not fenced(here)


def test_without_a_person_and_without_yes_nothing_is_asked_of_anybody():
    result = Lab().run("fence", "--guest", "102")
    assert result.exit_code == 2
    assert "nobody can confirm here" in result.stderr
