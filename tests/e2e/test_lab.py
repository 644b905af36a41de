"""The lab's own truth: it must see two writers where there are two, or its silence would prove nothing."""

from collections.abc import Iterator
from itertools import combinations

import pytest

from tests.e2e.lab import OUT_OF_SERVICE, WORKERS, Lab
from tests.e2e.ledger import Life, Memory, MountLedger
from tests.support import wait_until


@pytest.fixture
def memory() -> dict[str, Memory]:
    """What is left of each guest's memory, for a ledger without guests."""
    return {"one": Memory.RUNNING, "two": Memory.RUNNING}


@pytest.fixture
def ledger(memory: dict[str, Memory]) -> MountLedger:
    """A ledger in which guest one writes a volume."""
    ledger = MountLedger(lambda _guest: Life(pid=1, boots=1), lambda guest, _life: memory[guest])
    ledger.mount("volume", "one")
    ledger.write("one")
    return ledger


@pytest.fixture
def whole(lab: Lab) -> Iterator[Lab]:
    """A lab that is whole before and after, whatever its ledger had to say in between."""
    lab.wait_whole()
    yield lab
    wait_until(lambda: not shared(lab.ledger), "end of all shared mounts")
    lab.ledger.double_writers.clear()
    lab.wait_whole()
    assert not lab.fault()


@pytest.mark.smoke
def test_a_taint_without_proof_gives_a_volume_two_writers(whole: Lab) -> None:
    """What a person does who takes a silent node for a dead one; Kubernetes hands the volumes on at once."""
    name = whole.busiest()
    whole.nodes[name].nic_off()
    try:
        wait_until(lambda: whole.ready_status(name) == "Unknown", f"Ready=Unknown of {name}")
        whole.add_taint(name, OUT_OF_SERVICE, "NoExecute")
        whole.wait_elsewhere(name)
        assert any(f"which running {name} has mounted" in text for text in whole.ledger.double_writers)
        wait_until(
            lambda: any(text.startswith(f"{name} wrote ") for text in whole.ledger.double_writers),
            f"write of {name} at its next beat",
        )
    finally:
        whole.drop_taint(name, OUT_OF_SERVICE)
        whole.nodes[name].nic_on()


def test_one_guest_after_the_other_is_no_fault(ledger: MountLedger) -> None:
    """Unmounted here, mounted there."""
    ledger.unmount("volume", "one")
    ledger.mount("volume", "two")
    ledger.write("two")
    ledger.write("one")
    assert (ledger.double_writers, ledger.hazards, ledger.writes_count) == ([], [], 2)


def test_a_guest_whose_memory_is_gone_holds_nothing(ledger: MountLedger, memory: dict[str, Memory]) -> None:
    """Its mounts went with it, also when it boots again."""
    memory["one"] = Memory.GONE
    ledger.mount("volume", "two")
    ledger.forget("one")
    ledger.write("one")
    assert (ledger.double_writers, ledger.hazards) == ([], [])


def test_a_guest_that_can_be_resumed_is_a_hazard_and_then_a_writer(
    ledger: MountLedger, memory: dict[str, Memory]
) -> None:
    """Nothing is written twice yet; when it is resumed, it is."""
    memory["one"] = Memory.RESUMABLE
    ledger.mount("volume", "two")
    assert (len(ledger.double_writers), len(ledger.hazards)) == (0, 1)
    ledger.write("one")
    assert ledger.double_writers == ["one wrote volume, which two has mounted since"]


def shared(ledger: MountLedger) -> set[str]:
    """Return the volumes that more than one worker has mounted."""
    return {
        volume
        for one, other in combinations(WORKERS, 2)
        for volume in ledger.mounted(one) & ledger.mounted(other)
    }
