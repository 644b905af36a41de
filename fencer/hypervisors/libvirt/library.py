"""Which libvirt is installed: its C library, which the Python binding loads."""

from __future__ import annotations


def library_version() -> str | None:
    """Return the version of libvirt's library, like ``9.0.0``; None: its binding cannot be loaded.

    Source: libvirt's ``virGetVersion``: major * 1,000,000 + minor * 1,000 + release.
    """
    try:
        import libvirt  # noqa: PLC0415 - an extra
    except ImportError:
        return None
    number = libvirt.getVersion()
    return f"{number // 1_000_000}.{number // 1_000 % 1_000}.{number % 1_000}"
