"""Whether anything is wrong with a node, and which guest it is."""

from __future__ import annotations

from fencer.core.model import Intent, Reason, Word
from fencer.simulation.faults import What
from tests.scenarios.ways.case import passes, row, way
from tests.scenarios.ways.ends import bound, calm, fenced, freed, healthy, recovered
from tests.scenarios.ways.steps import (
    added,
    asks,
    commands,
    deleted,
    everywhere,
    forgotten,
    happens,
    has_uuid,
    in_a_loop,
    is_at,
    joins_as,
    maps,
    out_of_the_loop,
    reports,
    restarts,
    sets,
    types,
    until,
    waits,
)
from tests.scenarios.ways.words import CONFIG, DEAD, GIVEN, MAP, NAMED, NOBODYS, NOTHING, SHUTDOWN, STARTED

UNPROVEN = (
    f"`nodes: {{k8s-2: lab/k8s-2}}` in {CONFIG}",
    f"by hand, if you are sure that this guest is the node: {NAMED}",
)
COPY = (happens(What.CLONE), happens(What.START, to="k8s-2-copy"))
ROWS = [
    row(Reason.NODE_HEALTHY, (), passes(NOTHING, to=healthy)),
    row(
        Reason.NODE_HEALTHY,
        (in_a_loop,),
        way(
            "`fencer drain k8s-2` moves its pods away: type it while the VM is up",
            do=[happens(What.START), types("drain", "k8s-2")],
            to=recovered,
        ),
        way(
            "or add `--even-if-blocked` while it is down",
            do=[happens(What.CRASH), types("drain", "k8s-2", "--even-if-blocked")],
            to=recovered,
        ),
        way(
            "Or switch off what starts the VM again (HA, a watchdog, `on_crash`): once the VM stays off, its "
            "node can be fenced",
            do=[out_of_the_loop(What.POWER_OFF)],
            to=fenced,
        ),
        way("10m00s without another start", do=[out_of_the_loop()], to=calm, within_s=700.0),
        beside=("its VM is in a crash loop; a fence needs a silent kubelet, and each boot ends the silence",),
        more="in a crash loop",
    ),
    row(
        Reason.NODE_READY,
        (DEAD,),
        passes(
            "Ready to be Unknown or False, some 50 s after its last sign of life",
            "Ready to be Unknown or False",
            to=fenced,
        ),
        way("`fencer fence k8s-2` does not wait for that", do=[types("fence", "k8s-2")], to=fenced),
        way(f"does `require_not_ready: false` in {CONFIG}", do=[sets(require_not_ready=False)], to=fenced),
    ),
    row(
        Reason.NODE_READY,
        (asks(Intent.FENCE),),
        way("its guest off", do=[DEAD, types("fence", "k8s-2")], to=fenced),
        way("to empty the node: `fencer shutdown k8s-2`", do=[types("shutdown", "k8s-2")], to=recovered),
        more="by hand, of a guest that runs",
    ),
    row(
        Reason.NODE_READY,
        (happens(What.NIC_OFF), waits(25), asks(Intent.FENCE, Word(stop_guest=True))),
        way("its guest off", do=[DEAD, types("fence", "k8s-2")], to=fenced),
        way(
            "Ready to be Unknown or False, some 50 s after its last sign of life",
            "then the same command again",
            do=[waits(60), types("fence", "k8s-2", "--stop-guest")],
            to=fenced,
        ),
        more="by hand, of a guest that runs and is not heard",
    ),
    row(
        Reason.NODE_READY,
        (DEAD, waits(20), asks(Intent.FENCE)),
        way(
            "Ready to be Unknown or False, some 50 s after its last sign of life",
            do=[waits(60), types("fence", "k8s-2", "--guest", "lab/k8s-2")],
            to=fenced,
        ),
        known=False,
        more="by hand, of a guest that was never seen alive with it",
    ),
    row(Reason.NOTHING_TO_CLEAR, (types("drain", "k8s-2"), DEAD), passes(NOTHING, "nothing", to=recovered)),
    row(Reason.NOT_FENCED, (asks(Intent.UNFENCE),), passes("a fence that fencer set", NOTHING, to=healthy)),
    row(
        Reason.NO_GUEST,
        (reports(NOBODYS),),
        way("one guest with that UUID", "a guest with its UUID", do=[has_uuid("k8s-2", NOBODYS)], to=healthy),
        way(*MAP, do=[maps("lab/k8s-2")], to=healthy),
        beside=("if its machine is gone for good, `kubectl delete node k8s-2`",),
    ),
    row(
        Reason.NO_GUEST,
        (is_at("k8s-2", "elsewhere"), restarts, DEAD, waits(120)),
        way(
            "if its machine is gone for good, `kubectl delete node k8s-2`",
            do=[deleted("k8s-2")],
            to=recovered,
            within_s=500,
        ),
        beside=("one guest with that UUID", *MAP[:2]),
        more="of a node that is dead",
        known=False,
    ),
    row(
        Reason.GUEST_AMBIGUOUS,
        COPY,
        way(
            "one guest with that UUID",
            "unique UUIDs",
            do=[happens(What.DELETE, to="k8s-2-copy"), waits(10), DEAD],
            to=fenced,
        ),
        way("another UUID for the copy", do=[has_uuid("k8s-2-copy", NOBODYS), waits(10), DEAD], to=fenced),
        way(*MAP, do=[maps("lab/k8s-2"), waits(10), DEAD], to=fenced),
    ),
    row(
        Reason.GUEST_AMBIGUOUS,
        (*COPY, DEAD, waits(60)),
        way(
            "one guest with that UUID",
            do=[happens(What.DELETE, to="k8s-2-copy"), until(Reason.GUEST_LEFT), GIVEN],
            to=fenced,
        ),
        way(
            "another UUID for the copy",
            do=[has_uuid("k8s-2-copy", NOBODYS), until(Reason.GUEST_LEFT), GIVEN],
            to=fenced,
        ),
        way(*MAP[:2], do=[maps("lab/k8s-2"), until(Reason.GUEST_LEFT), GIVEN], to=fenced),
        more="of a node that is dead",
    ),
    row(
        Reason.GUEST_AMBIGUOUS,
        (added("spare"), reports("spare")),
        way("the node reporting its own UUID", do=[reports("k8s-2")], to=healthy),
        way(*MAP[:2], do=[maps("lab/k8s-2")], to=healthy),
        more="of a node that says it is another guest",
    ),
    row(
        Reason.GUEST_AMBIGUOUS,
        (reports("k8s-2", node="k8s-3"),),
        way("k8s-3 to report its own UUID", do=[reports("k8s-3", node="k8s-3")], to=healthy),
        way("deleted", do=[happens(What.KUBELET_STOP, to="k8s-3"), deleted("k8s-3")], to=bound),
        way(*MAP[:2], do=[maps("lab/k8s-2")], to=healthy),
        known=False,
        more="of two nodes that say they are one guest",
    ),
    row(
        Reason.GUEST_AMBIGUOUS,
        (reports("k8s-2", node="k8s-3"), happens(What.PAUSE)),
        way("the right UUID reported", do=[reports("k8s-3", node="k8s-3")], to=fenced),
        way("k8s-2 deleted, if that was its name before", do=[deleted("k8s-2")], to=recovered, within_s=500),
        beside=MAP[1:2],
        more="before its power is cut",
    ),
    row(
        Reason.BINDING_UNPROVEN,
        (DEAD,),
        way("the node seen alive once", do=[STARTED], to=healthy),
        way(
            "the node in the configuration's `nodes:`",
            f"`nodes: {{k8s-2: lab/k8s-2}}` in {CONFIG}",
            do=[maps("lab/k8s-2")],
            to=fenced,
        ),
        way(
            "a fence by hand",
            f"by hand, if you are sure that this guest is the node: {NAMED}",
            do=[types("fence", "k8s-2", "--guest", "lab/k8s-2")],
            to=fenced,
        ),
        known=False,
    ),
    row(
        Reason.BINDING_UNPROVEN,
        (DEAD, waits(60), commands(Intent.FENCE, Reason.BINDING_UNPROVEN)),
        way(
            "--guest lab/k8s-2, if you are sure that this guest is the node",
            do=[types("fence", "k8s-2", "--guest", "lab/k8s-2")],
            to=fenced,
        ),
        way(f"`nodes: {{k8s-2: lab/k8s-2}}` in {CONFIG} says it for good", do=[maps("lab/k8s-2")], to=fenced),
        known=False,
        more="by hand",
    ),
    row(
        Reason.BINDING_UNPROVEN,
        (asks(SHUTDOWN),),
        passes("its next renewal", to=healthy),
        known=False,
        more="before it shuts down",
    ),
    row(
        Reason.BINDING_UNPROVEN,
        (maps("lab/k8s-2"), happens(What.PAUSE)),
        way("the node seen alive once", do=[happens(What.RESUME), waits(60), happens(What.PAUSE)], to=fenced),
        beside=("a power action needs more than the map", *UNPROVEN),
        known=False,
        more="before its power is cut",
    ),
    row(
        Reason.GUEST_REPLACED,
        (
            DEAD,
            until(Reason.PODS_CLEARED),
            happens(What.NIC_OFF, What.START, What.REPLACE),
            waits(60),
            happens(What.MISSING),
            forgotten,
        ),
        way(
            "proof that lab/k8s-2 on lab1 is off",
            "proof that the fenced guest is off as well",
            do=[everywhere(What.TRUTHFUL), happens(What.POWER_OFF)],
            to=freed,
        ),
        way(
            "`fencer unfence k8s-2 --confirm-guest-off WHY`",
            "`fencer unfence --confirm-guest-off WHY`",
            do=[happens(What.POWER_OFF), types("unfence", "k8s-2", "--confirm-guest-off", "WHY")],
            to=freed,
        ),
    ),
    row(
        Reason.GUEST_REPLACED,
        (DEAD, until(Reason.PODS_CLEARED), happens(What.NIC_OFF, What.START, What.REPLACE)),
        way(
            "lab/k8s-2 on lab1 stopped, with nothing left of its memory",
            do=[happens(What.POWER_OFF)],
            to=freed,
        ),
        more="and the first one runs",
    ),
    row(
        Reason.GUEST_REPLACED,
        (DEAD, waits(40), commands(Intent.FENCE, Reason.GUEST_REPLACED, Word(guest="lab/k8s-1"))),
        way("--guest lab/k8s-2", do=[types("fence", "k8s-2", "--guest", "lab/k8s-2")], to=fenced),
        more="as it was typed",
    ),
    row(
        Reason.GUEST_TAKEN,
        (happens(What.LIE_UUID),),
        way("the node reporting its own UUID", do=[reports("k8s-2")], to=healthy),
        way(
            f"`nodes: {{k8s-2: ENDPOINT/GUEST}}` in {CONFIG}, if it reports another guest's UUID",
            do=[maps("lab/k8s-2")],
            to=healthy,
        ),
        beside=("k8s-1 deleted, if that was its name before",),
    ),
    row(
        Reason.GUEST_TAKEN,
        (DEAD, until(Reason.PODS_CLEARED), joins_as("k8s-9"), happens(What.START, to="k8s-2")),
        way("k8s-2 deleted, if that was its name before", do=[deleted("k8s-2")], to=healthy),
        beside=(
            "the node reporting its own UUID",
            f"`nodes: {{k8s-9: ENDPOINT/GUEST}}` in {CONFIG}, if it reports another guest's UUID",
        ),
        more="of a node that was renamed",
        node="k8s-2",
    ),
]
