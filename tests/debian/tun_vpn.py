#!/usr/bin/python3
"""A VPN such as OpenVPN or Tailscale: a process that holds a TUN device, and carries what goes there.

The other end is a TUN device of the namespace `outside` (see `outside.sh`). Runs inside the guest, as a
service of type `notify`.
"""

import fcntl
import os
import select
import socket
import struct
import subprocess

_TUNSETIFF = 0x400454CA
_TUN_WITHOUT_HEADER = 0x1001
"""IFF_TUN | IFF_NO_PI. Source: Linux include/uapi/linux/if_tun.h."""
_LARGEST = 1 << 16


def _tun(name, address, *route):
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _TUN_WITHOUT_HEADER))
    words = (["address", "add", address], ["link", "set", "up"], ["route", "add", *route])
    for command in words if route else words[:2]:
        subprocess.run(["ip", *command, "dev", name], check=True)
    return device


def main():
    """Carry packets both ways until killed."""
    subprocess.run(["modprobe", "tun"], check=True)
    namespaces = [os.open(path, os.O_RDONLY) for path in ("/run/netns/outside", "/proc/self/ns/net")]
    os.setns(namespaces[0], os.CLONE_NEWNET)
    outside = _tun("tun1", "10.8.0.1/24")
    os.setns(namespaces[1], os.CLONE_NEWNET)
    inside = _tun("tun0", "10.8.0.2/24", "10.0.2.2/32")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
    other = {inside: outside, outside: inside}
    while True:
        for device in select.select(list(other), [], [])[0]:
            os.write(other[device], os.read(device, _LARGEST))


if __name__ == "__main__":
    main()
