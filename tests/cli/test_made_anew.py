"""A machine that was made again under its old name: what is said of the two, and what frees the node."""

from dataclasses import replace

import pytest

from fencer.core import annotations
from fencer.core.model import OUT_OF_SERVICE
from fencer.simulation.faults import What
from tests.cli.lab import Lab

FREES = "try: kubectl annotate node k8s-2 fencer.dev/binding-"


class MadeAnew(Lab):
    """A lab whose map names k8s-2's guest by its name; the machine of that name is another one by now."""

    def __init__(self):
        super().__init__()
        self.rules = replace(self.rules, nodes={"k8s-2": ("lab", "k8s-2")})
        self.passes(30, watched=True)
        guest = self.simulation.guest("k8s-2")
        self.old, self.new = guest.uuid, self.simulation.world.new_uuid()
        self.breaks(What.POWER_OFF, "k8s-2")
        guest.uuid = self.api_node.system_uuid = self.new
        self.breaks(What.START, "k8s-2")
        self.breaks(What.NIC_OFF, "k8s-2")
        self.passes(100)

    @property
    def api_node(self):
        return self.simulation.api.nodes["k8s-2"]

    def load(self, path):
        return replace(super().load(path), nodes=self.rules.nodes)

    def says(self, *words):
        return " ".join(self.run(*words).output.split())

    @property
    def way(self):
        return (
            f"Try: if the machine with UUID {self.old}, to which the node is bound, is gone for good: "
            "`kubectl annotate node k8s-2 fencer.dev/binding-`; the guest that `nodes:` names is the node "
            "then."
        )

    def freed(self):
        del self.api_node.annotations[annotations.BINDING]
        self.simulation.api.changed(self.api_node)


def test_two_guests_of_one_name_are_told_apart_by_their_uuids():
    lab = MadeAnew()
    told = lab.says("explain", "k8s-2")
    assert "more than one guest may be this node" in told
    assert f"lab/k8s-2 on lab1 (UUID {lab.old}), lab/k8s-2 on lab1 (UUID {lab.new})" in told


@pytest.mark.parametrize("state", ["runs", "off"])
def test_the_way_out_names_the_binding_that_holds_and_frees_the_node(state):
    lab = MadeAnew()
    if state == "off":
        lab.breaks(What.POWER_OFF, "k8s-2")
    for words in (["explain", "k8s-2"], ["fence", "k8s-2", "--yes"]):
        assert lab.way in lab.says(*words)
    lab.freed()
    lab.breaks(What.POWER_OFF, "k8s-2")
    assert "fenced in " in lab.says("fence", "k8s-2", "--yes")
    assert [taint.key for taint in lab.api_node.taints if taint.key == OUT_OF_SERVICE] == [OUT_OF_SERVICE]


def test_check_names_the_same_way():
    lab = MadeAnew()
    assert f"{FREES} (if the machine with UUID {lab.old} is gone for good)" in lab.says("check")
    lab.breaks(What.POWER_OFF, "k8s-2")
    told = lab.says("check")
    assert (
        f"k8s-2 is bound to lab/k8s-2 on lab1 (UUID {lab.old}), and `nodes:` now means another machine"
        in told
    )
    assert f"{FREES} (if the machine with UUID {lab.old} is gone for good)" in told
    assert "copies" not in told, "there is one machine"
