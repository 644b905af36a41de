"""What `check` knows about a machine before it judges. Plain values."""

from __future__ import annotations

from dataclasses import dataclass

DRAIN_UNIT = "fencer-guest-drain.service"
UNCORDON_UNIT = "fencer-guest-uncordon.service"
PROGRAM = "/usr/local/bin/fencer-guest"
"""The program that the units run."""


@dataclass(frozen=True)
class Unit:
    """A systemd unit, from `systemctl show`.

    Attributes:
        name: Its name.
        loaded: There is such a unit.
        enabled: It starts at boot.
        active: It runs now (for the drain: its stop will drain).
        after: What it is ordered after.
        tied_to: Units whose stop or restart stops it (Requires, BindsTo, PartOf).
        stop_timeout_s: How long its stop may take.
        drain_timeout_s: How long the drain itself takes at most, by its command line.
    """

    name: str
    loaded: bool = False
    enabled: bool = False
    active: bool = False
    after: tuple[str, ...] = ()
    tied_to: tuple[str, ...] = ()
    stop_timeout_s: float | None = None
    drain_timeout_s: float | None = None


@dataclass(frozen=True)
class Program:
    """The program that the units run.

    Attributes:
        python: The Python in its first line.
        version: Its version, as it says.
        trouble: Why it does not run; empty: it does.
    """

    python: str = ""
    version: str = ""
    trouble: str = ""


@dataclass(frozen=True)
class Lock:
    """An inhibitor lock in logind.

    Attributes:
        who: Its holder, by the holder's own name.
        what: Colon-separated: `shutdown`, `sleep`, …
        mode: `delay` or `block`.
        uid: The holder's: any user may have a lock, under any name.
    """

    who: str
    what: str
    mode: str
    uid: int = 0

    def on_shutdown(self, mode: str) -> bool:
        """Whether it holds shutdowns, in this mode (`delay` also matches `delay-weak`)."""
        return "shutdown" in self.what.split(":") and self.mode.startswith(mode)


@dataclass(frozen=True)
class Setting:
    """A setting in a configuration file.

    Attributes:
        file: Where it is. value: As it is there.
    """

    file: str
    value: str


@dataclass(frozen=True)
class Logind:
    """systemd-logind.

    Attributes:
        running: It answers.
        locks: Inhibitor locks.
        unheard: Why the locks are not known; empty: they are.
        delay_s: InhibitDelayMaxSec that is in force.
        delay_set: The places in the files that set it; the last one wins.
        power_key: What the power button does (HandlePowerKey).
    """

    running: bool = False
    locks: tuple[Lock, ...] = ()
    delay_s: float | None = None
    delay_set: tuple[Setting, ...] = ()
    power_key: str = ""
    unheard: str = ""


@dataclass(frozen=True)
class Kubelet:
    """The kubelet of this machine.

    Attributes:
        unit: Its systemd unit, which runs; empty: none was found.
        grace_s: shutdownGracePeriod, or the sum of those by priority; 0: graceful node shutdown is off.
        critical_s: shutdownGracePeriodCriticalPods.
        by_priority: The periods are set by priority.
        set_in: The file that sets the period, or the feature, last; empty: none does.
        trouble: Why its configuration could not be read; empty: it could.
        doubt: Why its process is not believed; empty: it is.
    """

    unit: str = ""
    grace_s: float = 0.0
    critical_s: float = 0.0
    by_priority: bool = False
    set_in: str = ""
    trouble: str = ""
    doubt: str = ""


@dataclass(frozen=True)
class Connection:
    """The way to the API server.

    Attributes:
        node: This machine's Node.
        server: Where the API server is.
        source: The kubeconfig.
        trouble: Why there is no way; empty: it answered, and the Node is this machine's.
        others: The servers that it would ask next: those that know this node.
        unread: Which of the installer's lists could not be read, and why.
        lost: The kubeconfig's server if it did not answer and another did, with the reason.
        useless: Listed servers that would not help, each with the reason.
        alone: All of them are on this machine.
    """

    node: str = ""
    server: str = ""
    source: str = ""
    trouble: str = ""
    others: tuple[str, ...] = ()
    unread: str = ""
    lost: str = ""
    useless: tuple[str, ...] = ()
    alone: bool = False


@dataclass(frozen=True)
class Route:
    """A way to API servers.

    Attributes:
        to: Them.
        interface: Over which it goes.
        units: Running units that bring it up, or what is below it.
        tunnel: It ends with the process that holds it.
        pods: It is of the pod network.
        trouble: Why nothing is known of it.
    """

    to: tuple[str, ...]
    interface: str = ""
    units: tuple[str, ...] = ()
    tunnel: bool = False
    pods: bool = False
    trouble: str = ""


@dataclass(frozen=True)
class Order:
    """What the drain unit should be ordered after, besides the kubelet.

    Attributes:
        routes: The ways to API servers.
        named: Units that `install` found, or was told.
        missing: Running units that this program's unit names, and the unit in force does not.
        circular: Those that it names, or should name, and that are themselves started after it.
    """

    routes: tuple[Route, ...] = ()
    named: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    circular: tuple[str, ...] = ()


@dataclass(frozen=True)
class Facts:
    """All that `check` judges.

    Attributes:
        systemd: Its version; 0: there is no systemd.
        drain: Our unit that drains.
        uncordon: Our unit that uncordons.
        logind: systemd-logind.
        kubelet: The kubelet.
        connection: The way to the API server.
        order: What the drain unit should be ordered after.
        program: The program that the units run.
        button: The kernel has a power button that logind can hear.
        agent: The guest agent that runs (`qemu-guest-agent`, …); empty: none.
        hibernates: Units of systemd by which it can hibernate.
    """

    systemd: int = 0
    drain: Unit = Unit(DRAIN_UNIT)
    uncordon: Unit = Unit(UNCORDON_UNIT)
    logind: Logind = Logind()
    kubelet: Kubelet = Kubelet()
    connection: Connection = Connection()
    order: Order = Order()
    program: Program = Program()
    button: bool = False
    agent: str = ""
    hibernates: tuple[str, ...] = ()
