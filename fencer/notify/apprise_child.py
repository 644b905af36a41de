"""Hands one message to apprise, in a process of its own: whatever that does, fencer goes on.

It is run as a file, not as a part of fencer: Python's isolated mode then finds nothing but what is installed.
On its standard input is ``{"title": …, "text": …, "type": …, "urls": […]}``, on its output for each URL
whether it was told, and what apprise logged: ``[[true, ""], [false, "… error=401."]]``.
"""

import json
import logging
import sys


class _Heard(logging.Handler):
    """Keeps the last remark."""

    last = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.last = record.getMessage()


def main() -> None:
    """Read, tell, and say what came of it."""
    order = json.load(sys.stdin)
    try:
        import apprise  # noqa: PLC0415 - its absence is an answer
    except ModuleNotFoundError:
        sys.exit(NOT_INSTALLED)
    heard = _Heard(logging.WARNING)
    logging.getLogger("apprise").addHandler(heard)
    told = []
    for url in order["urls"]:
        heard.last = ""
        service = apprise.Apprise()
        done = service.add(url) and service.notify(
            title=order["title"],
            body=order["text"],
            notify_type=apprise.NotifyType(order["type"]),
            body_format=apprise.NotifyFormat.TEXT,
        )
        told.append([bool(done), heard.last])
    json.dump(told, sys.stdout)


NOT_INSTALLED = 3
"""Exit status: apprise is not there."""

if __name__ == "__main__":
    main()
