"""A guest that stands still, by hand: its readings add up, though sweeps seldom read it live."""

import pytest

from fencer.core.identity import Admission, Rules
from fencer.core.model import Intent, PodView, Reason, Verdict, Word
from fencer.runtime.reconcile import Agent
from tests.hypervisors.proxmox.nodes import ARMED, Watch


@pytest.mark.parametrize("qmp", ["paused", "io-error", "suspended", "internal-error", "shutdown"])
@pytest.mark.parametrize("paused_s", [3.0, 30.0, 400.0])
def test_its_pause_is_counted_while_its_silence_is_waited_for(home, qmp, paused_s):
    confs = [home.guest(f"k8s-{number}", f"pve{number}") for number in (1, 2, 3)]
    watch = Watch(home.pve, home.hypervisor, confs)
    pod = PodView("demo", "db-0", "uid-db-0", "1", "Running", controller="StatefulSet/db")
    watch.nodes.placed["k8s-1"] = (pod,)
    watch.passes(40)
    home.pve.set_qmp(confs[0].vmid, qmp)
    home.pve.clock.advance(paused_s)
    rules = Rules(admitted={"home": Admission(uuids=frozenset({confs[0].uuid}))})
    agent, began_s = Agent(watch.world, ARMED, rules), home.pve.clock.now_s()
    decision = agent.pursue("k8s-1", Intent.FENCE, Word(), 120.0, act=False).decision
    reason = Reason.GUEST_POWERED_OFF if qmp == "shutdown" else Reason.GUEST_PAUSED
    assert (decision.verdict, decision.reason) == (Verdict.STOP_FIRST, reason)
    assert home.pve.clock.now_s() - began_s == 15.0
