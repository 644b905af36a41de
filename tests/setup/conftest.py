"""The configuration's loader, which has to take what set-up writes."""

from tests.config.conftest import load_text

__all__ = ["load_text"]
