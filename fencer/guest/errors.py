"""Errors with texts for people; each knows its exit code."""

from __future__ import annotations

DONE, REFUSED, USAGE, UNREACHABLE = 0, 1, 2, 3
"""Exit codes, the same as fencer's: done and verified; refused or not verifiable; usage; no answer."""
INTERRUPTED = 130
"""By Ctrl-C, as shells count it."""


class GuestError(Exception):
    """Root of all errors of the guest part; the text is for people."""

    code = REFUSED


class Unusable(GuestError):
    """Something on this machine cannot be used: no kubeconfig, or one that cannot be read."""

    code = USAGE


class Unreachable(GuestError):
    """No answer, or none in time."""

    code = UNREACHABLE


class Unsure(Unreachable):
    """No answer to a write: it may have been done."""


class TooLarge(Unreachable):
    """An answer larger than we accept; a shorter list may fit."""


class Denied(GuestError):
    """The API server answered, and refused; asking again changes nothing."""


class Overtaken(GuestError):
    """The object has changed since it was read; look again."""
