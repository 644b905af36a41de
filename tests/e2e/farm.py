"""Cells of the example adapter in the place of libvirt's guests, for the kubelets of a lab.

A cell beats into a file, as `tests.support.guest` says, for as long as its process runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.e2e.heart import beating
from tests.e2e.operator import Operator
from tests.support import wait_until
from tests.support.guest import Power

if TYPE_CHECKING:
    from fencer_cells.lab import CellLab

_RUNNING, _PAUSED, _OFF = Power(1, 1), Power(3, 1), Power(5, 1)


class Cell:
    """A cell as the lab sees one. Made by `Farm.define`.

    Attributes:
        name: Of its node.
        ref: The cell.
        uuid: Of its node's system.
        serial_log: `B` for each boot, `.` for each beat.
        boots: How often it has booted.
    """

    def __init__(self, farm: CellLab, name: str, folder: Path) -> None:
        self._farm = farm
        self.ref = farm.make_guest()
        farm.destroy(self.ref)
        self.name, self.uuid = name, self.ref.uuid
        self.serial_log = folder / f"{name}.log"
        self.boots = 0
        self._pid: int | None = None

    @property
    def power(self) -> Power:
        """What is left of it, in libvirt's numbers."""
        if not self._farm.lives(self.ref):
            return _OFF
        return _PAUSED if self._farm.state(self.ref) == "T" else _RUNNING

    @property
    def saved(self) -> bool:
        """Whether it is off with its memory on disk: cells have none there."""
        return False

    @property
    def pid(self) -> int | None:
        """Number of its process; None: there is none."""
        return self._farm.pid(self.ref) if self._farm.lives(self.ref) else None

    def start(self) -> None:
        """Power it on; return when it beats."""
        size = self._size()
        self._farm.start(self.ref)
        wait_until(lambda: self._size() > size, f"beat of {self.name}")

    def remove(self) -> None:
        """End it, if it lives."""
        if self._farm.lives(self.ref):
            self._farm.destroy(self.ref)

    def beat(self) -> None:
        """Beat once, if it runs; say before that it has booted, if it has."""
        try:
            if self.power != _RUNNING:
                return
            pid = self.pid
        except FileNotFoundError:
            return  # the farm is being moved away just now
        booted = pid != self._pid
        self._pid = pid
        self.boots += booted
        with self.serial_log.open("a") as log:
            log.write("B." if booted else ".")

    def _size(self) -> int:
        return self.serial_log.stat().st_size if self.serial_log.exists() else 0


class Farm:
    """Defines cells, as `tests.support.guests.GuestHost` does guests, and keeps them beating."""

    uri = "no libvirt"

    def __init__(self, lab: CellLab, folder: Path) -> None:
        self.lab = lab
        self.cells: dict[str, Cell] = {}
        self._folder = folder

    def define(self, name: str) -> Cell:
        """Make a cell; it does not run yet."""
        self.cells[name] = Cell(self.lab, name, self._folder)
        return self.cells[name]

    def powers(self) -> dict[str, Power]:
        """Return what is left of every cell."""
        return {name: cell.power for name, cell in self.cells.items()}


@contextmanager
def running_farm(lab: CellLab, folder: Path) -> Iterator[Farm]:
    """Run the heart of a farm's cells."""
    farm = Farm(lab, folder)
    with closing(lab), beating(farm.cells):
        yield farm


class FarmOperator(Operator):
    """fencer beside a farm, with the example adapter installed.

    Args:
        farm: The lab's cells.
        installed: What is on fencer's path for that.
        arguments: As `Operator` takes them.
    """

    def __init__(self, farm: Farm, installed: tuple[Path, ...], *arguments: Any) -> None:
        super().__init__(*arguments)
        self._farm = farm
        path = os.pathsep.join([str(folder) for folder in installed])
        self.program = ("/usr/bin/env", f"PYTHONPATH={path}", *self.program)

    def endpoint(self) -> dict[str, Any]:
        """Return what the configuration says of the farm."""
        return {"name": "farm", "type": "cells", "settings": dict(self._farm.lab.settings)}
