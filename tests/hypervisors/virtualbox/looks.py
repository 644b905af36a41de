"""What several tests of the adapter do with a machine, and what they make of its readings."""

from dataclasses import replace

from fencer.core.decide import decide
from fencer.core.model import (
    Binding,
    Candidate,
    Intent,
    PowerState,
    Via,
    Word,
)
from fencer.errors import (
    HypervisorUnreachable,
)
from tests.core.build import ARMED, BOOT, NOW_S, in_state, node
from tests.support import wait_until

LONG_S = 60.0
SOON_S = 0.3
"""For what hangs anyway."""
BUSY_S = 4.0
"""For what hangs, where something else has to come in time. Nobody promises that it does: a machine may stand
still for longer (12 s were not enough once in three gates). So it is asked again: see `in_the_end`."""


def not_registered(machine) -> str:
    return (
        f"VBoxManage: error: Could not find a registered machine with UUID {{{machine.id}}}\n"
        "VBoxManage: error: Details: code VBOX_E_OBJECT_NOT_FOUND (0x80bb0001), component VirtualBoxWrap\n"
    )


def in_the_end(ask):
    """Ask again where an answer that is not about the machine that hangs came too late."""

    def answered():
        try:
            return [ask()]
        except HypervisorUnreachable:
            return []

    return wait_until(answered, "answer in time")[0]


def freeze(machine) -> dict[str, object]:
    """What befalls the readings of a machine whose process is frozen: its log can still be read."""
    return {"on": f"showvminfo {machine.id} --machinereadable", "hang": True}


def states(hypervisor) -> dict[str, PowerState]:
    return {evidence.guest.name: evidence.power_state for evidence in hypervisor.sweep()}


def runs(vbox, name="k8s-1"):
    """Register a machine, and start it: so that VirtualBox has an end on record from before that run."""
    machine = vbox.add(name, "poweroff")
    vbox.run("startvm", machine.id, "--type", "headless")
    return machine


def judged(read, intent=Intent.FENCE, word=Word(guest_off_why="I switched it off")):  # noqa: B008 - frozen
    """Return what core decides of a silent node that is bound to the guest that was read."""
    return decide(
        in_state(
            read.power_state,
            evidence=replace(read, observed_at_s=NOW_S - 1),
            candidates=(Candidate(read.guest, Via.UUID),),
            node=node(binding=Binding(read.guest, (BOOT,))),
            intent=intent,
            word=word,
            last_state=read.power_state,
        ),
        ARMED,
    )
