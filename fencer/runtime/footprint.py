"""What an agent costs its host, and what it gives back once all lasting parts are built."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress


def trim() -> None:
    """Give back memory that only the start needed, and stop garbage collection of the rest.

    Call it once in the life of a process, after its parts are built.

    Building the Kubernetes client leaves 60 MiB of freed memory with the C library, which gives nothing back
    by itself. And its several hundred modules would be looked through again at every full garbage collection:
    with them, reading 5,000 nodes takes three times the CPU.

    Source: malloc_trim(3), a function of glibc alone; Python's documentation of `gc.freeze`.
    """
    gc.collect()
    gc.freeze()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
