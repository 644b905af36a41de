"""Hands one message to apprise, in a process of its own: whatever that does, fencer goes on."""

import apprise  # noqa: F401
