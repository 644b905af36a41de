"""A port of which every call goes through a function of its own: what lies between an agent and the world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Call: TypeAlias = Callable[..., Any]
"""A method of a port."""
Through: TypeAlias = Callable[[str, Call], Call]
"""Takes a method's name and the method, and returns what is called instead."""


class Around:
    """A port, with something around its methods. What is no method stays as it is.

    Args:
        port: Of any kind.
        through: What is around each of its methods.
    """

    def __init__(self, port: object, through: Through) -> None:
        self._port, self._through = port, through

    def __getattr__(self, name: str) -> object:
        """Return what the port has; of a method, what is called instead."""
        found = getattr(self._port, name)
        return self._through(name, found) if callable(found) else found
