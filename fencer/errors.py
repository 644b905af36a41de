"""What can go wrong with I/O: something could not be found out or done. "No" is a Decision, not an error.

Adapters translate every foreign exception into one of these with ``raise … from``; no foreign exception
leaves an adapter. The text of an error is written for the person who reads it: it names the endpoint, the
value seen, and what would help.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from fencer.core.text import printable


class FencerError(Exception):
    """Root of all errors. Never raised itself: a raise must say whose fault it is.

    Args:
        message: One or two sentences for people.
    """

    exit_code = 3

    def __new__(cls, *_args: object, **_named: object) -> FencerError:  # noqa: PYI034 - refuses the root on purpose
        """Refuse to build the root."""
        if cls is FencerError:
            raise TypeError("FencerError is abstract: raise one of its subclasses")
        return super().__new__(cls)


class ConfigError(FencerError):
    """The configuration, an argument or a secret's file is wrong."""

    exit_code = 2


class JournalError(FencerError):
    """The journal cannot be written or read, or a row of it is damaged. Says nothing about any node."""

    exit_code = 1


class ReceiverError(FencerError):
    """A message did not get to its receiver, or nobody knows. Says nothing about any node.

    Args:
        message: What came of it, for people.
        retry_s: So many seconds the receiver asks to be left alone; None: it does not say.
        works: The receiver works, and this is about this message alone: others may get there.
    """

    def __init__(self, message: str, retry_s: float | None = None, *, works: bool = False) -> None:
        super().__init__(message)
        self.retry_s, self.works = retry_s, works


class ToldError(FencerError):
    """What people were told cannot be kept, or not be read. Says nothing about any node."""

    exit_code = 1


class StateError(FencerError):
    """What this agent has seen cannot be kept on its disk, or not be read. Says nothing about any node."""

    exit_code = 1


class HypervisorError(FencerError):
    """A hypervisor's endpoint did not answer as needed."""


class HypervisorUnreachable(HypervisorError):
    """No answer: refused, cut, timed out, or later than the deadline. Nothing is known."""


class HypervisorDenied(HypervisorError):
    """The endpoint refused our credentials or rights."""


class GuestNotFound(HypervisorError):
    """The endpoint answered that it knows no such guest. Says nothing about why."""


class GuestChanged(HypervisorError):
    """A power order was meant for another run of this guest than the current one. Nothing was sent."""


class HypervisorProtocol(HypervisorError):
    """The endpoint answered something that cannot be understood, or refused an operation."""


class ClusterError(FencerError):
    """The Kubernetes API did not answer as needed."""


class ClusterUnreachable(ClusterError):
    """No answer, or none that can be understood. After a write: outcome unknown, look again."""


class ClusterDenied(ClusterError):
    """The API refused our credentials or rights (401, 403)."""


class ClusterConflict(ClusterError):
    """The object changed since it was read (409, or a failed precondition): look again."""


class ClusterTooLate(ClusterConflict):
    """What was seen is too old by now: look again. Nothing was sent."""


class ClusterNotFound(ClusterError):
    """There is no such object (404)."""


class ClusterProtocol(ClusterError):
    """The API answered something that cannot be understood, or rejected a request (400, 422)."""


def unreadable(path: str, error: OSError) -> str:
    """Say that a file cannot be read, and which user has to own it.

    Args:
        path: The file.
        error: What came of reading it.
    """
    file, why = printable(path), error.strerror or str(error)
    if not isinstance(error, PermissionError):
        return f"{file}: cannot be read: {why}"
    user, folder = os.geteuid(), str(Path(path).parent)
    said = f"{file}: cannot be read by user {user}: {why}"
    if not os.access(folder, os.X_OK, effective_ids=True):
        return f"{said}. Its folder is closed to that user: see `ls -ld {shlex.quote(printable(folder))}`"
    return f"{said}. `sudo chown {user} {shlex.quote(file)}` mends that"
