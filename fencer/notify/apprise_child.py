"""Hands one message to apprise, in a process of its own: whatever that does, fencer goes on.

It is run as a file, not as a part of fencer: Python's isolated mode then finds nothing but what is installed,
and what lies beside fencer: the .deb brings its libraries in a folder of its own.
On its standard input is ``{"title": …, "text": …, "type": …, "urls": […]}``, on its output for each URL
a line, as soon as it is known: whether it was told, and what apprise logged: ``[false, "… error=401."]``.

Its argument is after how many seconds it ends by itself, as it must if fencer is no longer there to end it.
"""

import json
import logging
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path

_MEMORY_BYTES = 192 << 20
"""apprise takes 46 MiB (VmData), and all of an answer, however long that is. The unit has 512 MiB."""
_FILE_BYTES = 1 << 20
"""The largest file that it may write: its plug-ins keep keys, if anything."""


class _Heard(logging.Handler):
    """Keeps the last remark."""

    last = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.last = record.getMessage()


def _confine(within_s: int) -> None:
    """Bound what this process can take, and have the kernel choose it first where memory is short."""
    signal.alarm(within_s)
    limits = {
        resource.RLIMIT_DATA: _MEMORY_BYTES,
        resource.RLIMIT_CPU: within_s,
        resource.RLIMIT_FSIZE: _FILE_BYTES,
        resource.RLIMIT_CORE: 0,
    }
    for what, most in limits.items():
        _, allowed = resource.getrlimit(what)
        bound = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
        resource.setrlimit(what, (bound, bound))
    with suppress(OSError):  # where /proc is another one
        Path("/proc/self/oom_score_adj").write_text("1000")


def main() -> None:
    """Read, tell, and say what came of it."""
    _confine(int(sys.argv[1]))
    order = json.load(sys.stdin)
    beside = str(Path(__file__).parents[2])
    if beside not in sys.path:
        sys.path.insert(0, beside)
    try:
        import apprise  # noqa: PLC0415 - its absence is an answer
        import requests  # noqa: PLC0415 - apprise's own
    except ModuleNotFoundError:
        sys.exit(NOT_INSTALLED)
    # A redirect is an error: where it leads nobody has said that the token may go, and a POST becomes a GET.
    requests.sessions.DEFAULT_REDIRECT_LIMIT = 0  # type: ignore[attr-defined]  # the stubs leave it out
    heard = _Heard(logging.WARNING)
    logging.getLogger("apprise").addHandler(heard)
    for url in order["urls"]:
        heard.last = ""
        service = apprise.Apprise()
        done = service.add(url) and service.notify(
            title=order["title"],
            body=order["text"],
            notify_type=apprise.NotifyType(order["type"]),
            body_format=apprise.NotifyFormat.TEXT,
        )
        sys.stdout.write(json.dumps([bool(done), heard.last]) + "\n")
        sys.stdout.flush()


NOT_INSTALLED = 3
"""Exit status: apprise is not there."""

if __name__ == "__main__":
    main()
