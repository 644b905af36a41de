"""Stopped and started on purpose."""

from __future__ import annotations

from dataclasses import replace

from fencer.core.model import Reason, Word
from fencer.core.policy import Mode
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from fencer.simulation.scenario import ARMED
from tests.scenarios.ways.case import passes, row, way
from tests.scenarios.ways.ends import fenced, freed, healthy, recovered
from tests.scenarios.ways.steps import (
    asks,
    commands,
    forgets_saved,
    happens,
    ignores_acpi,
    knows,
    out_of_the_loop,
    starts_itself,
    types,
    uncordoned,
    untainted,
    until,
    waits,
)
from tests.scenarios.ways.words import DEAD, GIVEN, NOTHING, OFF, SHUTDOWN, START, STARTED, WHY

ROWS = [
    row(Reason.SHUTDOWN_DUE, (asks(SHUTDOWN),), way(NOTHING, do=[types("shutdown", "k8s-2")], to=recovered)),
    row(
        Reason.SHUTTING_DOWN,
        (ignores_acpi, commands(SHUTDOWN, Reason.SHUTTING_DOWN)),
        way("the guest off", do=[DEAD], to=fenced),
        way("--stop-after SECONDS", do=[types("shutdown", "k8s-2", "--stop-after", "5")], to=recovered),
    ),
    row(
        Reason.SHUTDOWN_HANGS,
        (ignores_acpi, commands(SHUTDOWN, Reason.SHUTDOWN_HANGS, Word(stop_after_s=5.0))),
        way(
            "its power cut, which comes next",
            do=[types("shutdown", "k8s-2", "--stop-after", "5")],
            to=recovered,
        ),
    ),
    row(
        Reason.SHUT_DOWN,
        (commands(SHUTDOWN, Reason.SHUT_DOWN),),
        way("`fencer start`", do=[types("start", "k8s-2")], to=healthy),
    ),
    row(
        Reason.RESTARTED,
        (starts_itself, commands(SHUTDOWN, Reason.RESTARTED)),
        way(
            "what starts it switched off",
            "`on_poweroff` of the VM, HA, a watchdog or another tool",
            do=[out_of_the_loop(), types("shutdown", "k8s-2")],
            to=recovered,
        ),
    ),
    row(
        Reason.PLANNED_STOP,
        (types("shutdown", "k8s-2"),),
        way("`fencer start`", "`fencer start k8s-2`", do=[types("start", "k8s-2")], to=healthy),
    ),
    row(
        Reason.START_DUE,
        (DEAD, commands(START, Reason.START_DUE)),
        way(NOTHING, do=[types("start", "k8s-2")], to=healthy),
    ),
    row(
        Reason.AWAITING_READY,
        (DEAD, waits(55), STARTED, asks(START)),
        passes("Ready=True", "the node to be Ready", to=healthy),
        policy=replace(ARMED, mode=Mode.OBSERVE),
    ),
    row(Reason.STARTED, (asks(START),), passes(NOTHING, to=healthy)),
    row(
        Reason.GUEST_PAUSED,
        (happens(What.PAUSE), asks(START)),
        way("the guest resumed, by hand", do=[happens(What.RESUME)], to=healthy),
        more="and is to start",
    ),
    row(
        Reason.GUEST_PAUSED,
        (happens(What.PAUSE), asks(SHUTDOWN)),
        way("the guest resumed", do=[happens(What.RESUME)], to=healthy),
        way("`fencer fence`, which stops it", do=[waits(55), types("fence", "k8s-2")], to=fenced),
        more="and is to shut down",
    ),
    row(
        Reason.GUEST_SAVED,
        (happens(What.SAVE), asks(START)),
        way("its saved state discarded", do=[forgets_saved, types("start", "k8s-2")], to=healthy),
        way("the guest restored by hand", do=[happens(What.RESTORE)], to=healthy),
        more="and is to start",
    ),
    row(
        Reason.GUEST_SAVED,
        (happens(What.SAVE), asks(SHUTDOWN)),
        way(
            "the guest restored",
            "shut down",
            do=[happens(What.RESTORE), waits(30), types("shutdown", "k8s-2")],
            to=recovered,
        ),
        more="and is to shut down",
    ),
    row(
        Reason.FOREIGN_TAINT,
        (DEAD, happens(What.TAINT_BY_HAND), asks(START)),
        way(
            "that taint taken off by its owner",
            do=[untainted, uncordoned, types("start", "k8s-2")],
            to=healthy,
        ),
        more="and it is to start",
    ),
    row(
        Reason.SETTLING,
        (*OFF, STARTED, until(Reason.SETTLING), asks(START)),
        passes("a short wait", "limit 30 s", to=freed),
        more="and it is to start",
    ),
    row(
        Reason.GUEST_LEFT,
        (happens(What.MOVE_OUT), waits(60), asks(START)),
        way("the guest found where it went", do=[knows("lab", "lab-b")], to=healthy),
        way(WHY, do=[DEAD, waits(60), GIVEN], to=fenced),
        beside=("it may run on elsewhere",),
        shape=Shape(further=("lab-b",)),
        knows=("lab",),
        more="and it is to start",
    ),
]
