"""What the kernel of this machine allows, where a test's limit depends on it."""

from pathlib import Path


def held_bytes() -> int:
    """Return how much two ends of a connection may hold beyond what was read: both buffers at their largest.

    Both grow while a busy machine reads late; how far differs from machine to machine by a factor of ten.
    Source: tcp(7), tcp_rmem and tcp_wmem; the third number is the largest.
    """
    limits = (Path("/proc/sys/net/ipv4", name).read_text() for name in ("tcp_rmem", "tcp_wmem"))
    return sum(int(limit.split()[2]) for limit in limits)
