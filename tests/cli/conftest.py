"""What tests of commands share."""

import pytest


@pytest.fixture
def xterm(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
