"""What can go wrong, as people read it; each error knows the exit code that it means."""

from __future__ import annotations

DONE, REFUSED, USAGE, UNREACHABLE = 0, 1, 2, 3
"""Exit codes, the same as fencer's: done and verified; refused or not verifiable; usage; no answer."""
INTERRUPTED = 130
"""By Ctrl-C, as shells count it."""


class GuestError(Exception):
    """Root of all errors of the guest part; the text is for people."""

    code = REFUSED


class Unusable(GuestError):
    """What is on this machine cannot be used as it is: no kubeconfig, or one that cannot be read."""

    code = USAGE


class Unreachable(GuestError):
    """No answer, or none in time."""

    code = UNREACHABLE


class Unsure(Unreachable):
    """No answer to a write: whether it was done is not known."""


class TooLarge(Unreachable):
    """An answer that is larger than we take; of a shorter list it may not be."""


class Denied(GuestError):
    """The API server answered, and refused; asking again changes nothing."""


class Overtaken(GuestError):
    """The object has changed since it was read; look again."""
