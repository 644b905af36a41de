"""What the tests build once and keep, beside whoever else builds the same at that time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


def cache_folder(kind: str = "") -> Path:
    """Return where builds (of a kind) are kept, there or not: `FENCER_CACHE` names the place."""
    return Path(os.environ.get("FENCER_CACHE") or Path.home() / ".cache" / "fencer") / kind


@contextmanager
def locked(folder: Path, refusal: type[Exception]) -> Iterator[None]:
    """Hold a folder for this process alone; the kernel gives it back however the process ends.

    Args:
        folder: Made where it is not there.
        refusal: Raised, with what a person can do about it, where nothing can be kept there.
    """
    with ExitStack() as held:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = held.enter_context((folder / "lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError as error:
            raise refusal(
                f"nothing can be kept in {folder} ({error}): name another folder in FENCER_CACHE"
            ) from error
        yield
