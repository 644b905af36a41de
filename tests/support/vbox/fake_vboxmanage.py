"""A VBoxManage for tests, and its host: the commands that fencer uses, over a file that tests write.

Run as ``python fake_vboxmanage.py FILE VBoxManage WORDS…``, and with ``ps``, ``cat`` or ``find`` in the place
of VBoxManage. FILE is JSON: ``machines`` by UUID, what the host tells, and ``trouble``: what goes wrong, by
the beginning of the command line. Sentences and codes are VirtualBox 7.2.22's. Stands alone, and is quick to
start: standard library only, and of that not even pathlib. It may be killed at any moment: FILE is whole all
the same.
"""

# ruff: noqa: PTH105, PTH123 - not even pathlib

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from datetime import UTC, datetime
from uuid import UUID

TYPE_CHECKING = False  # typing's own would take longer to import than a command takes
if TYPE_CHECKING:
    from typing import Any

    Machine = dict[str, Any]
    World = dict[str, Any]

NOT_FOUND = "VBOX_E_OBJECT_NOT_FOUND (0x80bb0001), component VirtualBoxWrap, interface IVirtualBox"
LOCKED = "VBOX_E_INVALID_OBJECT_STATE (0x80bb0007), component MachineWrap, interface IMachine"
WRONG_STATE = "VBOX_E_INVALID_VM_STATE (0x80bb0002), component ConsoleWrap, interface IConsole"
LIMITED = "E_ACCESSDENIED (0x80070005), component MachineWrap, interface IMachine"
NO_LOG = "VBOX_E_IPRT_ERROR (0x80bb0005), component MachineWrap, interface IMachine"
CALLS_KEPT = 2000
ALIVE = ("running", "paused", "gurumeditation")
FOLDER = "/home/me/VirtualBox VMs"
ENDS = {"poweroff": "PoweredOff", "saved": "Saved"}
HOST = ("ps", "cat", "find")


class Refusal(Exception):
    """What goes to stderr, with exit code 1."""

    def __init__(self, sentence: str, details: str | None = None) -> None:
        super().__init__(sentence)
        self.lines = [sentence]
        if details:
            self.lines.append(f"Details: code {details}, callee nsISupports")


def main(path: str, words: list[str]) -> int:
    with open(f"{path}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with open(path, encoding="utf-8") as file:
            world = json.load(file)
        calls = "asked" if words[0] in HOST else "calls"
        world[calls] = [*world.get(calls, [])[-CALLS_KEPT:], words]
        trouble = next((t for t in world["trouble"] if " ".join(words).startswith(t["on"])), None)
        if trouble and "times" in trouble:
            trouble["times"] -= 1
            world["trouble"] = [t for t in world["trouble"] if t.get("times", 1) > 0]
        for also in trouble.get("also", []) if trouble else []:
            obey(world, also)
        world["trouble"][:0] = trouble.get("then", []) if trouble else []
        if trouble and trouble.get("before", True):
            save(path, world)
            fcntl.flock(lock, fcntl.LOCK_UN)
            return suffer(trouble)
        try:
            answer = obey(world, words)
        except Refusal as refusal:
            sys.stderr.write("".join(f"VBoxManage: error: {line}\n" for line in refusal.lines))
            return 1
        finally:
            save(path, world)
    sys.stdout.write(answer)
    return suffer(trouble) if trouble else 0


def save(path: str, world: World) -> None:
    """Write the file in one step: who is killed in the midst leaves the old one."""
    new = f"{path}.new"
    with open(new, "w", encoding="utf-8") as file:
        file.write(json.dumps(world))
    os.replace(new, path)


def suffer(trouble: dict[str, Any]) -> int:
    """Go wrong in the way that was asked for.

    Before that, `also` are commands that are obeyed, and `then` is further trouble from then on.
    """
    if "stdout" in trouble:
        sys.stdout.buffer.write(trouble["stdout"].encode("utf-8", "surrogateescape"))
        sys.stdout.flush()
    if "stderr" in trouble:
        sys.stderr.write(trouble["stderr"])
    if trouble.get("huge"):
        while True:
            os.write(1, b"x" * 65536)
    if trouble.get("hang"):
        while True:
            time.sleep(3600)
    if trouble.get("signal"):
        os.kill(os.getpid(), trouble["signal"])
    return int(trouble.get("code", 0))


def tell(world: World, words: list[str]) -> str:
    """Answer as the host does."""
    if words[0] == "ps":
        return processes(world)
    if words == ["cat", "/etc/machine-id"]:
        return f"{'4c' * 16}\n"
    if words == ["cat", "/proc/self/status"]:
        return "Name:\tcat\nUid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\n"
    if words[0] == "cat":
        return f"cpu  1 2 3\nintr 4 5\nbtime {world['booted_s']}\nprocesses 6\n"
    paths = words[2 : words.index("-maxdepth")]
    return "".join(place(world, path) for path in paths)


def place(world: World, path: str) -> str:
    """Say where a file lies, and when it was written."""
    machine = next(machine for uuid, machine in world["machines"].items() if f"/{uuid}/" in path)
    recorded = datetime.fromisoformat(f"{machine['changed'][:26]}+00:00")
    written_s = machine.get("written_s", recorded.timestamp())
    kind = machine.get("log_filesystem" if path.endswith("/Logs") else "filesystem", "ext4")
    return f"{kind},{written_s:.10f},"


def processes(world: World) -> str:
    """List processes: of the host, of each machine that runs, whatever is said of it, and who lists them."""
    found = [(1, "-", "Ss", "/sbin/init"), (2, world["pidns"], "S", "[kthreadd]")]
    for number, (uuid, machine) in enumerate(world["machines"].items(), 100):
        if machine["state"] in ALIVE or machine.get("runs_unknown"):
            comment = f"--comment {machine['name']} --startvm {uuid}"
            line = f"/usr/lib/virtualbox/VBoxHeadless {comment} --vrde config".replace("\n", "?")
            found.append((number, world["pidns"], "Sl", line))
    found.extend(tuple(process) for process in world["processes"])
    listed = [f"{pid:>7} {space:>10} {state:<4} {line}\n" for pid, space, state, line in found]
    return "".join(["    PID      PIDNS STAT COMMAND\n", *listed])


def obey(world: World, words: list[str]) -> str:
    if words[0] in HOST:
        return tell(world, words)
    machines = world["machines"]
    if words == ["--version"]:
        return "7.2.22_Debianr175245\n"
    if words == ["list", "vms"]:
        return "".join(f'"{name_of(machine)}" {{{uuid}}}\n' for uuid, machine in machines.items())
    verb, uuid, rest = words[0], words[1], words[2:]
    machine = machines.get(uuid)
    if machine is None:
        raise Refusal(f"Could not find a registered machine with UUID {{{uuid}}}", NOT_FOUND)
    if machine.get("inaccessible"):
        raise Refusal("The object functionality is limited", LIMITED)
    if verb == "unregistervm":
        return unregister(machines, uuid)
    return VERBS[verb](uuid, machine, rest)


def unregister(machines: dict[str, Machine], uuid: str) -> str:
    if machines[uuid]["state"] in ALIVE:
        raise Refusal(f"Cannot unregister the machine '{machines[uuid]['name']}' while it is locked", LOCKED)
    del machines[uuid]
    return ""


def discard(_uuid: str, machine: Machine, _rest: list[str]) -> str:
    if machine["state"] in ALIVE:
        raise Refusal("Cannot discard the machine state as the machine is not saved", WRONG_STATE)
    if "saved" in machine["state"]:
        become(machine, "poweroff")
    return ""


def name_of(machine: Machine) -> str:
    return "<inaccessible>" if machine.get("inaccessible") else machine["name"]


def show(uuid: str, machine: Machine, rest: list[str]) -> str:
    if rest == ["--log", "0"]:
        return show_log(machine)
    escaped = machine["name"].replace("\\", "\\\\").replace('"', '\\"')
    described = machine.get("description", "").replace("\\", "\\\\").replace('"', '\\"')
    lines = [
        f'name="{escaped}"',
        'groups="/"',
        f'UUID="{uuid}"',
        f'CfgFile="{machine.get("folder", FOLDER)}/{uuid}/machine.vbox"',
        f'LogFldr="{machine.get("folder", FOLDER)}/{uuid}/Logs"',
        f'hardwareuuid="{machine["hardware_uuid"]}"',
        "memory=1024",
        f'VMState="{machine["state"]}"',
        f'VMStateChangeTime="{machine["changed"]}"',
        " rec_screen0",
    ]
    if machine["state"] in ALIVE:
        lines.append('SessionName="headless"')
    if described:
        lines.append(f'description="{described}"')
    if machine.get("snapshot"):
        lines.append(f'SnapshotName="{machine["snapshot"]}"')  # not escaped: VirtualBox does not
    return "\n".join([*lines, "GuestMemoryBalloon=0", ""])


def show_log(machine: Machine) -> str:
    if not machine.get("log_opened"):
        raise Refusal("Could not open log file '/vms/Logs/VBox.log' (VERR_FILE_NOT_FOUND)", NO_LOG)
    head = "00:00:00.021348 VirtualBox VM 7.2.22_Debian r175245 linux.amd64 release log\n"
    opened = f"00:00:00.021350 Log opened {machine['log_opened']}000000Z\n"
    began = f"00:00:00.024768 Console: Machine state changed to '{machine.get('began', 'Starting')}'\n"
    seen = " ".join(f"{byte:02x}" for byte in UUID(machine["hardware_uuid"]).bytes_le)
    configured = f'00:00:00.190486   UUID              <bytes>   = "{seen}" (cb=16)\n'
    ran = "00:00:00.472628 Console: Machine state changed to 'Running'\n"
    end = f"00:00:09.091846 Console: Machine state changed to '{machine['log_ended']}'\n"
    rest = ran + "00:00:00.531278 Guest architecture: x86\n" * 1000
    return head + opened + began + configured + rest + (end if machine["log_ended"] else "")


def control(_uuid: str, machine: Machine, rest: list[str]) -> str:
    (action,) = rest
    state = machine["state"]
    if state not in ALIVE:
        raise Refusal(f"Machine '{machine['name']}' is not currently running.")
    if action == "poweroff":
        become(machine, "poweroff")
    elif action == "acpipowerbutton":
        if state != "running":
            raise Refusal(f"Invalid machine state: {state.capitalize()}", WRONG_STATE)
        if not machine.get("deaf"):
            become(machine, "poweroff")
    elif action == "pause" and state == "running":
        become(machine, "paused")
    elif action == "resume" and state == "paused":
        become(machine, "running")
    elif action == "savestate":
        become(machine, "saved")
    else:
        raise Refusal(f"Invalid machine state: {state.capitalize()}", WRONG_STATE)
    return ""


def start(_uuid: str, machine: Machine, rest: list[str]) -> str:
    way = rest[1]
    if way == "emergencystop":
        if machine["state"] not in ALIVE:
            raise Refusal(f"The machine '{machine['name']}' is not locked by a session", LOCKED)
        become(machine, "aborted")
        return ""
    if machine["state"] in ALIVE or machine.get("held", 0) > 0:
        machine["held"] = machine.get("held", 0) - 1
        raise Refusal(f"The machine '{machine['name']}' is already locked by a session", LOCKED)
    machine["log_opened"] = now()
    machine["began"] = "Restoring" if "saved" in machine["state"] else "Starting"
    become(machine, "running")
    return f'Waiting for VM "{machine["name"]}" to power on...\nVM "{machine["name"]}" has been started.\n'


def become(machine: Machine, state: str) -> None:
    """Go into another state; what VBoxSVC would know of it, were it killed, is the end before this run."""
    if state in ALIVE and machine["state"] not in ALIVE:
        machine["recorded"] = {"state": machine["state"], "changed": machine["changed"]}
    machine["log_ended"] = ENDS.get(state, "")
    machine["state"] = state
    machine["changed"] = f"{now()}000000"


def now() -> str:
    """Return the time in milliseconds: later than all that were returned before, and never a full second."""
    while True:
        time.sleep(0.001)
        text = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        if not text.endswith("000"):
            return text


VERBS = {"showvminfo": show, "controlvm": control, "startvm": start, "discardstate": discard}

if __name__ == "__main__":
    # A command that does not end with VBoxManage is one of which nobody knows how to ask its host.
    sys.exit(main(sys.argv[1], sys.argv[3:] if sys.argv[2] == "VBoxManage" else sys.argv[2:]))
