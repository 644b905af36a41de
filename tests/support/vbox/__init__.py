"""VirtualBox in tests: a fake VBoxManage driven by a file, and its backstage."""

import fcntl
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import Any
from uuid import uuid4

from fencer.core.model import GuestRef
from fencer.hypervisors.virtualbox.settings import VirtualBoxSettings
from tests.support.vbox.fake_vboxmanage import ALIVE, ENDS, save

SCRIPT = Path(__file__).with_name("fake_vboxmanage.py")
REPLAY = Path(__file__).with_name("replay_vboxmanage.py")
LONG_AGO = "2026-11-20T10:00:00.123"
BOOTED_S = 1_795_000_000
"""When the fake host was booted: 2026-11-18T11:06:40Z, before all that."""
THE_HOSTS = "4026531836"
"""The namespace of processes that no container has."""
NO_SERVER = (
    "VBoxManage: error: Failed to create the VirtualBox object!\n"
    "VBoxManage: error: Code NS_ERROR_FACTORY_NOT_REGISTERED (0x80040154) - Class not registered "
    "(extended info not available)\n"
    "VBoxManage: error: Most likely, the VirtualBox COM server is not running or failed to start.\n"
)


class FakeVBox:
    """A registry in a file, and the command that stands for VBoxManage on it.

    Args:
        folder: For the file.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "vbox.json"
        self._path.write_text(
            json.dumps(
                {
                    "machines": {},
                    "trouble": [],
                    "booted_s": BOOTED_S,
                    "pidns": THE_HOSTS,
                    "processes": [],
                }
            )
        )

    @property
    def command(self) -> tuple[str, ...]:
        """The command, as a configuration would have it."""
        return (*self.script, "VBoxManage")

    @property
    def script(self) -> tuple[str, ...]:
        """The same as a script of somebody's own, which gives no way to its host."""
        return (sys.executable, "-IS", str(SCRIPT), str(self._path))

    def settings(self, endpoint: str = "lab", **patience: Any) -> VirtualBoxSettings:
        """Return an endpoint's settings over this registry."""
        return VirtualBoxSettings(endpoint, self.command, **patience)

    @contextmanager
    def world(self) -> Iterator[dict[str, Any]]:
        """Lend the file's content, and write it back."""
        with Path(f"{self._path}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            content = json.loads(self._path.read_text())
            yield content
            save(str(self._path), content)

    def add(self, name: str, state: str = "running", endpoint: str = "lab", **more: Any) -> GuestRef:
        """Register a machine; its log was opened long ago, and its state is of a moment later."""
        uuid = str(uuid4())
        machine: dict[str, Any] = {
            "name": name,
            "hardware_uuid": uuid,
            "state": state,
            "changed": f"{LONG_AGO[:-3]}456000000",
            "log_opened": LONG_AGO,
            "log_ended": "" if "log_opened" in more else ENDS.get(state, ""),
            **more,
        }
        with self.world() as world:
            world["machines"][uuid] = machine
        return GuestRef(endpoint, uuid, machine["hardware_uuid"], name)

    def change(self, guest: GuestRef, **more: Any) -> None:
        """Write something of a machine."""
        with self.world() as world:
            world["machines"][guest.id] |= more

    def host(self, **what: Any) -> None:
        """Write what the host tells: `booted_s`, `pidns`, or `processes` beside those of machines."""
        with self.world() as world:
            world.update(what)

    def forget_runs(self, *, runs_unknown: bool = False, **host: Any) -> None:
        """End all runs as VBoxSVC does not see it: it tells what was before them from now on.

        Args:
            runs_unknown: They go on all the same, known to another VBoxSVC.
            host: What the host tells from then on.
        """
        with self.world() as world:
            world.update(host)
            for machine in world["machines"].values():
                if machine["state"] in ALIVE:
                    machine |= {**machine["recorded"], "runs_unknown": runs_unknown}

    def trouble(self, on: str, **what: Any) -> None:
        """Have commands that begin with `on` go wrong; see the script for the ways."""
        with self.world() as world:
            world["trouble"] = [trouble for trouble in world["trouble"] if trouble["on"] != on]
            world["trouble"].append({"on": on, **what})

    def recover(self) -> None:
        """End all trouble."""
        with self.world() as world:
            world["trouble"] = []

    def calls(self) -> list[list[str]]:
        """Return the words of all commands of VBoxManage's so far."""
        with self.world() as world:
            return list(world.get("calls", []))

    def asked(self) -> list[list[str]]:
        """Return the words of all that the host was asked so far."""
        with self.world() as world:
            return list(world.get("asked", []))

    def run(self, *words: str) -> None:
        """Run a command as an operator would; one that fails is a fault of the test."""
        subprocess.run([*self.command, *words], check=True, stdout=subprocess.DEVNULL)


class QuickClock:
    """Real monotonic time, which the tests may set forward, and have stand still but for that."""

    def __init__(self) -> None:
        self.ahead_s = 0.0
        self.stands_at_s: float | None = None

    def now_s(self) -> float:
        now_s = time.monotonic() if self.stands_at_s is None else self.stands_at_s
        return now_s + self.ahead_s

    def stop(self) -> None:
        """Stand still, at a whole second: what is asked takes as long as this machine likes."""
        self.stands_at_s = float(ceil(time.monotonic()))


class FakeBackstage:
    """The scene of the hypervisor's contract over a `FakeVBox`.

    Args:
        vbox: The registry.
        clock: Of the adapter; set forward while something is waited for.
    """

    def __init__(self, vbox: FakeVBox, clock: QuickClock) -> None:
        self._vbox = vbox
        self._clock = clock
        self._made = 0

    def now_s(self) -> float:
        return self._clock.now_s()

    def eventually(self, condition: Callable[[], object], what: str) -> None:
        pause = threading.Event()
        for _ in range(60):
            if condition():
                return
            self._clock.ahead_s += 1
            pause.wait(0.01)
        raise AssertionError(f"{what}: not after a minute")

    def make_guest(self) -> GuestRef:
        self._made += 1
        guest = self._vbox.add(f"guest-{self._made}", "poweroff")
        self.start(guest)
        return guest

    def start(self, guest: GuestRef) -> None:
        self._vbox.run("startvm", guest.id, "--type", "headless")

    def wait_until_up(self, guest: GuestRef) -> None:
        with self._vbox.world() as world:
            assert world["machines"][guest.id]["state"] == "running"

    def pause(self, guest: GuestRef) -> None:
        self._vbox.run("controlvm", guest.id, "pause")

    def resume(self, guest: GuestRef) -> None:
        self._vbox.run("controlvm", guest.id, "resume")

    def destroy(self, guest: GuestRef) -> None:
        self._vbox.run("controlvm", guest.id, "poweroff")

    def power_off_inside(self, guest: GuestRef) -> None:
        self._vbox.run("controlvm", guest.id, "poweroff")

    def crash(self, guest: GuestRef) -> None:
        self._vbox.run("startvm", guest.id, "--type", "emergencystop")

    def remove(self, guest: GuestRef) -> None:
        self._vbox.run("unregistervm", guest.id)

    def save(self, guest: GuestRef) -> None:
        self._vbox.run("controlvm", guest.id, "savestate")

    def cut(self) -> None:
        self._vbox.trouble("", stderr=NO_SERVER, code=1)

    def mend(self) -> None:
        self._vbox.recover()
