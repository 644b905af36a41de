"""The state file of one agent, and beside it the key that signs it."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from fencer.core.kept import Kept
from fencer.errors import ClusterError, ClusterNotFound, StateError
from fencer.own_file import replace_file, set_aside
from fencer.state.form import (
    HEAD_BYTES,
    LARGEST_BYTES,
    LARGEST_KEY_BYTES,
    DamagedContentError,
    ForeignContentError,
    Signer,
    derive_signer,
    pack,
    pack_signers,
    require_known,
)
from fencer.state.lock import FileLock
from fencer.state.reading import DamagedStateError, read_content, read_state, shown
from fencer.state.settings import key_file_of, lock_file_of

log = logging.getLogger(__name__)

UNKNOWN = "What an agent saw here before is not known"
WAY_OUT = (
    "If you know that no VM that is off now was saved or moved away, type this; the agent then goes on "
    "within a poll"
)


class StateFile:
    """Implements the port `fencer.ports.StateStore`; the contract of each method stands there.

    One agent at a time writes it: the one that took its lock with `load`. Any other one can read it, and its
    `save` fails. If the lock is free later and the file as it was read, such an agent takes it then.

    While the cluster has no key yet, a local key signs: a random one that this agent creates. A state that it
    signed is trusted in any cluster. That is safe. Only root and the agent's own user can write the file and
    its key, as with a derived key. And each note has its Node's UID: notes of another cluster match no Node.

    What is damaged is left where it is, like what cannot be read: a person moves it away, who knows what may
    have been noted in it. Only what turns out to be another cluster's is set aside.

    A call that was abandoned because it took too long does no harm: what it would write is dropped if a
    later call has written, and no lock is held while the cluster is asked.

    Args:
        path: The file; it and its folder are made where they are missing. The key and the lock lie beside
            it.
        key: Returns the cluster's key; raises `ClusterError`, `ClusterNotFound` if there is none yet. That
            key is never written to the disk.
        utc: Returns the time of day, for the name of a file that is set aside.
    """

    def __init__(
        self, path: Path, key: Callable[[], bytes], utc: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._path, self._key, self._utc = path, key, utc
        self._key_file = key_file_of(path)
        self._lock = threading.Lock()
        self._file_lock = FileLock(lock_file_of(path))
        self._as_read: tuple[int, ...] | None = None
        """What tells whether the file was replaced since it was read without its lock; None: nothing does."""
        self._signer: Signer | None = None
        self._on_disk: Signer | None = None
        """The key that signed what is on the disk; None: nothing is there, or it was not loaded."""
        self._loaded = self._disowned = False
        """Whether something was loaded; and whether that turned out to be another cluster's."""
        self._unconfirmed: Kept | None = None
        """What is on the disk with a key that is local, or that was only read from the disk."""
        self._confirmed = False
        self._refusal = ""
        """Why nothing may be written; empty: it may."""
        self._begun = self._done = 0
        """How many saves were started, and which of them is on the disk."""

    def load(self) -> Kept:
        """See `StateStore.load`. Takes the lock, if no other agent holds it."""
        with self._lock:
            self._signer, self._on_disk, self._unconfirmed, self._refusal = None, None, None, ""
            self._loaded = self._disowned = self._confirmed = False
            with suppress(OSError):  # it is tried again with `save`, which says what is wrong
                self._file_lock.take()
            self._as_read = None if self._file_lock.is_held else _identity(self._path)
            try:
                found = read_state(self._path)
            except StateError as error:
                self._refusal = f"{error}. It is left alone, and nothing is kept there. {UNKNOWN}"
                if isinstance(error, DamagedStateError):
                    self._refusal += f". {WAY_OUT}: `{error.remedy}`"
                raise StateError(self._refusal) from error
            self._signer = found.signer
            if found.kept is None:
                return Kept()
            self._loaded, self._on_disk = True, found.signer
            if self._is_local:
                self._unconfirmed = found.kept
            return found.kept

    def confirm(self) -> bool:
        """See `StateStore.confirm`. Once False, it is False until the next `load`.

        What a local key signed is confirmed in any case; the class says why that is safe. Once the cluster
        has a key, that one signs, also what was loaded.

        A caller that has abandoned the first call still gets its answer from the next one.
        """
        try:
            signer = derive_signer(self._key())
        except ClusterNotFound:
            with self._lock:
                if self._loaded and not self._is_local:
                    raise
                signer = self._signer if self._signer and self._is_local else _local_signer()
        with self._lock:
            before, was_local = self._signer, self._is_local
            self._signer, self._confirmed = signer, not signer.local
            if before is not None and before != signer:
                if self._loaded and not was_local:
                    self._disown()
                    return False
                self._sign_again(signer)
            if self._confirmed:
                self._unconfirmed = None
            return not self._disowned

    @property
    def _is_local(self) -> bool:
        return self._signer is not None and self._signer.local

    def _disown(self) -> None:
        self._loaded, self._disowned, self._done = False, True, self._begun
        self._unconfirmed = self._on_disk = None
        where = self._set_aside()
        log.error("%s: is not signed with this cluster's key. %s. %s", shown(self._path), UNKNOWN, where)

    def _sign_again(self, signer: Signer) -> None:
        """Sign what is on the disk with another key, if an agent of this cluster saw it."""
        if self._unconfirmed is not None:
            try:
                self._write(self._unconfirmed, signer)
            except StateError as error:
                log.warning("%s. It is signed with another key until it is written again", str(error))

    def save(self, kept: Kept) -> None:
        """See `StateStore.save`."""
        with self._lock:
            self._begun += 1
            turn, signer = self._begun, self._signer
        if signer is None:
            signer = self._first_signer()
        with self._lock:
            if turn <= self._done:
                return
            if self._signer is None:
                self._signer, self._confirmed = signer, not signer.local
            self._write(kept, self._signer)
            self._done = turn
            self._unconfirmed = None if self._confirmed else kept

    def _first_signer(self) -> Signer:
        try:
            return derive_signer(self._key())
        except ClusterNotFound:
            return _local_signer()
        except ClusterError as error:
            raise StateError(f"{shown(self._path)}: nothing is there to sign it with: {error}") from error

    def _write(self, kept: Kept, signer: Signer) -> None:
        """Write the key that signs, where it is not there yet; then what is kept.

        If another key signed what is on the disk, both keys are written first. So one of them has signed what
        is there, whenever this process is killed. The next save drops the older one.
        """
        if self._refusal:
            raise StateError(self._refusal)
        self._require_lock()
        before = () if self._on_disk in {None, signer} else (self._on_disk,)
        content, keys = pack(kept, signer), pack_signers((signer, *before))
        if len(content) > LARGEST_BYTES:
            raise StateError(f"{shown(self._path)}: not written: {len(content)} bytes are too many")
        head = read_content(self._path, HEAD_BYTES)
        if head is not None:
            self._require_known(head)
        if read_content(self._key_file, LARGEST_KEY_BYTES) != keys:
            self._replace(self._key_file, keys)
        self._replace(self._path, content)
        self._on_disk = signer

    def _require_lock(self) -> None:
        """Take the lock, if this agent does not hold it yet.

        Raises:
            StateError: another agent holds it, or has written since this one has read.
        """
        if self._file_lock.is_held:
            return
        file = lock_file_of(self._path)
        try:
            taken = self._file_lock.take()
        except OSError as error:
            raise StateError(f"{shown(file)}: cannot be locked: {error.strerror}") from error
        if not taken:
            text = f"another agent on this machine uses it. To find that one: lslocks | grep {file.name}"
            raise StateError(f"{shown(self._path)}: {text}")
        if self._as_read not in {None, _identity(self._path)}:
            self._file_lock.release()
            text = "another agent on this machine has written it since this one read it. Restart this agent"
            raise StateError(f"{shown(self._path)}: {text}")

    def _require_known(self, head: bytes) -> None:
        """Refuse to overwrite what is not fencer's; what was damaged since it was loaded is overwritten."""
        with suppress(DamagedContentError):
            try:
                require_known(head)
            except ForeignContentError as error:
                raise StateError(f"{shown(self._path)}: {error}. It is left alone") from error

    def _replace(self, path: Path, content: bytes) -> None:
        try:
            replace_file(path, content)
        except OSError as error:
            raise StateError(f"{shown(path)}: cannot be written: {error.strerror}") from error

    def _set_aside(self) -> str:
        """Rename both files; return where they are now, in a sentence. If it fails, save nothing."""
        try:
            self._require_lock()
        except StateError as error:
            self._refusal = f"{error}. It is not overwritten"
            return f"It is left alone: {error}"
        now, moved = self._utc(), list[str]()
        for file in (self._path, self._key_file):
            try:
                moved.append(shown(set_aside(file, now)))
            except FileNotFoundError:
                continue
            except OSError as error:
                why = f"cannot be set aside: {error.strerror}"
                self._refusal = f"{shown(file)}: {why}. It is not overwritten"
                return f"It {why}. Nothing is kept until it is gone"
        return f"It is set aside: {', '.join(moved) or 'nothing is left of it'}"


def _local_signer() -> Signer:
    return Signer(secrets.token_bytes(32), local=True)


def _identity(path: Path) -> tuple[int, ...]:
    """Return what changes when a file is replaced; empty: there is none."""
    try:
        status = path.lstat()
    except OSError:
        return ()
    return status.st_ino, status.st_mtime_ns, status.st_size
