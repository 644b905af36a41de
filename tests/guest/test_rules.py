"""Whose cordon it is, and who takes it off after a boot."""

from typing import Any

import pytest

from fencer.guest.notes import CORDON, MARK, OUT_OF_SERVICE, OwnNode, own_node
from fencer.guest.rules import Step, after_boot, cordon_is_ours, cordon_passes, cordon_unrecorded

NOW_BOOT, LAST_BOOT = "b-2", "b-1"
OURS = '{"bootID":"b-1","by":"drain","schema":1,"since":"2026-11-20T10:00:00Z"}'
STARTED = OURS.replace('"schema"', '"start":"7000000","schema"')
SHUTDOWN = STARTED.replace('"schema"', '"shutdown":true,"schema"')
"""Notes: of a drain by hand, and of one for a shutdown, that tell when the system was started."""
SAME_BOOT = {"boot": LAST_BOOT}


def _node(**changes: object) -> dict[str, Any]:
    said = {
        "note": OURS,
        "unschedulable": True,
        "manager": "fencer-guest",
        "boot": NOW_BOOT,
        "taints": [],
        "mark": None,
    }
    said.update(changes)
    notes = {CORDON: said["note"], MARK: said["mark"]}
    owner = {"manager": said["manager"], "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}
    return {
        "metadata": {
            "name": "k8s-1",
            "annotations": {key: value for key, value in notes.items() if value is not None},
            "managedFields": [
                {"manager": "kubelet", "fieldsV1": {"f:status": {}}},
                *([owner] if said["manager"] else []),
            ],
        },
        "spec": {"unschedulable": said["unschedulable"], "taints": said["taints"]},
        "status": {"nodeInfo": {"bootID": said["boot"]}},
    }


@pytest.mark.parametrize(
    ("changes", "step", "says"),
    [
        ({}, Step.UNCORDON, "earlier boot"),
        ({"note": None}, Step.LEAVE, "somebody else"),
        ({"note": None, "manager": "kubectl-cordon"}, Step.LEAVE, "somebody else"),
        ({"manager": "kubectl-cordon"}, Step.LEAVE, "kubectl-cordon"),
        ({"manager": "fencer"}, Step.LEAVE, "not by the drain in this guest"),
        ({"manager": None}, Step.LEAVE, "somebody"),
        ({"note": OURS.replace("drain", "unfence")}, Step.LEAVE, "unfence"),
        ({"note": OURS.replace('"schema":1', '"schema":2')}, Step.LEAVE, "another version"),
        ({"note": "{"}, Step.LEAVE, "another version"),
        ({"note": OURS.replace(LAST_BOOT, NOW_BOOT)}, Step.LEAVE, "this boot"),
        ({"boot": LAST_BOOT}, Step.WAIT, "not reported"),
        ({"boot": ""}, Step.WAIT, "not reported"),
        ({"taints": [{"key": OUT_OF_SERVICE, "effect": "NoExecute"}]}, Step.WAIT, OUT_OF_SERVICE),
        ({"taints": [{"key": OUT_OF_SERVICE, "effect": "NoSchedule"}]}, Step.WAIT, OUT_OF_SERVICE),
        ({"taints": [{"key": "node.kubernetes.io/unschedulable"}]}, Step.UNCORDON, ""),
        ({"mark": "{}"}, Step.WAIT, "mark"),
        ({"mark": "{}", "note": None}, Step.LEAVE, "somebody else"),
        ({"unschedulable": None}, Step.FORGET, "uncordoned by somebody else"),
        ({"unschedulable": None, "note": None}, Step.LEAVE, "not cordoned"),
        ({"unschedulable": None, "note": OURS.replace("drain", "unfence")}, Step.LEAVE, "not cordoned"),
    ],
)
def test_whose_cordon_is_taken_off_after_boot(changes: dict[str, object], step: Step, says: str) -> None:
    found, text = after_boot(own_node(_node(**changes)), NOW_BOOT, "fencer-guest")
    assert found is step
    assert says in text


@pytest.mark.parametrize(
    ("note", "start", "step", "says"),
    [
        (OURS, "", Step.LEAVE, "this boot"),
        (OURS, "7000000", Step.LEAVE, "this boot"),
        (STARTED, "7000000", Step.LEAVE, "this boot"),
        (STARTED, "", Step.LEAVE, "this boot"),
        (STARTED, "9000000", Step.UNCORDON, "started again"),
        (SHUTDOWN, "9000000", Step.UNCORDON, "started again"),
        (SHUTDOWN, "7000000", Step.UNLESS_DOWN, "the shutdown was called off"),
        (SHUTDOWN, "", Step.UNLESS_DOWN, "the shutdown was called off"),
        (OURS.replace('"schema"', '"shutdown":1,"schema"'), "7000000", Step.LEAVE, "this boot"),
        (OURS.replace('"schema"', '"start":7,"schema"'), "7000000", Step.LEAVE, "this boot"),
    ],
    ids=[
        "by hand, by an older program, without an answer of systemd",
        "by hand, by an older program",
        "by hand",
        "by hand, and systemd does not tell now",
        "by hand, before a soft-reboot",
        "for a soft-reboot",
        "for a shutdown that was called off",
        "for a shutdown that was called off, and systemd does not tell now",
        "not quite for a shutdown",
        "a start that is no text",
    ],
)
def test_what_becomes_of_a_cordon_while_the_kernel_runs_on(
    note: str, start: str, step: Step, says: str
) -> None:
    """A soft-reboot and a shutdown that is called off keep the kernel's boot id."""
    node = own_node(_node(note=note, **SAME_BOOT))
    found, text = after_boot(node, LAST_BOOT, "fencer-guest", start)
    assert (found, says in text) == (step, True)


@pytest.mark.parametrize("note", [STARTED, SHUTDOWN], ids=["by hand", "for a shutdown"])
@pytest.mark.parametrize(
    ("changes", "step"),
    [
        ({"manager": "kubectl-cordon"}, Step.LEAVE),
        ({"manager": "fencer and kubectl-cordon"}, Step.LEAVE),
        ({"unschedulable": None}, Step.FORGET),
        ({"mark": "{}"}, Step.WAIT),
    ],
    ids=["an admin's", "not ours alone", "none", "fenced"],
)
def test_what_systemd_tells_makes_no_cordon_ours(note: str, changes: dict[str, object], step: Step) -> None:
    node = own_node(_node(note=note, **{**SAME_BOOT, **changes}))
    assert after_boot(node, LAST_BOOT, "fencer-guest", "9000000")[0] is step


@pytest.mark.parametrize(
    ("note", "changes", "taken_over"),
    [
        (OURS, {}, True),
        (SHUTDOWN, {}, True),
        (OURS, {"manager": "fencer"}, False),
        (OURS, {"manager": "kubectl-cordon"}, False),
        (OURS.replace("drain", "unfence"), {}, False),
        (OURS.replace("drain", "hook"), {"manager": "fencer"}, False),
        (None, {}, False),
        (OURS, {"unschedulable": None}, False),
    ],
)
def test_which_cordon_stands_until_the_unit_takes_it_off(
    note: str | None, changes: dict[str, object], taken_over: bool
) -> None:
    """What `uninstall` asks, and a drain by hand, which makes it its own: after this boot or the next one."""
    assert cordon_is_ours(own_node(_node(note=note, **changes)), "fencer-guest") is taken_over


@pytest.mark.parametrize("note", [STARTED, SHUTDOWN], ids=["by hand", "for a shutdown"])
def test_a_cordon_taken_over_from_the_agent_is_ours(note: str) -> None:
    """It stays its setter's by the API server's record; the agent notes neither a start nor a shutdown."""
    node = own_node(_node(note=note, manager="fencer"))
    assert after_boot(node, NOW_BOOT, "fencer-guest")[0] is Step.UNCORDON
    assert cordon_is_ours(node, "fencer-guest")


def test_a_cordon_that_is_not_ours_alone_stays() -> None:
    """The record is sorted by time: whoever is first in it is not the last who set the field."""
    body = _node()
    record = body["metadata"]["managedFields"]
    record.append({"manager": "kubectl-cordon", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}})
    found, text = after_boot(own_node(body), NOW_BOOT, "fencer-guest")
    assert found is Step.LEAVE
    assert "by fencer-guest and kubectl-cordon" in text


class TestNoRecord:
    """The API server has no record of who wrote what on the Node."""

    def node(self, **changes: object) -> OwnNode:
        body = _node(**changes)
        del body["metadata"]["managedFields"]
        return own_node(body)

    @pytest.mark.parametrize("note", [OURS, SHUTDOWN], ids=["by hand", "for a shutdown"])
    def test_the_cordon_stays_and_the_log_says_why_and_what_lifts_it(self, note: str) -> None:
        """C9: an administrator may have uncordoned and cordoned since, and no process watched that."""
        step, text = after_boot(self.node(note=note), NOW_BOOT, "fencer-guest")
        assert step is Step.LEAVE
        assert "no record of who set that cordon (managedFields): `kubectl uncordon k8s-1`" in text
        assert not cordon_is_ours(self.node(note=note), "fencer-guest")

    @pytest.mark.parametrize("note", [OURS.replace("drain", "unfence"), OURS.replace("drain", "hook")])
    def test_no_drain_takes_such_a_cordon_over_from_the_agent(self, note: str) -> None:
        assert not cordon_passes(self.node(note=note))

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({}, True),
            ({"note": OURS.replace("drain", "unfence")}, False),
            ({"note": "{"}, False),
            ({"note": None}, False),
            ({"unschedulable": None}, False),
        ],
        ids=["a drain's", "the agent's", "a note that cannot be read", "no note", "not cordoned"],
    )
    def test_what_only_the_note_tells(self, changes: dict[str, object], expected: bool) -> None:
        assert cordon_unrecorded(self.node(**changes)) is expected
        assert not cordon_unrecorded(own_node(_node(**changes)))
