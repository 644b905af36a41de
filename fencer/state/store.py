"""The state file of one agent, and beside it the key that signs it."""

from __future__ import annotations

import hmac
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fencer.core.kept import Kept
from fencer.core.text import printable
from fencer.errors import ClusterError, StateError
from fencer.own_file import ForeignFileError, read_file, replace_file, set_aside
from fencer.state.form import (
    HEAD_BYTES,
    LARGEST_BYTES,
    LARGEST_KEY_BYTES,
    DamagedContentError,
    ForeignContentError,
    derive_signer,
    pack,
    pack_signer,
    require_known,
    unpack,
    unpack_signer,
)
from fencer.state.settings import key_file_of

log = logging.getLogger(__name__)

UNKNOWN = "What an agent saw here before is not known"


class DamagedStateError(StateError):
    """What is kept cannot be trusted.

    Args:
        text: Why.
        files: Must be set aside.
        signer: The key that signs, if that is undamaged.
    """

    def __init__(self, text: str, files: tuple[Path, ...], signer: bytes | None = None) -> None:
        super().__init__(text)
        self.files, self.signer = files, signer


@dataclass(frozen=True, slots=True)
class Reading:
    """What is on the disk.

    Attributes:
        kept: What an agent kept; None: there is no state file.
        signer: The key that signs; None: there is no such file.
    """

    kept: Kept | None
    signer: bytes | None


def read_state(path: Path) -> Reading:
    """Read a state file and the key beside it. Changes nothing.

    Raises:
        DamagedStateError: one of them is damaged, or the key is missing.
        StateError: one of them is not fencer's, was written by a newer fencer, or cannot be read.
    """
    key_file = key_file_of(path)
    content, key = _read(path, LARGEST_BYTES + 1), _read(key_file, LARGEST_KEY_BYTES)
    there = () if content is None else (path,)
    signer = None
    try:
        if content is not None:
            with suppress(DamagedContentError):  # unpack raises it again, when the key is known
                require_known(content)
        if key is not None:
            signer = _signer_in(key, key_file, there)
        if content is None:
            return Reading(None, signer)
        return Reading(unpack(content, signer), signer)
    except DamagedContentError as error:
        raise DamagedStateError(f"{_shown(path)}: {error}", there, signer) from error
    except ForeignContentError as error:
        raise StateError(f"{_shown(path)}: {error}") from error


def _signer_in(content: bytes, key_file: Path, there: tuple[Path, ...]) -> bytes:
    try:
        return unpack_signer(content)
    except DamagedContentError as error:
        raise DamagedStateError(f"{_shown(key_file)}: {error}", (*there, key_file)) from error


def _read(path: Path, most_bytes: int) -> bytes | None:
    try:
        return read_file(path, most_bytes, only_ours=True)
    except ForeignFileError as error:
        raise StateError(f"{_shown(path)}: {error}") from error
    except OSError as error:
        raise StateError(f"{_shown(path)}: cannot be read: {error.strerror}") from error


class StateFile:
    """Implements the port `fencer.ports.StateStore`; the contract of each method stands there.

    A call that was abandoned because it took too long does no harm: what it would write is dropped if a
    later call has written, and no lock is held while the cluster is asked.

    Args:
        path: The file; it and its folder are made where they are missing. The key lies beside it.
        key: Returns the cluster's key; raises `ClusterError`. That key is never written to the disk.
        utc: Returns the time of day, for the name of a file that is set aside.
    """

    def __init__(
        self, path: Path, key: Callable[[], bytes], utc: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._path, self._key, self._utc = path, key, utc
        self._key_file = key_file_of(path)
        self._lock = threading.Lock()
        self._signer: bytes | None = None
        self._loaded = self._disowned = False
        """Whether something was loaded; and whether that turned out to be another cluster's."""
        self._unconfirmed: Kept | None = None
        """What was saved with a key that was only read from the disk."""
        self._confirmed = False
        self._refusal = ""
        """Why nothing may be written; empty: it may."""
        self._begun = self._done = 0
        """How many saves were started, and which of them is on the disk."""

    def load(self) -> Kept:
        """See `StateStore.load`."""
        with self._lock:
            self._signer, self._refusal = None, ""
            self._loaded = self._disowned = False
            try:
                found = read_state(self._path)
            except DamagedStateError as error:
                self._signer = error.signer
                raise StateError(f"{error}. {UNKNOWN}. {self._set_aside(*error.files)}") from error
            except StateError as error:
                self._refusal = f"{error}. It is left alone, and nothing is kept there"
                raise StateError(f"{self._refusal}. {UNKNOWN}") from error
            self._signer, self._loaded = found.signer, found.kept is not None
            return found.kept or Kept()

    def confirm(self) -> bool:
        """See `StateStore.confirm`. Once False, it is False until the next `load`.

        A caller that has abandoned the first call still gets its answer from the next one.
        """
        signer = derive_signer(self._key())
        with self._lock:
            before, self._signer, self._confirmed = self._signer, signer, True
            unconfirmed, self._unconfirmed = self._unconfirmed, None
            if before is None or hmac.compare_digest(before, signer):
                return not self._disowned
            if self._loaded:
                self._loaded, self._disowned, self._done = False, True, self._begun
                where = self._set_aside(self._path, self._key_file)
                log.error(
                    "%s: is not signed with this cluster's key. %s. %s", _shown(self._path), UNKNOWN, where
                )
                return False
            if unconfirmed is not None:  # this process saw it, with a key of an earlier one
                try:
                    self._write(unconfirmed, signer)
                except StateError as error:
                    log.warning("%s. It is signed with another key until it is written again", error)
            return True

    def save(self, kept: Kept) -> None:
        """See `StateStore.save`."""
        with self._lock:
            self._begun += 1
            turn, signer = self._begun, self._signer
        if signer is None:
            signer = self._derived()
        with self._lock:
            if turn <= self._done:
                return
            if self._signer is None:
                self._signer, self._confirmed = signer, True
            self._write(kept, self._signer)
            self._done = turn
            self._unconfirmed = None if self._confirmed else kept

    def _derived(self) -> bytes:
        try:
            return derive_signer(self._key())
        except ClusterError as error:
            raise StateError(f"{_shown(self._path)}: nothing is there to sign it with: {error}") from error

    def _write(self, kept: Kept, signer: bytes) -> None:
        """Write the key that signs, where it is not there yet; then what is kept."""
        if self._refusal:
            raise StateError(self._refusal)
        content, key = pack(kept, signer), pack_signer(signer)
        if len(content) > LARGEST_BYTES:
            raise StateError(f"{_shown(self._path)}: not written: {len(content)} bytes are too many")
        head = _read(self._path, HEAD_BYTES)
        if head is not None:
            self._require_known(head)
        if _read(self._key_file, LARGEST_KEY_BYTES) != key:
            self._replace(self._key_file, key)
        self._replace(self._path, content)

    def _require_known(self, head: bytes) -> None:
        """Refuse to overwrite what is not fencer's; what was damaged since it was loaded is overwritten."""
        with suppress(DamagedContentError):
            try:
                require_known(head)
            except ForeignContentError as error:
                raise StateError(f"{_shown(self._path)}: {error}. It is left alone") from error

    def _replace(self, path: Path, content: bytes) -> None:
        try:
            replace_file(path, content)
        except OSError as error:
            raise StateError(f"{_shown(path)}: cannot be written: {error.strerror}") from error

    def _set_aside(self, *files: Path) -> str:
        """Rename files; return where they are now, as a sentence. If that fails, nothing may be written."""
        now, moved = self._utc(), list[str]()
        for file in files:
            try:
                moved.append(_shown(set_aside(file, now)))
            except FileNotFoundError:
                continue
            except OSError as error:
                why = f"cannot be set aside: {error.strerror}"
                self._refusal = f"{_shown(file)}: {why}. It is not overwritten"
                return f"It {why}. Nothing is kept until it is gone"
        return f"It is set aside: {', '.join(moved) or 'nothing is left of it'}"


def _shown(path: Path) -> str:
    return printable(str(path))
