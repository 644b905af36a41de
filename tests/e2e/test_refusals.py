"""What fencer must not do, on real parts: a silent kubelet is no proof, and old memory comes back."""

import json
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from fencer.core.annotations import DOUBTS
from tests.e2e.kubelet import LabNode
from tests.e2e.lab import CONTROL_PLANE, WORKERS, Lab, stays
from tests.e2e.operator import Operator
from tests.e2e.workloads import DATABASE
from tests.support import wait_until
from tests.support.guest import Guest

pytestmark = pytest.mark.usefixtures("sound")

WATCHED_S = 4.0
"""How long a refusal must last: the careful recipe fences within that time after Ready became Unknown."""


CONFLICT = 409
"""The kubelet was quicker; the same write follows on what is there then."""


@pytest.mark.parametrize(
    ("cut_off", "mend"),
    [
        pytest.param(LabNode.nic_off, LabNode.nic_on, id="network-card-off"),
        pytest.param(LabNode.stop_kubelet, LabNode.start_kubelet, id="kubelet-stopped"),
    ],
)
@pytest.mark.smoke
def test_a_silent_node_whose_guest_runs_is_not_fenced(
    lab: Lab,
    operator: Operator,
    afterwards: ExitStack,
    cut_off: Callable[[LabNode], None],
    mend: Callable[[LabNode], None],
) -> None:
    """The report's two other ways to fake a failure: its containers write on, whatever Kubernetes thinks."""
    config = operator.configure()
    with operator.watching(config):
        name = lab.busiest()
        lab.wait_settled()
        node, began, writes = lab.nodes[name], len(operator.journal(name)), len(operator.writes())
        mine = {pod["metadata"]["uid"] for pod in lab.look().living_on(name)}
        earlier = {event["metadata"]["uid"] for event in lab.events(name)}
        cut_off(node)
        afterwards.callback(mend, node)
        wait_until(lambda: lab.ready_status(name) == "Unknown", f"Ready=Unknown of {name}")
        wait_until(lambda: "refuse/guest_running" in operator.story(name)[began:], "refusal")

        def untouched() -> bool:
            return not lab.is_fenced(name) and mine <= {pod["metadata"]["uid"] for pod in lab.look().on(name)}

        stays(untouched, f"{name} is not fenced, and its pods are left", for_s=WATCHED_S)
        wait_until(lambda: terminating(lab, name), "Kubernetes marking the pods for deletion")
        assert untouched()
        assert len(operator.writes()) == writes

        def explained() -> tuple[str, str]:
            told = json.loads(operator.run("explain", name, "-c", str(config), "-o", "json").stdout)
            return told["verdict"], told["reason"]

        # A single look has only the API server's clock to tell by, and that runs as any. It takes 0.4 CPU s.
        wait_until(
            lambda: explained() != ("waiting", "silence_too_short"),
            "as much silence by the API's clock",
            every_s=2.0,
        )
        assert explained() == ("refused", "guest_running")
        told = operator.run("explain", name, "-c", str(config))
        assert told.stdout.startswith(f"fencer refuses to fence {name}: its guest runs")
        assert "--stop-guest" in told.stdout
        by_hand = operator.run("fence", name, "--yes", "-c", str(config))
        assert (by_hand.returncode, len(operator.writes())) == (1, writes), by_hand
        assert "its guest runs" in by_hand.stdout
        news = [event for event in lab.events(name) if event["metadata"]["uid"] not in earlier]
        [refused] = [event for event in news if event["reason"] == "FencerRefused"]
        assert refused["message"].startswith("its guest runs")
        mend(node)
        lab.wait_whole()
        assert len(operator.writes()) == writes


def test_a_saved_guest_is_not_fenced(lab: Lab, operator: Operator, afterwards: ExitStack) -> None:
    """It is off, and its memory is on disk with every mount: it comes back as if nothing had been."""
    with operator.watching(operator.configure()):
        name = lab.busiest()
        lab.wait_settled()
        guest, began, writes = lab.nodes[name].guest, len(operator.journal(name)), len(operator.writes())
        guest.save()
        afterwards.callback(start_if_off, guest)
        wait_until(lambda: "refuse/guest_saved" in operator.story(name)[began:], "refusal")
        stays(lambda: not lab.is_fenced(name), f"{name} is not fenced", for_s=WATCHED_S)
        assert DOUBTS in lab.annotations(name)  # so that no restart forgets it
        guest.start()
        wait_until(lambda: lab.is_ready(name), "Ready node")
        wait_until(lambda: DOUBTS not in lab.annotations(name), "belief")
        written = [it for it in operator.writes()[writes:] if it["responseStatus"]["code"] != CONFLICT]
        assert len(written) == 2, written  # the doubt, and its end


def test_a_saved_guest_is_fenced_once_its_memory_is_thrown_away(
    lab: Lab, operator: Operator, afterwards: ExitStack
) -> None:
    """`saved_guest: discard`. libvirt goes on saying "saved", and there is nothing left to go on from."""
    with operator.watching(operator.configure(saved_guest="discard")):
        name = lab.busiest()
        lab.wait_settled()
        guest, began = lab.nodes[name].guest, len(operator.journal(name))
        boots = guest.boots
        afterwards.callback(lab.bring_back, name)
        guest.save()
        wait_until(lambda: lab.is_fenced(name), "fence")
        lab.wait_elsewhere(name)
        story = operator.story(name)[began:]
        assert story.index("DiscardSaved") < story.index("TaintNode")
        assert story.count("DiscardSaved") == 1
        assert not guest.saved
        lab.see_back(name)
        assert guest.boots == boots + 1
        assert DOUBTS not in lab.annotations(name)


def test_a_guest_saved_to_a_file_is_refused_and_nothing_is_ordered_in_vain(
    lab: Lab, operator: Operator, afterwards: ExitStack
) -> None:
    """Not by `saved_guest: discard` either: libvirt keeps no track of the file. Each pass tried it again."""
    with operator.watching(operator.configure(saved_guest="discard")):
        name = lab.busiest()
        lab.wait_settled()
        guest, began = lab.nodes[name].guest, len(operator.journal(name))
        afterwards.callback(start_if_off, guest)
        guest.save_to_file()
        wait_until(lambda: "refuse/guest_saved" in operator.story(name)[began:], "refusal")
        stays(lambda: not lab.is_fenced(name), f"{name} is not fenced", for_s=WATCHED_S)
        assert "DiscardSaved" not in operator.story(name)[began:]
        assert DOUBTS in lab.annotations(name)
        guest.restore_from_file()
        wait_until(lambda: DOUBTS not in lab.annotations(name), "belief")


def test_a_paused_guest_that_may_not_be_stopped_is_not_fenced(
    lab: Lab, operator: Operator, afterwards: ExitStack
) -> None:
    """Without `power:` in the configuration fencer says what it lacks; the guest may be resumed at will."""
    with operator.watching(operator.configure(power=False)):
        name = lab.busiest()
        lab.wait_settled()
        guest, began, writes = lab.nodes[name].guest, len(operator.journal(name)), len(operator.writes())
        guest.pause()
        afterwards.callback(guest.resume_if_paused)
        wait_until(lambda: "refuse/no_power_rights" in operator.story(name)[began:], "refusal")
        stays(lambda: not lab.is_fenced(name), f"{name} is not fenced", for_s=WATCHED_S)
        guest.resume()
        wait_until(lambda: lab.is_ready(name), "Ready node")
        assert len(operator.writes()) == writes


def test_nothing_is_fenced_while_the_hypervisor_does_not_answer(
    lab: Lab, operator: Operator, afterwards: ExitStack
) -> None:
    """A dead guest behind a hung libvirtd: not known is not off. Once libvirtd answers, the fence comes."""
    with operator.watching(operator.configure()):
        name = lab.busiest()
        lab.wait_settled()
        guest = lab.nodes[name].guest
        afterwards.callback(start_if_off, guest)
        afterwards.callback(lab.host.thaw_libvirtd)
        lab.host.freeze_libvirtd()
        guest.kill()
        wait_until(lambda: lab.ready_status(name) == "Unknown", f"Ready=Unknown of {name}")
        stays(lambda: not lab.is_fenced(name), f"{name} is not fenced", for_s=WATCHED_S)
        lab.host.thaw_libvirtd()
        wait_until(lambda: lab.is_fenced(name), "fence")
        lab.wait_elsewhere(name)
        guest.start()
        wait_until(lambda: not lab.is_fenced(name), "unfence")
        wait_until(lambda: not lab.is_cordoned(name), "uncordon")


def test_nothing_is_fenced_when_every_node_is_silent(
    lab: Lab, operator: Operator, afterwards: ExitStack
) -> None:
    """One guest is really dead, the others are cut off: then the way to the API is the suspect."""
    with operator.watching(operator.configure()):
        name = lab.busiest()
        lab.wait_settled()
        guest, began, writes = lab.nodes[name].guest, len(operator.journal(name)), len(operator.writes())
        afterwards.callback(start_if_off, guest)
        for other in (CONTROL_PLANE, *WORKERS):
            if other != name:
                lab.nodes[other].nic_off()
                afterwards.callback(lab.nodes[other].nic_on)
        guest.destroy()
        wait_until(lambda: "refuse/all_nodes_silent" in operator.story(name)[began:], "refusal")
        stays(lambda: not lab.is_fenced(name), f"{name} is not fenced", for_s=WATCHED_S)
        assert len(operator.writes()) == writes
        for other in (CONTROL_PLANE, *WORKERS):
            lab.nodes[other].nic_on()
        wait_until(lambda: lab.is_fenced(name), "fence")
        guest.start()
        wait_until(lambda: not lab.is_fenced(name), "unfence")
        wait_until(lambda: not lab.is_cordoned(name), "uncordon")


def terminating(lab: Lab, name: str) -> bool:
    """Whether Kubernetes has marked the node's database pods for deletion."""
    pods = [pod for pod in lab.look().on(name) if pod["metadata"]["labels"]["app"] == DATABASE]
    return bool(pods) and all("deletionTimestamp" in pod["metadata"] for pod in pods)


def start_if_off(guest: Guest) -> None:
    """Start a guest, unless the test did."""
    if guest.pid is None:
        guest.start()
