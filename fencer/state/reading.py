"""A state file and the key beside it, as they are read. Nothing is changed here."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fencer.core.kept import Kept
from fencer.core.text import printable
from fencer.errors import ClusterError, StateError
from fencer.own_file import ForeignFileError, read_file
from fencer.state.form import (
    LARGEST_BYTES,
    LARGEST_KEY_BYTES,
    DamagedContentError,
    ForeignContentError,
    Signer,
    derive_signer,
    require_known,
    unpack,
    unpack_signers,
)
from fencer.state.settings import key_file_of

log = logging.getLogger(__name__)

UNCOUNTED = "What the agent here has noted does not count for this command"


class DamagedStateError(StateError):
    """What is kept cannot be trusted.

    Args:
        text: Why.
        files: Must be moved away before another state can be kept.

    Attributes:
        remedy: The command that moves them away.
    """

    def __init__(self, text: str, files: tuple[Path, ...]) -> None:
        super().__init__(text)
        self.remedy = " && ".join(shlex.join(("mv", shown(file), f"{shown(file)}.damaged")) for file in files)


@dataclass(frozen=True, slots=True)
class Reading:
    """What is on the disk.

    Attributes:
        kept: What an agent kept; None: there is no state file.
        signer: The key that signed it, or would sign it; None: there is no such file.
    """

    kept: Kept | None
    signer: Signer | None


def read_state(path: Path) -> Reading:
    """Read a state file and the key beside it. Changes nothing.

    Raises:
        DamagedStateError: one of them is damaged, or the key is missing.
        StateError: one of them is not fencer's, was written by a newer fencer, or cannot be read.
    """
    key_file = key_file_of(path)
    content, key = read_content(path, LARGEST_BYTES + 1), read_content(key_file, LARGEST_KEY_BYTES)
    there = () if content is None else (path,)
    signers: tuple[Signer, ...] = ()
    try:
        if content is not None:
            with suppress(DamagedContentError):  # unpack raises it again, when the key is known
                require_known(content)
        if key is not None:
            signers = _signers_in(key, key_file, there)
        if content is None:
            return Reading(None, signers[0] if signers else None)
        return Reading(*unpack(content, signers))
    except DamagedContentError as error:
        raise DamagedStateError(f"{shown(path)}: {error}", there) from error
    except ForeignContentError as error:
        raise StateError(f"{shown(path)}: {error}") from error


def read_content(path: Path, most_bytes: int) -> bytes | None:
    """Return what is in a file, or its beginning; None: there is no file.

    Raises:
        StateError: it is not fencer's, or cannot be read.
    """
    try:
        return read_file(path, most_bytes, only_ours=True)
    except ForeignFileError as error:
        raise StateError(f"{shown(path)}: {error}") from error
    except OSError as error:
        raise StateError(f"{shown(path)}: cannot be read: {error.strerror}") from error


def shown(path: Path) -> str:
    """Return a path as it is shown to people."""
    return printable(str(path))


def _signers_in(content: bytes, key_file: Path, there: tuple[Path, ...]) -> tuple[Signer, ...]:
    try:
        return unpack_signers(content)
    except DamagedContentError as error:
        raise DamagedStateError(f"{shown(key_file)}: {error}", (*there, key_file)) from error


class StateReader:
    """Implements the port `fencer.ports.StateStore` for a command beside an agent: nothing is changed.

    What the agent has noted then counts for the command, too. A command goes on without it: no method raises
    an error, and what is wrong is logged once. So a state file that this user may not read keeps no node from
    being shown as the agent judges it.

    Args:
        path: The agent's state file.
        key: Returns the cluster's key; raises `ClusterError`.
    """

    def __init__(self, path: Path, key: Callable[[], bytes]) -> None:
        self._path, self._key = path, key
        self._warnings = set[str]()

    def load(self) -> Kept:
        """Return what the agent has kept; nothing, if it cannot be read or another cluster's key signed it.

        A command needs the API server anyway, so the cluster's key is asked for at once.
        """
        try:
            found = read_state(self._path)
        except StateError as error:
            self._warn(str(error), UNCOUNTED)
            return Kept()
        if found.kept is None or not self._is_ours(found.signer):
            return Kept()
        return found.kept

    def confirm(self) -> bool:
        """Return True: `load` has found out."""
        return True

    def save(self, kept: Kept) -> None:
        """Write nothing: the state is the agent's."""

    def _is_ours(self, signer: Signer | None) -> bool:
        """Whether this cluster's key signed it, or a local key, as `StateFile` has it."""
        if signer is None or signer.local:
            return True
        try:
            if derive_signer(self._key()) == signer:
                return True
        except ClusterError as error:
            self._warn(f"{shown(self._path)}: cannot be verified: {error}", "It counts all the same")
            return True
        self._warn(f"{shown(self._path)}: is not signed with this cluster's key", UNCOUNTED)
        return False

    def _warn(self, text: str, then: str) -> None:
        if text not in self._warnings:
            self._warnings.add(text)
            log.warning("%s. %s", text, then)
