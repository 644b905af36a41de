"""From the taint to its end."""

from __future__ import annotations

from fencer.core.model import Intent, Reason
from fencer.simulation.assembly import Shape
from fencer.simulation.controllers import Timing
from fencer.simulation.faults import What
from tests.scenarios.ways.case import Step, Way, passes, row, way
from tests.scenarios.ways.ends import fenced, freed, opened
from tests.scenarios.ways.steps import (
    asks,
    everywhere,
    foreseen,
    forgotten,
    happens,
    is_at,
    lacks,
    restarts,
    stray_pod,
    types,
    uncordoned,
    until,
    waits,
)
from tests.scenarios.ways.words import DEAD, NOTHING, OFF, STARTED, TRUSTING

RESUMED = (happens(What.PAUSE), until(Reason.PODS_CLEARED), happens(What.RESUME))
RESTORED = (happens(What.SNAPSHOT), DEAD, until(Reason.PODS_CLEARED), happens(What.REVERT))
COLD = ("the guest restarted cold", "cut its power where it runs, then start it again", "a cold restart")
SAME_BOOT = (
    "`fencer unfence k8s-2 --same-boot WHY`",
    "if nothing in it has a volume mounted any more, `fencer unfence k8s-2 --same-boot WHY`",
    "--same-boot WHY",
)
BESIDE_OLD = ("it runs now, and may write to volumes that were given away",)
AFTER_OFF = ("wait for its kubelet", "stop it first if it was resumed or restored")


def old(said: int, *first: Step) -> tuple[Way, ...]:
    """The ways out of old memory: as told by so many words, after what has to happen first."""
    typed = types("unfence", "k8s-2", "--same-boot", "WHY")
    return (
        way(*COLD[:said], do=[*first, happens(What.REBOOT)], to=freed),
        way(*SAME_BOOT[:said], do=[waits(60), typed, *first], to=freed),
    )


ROWS = [
    row(Reason.PROVEN_OFF, (DEAD, foreseen(Reason.PROVEN_OFF)), passes(NOTHING, to=fenced)),
    row(Reason.CLEARING_PODS, (lacks("delete pods"), DEAD), way("the pods gone", do=[lacks()], to=fenced)),
    row(Reason.RELEASING_VOLUMES, (DEAD,), passes("the volumes released", to=fenced)),
    row(
        Reason.PODS_CLEARED,
        (DEAD,),
        way(
            "the guest to boot again",
            "an armed `fencer watch` then lifts the fence",
            do=[STARTED],
            to=freed,
        ),
    ),
    row(
        Reason.AWAITING_BOOT,
        (*OFF, asks(Intent.UNFENCE)),
        way("the guest to run by a cold start", "a cold start", "start the guest", do=[STARTED], to=freed),
        beside=AFTER_OFF,
    ),
    row(
        Reason.AWAITING_RENEWALS,
        (*OFF, STARTED),
        passes("2 renewals since the boot", "more renewals", to=freed),
    ),
    row(Reason.OLD_MEMORY, RESUMED, *old(3), beside=BESIDE_OLD, policy=TRUSTING, strict=False),
    row(
        Reason.OLD_MEMORY, RESTORED, *old(2), beside=BESIDE_OLD, strict=False, more="as its hypervisor tells"
    ),
    row(
        Reason.OLD_MEMORY,
        (*RESUMED, everywhere(What.UNREACHABLE), forgotten),
        *old(2, everywhere(What.TRUTHFUL)),
        beside=BESIDE_OLD,
        policy=TRUSTING,
        strict=False,
        more="and no hypervisor tells",
    ),
    row(
        Reason.AWAITING_BOOT,
        (*OFF, everywhere(What.UNREACHABLE), STARTED, waits(60)),
        way("the guest to run by a cold start", "start the guest", do=[everywhere(What.TRUTHFUL)], to=freed),
        passes("a new boot heard for 120 s", to=opened),
        beside=AFTER_OFF,
        more="and no hypervisor tells",
    ),
    row(
        Reason.AWAITING_BOOT,
        (*OFF, is_at("k8s-2", "elsewhere"), STARTED, waits(60)),
        way("the guest to run by a cold start", "start the guest", do=[is_at("k8s-2", "lab")], to=freed),
        passes("a new boot heard for 120 s", to=opened),
        beside=AFTER_OFF,
        more="of a guest that its endpoint does not know any more",
    ),
    row(
        Reason.AWAITING_RENEWALS,
        (*OFF, happens(What.DELETE, What.REPLACE), is_at("k8s-2-new", "elsewhere")),
        passes("limit 120 s", "more renewals", to=opened),
        more="of a machine that no endpoint names",
    ),
    row(
        Reason.GUEST_REPLACED,
        (*OFF, happens(What.MISSING), happens(What.REPLACE), is_at("k8s-2-new", "elsewhere")),
        way("proof that lab/k8s-2 on lab1 is off", do=[everywhere(What.TRUTHFUL)], to=opened),
        way(
            "`fencer unfence k8s-2 --confirm-guest-off WHY`",
            do=[types("unfence", "k8s-2", "--confirm-guest-off", "WHY")],
            to=opened,
        ),
        more="by a machine that no endpoint names",
    ),
    row(
        Reason.FENCED_WRONGLY,
        (
            lacks("delete pods"),
            happens(What.PAUSE),
            until(Reason.CLEARING_PODS),
            happens(What.RESUME),
            foreseen(Reason.FENCED_WRONGLY),
        ),
        way(NOTHING, do=[lacks()], to=freed),
        policy=TRUSTING,
        strict=False,
    ),
    row(
        Reason.PODS_REMAIN,
        (*OFF, STARTED, foreseen(Reason.BOOTED_ANEW), stray_pod, foreseen(Reason.PODS_REMAIN)),
        passes("those pods gone", to=freed),
    ),
    row(
        Reason.VOLUMES_REMAIN,
        (DEAD, until(Reason.RELEASING_VOLUMES), STARTED),
        passes("those volumes released", to=freed),
        timing=Timing(detach_s=60.0),
    ),
    row(Reason.BOOTED_ANEW, (*OFF, STARTED, foreseen(Reason.BOOTED_ANEW)), passes(NOTHING, to=freed)),
    row(
        Reason.SETTLED,
        (*OFF, STARTED, foreseen(Reason.SETTLED)),
        passes(NOTHING, "an armed `fencer watch` uncordons it", to=freed),
        way("without one, `kubectl uncordon k8s-2`", do=[uncordoned], to=freed),
    ),
    row(
        Reason.CORDON_UNRECORDED,
        (*OFF, STARTED, until(Reason.SETTLING), restarts),
        way(
            "that cordon lifted",
            "`kubectl uncordon k8s-2`, unless an administrator cordoned it since",
            do=[uncordoned],
            to=freed,
        ),
        shape=Shape(unrecorded=True),
    ),
    row(
        Reason.SETTLING,
        (*OFF, STARTED),
        passes("a short wait", "an armed `fencer watch` uncordons it", to=freed),
        way("without one, `kubectl uncordon k8s-2`", do=[uncordoned], to=freed),
    ),
]
