"""How any part of the stand-in says no."""

from __future__ import annotations

from typing import NoReturn

BAD_PARAMETER = "Parameter verification failed."


class Refused(Exception):
    """Answered with anything but 200.

    Args:
        status: HTTP status.
        reason: The text in the status line.
        errors: By parameter.
        empty: Without any body.
        delay_s: How long the real one takes to say so.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        errors: dict[str, str] | None = None,
        *,
        empty: bool = False,
        delay_s: float = 0.0,
    ) -> None:
        super().__init__(f"{status} {reason}")
        self.status, self.reason, self.errors = status, reason, errors
        self.empty, self.delay_s = empty, delay_s


def bad_parameter(name: str, text: str) -> NoReturn:
    """Refuse a request for one of its parameters."""
    raise Refused(400, BAD_PARAMETER, {name: text})
