"""A machine as `check` sees it, in files and canned commands; as a Debian 12 guest with k3s told them."""

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from fencer.guest.facts import DRAIN_UNIT, PROGRAM, UNCORDON_UNIT
from fencer.guest.places import UNITS
from fencer.guest.system import Ran

BOOT = "c5f99d96-2397-4449-ad37-8a4c4a6547ae"
_LOGIND = "org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager"
_SHOWN = """\
Requires={requires}
BindsTo=
PartOf=
After={after}
LoadState={loaded}
ActiveState={active}
UnitFileState={enabled}
TimeoutStopUSec=2min 30s
Environment=DRAIN_TIMEOUT=120
ExecStop={{ path=/usr/local/bin/fencer-guest ; argv[]=/usr/local/bin/fencer-guest drain \
--delete-emptydir-data --timeout ${{DRAIN_TIMEOUT}} ; ignore_errors=yes ; start_time=[n/a] ; \
stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }}
"""
MOUNTS = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n24 22 0:21 / /proc rw - proc proc rw\n"
"""What process 1 sees. Source: proc(5), /proc/pid/mountinfo."""
_BUTTON = """\
I: Bus=0019 Vendor=0000 Product=0001 Version=0000
N: Name="Power Button"
P: Phys=LNXPWRBN/button/input0
H: Handlers=kbd event0
"""


class Machine:
    """Files under a root, and what commands answer. Attributes may be changed before `run` is used.

    Args:
        root: An empty folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.active = ["k3s.service", DRAIN_UNIT, UNCORDON_UNIT, "qemu-guest-agent.service"]
        self.installed = True
        self.after = "k3s.service kubelet.service network.target"
        self.requires = "system.slice sysinit.target"
        self.delay_us = "5000000"
        self.power_key = "poweroff"
        self.locks: list[tuple[str, str, str]] = []
        self.uid = 0
        """Of those who hold them."""
        self.systemd = "systemd 252 (252.39-1~deb12u2)"
        self.k3s_command = "argv[]=/usr/local/bin/k3s server ;"
        self.environment: list[str] = []
        self.main: dict[str, int] = {}
        self.program = Ran(0, "fencer-guest 0.1.0\n")
        """What the installed program says of its version."""
        self.missing: list[str] = []
        """Programs that are not there."""
        self.ways: dict[str, str] = {}
        """Interfaces by the addresses that are reached over them."""
        self.before: dict[str, str] = {}
        self.orders: dict[str, str] = {}
        """What units are ordered before, and after."""
        self.masked: list[str] = []
        self.write("proc/1/mountinfo", MOUNTS)
        self.write("proc/sys/kernel/random/boot_id", f"{BOOT}\n")
        self.write("proc/bus/input/devices", _BUTTON)

    def may_hibernate(self) -> None:
        """Give it swap in which its kernel looks for an image. Source: kernel, sleep-states.rst; proc(5)."""
        self.write("sys/power/state", "freeze mem disk\n")
        self.write("sys/power/disk", "[platform] shutdown reboot suspend test_resume\n")
        self.write("sys/power/resume", "254:5\n")
        self.write("proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz root=/dev/vda1 ro quiet\n")
        header = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
        self.write("proc/swaps", f"{header}/dev/vda5          partition\t998396\t\t0\t\t-2\n")

    def write(self, name: str, text: str) -> Path:
        """Write a file under the root."""
        path = self.root / name
        self.folder(path.parent)
        path.write_text(text)
        path.chmod(0o644)
        return path

    def folder(self, path: Path) -> None:
        """Make a folder of root's, whatever mode the tests' own umask gives."""
        if not path.is_dir():
            self.folder(path.parent)
            path.mkdir()
            path.chmod(0o755)

    def process(self, pid: int, words: Sequence[str], **told: str) -> None:
        """Let a process run: root's, beside process 1, unless its status or `mounts` are told."""
        status = {"PPid": "1", "Uid": "0 0 0 0", "NSpid": str(pid), **told}
        mounts = status.pop("mounts", MOUNTS)
        lines = (f"{key}:\t{value.replace(' ', chr(9))}\n" for key, value in status.items())
        self.write(f"proc/{pid}/status", "".join(lines))
        self.write(f"proc/{pid}/mountinfo", mounts)
        self.write(f"proc/{pid}/cmdline", "".join(f"{word}\0" for word in words))

    def kubelet(self, unit: str, *words: str) -> None:
        """Let the main process of a unit be a kubelet."""
        self.active, self.main = [*self.active, unit], {**self.main, unit: 812}
        self.process(812, words)

    def run(self, command: Sequence[str]) -> Ran:
        """Answer a command."""
        words = [word for word in command if word != "--"]
        if words == [PROGRAM, "--version"]:
            return self.program
        answers = {"systemctl": self._systemd, "busctl": self._logind, "ip": self._way}
        if words[0] in answers and words[0] not in self.missing:
            return answers[words[0]](words)
        return Ran(None, error=f"{words[0]}: No such file or directory")

    def _systemd(self, words: list[str]) -> Ran:
        if words[1] == "show":
            return self._show(words[2:])
        if words[1] == "is-active":
            states = ("active" if unit in self.active else "inactive" for unit in words[2:])
            return Ran(3, "".join(f"{state}\n" for state in states))
        if words[1:] == ["--version"]:
            return Ran(0, f"{self.systemd}\n+PAM +AUDIT\n")
        return Ran(1, error=f"unknown: {words}")

    def _show(self, words: list[str]) -> Ran:
        if words[-1] == "--property=LoadState":
            return Ran(0, f"LoadState={'masked' if words[0] in self.masked else 'loaded'}\n")
        if words[0] == "--property=Id,ActiveState,MainPID":
            return Ran(0, "\n".join(self._main(words[1:])))
        if words[0] == "--property=Id,ActiveState,Before":
            return self._listed(words[1:], self.active, "ActiveState=active\nBefore={}", self.before)
        if words[0] == "--property=Id,After":
            return self._listed(words[1:], self.orders, "After={}", self.orders)
        properties = words[-1].partition("=")[2].split(",")
        told = [line for line in self.environment if line.partition("=")[0] in properties]
        return Ran(0, self._shown(words[0]) + "".join(f"{line}\n" for line in told))

    def _listed(self, patterns: list[str], units: Iterable[str], form: str, told: dict[str, str]) -> Ran:
        """Tell of all loaded units that match, and of those that are named, loaded or not."""
        names = {unit for unit in units if any(fnmatchcase(unit, it) for it in patterns)}
        blocks = [f"Id={name}\n{form.format(told.get(name, ''))}\n" for name in sorted(names, reverse=True)]
        unloaded = [name for name in patterns if "*" not in name and name not in names]
        return Ran(0, "\n".join([*blocks, *(f"Id={name}\nActiveState=inactive\n" for name in unloaded)]))

    def _way(self, words: list[str]) -> Ran:
        """As `ip route get ADDRESS` has always said."""
        address = words[-1]
        if address not in self.ways:
            return Ran(2, error="RTNETLINK answers: Network is unreachable")
        return Ran(0, f"{address} via 10.9.0.1 dev {self.ways[address]} src 10.9.0.2 uid 0 \n    cache \n")

    def interface(self, name: str, **told: str) -> None:
        """Let an interface be there: a virtual one, unless a `device` is told."""
        for what, text in {"type": "1", "ifindex": "7", "uevent": f"INTERFACE={name}\n", **told}.items():
            self.write(f"sys/class/net/{name}/{what}", f"{text}\n")

    def tun(self, name: str, pid: int, cgroup: str, network: str = "net:[4026531840]") -> None:
        """Let a process hold a TUN device, in a network namespace; ours is the usual one."""
        self.process(pid, ["vpn"])
        self.write(f"proc/{pid}/fdinfo/3", "pos:\t0\nflags:\t0104002\nmnt_id:\t25\n")
        self.write(f"proc/{pid}/fdinfo/7", f"pos:\t0\nflags:\t0104002\nmnt_id:\t25\niff:\t{name}\n")
        self.write(f"proc/{pid}/cgroup", cgroup)
        for process, namespace in ((str(pid), network), ("self", "net:[4026531840]")):
            link = self.root / f"proc/{process}/ns/net"
            if not link.is_symlink():
                self.folder(link.parent)
                link.symlink_to(namespace)

    def _main(self, patterns: list[str]) -> Iterator[str]:
        """Tell of all units that match, as systemd does: in no order that one may count on."""
        for unit in sorted({*UNITS, *self.active, *self.main}, reverse=True):
            if any(fnmatchcase(unit, pattern) for pattern in patterns):
                state = "active" if unit in self.active else "inactive"
                yield f"MainPID={self.main.get(unit, 0)}\nId={unit}\nActiveState={state}\n"

    def _shown(self, unit: str) -> str:
        if unit in UNITS:
            return f"ExecStart={{ path=/usr/local/bin/k3s ; {self.k3s_command} }}\n"
        return _SHOWN.format(
            requires=self.requires,
            after=self.after,
            loaded="loaded" if self.installed else "not-found",
            active="active" if unit in self.active else "inactive",
            enabled="enabled" if self.installed else "",
        )

    def _logind(self, words: list[str]) -> Ran:
        if not self.delay_us:
            return Ran(1, error="Failed to get property: The name org.freedesktop.login1 was not provided")
        if words == f"busctl get-property {_LOGIND} InhibitDelayMaxUSec".split():
            return Ran(0, f"t {self.delay_us}\n")
        if words == f"busctl get-property {_LOGIND} HandlePowerKey".split():
            return Ran(0, f's "{self.power_key}"\n')
        if words == f"busctl call {_LOGIND} ListInhibitors".split():
            rows = (
                f'"{what}" "{who}" "needs \\"time\\"" "{mode}" {self.uid} 812'
                for what, who, mode in self.locks
            )
            return Ran(0, f"a(ssssuu) {len(self.locks)} {' '.join(rows)}\n")
        return Ran(1, error=f"unknown: {words}")
