"""Which interfaces lead to the API servers, and which units bring these interfaces up.

What systemd starts in parallel to our unit it also stops in parallel. Network managers have fixed names,
which our unit knows. A tunnel may be brought up by a unit named like it (`wg-quick@wg0`), or by the service
of the process that holds it.

Source: Linux, Documentation/ABI/testing/sysfs-class-net (type, uevent, tun_flags, device, lower_*),
include/uapi/linux/if_arp.h; drivers/net/tun.c, tun_chr_show_fdinfo() (since 3.14); cgroups(7); systemd
src/libsystemd/sd-network (links), NetworkManager src/core/nm-config.c (devices), ifupdown(5) (ifstate).
"""

from __future__ import annotations

import os
import re
import socket
from contextlib import suppress
from glob import escape
from ipaddress import ip_address
from pathlib import Path, PurePosixPath
from typing import Iterable, Iterator

from fencer.guest.facts import Route
from fencer.guest.kubeconfig import Access
from fencer.guest.orders import shown
from fencer.guest.system import Run, read_text

_MOST = 1 << 12
"""Bytes that are read of a small file."""
_PODS = re.compile(
    r"cni|flannel|cilium|lxc|cali|vxlan\.calico|wireguard\.cali|tunl0|kube-|weave|ovn|antrea|veth"
)
"""The names of interfaces in the usual pod networks."""
_PLAIN = ("", "1", "772")
"""ARPHRD_ETHER and ARPHRD_LOOPBACK: an interface with another type and no device is a tunnel."""
_NETWORK = {"network-pre.target", "network.target", "network-online.target"}
_MADE_BY = {"wt": "netbird.service", "netmaker": "netclient.service"}
"""Units that make a kernel WireGuard interface, which no process holds, under their own name."""
_MANAGERS = (
    ("run/systemd/netif/links/{index}", r"^ADMIN_STATE=configur", "systemd-networkd.service"),
    ("run/NetworkManager/devices/{index}", r"^nm-owned=true$", "NetworkManager.service"),
    ("run/network/ifstate", r"^{name}=", "networking.service"),
)


def routes(root: Path, run: Run, servers: Iterable[Access]) -> tuple[Route, ...]:
    """Return the ways to API servers, one for each interface; none for servers on this machine.

    Args:
        root: Of the file system.
        run: Runs commands.
        servers: The API servers.
    """
    to: dict[tuple[str, str], list[str]] = {}
    for server in servers:
        for way in _ways(run, server.host):
            to.setdefault(way, []).append(server.url)
    return tuple(
        Route(tuple(urls), trouble=trouble) if trouble else _route(root, run, name, tuple(urls))
        for (name, trouble), urls in to.items()
        if name != "lo"
    )


def _ways(run: Run, host: str) -> list[tuple[str, str]]:
    """Return the interfaces that lead to a host; or none, and why they are not known."""
    try:
        return [(name, "") for name in sorted({_interface(run, at) for at in _addresses(host)})]
    except (OSError, ValueError) as error:
        return [("", getattr(error, "strerror", "") or str(error))]


def _addresses(host: str) -> set[str]:
    with suppress(ValueError):
        return {str(ip_address(host))}
    return {str(at[0]) for *_, at in socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)}


def _interface(run: Run, address: str) -> str:
    """Return the interface that leads to an address.

    Raises:
        ValueError: there is no way, or no `ip` to ask.
    """
    told = run(["ip", "route", "get", address])
    found = re.search(r" dev (\S+)", told.text)
    if told.code != 0 or found is None:
        raise ValueError(
            f"`ip route get {address}` does not tell: {told.error or told.text.strip() or 'nothing'}"
        )
    return found.group(1)


def _route(root: Path, run: Run, name: str, to: tuple[str, ...]) -> Route:
    """Look at an interface, and the ones below it (VLAN, bond, bridge)."""
    stack = list(_stack(root, name))
    units = {unit for one in stack for unit in _units(root, run, one)}
    physical = any((_of(root, one) / "device").exists() for one in stack)
    tunnel = not physical and any(_is_tunnel(root, one) for one in stack)
    return Route(to, name, tuple(sorted(units)), tunnel, pods=bool(_PODS.match(name)))


def _stack(root: Path, name: str) -> Iterator[str]:
    todo, seen = [name], set()
    while todo:
        one = todo.pop(0)
        if one not in seen:
            seen.add(one)
            yield one
            todo += sorted(path.name[len("lower_") :] for path in _of(root, one).glob("lower_*"))


def _of(root: Path, name: str) -> Path:
    return root / "sys/class/net" / name


def _told(root: Path, name: str, what: str) -> str:
    return read_text(_of(root, name) / what, _MOST).strip()


def _is_tunnel(root: Path, name: str) -> bool:
    return bool(_told(root, name, "tun_flags")) or _told(root, name, "type") not in _PLAIN


def _units(root: Path, run: Run, name: str) -> list[str]:
    """Return the units that bring up an interface; managers only if no other unit does.

    None for a network card: its driver brings it up, and a manager that our unit knows. A unit named like it
    that is no manager only uses it.
    """
    if _PODS.match(name) or (_of(root, name) / "device").exists():
        return []
    found = _active(run, [f"*@{escape(name)}.service"])
    if not found and _told(root, name, "tun_flags"):
        found = _active(run, sorted(set(_holders(root, name))))
    if not found and _is_tunnel(root, name):
        found = _active(run, [unit for begin, unit in _MADE_BY.items() if name.startswith(begin)])
        found = found or list(_managers(root, name))
    return found


def _active(run: Run, units: list[str]) -> list[str]:
    """Return those that run, except those that the network waits for: we wait for the network."""
    return [
        said["Id"]
        for said in (shown(run, "Id,ActiveState,Before", units) if units else ())
        if said.get("ActiveState") in ("active", "reloading", "activating")
        and not _NETWORK & set(said.get("Before", "").split())
    ]


def _holders(root: Path, name: str) -> Iterator[str]:
    """Yield the services of the processes that hold a TUN or TAP device of this network namespace.

    The descriptors come last: a container may have any number of them.
    """
    own = _namespace(root / "proc/self")
    for folder in (root / "proc").glob("[0-9]*"):
        unit = _service(read_text(folder / "cgroup", _MOST)) if _namespace(folder) == own else ""
        if unit and _holds(folder, name):
            yield unit


def _holds(process: Path, name: str) -> bool:
    try:
        return any(f"iff:\t{name}\n" in read_text(fd, _MOST) for fd in (process / "fdinfo").iterdir())
    except OSError:  # it has ended
        return False


def _namespace(process: Path) -> str:
    try:
        return os.readlink(process / "ns/net")
    except OSError:
        return ""


def _service(cgroup: str) -> str:
    """Return the system service of a process; empty: none (a user's, a container's)."""
    for _, controller, path in (line.split(":", 2) for line in cgroup.splitlines() if line.count(":") > 1):
        if controller in ("", "name=systemd"):
            for part in PurePosixPath(path).parts[1:]:
                if part.endswith(".service"):
                    return part
                if not part.endswith(".slice") or part == "user.slice":
                    break
    return ""


def _managers(root: Path, name: str) -> Iterator[str]:
    index = _told(root, name, "ifindex")
    for file, line, unit in _MANAGERS:
        path = root / file.format(index=index, name=name)
        if re.search(line.format(name=re.escape(name)), read_text(path), re.MULTILINE):
            yield unit
            return
