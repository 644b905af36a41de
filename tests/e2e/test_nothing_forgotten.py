"""What an agent saw while it could not act or write counts afterwards, on real parts.

A guest whose memory lies in a file reads plainly "shut off" once libvirtd has restarted. So whoever forgot
that it was saved would fence its node, and the guest would write on after `virsh restore`. Each test makes
that so, and looks that it is: else it would show nothing. See docs/design.md: N5, C10, D3.
"""

import os
import signal
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from fencer.cluster.key import NAME, NAMESPACE
from fencer.config.settings import usual_state
from fencer.core.annotations import BINDING, DOUBTS
from fencer.core.kept import Kept
from fencer.errors import ClusterNotFound
from fencer.state.reading import read_state
from tests.controlplane.binaries import API_SERVER
from tests.e2e.lab import Lab, stays
from tests.e2e.operator import Operator, Watch
from tests.support import wait_until
from tests.support.guest import Guest, Power

pytestmark = pytest.mark.usefixtures("sound")

WATCHED_S = 4.0
"""How long a refusal must last: the careful recipe fences within that time after Ready became Unknown."""

SOON_S = 10.0
"""A few seconds, on a busy machine."""

KEY = f"/api/v1/namespaces/{NAMESPACE}/secrets/{NAME}"
FORGOTTEN = Power(state=5, reason=0)
"""Off, and libvirt does not know why: it would prove the end of any guest that was not seen saved."""


def test_a_guest_that_is_saved_while_fencing_is_paused(
    lab: Lab, operator: Operator, afterwards: ExitStack
) -> None:
    """People pause fencing exactly when they save guests and restart libvirtd."""
    config = operator.configure()
    with operator.watching(config):
        name = lab.busiest()
        lab.wait_settled()
        guest, began = lab.nodes[name].guest, len(operator.journal(name))
        afterwards.callback(start_if_off, guest)
        afterwards.callback(as_admin, lab, operator, "resume")
        as_admin(lab, operator, "pause", "--why", "storage work")
        guest.save_to_file()
        wait_until(lambda: DOUBTS in lab.annotations(name), "note, in spite of the pause")
        restart_libvirtd(lab, guest)
        wait_until(lambda: lab.ready_status(name) == "Unknown", f"Ready=Unknown of {name}")
        wait_until(lambda: "refuse/fencing_paused" in operator.story(name)[began:], "pause")
        as_admin(lab, operator, "resume")
        see_refused(lab, operator, name, began)
        see_restored(lab, name)


def test_a_guest_that_is_saved_while_the_api_server_is_away(
    lab: Lab, operator: Operator, afterwards: ExitStack
) -> None:
    """Only the first of three agents saw it saved, and could write it nowhere but on its own disk."""
    config = operator.configure()
    with operator.watching(config) as first:
        name = lab.busiest()
        lab.wait_settled()
        guest, began = lab.nodes[name].guest, len(operator.journal(name))
        afterwards.callback(start_if_off, guest)
        api_back = ExitStack()
        afterwards.callback(api_back.close)
        api_back.callback(lab.cluster.start_component, API_SERVER)
        lab.cluster.stop_component(API_SERVER)
        guest.save_to_file()
        wait_until(lambda: is_noted(operator, name), "note on the disk")
        first.kill()
    with operator.watching(config, until=misses_the_api) as second:
        restart_libvirtd(lab, guest)
        stays(lambda: is_noted(operator, name), "it is noted", for_s=WATCHED_S)
        second.kill()
    with operator.watching(config, until=misses_the_api):
        api_back.close()
        wait_until(lambda: DOUBTS in lab.annotations(name), "note on the Node", timeout_s=SOON_S)
        see_refused(lab, operator, name, began)
        assert not is_noted(operator, name), "what is on the Node is kept nowhere else"
        see_restored(lab, name)


@pytest.mark.parametrize("reload", [True, False], ids=["reload", "restart"])
def test_a_guest_that_is_saved_while_the_first_agent_only_observes(
    lab: Lab, operator: Operator, afterwards: ExitStack, *, reload: bool
) -> None:
    """In a cluster that never had an armed agent, and so has no key that could sign anything."""
    forget_everything(lab, operator)
    config = operator.configure(mode="observe")
    with ExitStack() as running:
        watch = running.enter_context(
            operator.watching(config, until=lambda _: bound_on_disk(operator) == set(lab.nodes))
        )
        name = lab.busiest()
        guest, began = lab.nodes[name].guest, len(operator.journal(name))
        afterwards.callback(start_if_off, guest)
        guest.save_to_file()
        wait_until(lambda: is_noted(operator, name), "note on the disk")
        restart_libvirtd(lab, guest)
        wait_until(lambda: "refuse/guest_saved" in operator.story(name)[began:], "what it would refuse")
        notes = {key for node in lab.nodes for key in lab.annotations(node) if key in {BINDING, DOUBTS}}
        assert (notes, has_key(lab)) == (set(), False), "observing writes nothing"
        assert is_signed_locally(operator)
        began = len(operator.journal(name))
        operator.configure(mode="armed")
        if reload:
            os.kill(watch.process.pid, signal.SIGHUP)
        else:
            running.close()
            running.enter_context(operator.watching(config))
        wait_until(lambda: DOUBTS in lab.annotations(name), "note on the Node")
        see_refused(lab, operator, name, began)
        see_restored(lab, name)
        lab.wait_settled()
        assert has_key(lab)
        wait_until(lambda: not is_signed_locally(operator), "state that the cluster's key signed")


def test_a_dead_node_is_fenced_as_soon_as_ever(lab: Lab, operator: Operator, afterwards: ExitStack) -> None:
    """By an agent that goes on with the state of one that was killed."""
    config = operator.configure()
    with operator.watching(config) as first:
        lab.wait_settled()
        first.kill()
    assert {node.name for node in state(operator).nodes} == set(lab.nodes)
    with operator.watching(config):
        name = lab.busiest()
        lab.wait_settled()
        afterwards.callback(lab.bring_back, name)
        began = len(operator.story(name))
        lab.nodes[name].guest.kill()
        wait_until(lambda: lab.is_fenced(name) or lab.ready_status(name) == "Unknown", "Ready=Unknown")
        wait_until(lambda: lab.is_fenced(name), "fence", timeout_s=SOON_S)
        story = operator.story(name)[began:]
        assert not [what for what in story if "notes_first" in what], story
        lab.wait_elsewhere(name)
        lab.see_back(name)


def test_a_command_beside_an_observing_agent_knows_what_that_saw(
    lab: Lab, operator: Operator, afterwards: ExitStack
) -> None:
    """It was noted on no Node. A command that cannot see the agent's state would fence."""
    with operator.watching(operator.configure()):  # writes the bindings, for the commands below to read
        name = lab.busiest()
        lab.wait_settled()
    config = operator.configure(mode="observe")
    elsewhere = config.with_name("elsewhere.yaml")
    elsewhere.write_text(config.read_text())
    with operator.watching(config):
        guest, writes = lab.nodes[name].guest, len(operator.writes())
        afterwards.callback(start_if_off, guest)
        guest.save_to_file()
        wait_until(lambda: is_noted(operator, name), "note on the disk")
        restart_libvirtd(lab, guest)
        wait_until(lambda: lab.ready_status(name) == "Unknown", f"Ready=Unknown of {name}")
        assert len(operator.writes()) == writes
        unknowing = operator.run("fence", name, "--dry-run", "-c", str(elsewhere))
        assert (unknowing.returncode, "would fence" in unknowing.stdout) == (0, True), unknowing
        refused = operator.run("fence", name, "--yes", "-c", str(config))
        assert (refused.returncode, "saved to a file" in refused.stdout) == (1, True), refused
        [noted] = operator.writes()[writes:]
        assert noted["requestObject"]["metadata"]["annotations"].keys() == {DOUBTS}
        assert not lab.is_fenced(name)
        guest.restore_from_file()
        wait_until(lambda: lab.is_ready(name), "Ready node")
    with operator.watching(operator.configure()):
        wait_until(lambda: DOUBTS not in lab.annotations(name), "belief")


# -- what is done -----------------------------------------------------------------------------------------


def as_admin(lab: Lab, operator: Operator, *words: str) -> None:
    """Run a command with a person's own kubeconfig: fencer's account may not write a pause."""
    done = operator.run(*words, "--kubeconfig", str(lab.cluster.kubeconfig()))
    assert done.returncode == 0, done


def restart_libvirtd(lab: Lab, guest: Guest) -> None:
    """Restart libvirtd; it has forgotten why a guest is off."""
    assert guest.power() != FORGOTTEN
    lab.host.kill_libvirtd()
    lab.host.start_libvirtd()
    assert guest.power() == FORGOTTEN


def forget_everything(lab: Lab, operator: Operator) -> None:
    """Make the cluster and the agent's machine those in which no agent ever ran."""
    with suppress(ClusterNotFound):
        lab.client.delete(KEY)
    for name in lab.nodes:
        lab.patch_node(name, {"metadata": {"annotations": {BINDING: None, DOUBTS: None}}})
    for file in state_file(operator).parent.glob(f"{state_file(operator).name}*"):
        file.unlink()


def start_if_off(guest: Guest) -> None:
    """Start a guest, unless the test did."""
    if guest.pid is None:
        guest.start()


# -- what is seen -----------------------------------------------------------------------------------------


def see_refused(lab: Lab, operator: Operator, name: str, began: int) -> None:
    """See that a silent node whose guest is saved is not fenced, and that its Node says why."""
    wait_until(lambda: lab.ready_status(name) == "Unknown", f"Ready=Unknown of {name}")
    wait_until(lambda: "refuse/guest_saved" in operator.story(name)[began:], "refusal")
    stays(lambda: not lab.is_fenced(name), f"{name} is not fenced", for_s=WATCHED_S)
    assert DOUBTS in lab.annotations(name)


def see_restored(lab: Lab, name: str) -> None:
    """See that all is well once the guest goes on from its file."""
    lab.nodes[name].guest.restore_from_file()
    wait_until(lambda: lab.is_ready(name), "Ready node")
    wait_until(lambda: DOUBTS not in lab.annotations(name), "belief")
    assert not lab.is_fenced(name)


def has_key(lab: Lab) -> bool:
    """Whether the cluster has a key."""
    with suppress(ClusterNotFound):
        return bool(lab.client.get(KEY))
    return False


def misses_the_api(watch: Watch) -> bool:
    """Whether an agent has said that the API server does not answer."""
    return "kubernetes" in watch.log


def state_file(operator: Operator) -> Path:
    """Return where the agent keeps its state."""
    return usual_state(operator.config_file)


def state(operator: Operator) -> Kept:
    """Return what the agent keeps on its disk."""
    return read_state(state_file(operator)).kept or Kept()


def is_signed_locally(operator: Operator) -> bool:
    """Whether a key of this machine signs that, and not the cluster's."""
    signer = read_state(state_file(operator)).signer
    return signer is not None and signer.local


def is_noted(operator: Operator, name: str) -> bool:
    """Whether it is on the agent's disk, and not on the Node yet, that a node's guest is doubted."""
    return any(note.node == name and note.doubts for note in state(operator).notes)


def bound_on_disk(operator: Operator) -> set[str]:
    """Return the nodes of which only the agent's disk says which guest they are."""
    return {note.node for note in state(operator).notes if note.binding}
