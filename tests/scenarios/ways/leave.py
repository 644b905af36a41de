"""Whether fencer may."""

from __future__ import annotations

from dataclasses import replace

from fencer.core import annotations
from fencer.core.maintenance import Window
from fencer.core.model import Intent, Reason
from fencer.core.policy import Mode, SavedGuest
from fencer.simulation.assembly import Shape
from fencer.simulation.controllers import Timing
from fencer.simulation.faults import What
from fencer.simulation.scenario import ARMED
from tests.scenarios.ways.case import passes, row, way
from tests.scenarios.ways.ends import cleared, fenced, freed, healthy
from tests.scenarios.ways.steps import (
    admits,
    annotated,
    another_dies,
    another_holds,
    asks,
    elects,
    everywhere,
    given_up,
    handed_back,
    handed_over,
    happens,
    is_control_plane,
    labelled,
    lacks,
    leased,
    left,
    lets_nobody_power,
    lets_power,
    node_paused,
    paused,
    requested,
    reserved,
    sets,
    state_damaged,
    state_mended,
    state_moved_away,
    stray_pod,
    types,
    unannotated,
    uncordoned,
    unsigned,
    untainted,
    until,
    waits,
    without_lease,
)
from tests.scenarios.ways.words import CONFIG, DEAD, FIVE, HOSTS, ITS_END, LEFT, STARTED

NODE_SHOWN = "`kubectl describe node k8s-2` shows the Node, if the API server refuses its note"
CHECK_NAMES = "`fencer check` names what is wrong with the state file"

ROWS = [
    row(
        Reason.FENCING_PAUSED,
        (DEAD, paused("maintenance", for_s=300)),
        way(
            "annotation fencer.dev/pause taken off the namespace kube-system",
            "its annotation taken off kube-system",
            "`kubectl annotate namespace kube-system fencer.dev/pause-`",
            do=[paused(None)],
            to=fenced,
        ),
        way("`fencer resume`", do=[types("resume")], to=fenced),
        passes("its end", "the pause to end", to=fenced, within_s=500),
    ),
    row(
        Reason.NODE_PAUSED,
        (DEAD, node_paused("its disks move", for_s=300)),
        way(
            "annotation fencer.dev/pause taken off the node",
            "its annotation taken off the node",
            "`kubectl annotate node k8s-2 fencer.dev/pause-`",
            do=[unannotated(annotations.PAUSE)],
            to=fenced,
        ),
        way("`fencer resume k8s-2`", do=[types("resume", "k8s-2")], to=fenced),
        passes("its end", "the pause to end", to=fenced, within_s=500),
    ),
    row(
        Reason.MAINTENANCE,
        (sets(maintenance=(Window("00:00", "00:10", "UTC"),)), DEAD),
        way(
            "the same done by hand",
            "`fencer fence k8s-2` does not wait for its end",
            do=[types("fence", "k8s-2")],
            to=fenced,
        ),
        passes("its end", to=fenced, within_s=800),
    ),
    row(
        Reason.NODE_EXCLUDED,
        (DEAD, annotated(annotations.EXCLUDE, "true")),
        way(
            "that taken off",
            "what excludes it taken off: an annotation, or a label of medik8s",
            "`kubectl annotate node k8s-2 fencer.dev/exclude-`",
            do=[unannotated(annotations.EXCLUDE)],
            to=fenced,
        ),
    ),
    row(
        Reason.NODE_EXCLUDED,
        (DEAD, labelled(annotations.EXCLUDE_LABEL, "true")),
        way(
            "that taken off",
            f"`kubectl label node k8s-2 {annotations.EXCLUDE_LABEL}-`",
            do=[labelled(annotations.EXCLUDE_LABEL, None)],
            to=fenced,
        ),
        more="by medik8s' label",
    ),
    row(
        Reason.NODE_RESERVED,
        (reserved, DEAD),
        way("a FencerRemediation for the node", do=[requested], to=fenced),
        way("that Lease's end", "`kubectl -n medik8s-leases delete lease node-k8s-2`", do=[left], to=fenced),
        way(
            "the same done by hand",
            "`fencer fence k8s-2`, by hand, if nobody works on it any more",
            do=[types("fence", "k8s-2")],
            to=fenced,
        ),
    ),
    row(
        Reason.HANDED_OVER,
        (handed_over, DEAD),
        way("that taint taken off by its owner", do=[handed_back], to=fenced),
        way(
            "the same done by hand",
            "`fencer fence k8s-2`, by hand, if nobody repairs it any more",
            do=[types("fence", "k8s-2")],
            to=fenced,
        ),
    ),
    row(
        Reason.GIVEN_UP,
        (DEAD, reserved, requested, given_up),
        way("that Lease's end", "the end of medik8s' Lease for the node", do=[left], to=fenced),
        way(
            "the same done by hand",
            "`fencer fence k8s-2`, by hand, if no other remedy is at work",
            do=[types("fence", "k8s-2")],
            to=fenced,
        ),
    ),
    row(
        Reason.GIVEN_UP,
        (DEAD, until(Reason.PODS_CLEARED), reserved, requested, given_up, stray_pod),
        way("that Lease's end", do=[left], to=cleared),
        way(
            "the same done by hand",
            "`fencer fence k8s-2`, by hand, if no other remedy is at work",
            do=[types("fence", "k8s-2")],
            to=cleared,
        ),
        more="under a fence",
    ),
    row(
        Reason.OBSERVE_MODE,
        (DEAD,),
        way(
            "the same done by hand",
            "`fencer fence k8s-2 --guest lab/k8s-2`, if you are sure that this guest is the node",
            do=[types("fence", "k8s-2", "--guest", "lab/k8s-2")],
            to=fenced,
        ),
        way(
            "`mode: armed` before a node dies",
            f"for the next time, `mode: armed` in {CONFIG}",
            "`mode: armed`",
            do=[STARTED, sets(mode=Mode.ARMED), waits(60), DEAD],
            to=fenced,
        ),
        policy=replace(ARMED, mode=Mode.OBSERVE),
    ),
    row(
        Reason.OBSERVE_MODE,
        (DEAD, until(Reason.PODS_CLEARED), sets(mode=Mode.OBSERVE), STARTED),
        way("`mode: armed`", f"`mode: armed` in {CONFIG}", do=[sets(mode=Mode.ARMED)], to=freed),
        way(
            "the same done by hand",
            "`fencer unfence k8s-2`, once it is back",
            do=[types("unfence", "k8s-2"), waits(10), uncordoned],
            to=freed,
        ),
        beside=("`fencer fence k8s-2`, which clears what is left",),
        more="of a node that is fenced and back",
    ),
    row(
        Reason.OBSERVE_MODE,
        (lacks("delete pods"), DEAD, until(Reason.CLEARING_PODS), sets(mode=Mode.OBSERVE), lacks()),
        way("`mode: armed`", f"`mode: armed` in {CONFIG}", do=[sets(mode=Mode.ARMED)], to=fenced),
        way(
            "the same done by hand",
            "`fencer fence k8s-2`, which clears what is left",
            do=[types("fence", "k8s-2")],
            to=fenced,
        ),
        beside=("`fencer unfence k8s-2`, once it is back",),
        timing=Timing(podgc_s=300.0),
        more="of a node that is fenced",
    ),
    row(
        Reason.NOTES_FIRST,
        (lacks("patch nodes"), happens(What.MIGRATE), waits(140), DEAD),
        way(
            "that written, which is tried again in every pass",
            "an API server that takes these notes",
            NODE_SHOWN,
            do=[lacks()],
            to=fenced,
        ),
        beside=("a state file that can be read", CHECK_NAMES),
        shape=HOSTS,
    ),
    row(
        Reason.NOTES_FIRST,
        (DEAD, waits(20), everywhere(What.API_DOWN), waits(60), everywhere(What.API_UP)),
        passes("7 s, in which other agents write down what they saw meanwhile", to=fenced),
        beside=(NODE_SHOWN, CHECK_NAMES),
        policy=replace(ARMED, lease_silent_s=0.0),
        more="after an outage",
    ),
    row(
        Reason.NOTES_FIRST,
        (state_damaged, DEAD),
        way("that file mended", CHECK_NAMES, do=[state_mended], to=fenced),
        way(
            "moved away, if no VM was saved or moved since this agent last ran",
            do=[state_moved_away],
            to=fenced,
        ),
        beside=(NODE_SHOWN,),
        more="its state file damaged",
    ),
    row(
        Reason.NO_POWER_RIGHTS,
        (happens(What.PAUSE),),
        way(
            "the guest in the endpoint's `power:`",
            f"its UUID under the endpoint's `power: {{uuids: […]}}` in {CONFIG}",
            do=[admits],
            to=fenced,
        ),
        way("the guest stopped by hand", "stop it yourself", do=[DEAD], to=fenced),
        power=False,
    ),
    row(
        Reason.POWER_UNAPPROVED,
        (happens(What.PAUSE),),
        way(
            "that VM approved: fencer approve NODE",
            "that VM approved: `fencer approve k8s-2`",
            "`fencer approve k8s-2`, if lab/k8s-2 is this node",
            do=[types("approve", "k8s-2", "--guest", "lab/k8s-2")],
            to=fenced,
        ),
        way("stop it yourself", do=[DEAD], to=fenced),
        shape=Shape(grouped=True, admitted=()),
    ),
    row(
        Reason.NO_POWER_RIGHTS,
        LEFT,
        way(
            "the guest in the endpoint's `power:`",
            f"its UUID under the endpoint's `power: {{uuids: […]}}` in {CONFIG}",
            do=[admits],
            to=fenced,
        ),
        way("the guest stopped by hand", "stop it yourself", *ITS_END, do=[DEAD], to=fenced),
        power=False,
        more="and its process is left",
    ),
    row(
        Reason.OBSERVE_MODE,
        LEFT,
        way(
            "the same done by hand",
            "`fencer fence k8s-2 --guest lab/k8s-2`, if you are sure that this guest is the node",
            *ITS_END,
            do=[types("fence", "k8s-2", "--guest", "lab/k8s-2")],
            to=fenced,
        ),
        way(
            "`mode: armed`",
            f"for the next time, `mode: armed` in {CONFIG}",
            do=[DEAD, STARTED, sets(mode=Mode.ARMED), waits(60), happens(What.SHUTDOWN)],
            to=fenced,
        ),
        policy=replace(ARMED, mode=Mode.OBSERVE),
        more="and its process is left",
    ),
    row(
        Reason.POWER_WINDOW,
        (happens(What.PAUSE), happens(What.PAUSE, to="k8s-1")),
        passes("one power-off per 60 s", "the power window to pass", to=fenced),
        shape=FIVE,
    ),
    row(
        Reason.STANDBY,
        (elects, another_holds, happens(What.PAUSE)),
        way("that agent to act", do=[DEAD], to=fenced),
        way("its silence for 15 s", "this one to hold the Lease", do=[another_dies], to=fenced),
    ),
    row(
        Reason.NO_LEASE,
        (elects, without_lease, waits(10), happens(What.PAUSE)),
        way(
            "`fencer setup kubernetes --config CONFIG | kubectl apply -f -`",
            "the Leases that `fencer setup kubernetes` makes",
            do=[leased],
            to=fenced,
        ),
        way("the guest stopped by hand", do=[DEAD], to=fenced),
    ),
    row(
        Reason.STOP_FAILED,
        (happens(What.PAUSE), lets_nobody_power),
        way(
            "the cause mended",
            "the cause mended",
            "`fencer check` looks at every connection and right",
            do=[lets_power],
            to=fenced,
            within_s=400.0,
        ),
        way("the guest stopped by hand", "stop it yourself", do=[DEAD], to=fenced),
    ),
    row(
        Reason.DISCARD_FAILED,
        (happens(What.SAVE), lets_nobody_power),
        way(
            "the cause mended",
            "`fencer check` looks at every connection and right",
            do=[lets_power],
            to=fenced,
            within_s=400.0,
        ),
        way("the guest started", "restored", do=[happens(What.RESTORE)], to=healthy),
        policy=replace(ARMED, saved_guest=SavedGuest.DISCARD),
    ),
    row(
        Reason.QUORUM_AT_RISK,
        (is_control_plane("k8s-1", "k8s-2", "k8s-3"), happens(What.NIC_OFF, to="k8s-3"), happens(What.PAUSE)),
        way("more healthy control-plane nodes", do=[happens(What.NIC_ON, to="k8s-3")], to=fenced),
        way("the guest stopped by hand", do=[DEAD], to=cleared),
        shape=FIVE,
    ),
    row(
        Reason.BRAKE,
        (happens(What.POWER_OFF, to="k8s-1"), waits(120), DEAD),
        way("an older fence lifted", do=[happens(What.START, to="k8s-1")], to=fenced),
        passes("an hour old", to=fenced, within_s=3700),
        way("a higher `max_fenced`", do=[sets(max_fenced=2)], to=fenced),
        way(
            "--over-brake WHY",
            "`fencer fence k8s-2 --over-brake WHY`, if you know that this node is dead, too. There is a "
            "brake because one fault that fencer cannot see (of a network, a storage, a clock) is likelier "
            "than so many deaths at once",
            do=[types("fence", "k8s-2", "--over-brake", "WHY")],
            to=fenced,
        ),
    ),
    row(
        Reason.ALL_NODES_SILENT,
        (happens(What.NIC_OFF, to="k8s-1"), happens(What.NIC_OFF, to="k8s-3"), DEAD),
        way(
            "one node that is heard",
            do=[happens(What.NIC_ON, to="k8s-1"), happens(What.NIC_ON, to="k8s-3")],
            to=fenced,
        ),
        way(
            "--over-brake WHY",
            "`fencer fence k8s-2 --over-brake WHY`, if the nodes really are all dead",
            do=[types("fence", "k8s-2", "--over-brake", "WHY")],
            to=cleared,
        ),
    ),
    row(
        Reason.FOREIGN_TAINT,
        (DEAD, happens(What.TAINT_BY_HAND)),
        way(
            "that taint taken off by its owner",
            "`kubectl taint node k8s-2 node.kubernetes.io/out-of-service-` takes it off",
            do=[untainted],
            to=fenced,
        ),
        beside=("fencer neither adds to it nor removes it",),
    ),
    row(
        Reason.TAINT_TAKEN_OFF,
        (lacks("delete pods"), DEAD, until(Reason.CLEARING_PODS), untainted, lacks()),
        way("the node to boot again", do=[STARTED], to=healthy),
        way("`fencer fence` by hand", "`fencer fence k8s-2`", do=[types("fence", "k8s-2")], to=fenced),
        beside=("fencer does not undo what an operator did",),
    ),
    row(
        Reason.MARK_UNREADABLE,
        (DEAD, until(Reason.PODS_CLEARED), annotated(annotations.MARK, "{")),
        way(
            "the fencer version that wrote it",
            "a person who takes the annotation off",
            "`kubectl annotate node k8s-2 fencer.dev/mark-` deletes it",
            "then take its taint off by hand, once its guest has booted again: "
            "`kubectl taint node k8s-2 node.kubernetes.io/out-of-service-`",
            do=[unannotated(annotations.MARK), STARTED, waits(60), untainted],
            to=healthy,
        ),
    ),
    row(
        Reason.MARK_UNREADABLE,
        (annotated(annotations.MARK, "{"), DEAD, waits(60)),
        way(
            "the fencer version that wrote it",
            "a person who takes the annotation off",
            "`kubectl annotate node k8s-2 fencer.dev/mark-` deletes it",
            do=[unannotated(annotations.MARK)],
            to=fenced,
        ),
        beside=(
            "then take its taint off by hand, once its guest has booted again: "
            "`kubectl taint node k8s-2 node.kubernetes.io/out-of-service-`",
        ),
        more="of a node that is not fenced",
    ),
    row(
        Reason.FOREIGN_TAINT,
        (DEAD, happens(What.TAINT_BY_HAND), asks(Intent.UNFENCE)),
        way(
            "`kubectl taint node k8s-2 node.kubernetes.io/out-of-service-` takes it off",
            "a fence that fencer set",
            do=[untainted],
            to=fenced,
        ),
        more="which `unfence` does not lift",
    ),
    row(
        Reason.MARK_UNSIGNED,
        (DEAD, until(Reason.PODS_CLEARED), unsigned),
        way(
            "its guest started by hand",
            "once it has booted, if it was fencer that fenced it, `fencer unfence k8s-2 --adopt WHY`",
            "fencer unfence --adopt WHY",
            do=[STARTED, waits(60), types("unfence", "k8s-2", "--adopt", "WHY"), waits(40)],
            to=freed,
        ),
    ),
]
