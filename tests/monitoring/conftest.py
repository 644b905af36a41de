"""The server of tests/web, for what reads it."""

from tests.web.conftest import serve, stage

__all__ = ("serve", "stage")
